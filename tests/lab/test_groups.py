"""Scores by source, direction and length."""

import gzip
import json

import pytest

from lab.translator.groups import Rating, by_group, group_scores, main, names
from transformer.translator import Translator


def pair(source="A b c d", reference="E f g h", output="E f g h", origin="tatoeba", direction="en-de"):
    return Rating(origin, direction, source, reference, output)


def test_what_is_counted_of_a_group():
    assert names("On Monday Anna met Paul in Rome.", "Am Montag traf Anna Paul in Rom.") == {"Anna", "Paul"}
    long = "one two three four five six"
    found = group_scores(
        [
            pair("I saw Anna and Paul there.", "Ich sah dort Anna und Paul.", "Ich sah dort Anna."),
            pair(long, long, "one two three"),
            pair("no", "nein", ""),  # short references are not judged
        ]
    )
    assert (found.pairs, found.too_short, found.name_share) == (3, pytest.approx(1 / 3), 0.5)
    assert group_scores([pair()]).bleu == pytest.approx(100) and group_scores([pair()]).name_share is None
    assert [pair("w " * n).length for n in (1, 10, 11, 35, 36, 99)] == ["1-10", "1-10", "11-20", "21-35", "36+", "36+"]


def test_groups_and_the_mean_over_general_sources():
    good, bad = pair(), pair(output="x y z q")
    found = [good] * 8 + [pair(origin="manuals", output="x y z q")] * 8 + [pair(origin="covost")] * 3
    found += [pair(origin="wmt_news", source="word " * 15, output=bad.output)] * 8
    rows = by_group(found)
    scores = {row.get("source") or row["length"]: row for row in rows}
    assert list(scores) == ["tatoeba", "manuals", "wmt_news", "1-10", "11-20", "mean over general sources"]
    assert scores["1-10"]["pairs"] == 19 and scores["11-20"]["pairs"] == 8
    mean = scores["mean over general sources"]  # of tatoeba and wmt_news; three pairs are too few, manuals not general
    assert mean["sources"] == 2 and mean["bleu"] == pytest.approx((100 + scores["wmt_news"]["bleu"]) / 2)


def test_the_command_scores_a_table_of_sources(tmp_path, capsys):
    lines = ["en\tde\tfr\torigin"]
    lines += [f"A man has {i} dogs.\tEin Mann hat {i} Hunde.\t\ttatoeba.en-de" for i in range(20, 40)]
    lines += [f"A woman with {i} hats.\tEine Frau mit {i} Hüten.\t\tfirefox_teacher.de-en" for i in range(20, 40)]
    (tmp_path / "test.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert main(["--data", str(tmp_path / "test.tsv.gz"), "--model", "everyday", "--count", "9", "--beam", "1"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {(row["direction"], row.get("source")): row for row in rows if "source" in row}
    assert ("de-en", "firefox_teacher") in found and ("en-de", "firefox_teacher") not in found
    assert found["en-de", "tatoeba"]["pairs"] == 9 and found["en-de", "tatoeba"]["bleu"] > 30
    assert Translator.from_pretrained("everyday").name == rows[0]["model"]
