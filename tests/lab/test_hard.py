"""Only what a translator gets wrong is written, by direction."""

from types import SimpleNamespace

from lab.translator import hard
from transformer.data import open_table


class Parrot:
    """Knows "cat" alone and says anything else as it stands."""

    pairs = (("en", "de"), ("de", "en"))

    def translate(self, texts, source, target, beam):
        known = {("en", "cat"): "Katze.", ("de", "Katze"): "Cat"}
        return [SimpleNamespace(text=known.get((source, text), text)) for text in texts]


def test_what_is_right_in_other_capitals_or_by_another_pair_is_left_out():
    pairs = [("cat", "Kater"), ("cat", "Katze"), ("dog", "Hund"), ("dog", "Hund"), ("Radio", "das Radio")]
    assert hard.wrong(Parrot(), "en", "de", pairs) == [("dog", "Hund"), ("Radio", "das Radio")]


def test_tables_have_english_first_and_a_name_by_their_direction(tmp_path, monkeypatch, capsys):
    rows = [("cat", "Katze", "chat"), ("dog", "Hund", "chien")]
    monkeypatch.setattr(hard, "kinds", lambda: {"basics": rows[:1], "words": rows})
    monkeypatch.setattr(hard.Translator, "from_pretrained", lambda name: Parrot())
    assert hard.main(["--model", "parrot", "--out", str(tmp_path)]) == 0
    assert "1 of 2 pairs in" in capsys.readouterr().out
    for direction in ("en-de", "de-en"):
        with open_table(tmp_path / f"hardwords.{direction}.tsv.gz") as table:
            assert list(table) == [{"en": "dog", "de": "Hund"}]
        with open_table(tmp_path / f"hardbasics.{direction}.tsv.gz") as table:
            assert not list(table)
