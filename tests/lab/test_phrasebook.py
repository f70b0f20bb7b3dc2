"""The sentences of travellers: gaps filled alike in three languages, articles that agree, and a table to train on."""

import re

import pytest

from lab.translator import phrasebook
from transformer.checklist import read_items
from transformer.data import read_parallel


@pytest.fixture(scope="module")
def made():
    return phrasebook.sentences(100_000, seed=3)


def test_sentences_are_fixed_and_different(made):
    assert made == phrasebook.sentences(100_000, seed=3)
    assert len(set(made)) == len(made) > 5000
    assert phrasebook.sentences(50, seed=1) != phrasebook.sentences(50, seed=2)


def test_no_gap_is_left_and_every_line_is_complete(made):
    for texts in made:
        for text in texts:
            assert text.strip() == text and text and text[0] == text[0].upper(), texts
            assert not re.search(r"[{}]|  ", text), texts


def test_every_word_and_line_comes_up(made):
    text = "\n".join(" | ".join(texts) for texts in made)
    missing = [w.en for group in phrasebook.words().values() for w in group if w.en not in text or w.fr not in text]
    assert not missing
    fixed = [line.texts for line in phrasebook.phrases() if not phrasebook.GAP.search(line.texts[0])]
    assert fixed and all(any(texts[0].find(line[0]) >= 0 for texts in made) for line in fixed)


def test_english_articles_agree(made):
    for english, _, _ in made:
        assert not re.search(r"\b[Aa] [aeio]", english) and not re.search(r"\b[Aa]n (?!hour)[^aeiou]", english), english


def test_german_articles_agree(made):
    """Nouns of one word: the article before each has the ending that its gender allows."""
    allowed = {
        "m": {"der", "den", "dem", "ein", "einen", "zum", "am", "im", "mein", "meinen", "meinem", "keinen"},
        "f": {"die", "der", "eine", "zur", "meine", "keine"},
        "n": {"das", "dem", "ein", "zum", "am", "im", "mein", "meinem", "kein"},
        "p": {"die", "den", "keine", "meine"},
    }
    words = {w.de: w.de_gender for group in phrasebook.words().values() for w in group if w.de_gender in allowed}
    articles, seen = set().union(*allowed.values()), 0
    for _, german, _ in made:
        for article, noun in re.findall(r"(\w+) ([A-ZÄÖÜ][\w-]+)", german.replace("ein Uhr", "1 Uhr")):
            if article.lower() in articles and noun in words and "Enthält das" not in german:
                assert article.lower() in allowed[words[noun]], german
                seen += 1
    assert seen > 2000


def test_french_elides_and_contracts(made):
    for _, _, french in made:  # numbers need not elide: "de onze à une heure"
        assert not re.search(r"\b(le|la|de|du|au) (?!onze|une heure)[aeiouéèêâîô]", french), french
        assert not re.search(r"\b(à le|à les|de le|de les)\b", french), french


def test_half_past_is_the_next_hour_in_german():
    """All twelve, for the half names the hour that comes in German and the one that was in English and French."""
    english = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    german = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]
    clock = {word.en: (word.de, word.fr) for word in phrasebook.words()["hour"]}
    for number, (hour, own) in enumerate(zip(english, german)):
        assert clock[f"half past {hour}"][0] == f"halb {german[(number + 1) % 12]}"
        assert clock[f"a quarter to {hour}"][0] == f"Viertel vor {own}"
        full, half = clock[f"{hour} o'clock"][1], clock[f"half past {hour}"][1]
        assert half == f"{full} et demi{'' if full == 'midi' else 'e'}"


@pytest.mark.parametrize(
    ("language", "word", "forms"),
    [
        ("en", "umbrella", {"a": "an umbrella", "this": "this umbrella", "has": "has"}),
        ("en", "glasses", {"a": "glasses", "is": "are", "this": "these glasses", "was": "were"}),
        ("de", "umbrella", {"einen": "einen Regenschirm", "Ihr": "Ihr Regenschirm", "mein": "mein Regenschirm"}),
        ("de", "gloves", {"einen": "Handschuhe", "meinem": "meinen Handschuhen", "is": "sind"}),
        ("fr", "scarf", {"le": "l'écharpe", "mon": "mon écharpe", "un": "une écharpe", "e": "e", "d": "d'écharpe"}),
        ("fr", "glasses", {"le": "les lunettes", "au": "aux lunettes", "e": "es", "has": "ont"}),
    ],
)
def test_forms(language, word, forms):
    found = next(w for w in phrasebook.words()["item"] if w.en == word)
    for form, expected in forms.items():
        assert phrasebook.INFLECT[language](found, form) == expected


def test_an_unknown_gap_or_form_is_told():
    word = phrasebook.words()["item"][0]
    with pytest.raises(KeyError):
        phrasebook.fill("{thing:the}", "en", {"item": word})
    with pytest.raises(KeyError):
        phrasebook.fill("{item:zum}", "fr", {"item": word})


