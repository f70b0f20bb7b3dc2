"""Every command refuses what it cannot use before it begins: one sentence on standard error and the status 2."""

import dataclasses
import importlib
import math
import re
import typing
from pathlib import Path

import pytest
import torch

from training import arguments, devices
from training.command import one_sentence
from transformer.options import Sampling, SearchOptions
from transformer.search import length_penalty

ROOT = Path(__file__).resolve().parent.parent
# What each command needs at least. FILE and FOLDER are there, NEW is not yet; * stands for its recipes.
NEEDED = {
    "app": "",
    "transformer.translate": "A",
    "transformer.parse": "A",
    "transformer.train": "--preset tiny --run NEW",
    "transformer.evaluate": "--data FILE",
    "lab.translator.parsing": "--data FILE",
    "lab.translator.remarks": "--data FILE",
    "lab.translator.rules": "--data FILE",
    "lab.translator.train": "--data FOLDER --run NEW",
    "lab.translator.mix": "A=1 B=1 --out NEW",
    "lab.translator.distil": "--model everyday --data FILE --source en --target de --out NEW.tsv.gz",
    "lab.translator.paraphrase": "--model everyday --data FILE --origin de --source en --target de --judge everyday "
    "--out NEW.tsv.gz",
    "lab.translator.groups": "--data FILE",
    "lab.translator.grow": "--model everyday --size mini --out NEW",
    "lab.translator.phrasebook": "--out NEW",
    "lab.translator.variety": "--data FOLDER --out NEW",
    "lab.translator.lexicon": "--data FILE --source en --target de --out NEW",
    "transformer.export": "FOLDER NEW",
    "lab.translator.series": "--run FOLDER --out NEW",
    "lab.translator.shortlist": "--model everyday --data FILE",
    "transformer.prepare": "--data FILE --source en --target de --out NEW",
    "vton.tryon": "FILE FILE --out NEW",
    "vton.train": "parser --run NEW",
    "vton.prepare": "FOLDER --out NEW",
    "vton.infer": "--checkpoints FOLDER --data FOLDER --pairs FILE --out NEW",
    "vton.export": "FOLDER NEW",
    "lab.tryon.contact_sheet": "--people FOLDER --garments FOLDER --out NEW.png",
    "vton.data": "--people FOLDER --out NEW",
    "lab.tryon.synthetic": "--out NEW",
    "lab.tryon.draping.anatomy": "--bodies FOLDER --out NEW.npz",
    "lab.tryon.draping.openings": "--data FOLDER --out NEW",
    "lab.tryon.draping.drape": "--data FOLDER --body FILE --out NEW",
    "lab.tryon.draping.pack": "--records FOLDER --data FOLDER --openings FOLDER --studio FILE --out NEW.npz",
    "lab.tryon.draping.drawings": "--out NEW",
    "lab.tryon.exchange pairs": "--data FOLDER --out NEW",
    "lab.tryon.exchange measure": "--pairs FOLDER",
    "gan.train": "--run NEW",
    "gan.sample": "--out NEW.png",
    "gan.export": "FOLDER NEW",
    "lab.tryon.train_all": "--budget 1 --run NEW",
    "lab.tryon.pseudo_labels": "--people FOLDER --parser FOLDER --out NEW",
    "lab.tryon.labelled parser": "--data FOLDER",
    "lab.tryon.garments": "--run NEW",
    "lab.tryon.contrary": "--run NEW",
    "lab.gan.evaluate": "--data FOLDER",
    "ui.tryon.example": "",
    "lab.words": "http://127.0.0.1:9/",
    "lab.pictures": "http://127.0.0.1:9/",
    "lab.tryon.evaluate": "table",
    "lab.tryon.evaluate warps": "",
    **dict.fromkeys(
        (
            "benchmarks.alias", "benchmarks.decoding", "lab.checks.fuzz", "benchmarks.gan_page",
            "benchmarks.gpu", "lab.checks.image", "benchmarks.insight", "lab.checks.kill", "lab.checks.load",
            "lab.checks.mutants", "benchmarks.training_step", "benchmarks.tryon", "benchmarks.visitors",
            "benchmarks.warp",
        ),
        "",
    ),
}  # fmt: skip
# For maintainers; they take none.
WITHOUT_OPTIONS = {
    "ui.translate.opening",
    "ui.first",
    "lab.translator.spelling",
    "lab.checks.pins",
}
SAME = {"vton.data.pack": "vton.data"}
NUMBERS = ("nan", "inf", "-inf", "five", "", "1e999", "9" * 40)
LONG = "a" * 300  # more than a file's name can have
WRONG = {
    "integer": (*NUMBERS, "1.5"),
    "a_number": NUMBERS[:-1],
    "a_device": ("tpu", "cuda", "cuda:7", "mps", "", "cpu cpu"),
    "Path": ("MISSING",),  # the command itself says what is missing
    "an_existing_file": ("MISSING", "FOLDER", ""),
    "an_existing_folder": ("MISSING", "FILE", ""),
    "something_existing": ("MISSING", ""),
    "a_folder_to_write": ("FILE", "FILE/below", "", "LINK", LONG),
    "a_file_to_write": ("FOLDER", "FILE/below", "", "LINK", LONG),
    "a_boolean": ("perhaps", "2"),
}


