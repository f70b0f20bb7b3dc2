"""The form of the Train tab: its commands, its checks of what a visitor brings, and what a public page refuses."""

import gzip
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from training import assets, launch
from training.start import PUBLIC, Limits
from ui import page, train_form
from ui import train_recipes as recipes
from ui.services import Services


@pytest.mark.parametrize("network", list(recipes.NETWORKS))
def test_every_preset_has_its_settings_and_the_paper_stands_beside_them(network):
    chosen = recipes.NETWORKS[network]
    assert chosen.first in chosen.presets and len(chosen.settings) <= recipes.POOL
    for preset in chosen.presets:
        boxes = train_form.shown_fields(network, preset)
        base = recipes.values(network, preset)
        assert recipes.changes(network, preset, {box["label"]: box["value"] for box in boxes}) == {}
        assert all(str(box["value"]) == recipes.text(base[box["label"]]) for box in boxes)
    if network != "parser":
        assert sum("paper:" in box["info"] for box in boxes) >= 5


def test_the_paper_values_are_those_of_the_paper_presets():
    for network, preset in (("transformer", "base"), ("segmentation", "paper"), ("matching", "paper"), ("alias", "paper")):
        base = recipes.values(network, preset)
        for setting in recipes.NETWORKS[network].settings:
            if setting.paper and setting.field not in ("dropout", "label_smoothing"):
                assert recipes.text(base[setting.field]) == setting.paper.replace(",", ""), (network, setting.field)


def test_times_say_where_they_come_from():
    assert recipes.size_and_time("matching", "drawn", 150, None) == (
        "0.9 million weights, 150 steps, about 40 s (estimated from one core of another machine; measure a step to know it here).")
    assert "about 5 min (measured here, in the run x)" in recipes.size_and_time("matching", "drawn", 150, (2.0, "in the run x"))
    assert "was not recorded" in recipes.size_and_time("alias", "paper", 200_000, None)
    for network, chosen in recipes.NETWORKS.items():  # the first preset of each ends within a lesson
        _, seconds = recipes.COSTS[network, chosen.first]
        assert seconds * recipes.values(network, chosen.first)["steps"] < 150


def test_commands_name_only_what_differs(tmp_path):
    fields = recipes.changes("matching", "drawn", {"steps": "40", "lr": "0.001", "batch": "4", "second_order": "0.1"})
    assert fields == {"steps": 40, "second_order": 0.1}
    command = recipes.start_command("matching", "drawn", tmp_path / "a run", fields)
    assert shlex.split(shlex.join(command)) == command
    assert command == ["python", "-m", "vton.train", "matching", "--preset", "drawn", "--steps", "40", "--second-order", "0.1",
                       "--run", str(tmp_path / "a run")]  # fmt: skip
    assert recipes.resume_command("transformer", tmp_path, {"steps": 9}) == [
        "python", "-m", "transformer.train", "--run", str(tmp_path), "--resume", "--steps", "9"]  # fmt: skip


