"""What a program can see of translations."""

from lab.translator.remarks import main, remarks

PAIRS = [
    ("A dog runs.", "Ein Hund rennt."),
    ("Two men sit.", "Zwei Männer sitzen."),
    ("A girl sings.", "Ein Mädchen singt."),
]


def test_what_a_program_can_see_of_a_translation():
    assert remarks("A dog.", "Ein Hund.", "Ein Hund.") == ["as the reference"]
    assert remarks("It is 10 o'clock.", "Es ist Uhr.", "Es ist 10 Uhr.") == ["numbers differ from the source"]
    assert remarks("We saw Tom.", "Wir sahen ihn.", "Wir sahen Tom.") == ["a name is lost"]
    assert "a word twice running" in remarks("A dog runs.", "Ein Hund Hund rennt.", "Ein Hund rennt.")
    assert "much shorter than the reference" in remarks("x", "Ein Hund.", "Ein Hund rennt durch den Garten.")
    assert "much longer than the reference" in remarks(
        "x", "Ein Hund rennt durch den ganzen Garten.", "Ein Hund rennt."
    )
    assert "no word of the reference" in remarks("x", "Katzen schlafen.", "Ein Hund rennt.")
    assert remarks("A dog runs.", "Ein Hund läuft.", "Ein Hund rennt.") == []


def test_the_same_seed_shows_the_same_sentences(tmp_path, capsys):
    table = tmp_path / "test.tsv"
    table.write_text("en\tde\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS), encoding="utf-8")
    argv = ["--model", "multi30k-en-de", "--data", str(table), "--beam", "1", "--show", "1", "--seed", "3"]
    assert main([*argv, "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    shown = [line.split("  ")[-1].strip() for line in out.splitlines() if line.startswith("  source")]
    assert len(shown) == 1 and shown[0] in [source for source, _ in PAIRS]
    assert main([*argv, "--device", "cpu"]) == 0 and capsys.readouterr().out == out
