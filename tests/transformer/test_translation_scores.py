"""BLEU, chrF and perplexity: known values, the two BLEU measures apart, and the command."""

import gzip
import json
import math

import pytest
import torch

from transformer import Translator
from transformer.data import collate
from transformer.evaluate import directions, evaluate, main, perplexity, text_scores
from transformer.translate import DEFAULT_MODEL

PAIRS = [
    ("A man is riding a bicycle.", "Ein Mann fährt auf einem Fahrrad."),
    ("Two dogs are playing in the snow.", "Zwei Hunde spielen im Schnee."),
    ("A woman in a red dress is singing on a stage.", "Eine Frau in einem roten Kleid singt auf einer Bühne."),
    ("A little boy is jumping into a pool.", "Ein kleiner Junge springt in ein Schwimmbecken."),
]


@pytest.fixture(scope="module")
def translator(device):
    return Translator.from_pretrained("multi30k-en-de", device)


def test_scores_of_perfect_and_of_wrong_text():
    references = [target for _, target in PAIRS]
    perfect = text_scores(references, references, "de")
    assert perfect["bleu"] == pytest.approx(100) and perfect["chrf"] == pytest.approx(100)
    assert "tok:13a" in perfect["bleu_signature"] and "case:mixed" in perfect["bleu_signature"]
    wrong = text_scores(["x"] * 4, references, "de")
    assert wrong["bleu"] < 1 and wrong["chrf"] < 10


def test_bleu_by_hand():
    """Precisions 5/6, 3/5, 2/4, 1/3, no brevity penalty: their geometric mean."""
    scores = text_scores(["a b c d x f"], ["a b c d e f"], "en")
    assert scores["bleu"] == pytest.approx(100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25, abs=1e-4)


def test_lower_cased_moses_bleu_forgives_case_only():
    """Runs on either installation: without sacremoses the figure is absent, never guessed."""
    scores = text_scores(["EIN MANN FÄHRT FAHRRAD ."], ["Ein Mann fährt Fahrrad ."], "de")
    assert scores["bleu"] < 50
    try:
        import sacremoses  # noqa: F401
    except ImportError:
        assert scores["bleu_lower_moses"] is None
    else:
        assert scores["bleu_lower_moses"] == pytest.approx(100)


def test_perplexity_is_that_of_teacher_forcing(translator):
    total, count = 0.0, 0
    for source, target in PAIRS:
        batch = collate([(translator.tokenizer.encode(source), translator.tokenizer.encode(target))])
        with torch.no_grad():
            logits = translator.model.eval()(batch.src, batch.tgt, batch.src_mask, batch.tgt_mask)[0]
        total += torch.nn.functional.cross_entropy(logits, batch.labels, reduction="sum").item()
        count += len(batch.labels)
    assert perplexity(translator, PAIRS, "de") == pytest.approx(math.exp(total / count), rel=1e-4)


def test_the_shipped_model_translates_captions(translator):
    scores, outputs = evaluate(translator, PAIRS, "en", "de")
    assert len(outputs) == 4 and scores.sentences == 4
    assert scores.chrf > 40 and scores.perplexity < 30
    copied = text_scores([s for s, _ in PAIRS], [t for _, t in PAIRS], "de")
    assert scores.chrf > copied["chrf"] + 20  # far better than leaving the English as it is


def test_the_command_prints_json_and_writes_the_outputs(tmp_path, capsys):
    with gzip.open(tmp_path / "test.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("en\tde\n" + "".join(f"{s}\t{t}\n" for s, t in PAIRS))
    out = tmp_path / "out.txt"
    argv = [
        "--data",
        str(tmp_path / "test.tsv.gz"),
        "--beam",
        "1",
        "--limit",
        "3",
        "--device",
        "cpu",
        "--output",
        str(out),
    ]
    assert main(["--model", "multi30k-en-de", *argv]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["sentences"] == 3 and 0 < scores["bleu"] <= 100
    assert len(out.read_text(encoding="utf-8").splitlines()) == 3
    assert main(argv) == 0  # the default model, in each of its directions that the table has
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    both = [("en", "de"), ("de", "en")]
    pairs = Translator.from_pretrained(DEFAULT_MODEL).pairs
    assert [(one["source"], one["target"]) for one in found] == [pair for pair in pairs if pair in both]
    assert all((one["model"], one["sentences"]) == (DEFAULT_MODEL, 3) and 0 < one["bleu"] < 100.001 for one in found)
    assert len(out.read_text(encoding="utf-8").splitlines()) == 3
    assert main(["--data", str(tmp_path / "no.tsv")]) == 2 and "no.tsv" in capsys.readouterr().err


def test_copying_the_source_is_scored_beside_it(translator):
    scores, _ = evaluate(translator, PAIRS, "en", "de")
    copied = text_scores([s for s, _ in PAIRS], [t for _, t in PAIRS], "de")
    assert (scores.copy_bleu, scores.copy_chrf) == (copied["bleu"], copied["chrf"])


def test_several_models_on_the_same_sentences(tmp_path, capsys):
    rows = [(*pair, "") for pair in PAIRS] + [("A cat.", "", "Un chat.")]
    table = "en\tde\tfr\n" + "".join("\t".join(row) + "\n" for row in rows)
    (tmp_path / "test.tsv").write_text(table, encoding="utf-8")
    argv = [
        "--model",
        "multi30k-en-de",
        "multi30k-en-de",
        "--data",
        str(tmp_path / "test.tsv"),
        "--beam",
        "1",
        "--limit",
        "2",
    ]
    assert main([*argv, "--device", "cpu"]) == 0
    out = capsys.readouterr().out.splitlines()
    scores = [json.loads(line) for line in out if line.startswith("{")]
    assert len(scores) == 2 and all(
        (s["model"], s["source"], s["target"]) == ("multi30k-en-de", "en", "de") for s in scores
    )
    assert scores[0]["bleu"] == scores[1]["bleu"] and scores[0]["sentences"] == 2


def test_each_direction_that_the_table_has_text_for(translator, tmp_path):
    (tmp_path / "a.tsv").write_text("en\tde\tfr\nA dog.\tEin Hund.\t\n", encoding="utf-8")

    class Many:
        pairs = [("en", "de"), ("de", "en"), ("en", "fr"), ("es", "en")]
        check_pair = Translator.check_pair

    assert directions(Many(), str(tmp_path / "a.tsv"), None, None) == [("en", "de"), ("de", "en")]
    assert directions(Many(), str(tmp_path / "a.tsv"), "de", None) == [("de", "en")]
    (tmp_path / "b.tsv").write_text("x\ty\n1\t2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no column 'en'"):
        directions(Many(), str(tmp_path / "b.tsv"), None, None)