def test_a_command_of_the_form_is_understood_by_the_program(tmp_path, capsys):
    """The words are parsed by the very parser that the command has."""
    chosen = recipes.NETWORKS["transformer"]
    fields = recipes.changes("transformer", "tiny", {"steps": "7", "rate_scale": "0.5", "precision": "bf16"})
    words = recipes.start_command("transformer", "tiny", tmp_path / "run", fields)
    seen = []

    def build(recipe):
        seen.append(recipe)
        raise ValueError("enough")

    assert launch(build, chosen.recipe, chosen.presets, words[3:]) == 2
    assert (seen[0].steps, seen[0].rate_scale, seen[0].precision, seen[0].data) == (7, 0.5, "bf16", "grammar")


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"steps": "many"}, "steps has to be a whole number, but is 'many'"),
        ({"lr": "1,5x"}, "lr has to be a number"),
        ({"steps": "0"}, "steps must be at least 1"),
        ({"precision": "fp8"}, "precision must be 'no' or 'bf16'"),
        ({"colour": "red"}, "has no setting 'colour'"),
    ],
)
def test_wrong_settings_are_one_sentence(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        recipes.changes("matching", "drawn", given)


def test_changed_settings_are_typed_as_on_a_command_line():
    assert recipes.typed_changes("matching", "--lr 0.0005 --steps=300") == {"lr": 0.0005, "steps": 300}
    assert recipes.typed_changes("matching", " ") == {}
    for line in ("--lr", "lr 3", "--lr 3 4", "--lr '3", "--run x; rm"):
        with pytest.raises(ValueError):
            recipes.typed_changes("matching", line)
    with pytest.raises(ValueError, match="no setting 'run'"):
        recipes.typed_changes("matching", "--run elsewhere")


# -- data that visitors bring ---------------------------------------------------------------------------------------


def bring(tmp_path, network, name, content, source="en", target="de"):
    file = tmp_path / name
    file.write_bytes(content)
    run = tmp_path / "runs" / "new"
    commands, fields = train_form.data_commands(network, "upload", str(file), "", source, target, run)
    train_form.bring_data(network, "upload", str(file), "", source, target, run)
    return commands, fields, run


def test_a_table_is_copied_to_where_the_command_reads_it(tmp_path):
    content = gzip.compress(b"en,de\na,b\nc,d\n")
    assert train_form.columns(str((tmp_path / "x.csv.gz").write_bytes(content) and tmp_path / "x.csv.gz")) == ["en", "de"]
    commands, fields, run = bring(tmp_path, "transformer", "My Table.CSV.gz".lower(), content)
    assert commands == [] and fields["source"] == "en"
    assert (run / "data" / "table.csv.gz").read_bytes() == content and fields["data"] == str(run / "data" / "table.csv.gz")


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
        train_form.check_unpacked_size(tmp_path / "bomb.tsv.gz", most=10_000)
    train_form.check_unpacked_size(tmp_path / "bomb.tsv.gz")


def test_a_header_needs_two_columns(tmp_path):
    (tmp_path / "one.tsv").write_text("en\nhello\n")
    # The sentence stays when the command below it is written again.
    command = Handlers(Services(runs=tmp_path)).by_name["train_command"]
    line, note = command(*given(data="upload", upload=str(tmp_path / "one.tsv"), source=None, target=None))
    assert line.startswith("# Choose the column") and "at least two columns" in note
    assert command(*given())[1] == ""
    with pytest.raises(ValueError, match="line 1: a table needs a header with at least two columns, found 1"):
        train_form.columns(str(tmp_path / "one.tsv"))


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
    [(["../../evil.jpg"], "leads out of its folder"), (["readme.txt"], "holds no photos"), (["image/1.jpg", "image/2.jpg"], "0 product photos")],
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
            train_form.data_commands(*given, tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder or file"):
        train_form.bring_data("parser", "folder", None, str(tmp_path / "nothing"), "", "", tmp_path)


# -- what a public page allows --------------------------------------------------------------------------------------


def test_a_public_page_offers_small_presets_and_refuses_what_costs_more(tmp_path):
    services = Services(runs=tmp_path, training=PUBLIC)
    assert train_form.preset_names(services, "alias") == ["drawn"] and "base" not in train_form.preset_names(services, "transformer")
    assert ("A folder or file on this machine", "folder") not in train_form.data_choices("parser", services.local)
    base = recipes.values("matching", "drawn")
    recipes.check_public("matching", base, {"lr": 0.1, "steps": 90, "batch": 1, **PUBLIC.fields()}, PUBLIC)
    for fields in ({"batch": 64}, {"width": 999}, {"initial": "/etc"}, {"pack": "x.npz"}, {"compile": True}, {"threads": 64}):
        with pytest.raises(ValueError, match="On this page .* cannot be changed"):
            recipes.check_public("matching", base, fields, PUBLIC)
        recipes.check_public("matching", base, fields, Limits())


class Handlers:
    """The functions behind a built page, by their names in its API."""

    def __init__(self, services):
        self.blocks = page.build(services)
        self.by_name = {f.api_name: f.fn for f in self.blocks.fns.values()}


def given(
    network="transformer", preset="tiny", data="bundled", upload=None, folder="", source="en", target="de", name="new", initial="", **typed
):
    boxes = {box["label"]: box["value"] for box in train_form.shown_fields(network, preset, initial)}
    return [network, preset, initial, data, upload, folder, source, target, name, *{**boxes, **typed}.values()]


def test_training_that_is_off_can_be_started_by_no_request(tmp_path, monkeypatch):
    monkeypatch.setattr("training.start.subprocess.Popen", lambda *a, **k: pytest.fail("a process was started"))
    handlers = Handlers(Services(runs=tmp_path, training=None)).by_name
    assert "cannot be started" in handlers["train_start"](*given())[0]
    for name, arguments in (("run_stop", ["x"]), ("run_resume", ["x", ""]), ("run_fork", ["x", "", 1, "y"]), ("run_delete", ["x"])):
        assert "cannot be started or changed" in handlers[name](*arguments)[0]
    assert list(tmp_path.iterdir()) == []


def test_a_limited_page_starts_within_its_limits_and_says_so_in_the_command(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr("training.start.subprocess.Popen", lambda words, **k: started.append(words) or SimpleNamespace(pid=0, poll=lambda: 0))
    handlers = Handlers(Services(runs=tmp_path, training=Limits(at_once=1, runs=2, steps=50, minutes=3, megabytes=9))).by_name
    assert "50 steps at most" in handlers["train_start"](*given(steps="51"))[0]
    assert "cannot be changed" in handlers["train_start"](*given(steps="50", tokens="9999"))[0]
    assert "there is no preset" in handlers["train_start"](*given(preset="base", steps="5"))[0]
    assert "such data cannot be used" in handlers["train_start"](*given(data="folder", folder="/etc", steps="50"))[0]
    assert started == [] and list(tmp_path.iterdir()) == []
    assert "was started" in handlers["train_start"](*given(steps="50"))[0]
    assert "--steps 50 --max-minutes 3 --max-megabytes 9" in started[0][2]
    assert "fork" not in started[0][2] and (tmp_path / "new" / "command.json").exists()


def test_a_start_that_fails_leaves_no_folder(tmp_path):
    handlers = Handlers(Services(runs=tmp_path)).by_name
    assert "A run&#x27;s name begins" in handlers["train_start"](*given(name="../up"))[0]
    bad = tmp_path / "bad.tsv"
    bad.write_text("a\tb\n")
    assert "no column" in handlers["train_start"](*given(data="upload", upload=str(bad)))[0]
    assert [f.name for f in tmp_path.iterdir()] == ["bad.tsv"]


# -- shipped weights to begin with ----------------------------------------------------------------------------------


def test_weights_are_offered_where_they_fit():
    assert list(recipes.beginnings("transformer", "everyday")) == ["everyday"]
    assert list(recipes.beginnings("transformer", "multi30k")) == ["multi30k-en-de", "multi30k-en-fr"]
    assert recipes.beginnings("transformer", "base") == recipes.beginnings("alias", "drawn") == {}
    for network in ("parser", "segmentation", "matching", "alias"):
        assert recipes.beginnings(network, "lite-cpu") == {"tryon-lite": assets.model_dir("tryon-lite") / network}


def test_a_training_begins_with_shipped_weights_gently_and_in_their_languages(tmp_path):
    command = Handlers(Services(runs=tmp_path)).by_name["train_command"]
    line, _ = command(*given(preset="everyday", initial="everyday", source=None, target=None))
    words = dict(zip(*[iter(shlex.split(line)[3:])] * 2))
    assert Path(words["--initial"]).resolve() == assets.model_dir("everyday")
    assert words["--directions"] == "en-de de-en" and words["--align"] == "0"
    assert float(words["--rate-scale"]) == pytest.approx(0.3 * recipes.values("transformer", "everyday")["rate_scale"])
    table = tmp_path / "table.tsv"
    table.write_text("Instruction\tResponse\na\tb\nc\td\n")
    brought = dict(data="upload", upload=str(table), source="Instruction", target="Response")
    line, _ = command(*given(preset="everyday", initial="everyday", **brought))
    assert line.startswith("# everyday knows de, en, fr: name the columns")
    line, _ = command(*given(preset="everyday", **brought))
    assert "--directions ''" in line and "--initial" not in line
    line, _ = command(*given(preset="tiny", initial="everyday"))
    assert line.startswith("# The weights") and "do not fit" in line


def test_the_boxes_follow_what_is_begun_with(tmp_path):
    choose = Handlers(Services(runs=tmp_path)).by_name["train_initial"]
    labels = [box["label"] for box in train_form.shown_fields("alias", "lite-cpu")]

    def changed(initial):
        note, *boxes = choose("alias", "lite-cpu", initial)
        return note, {label: float(box["value"]) for label, box in zip(labels, boxes, strict=True) if "value" in box}

    note, rates = changed("tryon-lite")  # and nothing else: what was typed stays
    assert "0.3 of the preset" in note and rates == pytest.approx({"lr": 3e-4, "lr_d": 1.2e-4})
    note, rates = changed("")
    assert "of the preset" not in note and rates == pytest.approx({"lr": 1e-3, "lr_d": 4e-4})


@pytest.mark.parametrize("network, preset, initial", [("transformer", "everyday", "everyday"), ("parser", "drawn", "tryon-lite")])
def test_the_command_that_begins_with_shipped_weights_trains(tmp_path, network, preset, initial):
    """The figures before the first update are those of trained weights, far from the ones of random weights."""

    def first_figure(initial):
        line, _ = Handlers(Services(runs=tmp_path)).by_name["train_command"](
            *given(network, preset, initial=initial, name=f"begun-{initial}", steps="1", evaluate_every="1", save_every="1", seed="3")
        )
        done = subprocess.run([sys.executable, *shlex.split(line)[1:]], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        key = "perplexity" if network == "transformer" else "mean_iou"
        found = re.search(rf"step 0 .*\b{key} ([0-9.]+)", done.stdout)
        assert found, done.stdout
        return float(found[1])

    begun, random = first_figure(initial), first_figure("")
    assert begun < 0.1 * random if network == "transformer" else begun > 3 * random, (begun, random)
