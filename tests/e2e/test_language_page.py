"""The page in the visitor's language: the browser's or the one chosen, and never in the visitor's own words."""

import json
import re

import pytest
from driving import enter
from PIL import Image

from lab.words import Walk
from training.assets import list_models
from ui import theme

GERMAN = json.loads((theme.STATIC / "words" / "de.json").read_text(encoding="utf-8"))
# Names, signs and measures that are the same in every language.
SAME = {
    "ALIAS",
    "BLEU",
    "CPU",
    "GAN",
    "bertviz",
    "log p",
    "div",
    "misalign",
    "-Infinity",
    *list_models(),
}
SYMBOLS = re.compile(r"p_data|p_g|\b(softmax|log|max|exp|LayerNorm|ReLU|JSD|KiB|MB)\b")
EXAMPLE = "Ein"  # of how a German translation may begin
OWN_WORDS = "Save Cancel Head"  # each of them stands on the page, too
PIECES = "() => [...document.querySelectorAll('#heat-map .heat-label')].map((one) => one.textContent)"
EVERYTHING = """() => [...document.querySelectorAll('main *')].flatMap((one) => [
  ...[...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.nodeValue),
  ...['title', 'aria-label', 'placeholder', 'alt'].map((name) => one.getAttribute(name)),
])"""


def settled(page):
    """All texts of the page, once they stay the same for a while."""
    texts = None
    while texts != (texts := page.evaluate(EVERYTHING)):
        page.wait_for_timeout(2000)
    return texts


def switch(page, language):
    """Choose a language of the masthead and wait until it is there."""
    page.click(f"[data-language={language}]")
    page.locator(f"[data-language={language}][aria-pressed=true]").wait_for()
    page.wait_for_timeout(500)


def test_a_german_browser_shows_no_english(visit):
    page, english = visit(locale="de-DE"), {}

    def note(where, texts):
        texts = [text for text in texts if text not in SAME and text != EXAMPLE]
        english.update({text: where for text in texts if re.search("[A-Za-z]{2}", SYMBOLS.sub("", text))})

    Walk(page, True, note).everything()
    assert english == {}


COMPOSED = {
    "The batch has to be a whole number of at most 1024.": "Der Batch muss eine ganze Zahl sein, höchstens 1024.",
    "The phrase NP is never closed.": "Die Phrase NP wird nie geschlossen.",
    "Cross attention, layer 6, mean over heads, without start and end": (
        "Cross-Aufmerksamkeit, Schicht 6, Mittel über die Köpfe, ohne Anfang und Ende"
    ),
    "Run again: warp 0.21 s, synthesis 3.20 s. Kept as they were: photo, pose.": (
        "Neu berechnet: Verformung 0.21 s, Synthese 3.20 s. Unverändert: Foto, Pose."
    ),
    "The model was given the usual spelling: “Save it.”.": "Das Modell bekam die übliche Schreibung: „Save it.“.",
    # Thousands stand apart; a comma would be the decimal sign here, and in the visitor's words it stays.
    "243 / 5,000 characters": "243 / 5\u202f000 Zeichen",
    "1,024,000": "1\u202f024\u202f000",
    "'1,000' has no file a.json.": "„1,000“ enthält keine Datei a.json.",
    # What a run tells.
    "Human parser has finished at step 4 of 4.": "Personenparser ist fertig bei Schritt 4 von 4.",
    "test: mean overlap (IoU) 0.155, hem (pixels off) 18": (
        "Test: mittlere Überlappung (IoU) 0.155, Saum (Abstand in Pixeln) 18"
    ),
    "step 13, just now: L1 0.8, cross entropy -2.8e-5": "Schritt 13, gerade eben: L1 0.8, Kreuzentropie -2.8e-5",
    "logarithmic scale · arms (IoU) 3.7e-4, SSIM (instance norm) 0.5": (
        "logarithmische Skala · Arme (IoU) 3.7e-4, SSIM (Instanznorm) 0.5"
    ),
    # Known in part alone: better as it is than half in one language.
    "up to 12 of them are odd": None,
    "Run along: to school 0.2 s": None,
}


