"""The form of the Train tab: its commands, its checks of what a visitor brings, and what a public page refuses."""

import gzip
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest

from training import assets, launch, start
from training.start import PUBLIC, Limits
from ui.services import Services
from ui.train import data as brought
from ui.train import form as train_form
from ui.train import networks, recipes, survey
from ui.train.form import TrainForm
from ui.train.view import RunView


@pytest.mark.parametrize("network", list(networks.NETWORKS))
def test_every_preset_has_its_settings_in_words_and_the_paper_beside_them(network):
    chosen = networks.NETWORKS[network]
    assert chosen.first in chosen.presets and len(chosen.settings) <= networks.MAX_OWN_SETTINGS
    for preset in chosen.presets:
        base = networks.NETWORKS[network].values(preset)
        boxes = train_form.boxes(network, base)
        assert recipes.changes(network, base, {field: box["value"] for field, box in boxes.items()}) == {}
        words = [box[part] for box in boxes.values() for part in ("label", "info", "value")]
        assert not any("_" in text or text == "-1" for text in words), words
        assert preset in recipes.preset_label(network, preset)
    if network in ("transformer", "segmentation", "matching", "alias", "gan"):
        assert sum("paper:" in box["info"] for box in boxes.values()) >= 5


def test_the_paper_values_are_those_of_the_paper_presets():
    for network, preset in (
        ("transformer", "base"),
        ("segmentation", "paper"),
        ("matching", "paper"),
        ("alias", "paper"),
    ):
        base = networks.NETWORKS[network].values(preset)
        for setting in networks.NETWORKS[network].settings:
            if setting.paper and setting.unset is None:
                assert recipes.text(base[setting.field]) == setting.paper.replace(",", ""), (network, setting.field)


def test_times_say_where_they_come_from():
    def said(network, preset, measured=None):
        return recipes.size_and_time(network, preset, networks.NETWORKS[network].values(preset), measured)

    assert said("matching", "draped") == (
        "0.9 million weights, 200 steps, about 2 min (estimated from one core of another machine)."
    )
    assert "about 10 min (measured here, in the run x)" in said("matching", "draped", (3.0, "in the run x"))
    assert "is not known: measure a step" in said("alias", "paper")
    for network, chosen in networks.NETWORKS.items():  # the first preset of each ends within a lesson
        seconds = networks.seconds_of(network, chosen.first)
        assert seconds * networks.NETWORKS[network].values(chosen.first)["steps"] < 150


def test_the_sizes_are_those_of_the_networks_that_are_trained():
    """Against the shipped weights."""
    from vton.pipeline import load_network

    made = load_network("matching", assets.model_dir("tryon-lite") / "matching")
    count = sum(weight.numel() for weight in made.parameters())
    assert networks.NETWORKS["matching"].weights(networks.NETWORKS["matching"].values("lite-cpu")) == count
    fields = networks.NETWORKS["alias"].values("lite-cpu")
    alias = networks.NETWORKS["alias"]
    assert alias.parameters(fields) == 3 * alias.weights(fields)  # the critic and the average


def test_commands_name_only_what_differs(tmp_path):
    fields = recipes.changes(
        "matching",
        networks.NETWORKS["matching"].values("draped"),
        {"steps": "40", "lr": "0.001", "batch": "4", "second_order": "0.1"},
    )
    assert fields == {"steps": 40, "second_order": 0.1}
    command = recipes.start_command("matching", "draped", tmp_path / "a run", fields)
    assert shlex.split(shlex.join(command)) == command
    assert command == [
        "python",
        "-m",
        "vton.train",
        "matching",
        "--preset",
        "draped",
        "--steps",
        "40",
        "--second-order",
        "0.1",
        "--run",
        str(tmp_path / "a run"),
    ]
    assert recipes.resume_command("transformer", tmp_path, {"steps": 9}) == [
        "python",
        "-m",
        "transformer.train",
        "--run",
        str(tmp_path),
        "--resume",
        "--steps",
        "9",
    ]


