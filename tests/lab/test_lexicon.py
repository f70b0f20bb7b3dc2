"""Word pairs out of text: what occurs together is kept, what a list alone claims is not."""

from lab.translator import lexicon
from transformer.data import read_parallel

TEXT = [
    ("The house is red.", "Das Haus ist rot."),
    ("A house by the sea.", "Ein Haus am Meer."),
    ("My house!", "Mein Haus!"),
    ("The red car.", "Das rote Auto."),
    ("The bank of the river.", "Das Ufer des Flusses."),
    ("He sat on the bank.", "Er saß am Ufer."),
    ("The left bank", "Das linke Ufer"),
    ("The car is here.", "Das Auto ist hier."),
    ("No car.", "Kein Auto."),
]
LIST = [("house", "Haus"), ("house", "Sternzeichen"), ("bank", "Ufer"), ("bank", "Querneigung"), ("to car", "Auto")]


def test_a_list_is_confirmed_by_text():
    single = {(lexicon.head(source), target.lower()) for source, target in LIST}
    counts = lexicon.count(TEXT, single)
    assert counts.dice("house", "haus") == 1.0 and counts.together["house", "sternzeichen"] == 0
    assert lexicon.of_list(LIST, counts) == [("house", "Haus"), ("bank", "Ufer"), ("to car", "Auto")]


def test_words_choose_each_other():
    sentences = [("red house", "maison rouge"), ("red car", "voiture rouge"), ("house", "maison"), ("taxi", "taxi")]
    assert dict(lexicon.mutual(lexicon.count(sentences * 5, None))) == {
        "red": "rouge",
        "house": "maison",
        "car": "voiture",
    }


def test_elided_articles_are_no_words():
    assert lexicon.words_of("L'arbre qu'il a d'abord vu, aujourd'hui") >= {"arbre", "il", "abord", "vu", "aujourd'hui"}


def test_the_command_writes_tables_for_each_language(tmp_path, capsys):
    table, words = tmp_path / "text.tsv", tmp_path / "list.tsv"
    table.write_text("en\tde\n" + "\n".join("\t".join(pair) for pair in TEXT * 10), encoding="utf-8")
    words.write_text(
        "en\tde\n"
        + "\n".join("\t".join(pair) for pair in [*LIST, ("the car", "das Auto"), ("a quasar", "ein Quasar")]),
        encoding="utf-8",
    )
    french = tmp_path / "french.tsv"
    french.write_text("en\tfr\n" + "red house\tmaison rouge\nhouse\tmaison\n" * 6, encoding="utf-8")
    out = tmp_path / "out"
    data = ["--data", str(table), str(french), str(words), "--list", str(words), "--out", str(out), "--source", "en"]
    assert lexicon.main([*data, "--target", "de", "fr"]) == 0
    assert read_parallel(out / "lexicon.en-fr.tsv.gz", "en", "fr") == [("house", "maison"), ("red", "rouge")]
    assert lexicon.main([*data, "--target", "es"]) == 2 and "'es'" in capsys.readouterr().err
    assert ("house", "Haus") in read_parallel(out / "lexicon.en-de.tsv.gz", "en", "de")
    assert read_parallel(out / "dingphrases.en-de.tsv.gz", "en", "de") == [("the car", "das Auto")]