class Seen(Exception):
    """Carries a command's parser out of it."""


def command(name):
    module, _, subject = name.partition(" ")
    module = importlib.import_module("vton.data.pack" if module == "vton.data" else module)
    return lambda argv: module.main([*subject.split(), *argv])


def parser_of(name, needed, monkeypatch):
    """The parser of the options after a command's first words, that of its subject where it has some."""

    def look(self, argv=None, namespace=None):
        raise Seen(self)

    with monkeypatch.context() as patch, pytest.raises(Seen) as seen:
        patch.setattr(arguments.CommandLine, "parse_args", look)
        command(name)(needed)
    parser = seen.value.args[0]
    for action in parser._actions:
        if isinstance(action.choices, dict):  # sub-parsers
            parser = action.choices[next(word for word in [*name.split()[1:], *needed] if word in action.choices)]
    return parser


def kind(action):
    return getattr(action.type, "__qualname__", "").partition(".")[0]


def test_every_module_that_runs_is_in_the_table():
    found = set()
    packages = ("transformer", "vton", "gan", "training", "ui", "lab", "benchmarks")
    for file in [ROOT / "app.py", *(file for package in packages for file in (ROOT / package).rglob("*.py"))]:
        if '__name__ == "__main__"' in file.read_text(encoding="utf-8"):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            found.add(SAME.get(name, name))
    assert found - WITHOUT_OPTIONS == {name.partition(" ")[0] for name in NEEDED}


