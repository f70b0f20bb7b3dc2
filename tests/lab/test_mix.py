import pytest
import torch

from lab.translator import mix
from training.checkpoint import average_checkpoints, list_checkpoints
from training.weights import load_model, save_model
from transformer import Translator
from transformer.train import main as train

QUICK = ["--preset", "tiny", "--threads", "1", "--save-every", "2", "--evaluate-every", "2", "--bleu", "0"]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two models, the second of which went on from the first."""
    folder = tmp_path_factory.mktemp("mix")
    assert train([*QUICK, "--steps", "2", "--run", str(folder / "r1"), "--export", str(folder / "first")]) == 0
    assert (
        train(
            [
                *QUICK,
                "--steps",
                "2",
                "--run",
                str(folder / "r2"),
                "--initial",
                str(folder / "first"),
                "--export",
                str(folder / "second"),
            ]
        )
        == 0
    )
    return folder


def test_each_weight_is_the_weighted_mean_and_the_folder_translates(two):
    out = two / "out"
    assert mix.main([f"{two / 'first'}=1", f"{two / 'second'}=3", "--out", str(out)]) == 0
    (_, a), (_, b), (_, c) = (load_model(two / name) for name in ("first", "second", "out"))
    moved = 0
    for name, value in c.items():
        assert torch.allclose(value, 0.25 * a[name] + 0.75 * b[name], atol=1e-3)
        moved += int(not torch.equal(a[name], b[name]))
    assert moved  # the two differ, or the mean would say nothing
    Translator.from_pretrained(out, "cpu").translate("The dog sees the cat.", "en", "de")


def test_a_run_counts_as_the_mean_of_its_last_checkpoints_and_the_first_config_stays(two):
    config, state = load_model(two / "first")
    longer = {**config, "length_penalty": {"en-de": 1.2}, "transformer": {**config["transformer"], "max_length": 99}}
    save_model(two / "before", longer, state)
    (two / "before" / "tokenizer.model").write_bytes((two / "first" / "tokenizer.model").read_bytes())
    assert mix.main([f"{two / 'before'}=1", f"{two / 'r2'}=1", "--out", str(two / "with-run")]) == 0
    header, mixed = load_model(two / "with-run")
    assert header == longer
    last = average_checkpoints(two / "r2", len(list_checkpoints(two / "r2" / "checkpoints")))  # fewer than LAST
    for name, value in mixed.items():
        assert torch.allclose(value, 0.5 * state[name] + 0.5 * last[name], atol=1e-3)


def test_what_cannot_be_mixed_gets_a_sentence(two, capsys):
    first = str(two / "first")
    config, state = load_model(first)
    save_model(two / "other", {**config, "pairs": [["en", "fr"]]}, state)
    (two / "other" / "tokenizer.model").write_bytes((two / "first" / "tokenizer.model").read_bytes())
    for parts, said in (
        ([f"{first}=1", f"{two / 'other'}=1"], "another size, vocabulary or pair"),
        ([f"{first}=1", "multi30k-en-de=1"], "another size, vocabulary or pair"),
        ([f"{first}=0"], "above 0"),
        ([f"{first}=nan"], "above 0"),
        ([f"{first}=half"], "MODEL=WEIGHT"),
        ([first], "MODEL=WEIGHT"),
        (["nothing-here=1"], "nothing-here"),
    ):
        assert mix.main([*parts, "--out", str(two / "none")]) == 2
        assert said in capsys.readouterr().err.splitlines()[-1]
    assert not (two / "none").exists()