def test_the_command_writes_tables_that_prepare_reads(tmp_path, capsys):
    assert phrasebook.main(["--count", "400", "--out", str(tmp_path / "folder")]) == 0
    assert "hours.tsv.gz" in capsys.readouterr().out
    for target in ("de", "fr"):
        made = {n: read_parallel(tmp_path / "folder" / f"{n}.tsv.gz", "en", target) for n in ("phrasebook", "hours")}
        assert len(made["phrasebook"]) + len(made["hours"]) == 400 and len(made["hours"]) > 10
        assert all(phrasebook.names_a_time(english) == (n == "hours") for n in made for english, _ in made[n])
    for name, target in (("written", "de"), ("rarer", "fr")):
        assert len(read_parallel(tmp_path / "folder" / f"{name}.tsv.gz", "en", target)) > 1000


def test_written_sentences_are_whole_and_none_is_held_out():
    rows, held = phrasebook.handwriting() + phrasebook.rarer(), phrasebook.test_sentences()
    assert len({english for english, _, _ in rows}) == len(rows)
    assert all(len(row) == 3 and all(text.strip() == text and text for text in row) for row in rows + held)
    assert len(held) == 60 and not {e.casefold() for e, _, _ in held} & {e.casefold() for e, _, _ in rows}


@pytest.mark.slow
def test_no_written_sentence_is_nearly_one_that_is_held_out():
    def words(row):
        return [set(re.findall(r"\w+", text.lower())) for text in row]

    held = [words(row) for row in phrasebook.test_sentences()]
    for row in phrasebook.handwriting() + phrasebook.rarer():
        own = words(row)
        for ours, theirs in ((a, b) for other in held for a, b in zip(own, other, strict=True)):
            assert len(ours & theirs) < 2 / 3 * max(len(ours), len(theirs)), row


def test_times_between_two_hours_are_told_from_spans():
    for text in ("We meet at half past nine.", "It opens at a quarter to ten.", "Ten past four, please."):
        assert phrasebook.names_a_time(text.lower())
    for text in ("It takes a quarter of an hour.", "We meet at nine o'clock.", "I have been here half an hour."):
        assert not phrasebook.names_a_time(text)


def test_tables_of_kinds_are_whole_and_negated_alike():
    """In what reverses a sense, all three languages say no."""
    tables = phrasebook.kinds()
    assert {name: len(rows) for name, rows in tables.items()}["numbers"] > 1000
    for rows in tables.values():
        assert len(set(rows)) == len(rows) and all(text.strip() == text and text for row in rows for text in row)
    no = {
        "de": r"\b(nicht|kein\w*|weigert?\w*)\b",
        "fr": r"\b(ne|pas|refus\w*)\b|n'",
    }
    for english, german, french in tables["sense"]:
        if re.match(r"(My \w+|The \w+|I|You|He|She|We|They|Paul|Anna) (disagrees?|dislikes?|refuse[sd]?)\b", english):
            assert re.search(no["de"], german, re.IGNORECASE), german
            assert re.search(no["fr"], french, re.IGNORECASE), french


def test_a_sense_that_is_turned_beside_a_time_is_turned_in_all_three_languages():
    turned = 0
    for english, german, french in phrasebook.kinds()["turns"]:
        negative = re.search(r"disagree|did not|refuse|failed|denied|hardly|never", english)
        turned += bool(negative)
        no = r"\b(nicht|nie|kaum|weigerte|abgestritten)\b", r"\b(pas|jamais|refusé|nié|à peine)\b"
        for pattern, text in zip(no, (german, french)):
            assert bool(negative) == bool(re.search(pattern, text)), text
    assert turned > 600


def test_basic_texts_get_a_full_stop_in_all_languages_or_in_none():
    rows = phrasebook.stops()
    assert len(rows) > 1000 and ("Lost property.", "Fundbüro.", "Objets trouvés.") in rows
    assert not any(text.endswith(("..", "!.", "?.", "….")) for row in rows for text in row)


def test_numbers_in_words_are_the_same_number():
    from num2words import num2words

    spelt = {num2words(n): (num2words(n, lang="de"), num2words(n, lang="fr")) for n in range(2, 101)}
    alone = {english: (german, french) for english, german, french in phrasebook.kinds()["numbers"]}
    checked = [english for english in spelt if english in alone]
    assert len(checked) > 20
    assert all(alone[english] == spelt[english] for english in checked)


def test_no_line_of_the_kinds_is_one_of_the_checklist():
    """Whatever its capitals and marks: the checklist shall count what was not learned by heart."""

    def bare(text: str) -> str:
        return " ".join(re.findall(r"[\w']+", text.lower().replace("’", "'")))

    asked = {bare(line) for item in read_items() for line in [item.source, *item.source.split("\n")]} - {""}
    found = {text for rows in phrasebook.kinds().values() for row in rows for text in row if bare(text) in asked}
    assert len(asked) > 1000
    assert not found