@pytest.mark.parametrize("name", NEEDED)
def test_what_a_command_cannot_use_is_one_sentence_before_it_begins(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(devices, "present_devices", lambda: ["cpu"])
    places = {one: str(tmp_path / one) for one in ("FILE", "FOLDER", "NEW", "MISSING", "LINK")}
    (tmp_path / "FILE").write_text("x")
    (tmp_path / "FOLDER").mkdir()
    (tmp_path / "LINK").symlink_to("nowhere")

    def put(text):
        return re.sub("|".join(places), lambda found: places[found[0]], text)

    needed = [put(word) for word in NEEDED[name].split()]
    tried = 0
    for action in parser_of(name, needed, monkeypatch)._actions:
        assert action.type not in (int, float), f"{name}: {action.dest} takes whatever is a {action.type}"
        wrong = WRONG.get(kind(action), ("nothing",) if action.choices and action.option_strings else ())
        for value in wrong if action.option_strings else ():
            argv = [*needed, f"{action.option_strings[-1]}={put(value)}"]
            try:
                status = command(name)(argv)
            except SystemExit as ended:  # app.py ends the process itself
                status = ended.code
            said = capsys.readouterr()
            assert status == 2, (argv, status)
            assert said.err.startswith("error: ") and said.err.count("\n") == 1 and not said.out, (argv, said)
            assert sorted(file.name for file in tmp_path.iterdir()) == ["FILE", "FOLDER", "LINK"], argv
            tried += 1
    assert tried or not re.search("--", NEEDED[name])


@pytest.mark.parametrize(
    "name, argv",
    [
        ("transformer.export", "MISSING NEW"),
        ("transformer.export", "FOLDER FILE"),
        ("vton.export", "FILE NEW"),
        ("gan.export", "FOLDER FILE/below"),
        ("vton.prepare", "MISSING --out NEW"),
        ("vton.tryon", "MISSING FILE --out NEW"),
        ("vton.tryon", "FILE FOLDER --out NEW"),
    ],
)
def test_arguments_without_a_name_are_checked_too(name, argv, tmp_path, capsys):
    (tmp_path / "FILE").write_text("x")
    (tmp_path / "FOLDER").mkdir()
    argv = re.sub("FILE|FOLDER|NEW|MISSING", lambda found: str(tmp_path / found[0]), argv).split()
    assert command(name)(argv) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: argument ") and said.count("\n") == 1 and not (tmp_path / "NEW").exists()


@pytest.mark.parametrize("name", [one for one in NEEDED if one not in ("app", "lab.tryon.evaluate")])
def test_a_model_that_there_is_not_is_one_sentence(name, tmp_path, monkeypatch, capsys):
    (tmp_path / "FILE").write_text("x")
    (tmp_path / "FOLDER").mkdir()
    needed = [re.sub("FILE|FOLDER|NEW", lambda found: str(tmp_path / found[0]), word) for word in NEEDED[name].split()]
    if not any("--model" in action.option_strings for action in parser_of(name, needed, monkeypatch)._actions):
        return
    assert command(name)([*needed, "--model", "nothing"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["FILE", "FOLDER"]


def test_a_released_folder_with_an_impossible_name_is_one_sentence(capsys):
    with pytest.raises(SystemExit) as ended:
        command("app")(["--released", LONG])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.startswith("error: --released: there is no folder") and said.count("\n") == 1


@pytest.mark.parametrize(
    "read, text, value",
    [
        (arguments.integer(1, 5), "5", 5),
        (arguments.a_number(above=0, most=1), "1", 1.0),
        (arguments.a_seed, str(2**63 - 1), 2**63 - 1),
        (arguments.a_boolean, "off", False),
        (arguments.a_device, "cpu", "cpu"),
    ],
)
def test_what_can_be_used_is_used(read, text, value):
    assert read(text) == value


def test_a_folder_or_file_to_write_may_be_there_already(tmp_path):
    (tmp_path / "old.png").write_text("x")
    assert arguments.a_folder_to_write(str(tmp_path)) == tmp_path
    assert arguments.a_folder_to_write(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
    assert arguments.a_file_to_write(".png")(str(tmp_path / "old.png")) == tmp_path / "old.png"


@pytest.mark.parametrize("name, said", [("tpu", "no device 'tpu'"), ("cuda", "No CUDA device"), ("cpu:x", "no device")])
def test_a_device_that_is_not_there(name, said, monkeypatch):
    monkeypatch.setattr(devices, "present_devices", lambda: ["cpu"])
    with pytest.raises(ValueError, match=said):
        devices.choose_device(name)
    with pytest.raises(TypeError, match="device has to be"):
        devices.choose_device(5)


@pytest.mark.parametrize(
    "call, argument",
    [
        (lambda: importlib.import_module("transformer").Translator.from_pretrained(5), "name"),
        (lambda: importlib.import_module("transformer").Translator.from_pretrained("everyday", device=5), "device"),
        (lambda: importlib.import_module("vton").TryOn.from_pretrained(None), "name_or_folder"),
        (lambda: importlib.import_module("vton").TryOn.run(None, 5, "b"), "person"),
        (lambda: importlib.import_module("vton").TryOn.run(None, "a", ["b"]), "garment"),
        (lambda: importlib.import_module("vton").TryOn.run(None, "a", "b", options="quick"), "options"),
        (lambda: importlib.import_module("vton").TryOn.run(None, "a", "b", seed="1"), "seed"),
        (lambda: importlib.import_module("vton").TryOn.run(None, "a", "b", mirror="no"), "mirror"),
        (lambda: importlib.import_module("vton").TryOn.run(None, "a", "b", size="512x384"), "size"),
        (lambda: importlib.import_module("vton").TryOn.resume(None, "record", "warp"), "result"),
        (lambda: SearchOptions(beam="4").check(), "beam"),
        (lambda: SearchOptions(alpha="0.6").check(), "alpha"),
        (lambda: SearchOptions(n_best=True).check(), "n_best"),
        (lambda: SearchOptions(without="layout").check(), "without"),
        (lambda: SearchOptions(sampling=Sampling(top_k=1.5)).check(), "top_k"),
        (lambda: importlib.import_module("gan.sampling").load(5), "model"),
        (lambda: importlib.import_module("gan.sampling").noise(None, "many", 0), "count"),
        (lambda: importlib.import_module("gan.sampling").noise(None, 3, True), "seed"),
        (lambda: importlib.import_module("gan.sampling").walk("a", "b", 3), "start"),
    ],
)
def test_a_wrong_type_in_python_is_named(call, argument):
    with pytest.raises(TypeError, match=f"^{argument} has to be .*, but is of type ") as caught:
        call()
    assert str(caught.value).endswith(".")


RECIPES = (
    "transformer.train.TranslationRecipe", "transformer.parsing.recipe.ParseRecipe",
    "lab.translator.train.MixtureRecipe", "gan.task.GanRecipe", "vton.recipes.parser.ParserRecipe",
    "vton.recipes.segmentation.SegmentationRecipe", "vton.recipes.matching.MatchingRecipe",
    "vton.recipes.flow.FlowRecipe", "vton.recipes.alias.AliasRecipe", "vton.recipes.garment.GarmentRecipe",
    "lab.tryon.garments.GarmentRecipe", "lab.tryon.contrary.SegmentationRecipe",
)  # fmt: skip


@pytest.mark.parametrize("name", RECIPES)
def test_a_number_of_a_recipe_that_no_run_could_use_is_one_sentence(name):
    module, _, kind = name.rpartition(".")
    module = importlib.import_module(module)
    kind = getattr(module, kind)
    fields = {"data": "x", "directions": "en-de de-en"}
    given = {name: value for name, value in fields.items() if hasattr(kind, name)}
    recipe, hints = kind(**given), typing.get_type_hints(kind)
    for field in dataclasses.fields(recipe):
        wrong = {int: (-(10**12), 10**30), float: (-1e300, 1e300, math.nan, math.inf, -math.inf)}
        for value in wrong.get(hints[field.name], ()):
            with pytest.raises(ValueError, match=rf"^{field.name} must be ") as refused:
                dataclasses.replace(recipe, **{field.name: value}).check()
            assert str(refused.value).count("\n") == 0
    for preset in module.PRESETS.values():
        kind(**{**preset, **given}).check()


@pytest.mark.parametrize("sizes", [(2**40, 2**10), (2**62, 2**62)])
def test_what_does_not_fit_into_memory_is_one_sentence(sizes, capsys):
    assert one_sentence(lambda: torch.empty(sizes) and None)() == 2
    assert capsys.readouterr().err == "error: this does not fit into the memory; choose smaller numbers\n"
    with pytest.raises(RuntimeError, match="a fault"):
        one_sentence(lambda: (_ for _ in ()).throw(RuntimeError("a fault")))()


def test_what_the_system_says_is_a_sentence_without_its_number(tmp_path, capsys):
    assert one_sentence(lambda: (tmp_path / LONG).read_text() and None)() == 2
    said = capsys.readouterr().err
    assert said.startswith("error: File name too long: '") and len(said) < 250 and said.count("\n") == 1


@pytest.mark.parametrize("text, argument", [(5, "text"), (None, "text"), (["A dog.", 5], r"text\[1\]")])
def test_what_is_no_text_is_named(text, argument):
    translator = importlib.import_module("transformer").Translator.from_pretrained("multi30k-en-de", device="cpu")
    with pytest.raises(TypeError, match=f"^{argument} has to be"):
        translator.translate(text)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e308, -11.0])
def test_a_length_penalty_beyond_any_use_is_refused(number):
    with pytest.raises(ValueError, match="^alpha has to be a number from -10 to 10, but is "):
        SearchOptions(alpha=number).check()


@pytest.mark.parametrize("number", [-10.0, 10.0])
def test_the_widest_length_penalties_give_numbers(number):
    SearchOptions(alpha=number).check()
    assert 0 < length_penalty(2000, number) < math.inf
