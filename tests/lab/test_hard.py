"""Only what a translator gets wrong is written, by direction."""

from types import SimpleNamespace

from lab.translator.hard import hard_tables, wrong


class Parrot:
    """Knows "cat" alone and says anything else as it stands."""

    pairs = (("en", "de"), ("de", "en"))

    def translate(self, texts, source, target, beam):
        known = {("en", "cat"): "Katze.", ("de", "Katze"): "Cat"}
        return [SimpleNamespace(text=known.get((source, text), text)) for text in texts]


def test_what_is_right_in_other_capitals_or_by_another_pair_is_left_out():
    pairs = [("cat", "Kater"), ("cat", "Katze"), ("dog", "Hund"), ("dog", "Hund"), ("Radio", "das Radio")]
    assert wrong(Parrot(), "en", "de", pairs) == [("dog", "Hund"), ("Radio", "das Radio")]


def test_tables_have_english_first_and_a_name_by_their_direction():
    rows = [("cat", "Katze", "chat"), ("dog", "Hund", "chien")]
    found = hard_tables(Parrot(), {"basics": rows[:1], "words": rows, "lists": rows})
    columns, hard = ("en", "de"), [("dog", "Hund")]
    assert found == {
        "hardbasics.en-de": (columns, []),
        "hardwords.en-de": (columns, hard),
        "hardbasics.de-en": (columns, []),
        "hardwords.de-en": (columns, hard),
    }