def test_a_command_of_the_form_is_understood_by_the_program(tmp_path, capsys):
    """The words are parsed by the very parser that the command has."""
    chosen = networks.NETWORKS["transformer"]
    typed = {"steps": "7", "rate_scale": "0.5", "precision": "bf16", "dropout": ""}
    fields = recipes.changes("transformer", networks.NETWORKS["transformer"].values("tiny"), typed)
    words = recipes.start_command("transformer", "tiny", tmp_path / "run", fields)
    seen = []

    def build(recipe):
        seen.append(recipe)
        raise ValueError("enough")

    assert launch(build, chosen.recipe, chosen.presets, words[3:]) == 2
    assert (seen[0].steps, seen[0].rate_scale, seen[0].precision, seen[0].data) == (7, 0.5, "bf16", "grammar")
    assert seen[0].dropout == -1  # an empty box: as the size has it


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"steps": "many"}, "“Steps in all” has to be a whole number, but is 'many'"),
        ({"lr": "1,5x"}, "“Learning rate” has to be a number"),
        ({"steps": "0"}, "“Steps in all” must be at least 1"),
        ({"save_every": "0"}, "“Steps between two checkpoints” must be at least 1"),
        ({"precision": "fp8"}, "“Number format” must be 'no' or 'bf16'"),
        ({"colour": "red"}, "has no setting 'colour'"),
    ],
)
def test_wrong_settings_are_one_sentence(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        recipes.changes("matching", networks.NETWORKS["matching"].values("draped"), given)


def test_changed_settings_are_typed_as_on_a_command_line():
    assert recipes.read_changes("matching", "--lr 0.0005 --steps=300") == {"lr": 0.0005, "steps": 300}
    assert recipes.read_changes("matching", " ") == {}
    for line in ("--lr", "lr 3", "--lr 3 4", "--lr '3", "--run x; rm"):
        with pytest.raises(ValueError):
            recipes.read_changes("matching", line)
    with pytest.raises(ValueError, match="no setting 'run'"):
        recipes.read_changes("matching", "--run elsewhere")


# -- data that visitors bring ---------------------------------------------------------------------------------------


def bring(tmp_path, network, name, content, source="en", target="de"):
    file = tmp_path / name
    file.write_bytes(content)
    run = tmp_path / "runs" / "new"
    data, chosen = brought.Data("upload", str(file), "", source, target), networks.NETWORKS[network]
    commands, fields = chosen.data_commands(data, run)
    chosen.bring(data, run)
    return commands, fields, run


def test_a_table_is_copied_to_where_the_command_reads_it(tmp_path):
    content = gzip.compress(b"en,de\na,b\nc,d\n")
    assert survey.columns(str((tmp_path / "x.csv.gz").write_bytes(content) and tmp_path / "x.csv.gz")) == [
        "en",
        "de",
    ]
    commands, fields, run = bring(tmp_path, "transformer", "My Table.CSV.gz".lower(), content)
    assert commands == [] and fields["source"] == "en"
    assert (run / "data" / "table.csv.gz").read_bytes() == content and fields["data"] == str(
        run / "data" / "table.csv.gz"
    )


@pytest.mark.parametrize(
    "name, content, sentence",
    [
        ("a.tsv", b"", "a.tsv, line 1: the file is empty"),
        ("a.tsv", b"en\tfr\nx\ty\n", "a.tsv, line 1: there is no column 'de'; the columns are en, fr"),
        ("a.tsv", b"en\tde\n\t\n", "holds no pair with text"),
        ("a.tsv", b"en\tde\nx\ty\n", "one pair only"),
        ("a.tsv", b"en\tde\nx\ty\n\xff\xfe\ta\n" * 2, "a.tsv, line [0-9]+: cannot be read as a UTF-8 table"),
        ("a.csv.gz", b"no gzip", "line 1: cannot be read"),
        ("a.xlsx", b"PK", "none of the endings"),
    ],
)
def test_a_bad_table_is_one_sentence_with_its_line(tmp_path, name, content, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        bring(tmp_path, "transformer", name, content)
    assert name in str(caught.value) and "\n" not in str(caught.value)


def test_a_gzip_bomb_is_refused_before_it_is_read(tmp_path):
    (tmp_path / "bomb.tsv.gz").write_bytes(gzip.compress(b"en\tde\n" + b"a\tb\n" * 100_000))
    with pytest.raises(ValueError, match="bomb.tsv.gz unpacks to more than 0 MiB"):
        brought.check_size_inside(tmp_path / "bomb.tsv.gz", most=10_000)
    brought.check_size_inside(tmp_path / "bomb.tsv.gz")


def test_a_header_needs_two_columns(form):
    table = form.runs / "one.tsv"
    table.write_text("en\nhello\n")
    values = given(form, data="upload", upload=str(table), source=None, target=None)
    made = form.derive(values)
    assert made[form.command].startswith("# Choose the column") and "at least two columns" in made[form.preview]
    assert form.derive(given(form))[form.preview] == ""
    with pytest.raises(ValueError, match="line 1: a table needs a header with at least two columns, found 1"):
        survey.columns(table)


# Made up, in the shape of a helpdesk's table: what is asked and answered, with a column on the case before them.
HELPDESK = """Instruction,Input,Response
손님이 배송 날짜를 물음,주문한 책은 언제 도착하나요?,"손님, 주문하신 책은 내일 오후에 도착합니다. \
도착하기 한 시간 전에 문자로 다시 알려 드리겠습니다. \
혹시 댁에 계시지 않으면 원하시는 장소에 맡겨 드릴 수 있으니 편하게 말씀해 주세요."
손님이 색을 바꾸고 싶어함,파란 우산을 빨간 우산으로 바꿀 수 있나요?,\
"네, 손님. 아직 보내기 전이라 빨간 우산으로 바꾸어 드릴 수 있습니다."
손님이 영수증을 부탁함,지난주에 산 가방 영수증을 다시 받을 수 있을까요?,\
"손님, 영수증은 내 주문 화면에서 언제든지 다시 받으실 수 있습니다."
손님이 문 여는 시간을 물음,일요일에도 가게 문을 여나요?,"일요일에는 오전 열 시부터 오후 다섯 시까지 문을 엽니다, 손님."
"""


@pytest.fixture
def helpdesk(tmp_path):
    file = tmp_path / "helpdesk.csv"
    file.write_text(HELPDESK, encoding="utf-8")
    return file


@pytest.mark.parametrize("preset", ["tiny", "quick"])
def test_a_helpdesk_table_fits_the_small_presets_by_itself(form, helpdesk, preset):
    """Input and Response are chosen, and its longest answer is not left out, on a public page either."""
    values = given(form, preset=preset, data="upload", upload=str(helpdesk), source=None, target=None)
    made = form.read_upload(values)
    assert (made[form.source]["value"], made[form.target]["value"]) == ("Input", "Response")
    values = after(form, values, made)
    longest = max(len(text) for _, text in survey.survey(helpdesk, "Input", "Response").pairs)
    assert longest > 100 and int(values[form.boxes_of("transformer")["max_length"]]) >= longest + 2
    assert "4 pairs, the longest text has" in values[form.preview] and "left out" not in values[form.preview]
    assert "주문한 책은" in values[form.preview] and "4 pairs can only be memorised" in values[form.preview]
    words = dict(zip(*[iter(shlex.split(values[form.command])[3:])] * 2))
    assert (words["--source"], words["--target"]) == ("Input", "Response")
    commands, fields = form.plan(values)
    form.check(values, fields)
    form.services.training = PUBLIC
    if preset == "tiny":  # within its steps
        assert form.plan(values)[1]["max_length"] == fields["max_length"]


@pytest.mark.parametrize(
    "typed, sentence",
    [
        ({"vocab_size": "40"}, "different characters, so the vocabulary needs at least"),
        ({"max_length": "6"}, "Every pair is longer than 6 word pieces"),
        ({"keep_last": "900000000"}, "the disk has"),
    ],
)
def test_what_could_not_begin_is_said_before_it_starts(form, helpdesk, typed, sentence, monkeypatch):
    monkeypatch.setattr("training.start.subprocess.Popen", lambda *a, **k: pytest.fail("a process was started"))
    values = given(form, data="upload", upload=str(helpdesk), source="Input", target="Response", **typed)
    assert sentence in form.begin(values)[form.note]
    assert [file.name for file in form.runs.iterdir()] == ["helpdesk.csv"]


@pytest.mark.parametrize(
    "header, rows, found",
    [
        ("Instruction,Input,Response", "a,b,c", ("Input", "Response")),
        ("Response,Instruction", "a,b", ("Instruction", "Response")),
        ("number,english,german", "1,a,b", ("english", "german")),
        ("id,left,right", "7,a,b", ("left", "right")),
        ("Question ,answer", "a,b", ("Question ", "answer")),
        ("fr,de", "a,b", ("fr", "de")),
        ("de,fr,en", "a,b,c", ("en", "de")),
    ],
)
def test_columns_are_chosen_by_their_names_and_their_words(tmp_path, header, rows, found):
    file = tmp_path / "x.csv"
    file.write_text(f"{header}\n{rows}\n")
    assert survey.guess_columns(file, survey.columns(file)) == found


def test_a_survey_counts_what_is_left_out_in_word_pieces(tmp_path):
    """Against the pieces of a vocabulary made here, and a loop."""
    from transformer.tokenizer import Tokenizer

    file = tmp_path / "x.tsv"
    pairs = [("ab " * n, "cd " * (2 * n)) for n in range(1, 12)]
    file.write_text("en\tde\n" + "".join(f"{a}\t{b}\n" for a, b in pairs))
    found = survey.survey(file, "en", "de")
    fields = {"vocab_size": 40, "max_length": 12, "tokens": 64}
    tokenizer = Tokenizer.train((text for pair in found.pairs for text in pair), 40)
    long = [pair for pair in found.pairs if max(len(tokenizer.encode(text)) for text in pair) >= 12]
    assert 0 < found.count_too_long(fields) == len(long) < 11
    assert found.fit(fields)["max_length"] == max(len(text) for pair in found.pairs for text in pair) + 2
    with pytest.raises(ValueError, match=f"at least {found.min_vocabulary} word pieces"):
        found.count_too_long({**fields, "vocab_size": found.min_vocabulary - 1})
    with pytest.raises(ValueError, match=str(found.min_vocabulary)):  # and so says the library that makes them
        Tokenizer.train((text for pair in found.pairs for text in pair), found.min_vocabulary - 1)


def test_room_on_the_disk_is_looked_at(tmp_path, monkeypatch):
    recipe = networks.NETWORKS["matching"].recipe(keep_last=4)
    assert start.room_for(1_000_000, recipe) == pytest.approx(6 * 12)  # six checkpoints of weights and two moments
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=500e6))
    start.check_room(tmp_path / "not" / "made", 399)
    with pytest.raises(ValueError, match="need about 1.2 GB and the disk has 500 MB left"):
        start.check_room(tmp_path, 1200)


