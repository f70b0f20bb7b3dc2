import gzip
import json
import math

import pytest
import torch

from lab.translator import paraphrase
from transformer import Translator
from transformer.attention import causal_mask
from transformer.data import read_parallel
from transformer.evaluate import losses, perplexity

EN = ["A man is sleeping.", "Two dogs play in the snow.", "A girl is eating an apple."]
DE = ["Ein Mann schläft.", "Zwei Hunde spielen im Schnee.", "Ein Mädchen isst einen Apfel."]
FR = ["Un homme dort.", "Deux chiens jouent dans la neige.", "Une fille mange une pomme."]


def asked(table):
    """Arguments of the command that do not differ."""
    languages = ["--source", "en", "--target", "de"]
    return ["--model", "everyday", "--data", str(table), *languages, "--judge", "multi30k-en-de", "--device", "cpu"]


@pytest.fixture(scope="module")
def judge():
    return Translator.from_pretrained("multi30k-en-de", device="cpu")


def test_each_pair_has_its_own_rate_in_any_company(judge):
    pairs = list(zip(EN, DE))
    odd = [("", "x"), ("x", ""), ("a " * judge.model.config.max_length, "x")]
    found = paraphrase.rates(judge, [*odd, *pairs], "de")
    assert found[:3] == [math.inf] * 3
    for (source, reference), rate in zip(pairs, found[3:]):
        given = judge.encode(source, "de")
        ids = judge.tokenizer.encode(reference)
        logits = judge.model(*map(torch.tensor, ([given], [[2, *ids]])), None, causal_mask(len(ids) + 1))[0]
        expected = torch.nn.functional.cross_entropy(logits, torch.tensor([*ids, 3]))
        assert math.isclose(rate, expected.item(), rel_tol=1e-4)
    whole = losses(judge, [*odd, *pairs], "de")
    assert [count for _, count in whole] == [0, 0, 0, *(len(judge.tokenizer.encode(text)) + 1 for text in DE)]
    assert math.isclose(
        perplexity(judge, pairs, "de"), math.exp(sum(n for n, _ in whole) / sum(c for _, c in whole)), rel_tol=1e-5
    )
    with pytest.raises(ValueError, match="longer"):
        perplexity(judge, odd[2:], "de")


def test_a_new_source_stays_only_if_the_target_follows_from_it(judge):
    pairs = list(zip(EN, DE))
    said = ["A man sleeps.", "A truck stands before a large building.", EN[2]]  # near, wrong, the true source again
    borne = [rate + 0.7 for rate in paraphrase.rates(judge, pairs, "de")]
    assert paraphrase.keep_likely(judge, pairs, said, "de", borne) == [("A man sleeps.", DE[0])]
    assert len(paraphrase.keep_likely(judge, pairs, said, "de", [99.0] * 3)) == 2
    with pytest.raises(ValueError):
        paraphrase.keep_likely(judge, pairs, said[:2], "de", borne)


def test_the_table_holds_the_true_pairs_then_each_columns_paraphrases(tmp_path, capsys):
    table, out = tmp_path / "some.tsv", tmp_path / "more" / "train.tsv.gz"
    table.write_text("en\tde\tfr\n" + "".join("\t".join(row) + "\n" for row in zip(EN, DE, FR)), encoding="utf-8")
    command = [*asked(table), "--out", str(out), "--origin", "fr", "de", "--margin", "9", "--best", "2"]
    assert paraphrase.main(command) == 0
    counts = json.loads(capsys.readouterr().out)
    rows = [line.split("\t") for line in gzip.decompress(out.read_bytes()).decode().splitlines()]
    assert rows[0] == ["en", "de", "origin"] and [row[:2] for row in rows[1:4]] == [list(pair) for pair in zip(EN, DE)]
    assert [row[2] for row in rows[1:]] == ["true"] * 3 + ["fr"] * counts["fr"] + ["de"] * counts["de"] and counts["fr"]
    pairs = read_parallel(out, "en", "de")
    assert len(set(pairs)) == len(pairs) and {target for _, target in pairs} == set(DE)
    # what stands already is not written again, and comes first
    assert (
        paraphrase.main([*command[:-4], "--margin", "9", "--beside", str(out), "--out", str(tmp_path / "b.tsv.gz")])
        == 0
    )
    assert read_parallel(tmp_path / "b.tsv.gz", "en", "de") == pairs


def test_bad_input_gets_a_sentence_before_any_work(tmp_path, capsys):
    table = tmp_path / "some.tsv"
    table.write_text("en\tde\tfr\na\tb\tc\nd\te\t\n")
    base = asked(table)
    out = ["--out", str(tmp_path / "out.tsv.gz")]
    for arguments, said in (
        ([*base, "--origin", "fr", "--out", str(tmp_path / "x.tsv")], "has to end in .tsv.gz"),
        ([*base, "--origin", "fr", *out, "--best", "4"], "--best has to be from 1"),
        ([*base, "--origin", "it", *out], "it"),
        ([*base, "--origin", "fr", *out], "other empty cells"),
    ):
        assert paraphrase.main(arguments) == 2
        assert said in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out.tsv.gz").exists()