def test_a_sentence_of_parts_is_translated_whole_or_not_at_all(visit):
    page = visit(locale="de-DE")
    page.get_by_role("tab", name=GERMAN["Try on"], exact=True).wait_for()
    said = page.evaluate("texts => texts.map((text) => window.atelierLanguage.words(text))", list(COMPOSED))
    assert dict(zip(COMPOSED, said)) == COMPOSED


def test_the_browser_s_language_is_the_page_s_until_another_is_chosen(visit):
    page = visit(locale="de-DE")
    assert page.evaluate("document.documentElement.lang") == "de"
    assert page.get_by_role("tab", name=GERMAN["Try on"], exact=True).is_visible()
    switch(page, "fr")
    page.reload()
    page.locator("#heat-map .heat-title").wait_for()
    assert page.evaluate("document.documentElement.lang") == "fr"


def test_an_english_browser_asks_for_no_table(visit):
    asked = []
    page = visit(prepare=lambda page: page.on("request", lambda request: asked.append(request.url)))
    assert asked and not [url for url in asked if "/words/" in url]
    assert page.evaluate("document.documentElement.lang") == "en"


def test_what_a_visitor_writes_stays_as_it_is(visit):
    assert "Save" in GERMAN
    pieces = []
    for locale in ("en-US", "de-DE"):
        page = visit(locale=locale)
        before = page.evaluate(PIECES)
        enter(page, OWN_WORDS)
        page.wait_for_function(f"before => `${{({PIECES})()}}` !== `${{before}}`", arg=before)
        assert page.locator("#now span").first.inner_text() == OWN_WORDS
        assert page.input_value("#source-text textarea") == OWN_WORDS
        # Start and end are not the visitor's, and have names in the page's language.
        pieces.append([piece for piece in page.evaluate(PIECES) if not piece.startswith("(")])
    assert pieces[0] == pieces[1] and len(pieces[0]) > len(OWN_WORDS.split())


def test_what_is_saved_for_people_is_in_the_page_s_language(visit, tmp_path):
    saved = {}
    for locale in ("en-US", "de-DE"):
        page = visit(locale=locale)
        page.click("#save-button")
        for kind in ("svg", "png", "html", "csv"):
            with page.expect_download() as download:
                page.click(f"#saved-files a[download$='.{kind}']")
            saved[locale, kind] = tmp_path / f"{locale}.{kind}"
            download.value.save_as(saved[locale, kind])
    english, german = (saved[locale, "svg"].read_text(encoding="utf-8") for locale in ("en-US", "de-DE"))
    assert "layer 2, mean over heads" in english and "Schicht 2, Mittel über die Köpfe" in german
    assert "(Ende)" in german and all(f">{token}<" in german for token in ("animal", "was"))
    sizes = [Image.open(saved[locale, "png"]).size for locale in ("en-US", "de-DE")]
    assert sizes[0] == sizes[1] and saved["en-US", "png"].read_bytes() != saved["de-DE", "png"].read_bytes()
    alone = page.context.new_page()
    alone.goto(saved["de-DE", "html"].as_uri())
    alone.locator("#heat-map .heat-title", has_text="Schicht 2").wait_for()
    alone.select_option("#layer", "0")
    alone.locator("#heat-map .heat-title", has_text="Schicht 1").wait_for()  # written later, by the page itself
    assert saved["en-US", "csv"].read_bytes() == saved["de-DE", "csv"].read_bytes()  # for programs


def test_back_in_english_every_text_is_the_one_it_was(visit):
    page = visit()
    before = settled(page)
    switch(page, "ko")
    assert page.evaluate(EVERYTHING) != before
    switch(page, "de")
    switch(page, "en")
    assert settled(page) == before


@pytest.mark.parametrize("width", [390, 1024, 1440])
@pytest.mark.parametrize("dark", [False, True])
def test_the_switch_is_in_sight_and_reached_by_keyboard(visit, width, dark):
    page = visit(width=width, dark=dark)
    group = page.get_by_role("group", name="Language")
    boxes = [one.bounding_box() for one in group.get_by_role("button").all()]
    assert len(boxes) == 4 and all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    group.get_by_role("button", name="English").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator("[data-language=de][aria-pressed=true]").wait_for()