def zipped(tmp_path, names):
    with zipfile.ZipFile(tmp_path / "made.zip", "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return (tmp_path / "made.zip").read_bytes()


def test_a_zip_is_unpacked_and_prepared_by_the_command(tmp_path):
    content = zipped(tmp_path, ["set/image/1.jpg", "set/image/2.jpg", "set/cloth/1.jpg", "set/cloth/2.jpg"])
    commands, fields, run = bring(tmp_path, "matching", "set.zip", content)
    assert commands == [["python", "-m", "vton.prepare", str(run / "data/set"), "--out", str(run / "data/prepared")]]
    assert fields == {"pack": str(run / "data/prepared/pack.npz")}
    assert (run / "data/set/set/image/1.jpg").exists()


@pytest.mark.parametrize(
    "names, sentence",
    [
        (["../../evil.jpg"], "leads out of its folder"),
        (["readme.txt"], "holds no photos"),
    ],
)
def test_a_bad_zip_is_one_sentence(tmp_path, names, sentence):
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        bring(tmp_path, "segmentation", "set.zip", zipped(tmp_path, names))
    assert not (tmp_path / "evil.jpg").exists() and not (tmp_path / "runs" / "evil.jpg").exists()


def test_missing_choices_are_asked_for(tmp_path):
    for given, sentence in (
        (("transformer", "upload", None, "", "en", "de"), "Upload a table first"),
        (("parser", "upload", None, "", "", ""), "Upload a zip first"),
        (("transformer", "folder", None, " ", "en", "de"), "Write the path"),
        (("transformer", "upload", "a.tsv", "", "en", None), "Choose the column"),
    ):
        with pytest.raises(ValueError, match=sentence):
            networks.NETWORKS[given[0]].data_commands(brought.Data(*given[1:]), tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder or file"):
        networks.NETWORKS["parser"].bring(brought.Data("folder", None, str(tmp_path / "nothing")), tmp_path)


# -- what a public page allows --------------------------------------------------------------------------------------


def test_a_public_page_offers_small_presets_and_refuses_what_costs_more(tmp_path):
    assert recipes.preset_names("alias", PUBLIC) == ["draped"] and "base" not in recipes.preset_names(
        "transformer", PUBLIC
    )
    assert "parse" in recipes.network_names(None) and "parse" not in recipes.network_names(PUBLIC)
    assert ("A folder or file on this machine", "folder") not in networks.NETWORKS["parser"].data_choices(False)
    base = networks.NETWORKS["matching"].values("draped")
    recipes.check_public("matching", base, {"lr": 0.1, "steps": 90, "batch": 1, **PUBLIC.fields()}, PUBLIC)
    for fields in (
        {"batch": 64},
        {"width": 999},
        {"initial": "/etc"},
        {"pack": "x.npz"},
        {"compile": True},
        {"threads": 64},
    ):
        with pytest.raises(ValueError, match="On this page .* cannot be changed"):
            recipes.check_public("matching", base, fields, PUBLIC)
        recipes.check_public("matching", base, fields, Limits())


def form_of(services):
    """The form with the view that shows what it starts, as the page builds them."""
    with gr.Blocks(), gr.Tab("Train") as tab:
        form = TrainForm(services)
        form.wire(RunView(services), tab)
    return form


@pytest.fixture
def form(tmp_path):
    return form_of(Services(runs=tmp_path, local=True))


def given(form, network="transformer", preset="tiny", initial="", **other):
    """The values of a form as a visitor has filled it; `other`: components and fields by their names."""
    boxes = train_form.boxes(network, networks.NETWORKS[network].values(preset), initial)
    places = {"data": "bundled", "upload": None, "folder": "", "source": "en", "target": "de", "name": "new"}
    places |= {"network": network, "preset": preset, "initial": initial}
    values = dict.fromkeys(form.fields, "")
    values |= {box: boxes[field]["value"] for field, box in form.boxes_of(network).items()}
    values |= {getattr(form, name): other.pop(name, value) for name, value in places.items()}
    return values | {form.boxes_of(network)[field]: value for field, value in other.items()}


def after(form, values, made):
    """The form after an answer of the server, and after the question that follows it."""

    def value(update, before):
        return update.get("value", before) if isinstance(update, dict) else update

    now = {**values, **{one: value(update, values.get(one)) for one, update in made.items()}}
    return {**now, **form.derive(now)}


def test_training_that_is_off_can_be_started_by_no_request(tmp_path, monkeypatch):
    monkeypatch.setattr("training.start.subprocess.Popen", lambda *a, **k: pytest.fail("a process was started"))
    form = form_of(Services(runs=tmp_path, training=None))
    assert "cannot be started" in form.begin(given(form))[form.note]
    view, controls = form.view, form.view.controls
    asked = {view.run: "x", controls.changes: "", controls.from_step: 1, controls.new_name: "y"}
    for handler in (controls.stop_it, controls.resume_it, controls.fork_it, controls.delete_it):
        assert "cannot be started or changed" in handler(asked)[controls.note]
    assert list(tmp_path.iterdir()) == []


def test_a_limited_page_starts_within_its_limits_and_says_so_in_the_command(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(
        "training.start.subprocess.Popen",
        lambda words, **k: started.append(words) or SimpleNamespace(pid=0, poll=lambda: 0),
    )
    limits = Limits(at_once=1, runs=2, steps=50, minutes=3, megabytes=9)
    form = form_of(Services(runs=tmp_path, training=limits))

    def begun(**other):
        return form.begin(given(form, **other))[form.note]

    assert "50 steps at most" in begun(steps="51")
    assert "“Word pieces a step” cannot be changed" in begun(steps="50", tokens="9999")
    assert "there is no preset" in begun(preset="base", steps="5")
    assert "Such data cannot be used" in begun(data="folder", folder="/etc", steps="50")
    assert started == [] and list(tmp_path.iterdir()) == []
    made = form.begin(given(form, steps="50"))
    assert made[form.note] == "" and "The run new was started" in made[form.view.controls.note]
    assert made[form.fold]["open"] is False and made[form.view.run]["value"] == "new"
    assert "--steps 50 --max-minutes 3 --max-megabytes 9" in started[0][2]
    assert "fork" not in started[0][2] and (tmp_path / "new" / "command.json").exists()


def test_a_start_that_fails_leaves_no_folder(form):
    assert "A run&#x27;s name begins" in form.begin(given(form, name="../up"))[form.note]
    bad = form.runs / "bad.tsv"
    bad.write_text("a\tb\n")
    assert "no column" in form.begin(given(form, data="upload", upload=str(bad)))[form.note]
    assert [f.name for f in form.runs.iterdir()] == ["bad.tsv"]


def test_another_network_brings_its_own_presets_data_and_boxes(form):
    values = given(form, data="upload", upload="x.csv") | {form.network: "gan"}
    values = after(form, values, form.choose_network(values))
    # Nothing of the other network's choices is carried over.
    assert (values[form.preset], values[form.data], values[form.upload]) == ("ring", "bundled", None)
    assert values[form.source] is values[form.target] is None and not values[form.folder]
    assert values[form.boxes_of("gan")["objective"]] == "non-saturating" and values[form.name] == "gan-ring-1"
    values[form.data] = "upload"
    values = after(form, values, form.choose_data(values))
    assert "Upload a file of digits" in values[form.command]
    values[form.data] = "bundled"
    values = after(form, values, form.choose_data(values))
    assert values[form.command].startswith("python -m gan.train --preset ring --run")
    values[form.network] = "parse"
    values = after(form, values, form.choose_network(values))
    assert values[form.data] == "upload" and "Upload a file of trees" in values[form.command]
    assert "Penn Treebank" in values[form.preview]  # where trees are to be had


# -- shipped weights to begin with ----------------------------------------------------------------------------------


def test_weights_are_offered_where_they_fit():
    translator = networks.NETWORKS["transformer"]
    assert list(translator.beginnings("everyday")) == ["everyday"]
    assert list(translator.beginnings("multi30k")) == ["multi30k-en-de", "multi30k-en-fr"]
    assert translator.beginnings("base") == networks.NETWORKS["alias"].beginnings("draped") == {}
    for network in ("parser", "segmentation", "matching", "alias", "garment"):
        assert networks.NETWORKS[network].beginnings("lite-cpu") == {
            "tryon-lite": assets.model_dir("tryon-lite") / network
        }


def test_a_training_begins_with_shipped_weights_gently_and_in_their_languages(form):
    def command(**other):
        return form.derive(given(form, **other))[form.command]

    rate = networks.NETWORKS["transformer"].values("everyday")["rate_scale"]
    line = command(preset="everyday", initial="everyday", source=None, target=None)
    words = dict(zip(*[iter(shlex.split(line)[3:])] * 2))
    assert Path(words["--initial"]).resolve() == assets.model_dir("everyday")
    assert words["--directions"] == "en-de de-en" and words["--align"] == "0"
    assert float(words["--rate-scale"]) == pytest.approx(0.3 * rate)
    table = form.runs / "table.tsv"
    table.write_text("Instruction\tResponse\na\tb\nc\td\n")
    brings = {"data": "upload", "upload": str(table), "source": "Instruction", "target": "Response"}
    assert command(preset="everyday", initial="everyday", **brings).startswith(
        "# everyday knows de, en, fr: name the columns"
    )
    line = command(preset="everyday", **brings)
    assert "--directions ''" in line and "--initial" not in line
    line = command(preset="tiny", initial="everyday")
    assert line.startswith("# The weights") and "do not fit" in line


def test_the_boxes_follow_what_is_begun_with(form):
    def changed(initial):
        values = given(form, "alias", "lite-cpu") | {form.initial: initial}
        made = form.choose_initial(values)
        rates = {field: float(made[box]) for field, box in form.boxes_of("alias").items() if box in made}
        return after(form, values, made)[form.about], rates

    note, rates = changed("tryon-lite")  # and nothing else: what was typed stays
    assert "0.3 of the preset" in note and rates == pytest.approx({"lr": 0.9e-4, "lr_d": 1.8e-4})
    note, rates = changed("")
    assert "of the preset" not in note and rates == pytest.approx({"lr": 3e-4, "lr_d": 6e-4})


@pytest.mark.slow
@pytest.mark.parametrize(
    "network, preset, initial", [("transformer", "everyday", "everyday"), ("parser", "draped", "tryon-lite")]
)
def test_the_command_that_begins_with_shipped_weights_trains(form, network, preset, initial):
    """The figures before the first update are those of trained weights, far from the ones of random weights."""

    def first_figure(initial):
        few = {"steps": "1", "evaluate_every": "1", "save_every": "1", "seed": "3", "name": f"begun-{initial}"}
        line = form.derive(given(form, network, preset, initial, **few))[form.command]
        if network == "transformer":
            line += " --bleu 0"  # random weights never end a sentence
        done = subprocess.run([sys.executable, *shlex.split(line)[1:]], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        key = "perplexity" if network == "transformer" else "mean_iou"
        found = re.search(rf"step 0 .*\b{key} ([0-9.]+)", done.stdout)
        assert found, done.stdout
        return float(found[1])

    begun, random = first_figure(initial), first_figure("")
    assert begun < 0.1 * random if network == "transformer" else begun > 3 * random, (begun, random)
