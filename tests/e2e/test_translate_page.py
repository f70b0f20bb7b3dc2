"""The Translate tab as a visitor uses it."""

import contextlib

import pytest
from driving import (
    HEADS,
    LAYERS,
    SENTENCE,
    SHOWN,
    WIDTH,
    choose,
    choose_kind,
    choose_model,
    enter,
    labels,
    open_view,
    set_number,
    titled,
)
from gradio_client import Client
from playwright.sync_api import TimeoutError as TimedOut

from ui.translate.words import plain


def hypotheses(page):
    """Rows of the n-best table."""
    if not page.locator("#n-best").is_visible():
        page.get_by_text("Other translations it found").click()
        page.locator('#n-best [role="row"][data-index]').first.wait_for()
    return page.locator('#n-best [role="row"][data-index]')


def translated_again(page):
    """Translate with other settings, and open the table of hypotheses again, which folds away."""
    page.click("#translate-button")
    page.locator("#n-best").wait_for(state="hidden")
    hypotheses(page)


@pytest.mark.quick
def test_text_in_translation_and_every_attention_map_out(visit, site):
    page = visit()
    enter(page)
    titled(page, f"Cross attention, layer {LAYERS['cross']}, mean over heads")
    translation = page.input_value("#target-text textarea")
    assert translation.strip() and translation != SENTENCE
    assert "pieces/s" in page.inner_text("#translate-status")
    assert hypotheses(page).count() == 4

    api = Client(site, verbose=False)
    answer = api.predict(SENTENCE, "en-de", 4, 0.6, 4, api_name="/translate")
    assert answer["text"] == translation
    thumbs = page.locator(".thumb")
    assert thumbs.count() == LAYERS["cross"] * HEADS

    # A click on a thumbnail opens that head; what is read off the map is what the library says.
    page.click('.thumb[data-layer="1"][data-head="1"]')
    svg = titled(page, "Cross attention, layer 2, head 2")
    truth = api.predict(SENTENCE, "en-de", "cross", 2, 2, 4, api_name="/attend")
    assert labels(page, "row") == truth["rows"] and labels(page, "column") == truth["columns"]
    assert truth["columns"][-1] == "</s>" and truth["rows"][-1] == "</s>"
    svg.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):  # the first key enters the map at its first cell
        page.keyboard.press(key)
    assert page.inner_text("#heat-map .heat-weight") == f"{truth['weights'][1][1]:.4f}"
    readout = page.inner_text("#heat-map .heat-readout")
    assert plain(truth["rows"][1]) in readout and plain(truth["columns"][1]) in readout
    assert page.inner_text("#heat-map .heat-readout b").startswith(f"after {plain(truth['rows'][0])}, choosing")
    assert "chosen" in page.get_attribute('.thumb[data-layer="1"][data-head="1"]', "class")

    # Encoder and decoder: the other two sentences on the axes, and as many layers as each of them has.
    choose_kind(page, "Encoder")
    titled(page, "Encoder attention, layer 2, head 2")
    assert labels(page, "row") == labels(page, "column") == truth["columns"]
    assert thumbs.count() == LAYERS["encoder"] * HEADS
    page.click(f'.thumb[data-layer="{LAYERS["encoder"] - 1}"][data-head="1"]')
    titled(page, f"Encoder attention, layer {LAYERS['encoder']}, head 2")
    choose(page, "layer", str(LAYERS["encoder"] - 1))
    titled(page, f"Encoder attention, layer {LAYERS['encoder'] - 1}, head 2")
    choose_kind(page, "Decoder")
    titled(page, f"Decoder attention, layer {min(LAYERS['encoder'] - 1, LAYERS['decoder'])}, head 2")
    assert thumbs.count() == LAYERS["decoder"] * HEADS
    assert labels(page, "row") == truth["rows"] and labels(page, "column") == ["<s>", *truth["rows"][:-1]]

    choose(page, "layer", "1")
    choose(page, "head", "4")
    titled(page, "Decoder attention, layer 1, head 4")
    choose(page, "head", "Mean over heads")
    titled(page, "Decoder attention, layer 1, mean over heads")

    # Stretched colours end at the map's own maximum, and the scale says so.
    choose_kind(page, "Cross")
    titled(page, "Cross attention, layer 1, mean over heads")
    weights = api.predict(SENTENCE, "en-de", "cross", 1, 0, 4, api_name="/attend")["weights"]
    page.get_by_label("Stretch colours").check()
    page.locator("#heat-map .heat-scale", has_text=f"{max(map(max, weights)):.3f}").wait_for()


def test_another_hypothesis_shows_its_own_attention(visit, site):
    page = visit()
    enter(page)
    titled(page, "Cross attention")
    answer = Client(site, verbose=False).predict(SENTENCE, "en-de", 4, 0.6, 4, api_name="/translate")
    third = answer["sentences"][0]["hypotheses"][2]
    hypotheses(page)
    page.locator('#n-best [data-row="2"][data-col="1"]').click()
    page.wait_for_function(
        "tokens => JSON.stringify([...document.querySelectorAll('#heat-map .heat-label[data-row] title')]"
        ".map(node => node.textContent).slice(0, -1)) === JSON.stringify(tokens)",
        arg=third["tokens"],
    )
    assert page.input_value("#target-text textarea") == third["text"]


def test_several_sentences_keep_their_lines_and_each_has_its_attention(visit):
    page = visit()
    enter(page, "A dog runs.\n\nTwo girls are playing soccer.")
    titled(page, "Cross attention")
    lines = page.input_value("#target-text textarea").split("\n")
    assert len(lines) == 3 and lines[1] == "" and lines[0] and lines[2]
    first = labels(page, "column")
    page.click("#sentence input")
    page.get_by_role("option").nth(1).click()
    page.wait_for_function(
        "count => document.querySelectorAll('#heat-map .heat-label[data-column]').length !== count", arg=len(first)
    )
    assert any("girls" in token for token in labels(page, "column"))

    # Each word finds its partners in its own sentence, in the boxes themselves.
    for sentence, word in ((0, "dog"), (1, "soccer.")):
        point_at(
            page, page.locator(f'.word-glass .word[data-side="source"][data-sentence="{sentence}"]', has_text=word)
        )
        page.locator('.word-glass .word.lit[data-side="target"]').first.wait_for()
        lit = page.locator(".word-glass .word.lit")
        assert {one.get_attribute("data-sentence") for one in lit.all()} == {str(sentence)}
        assert page.locator('.word-glass .word.lit[data-side="source"]').all_inner_texts() == [word]


def test_four_directions_of_one_model_and_swapping_goes_back(visit, site):
    page = visit()
    page.get_by_text("Model and search").click()
    page.locator("#translation-model input").wait_for()
    page.wait_for_function("document.querySelector('#translation-model input').value === 'everyday'")
    enter(page, "A dog runs.")
    titled(page, "Cross attention")  # by now the languages have come with the model
    page.click("#pair input")
    options = page.locator("#pair").get_by_role("option")
    options.first.wait_for()
    offered = options.evaluate_all("nodes => nodes.map(node => node.getAttribute('aria-label'))")
    # The model's own, then what another shipped one offers.
    assert offered[:4] == ["English → German", "German → English", "English → French", "French → English"]
    assert offered[4:] == ["English → phrase structure tree"]
    options.nth(3).click()
    options.first.wait_for(state="hidden")
    api = Client(site, verbose=False)
    translations = {"": page.input_value("#target-text textarea")}
    page.fill("#source-text textarea", SENTENCE)
    for pair, name in (("en-fr", "English → French"), ("en-de", "English → German")):
        choose(page, "pair", name)  # another language translates at once
        translations[pair] = api.predict(SENTENCE, pair, api_name="/translate")["text"]
        page.wait_for_function(
            "text => document.querySelector('#target-text textarea').value === text", arg=translations[pair]
        )
    titled(page, "Cross attention")
    page.click("#swap-languages")  # what was translated becomes the text, and is translated at once
    page.wait_for_function("document.querySelector('#pair input').value === 'German → English'")
    back = api.predict(translations["en-de"], "de-en", api_name="/translate")["text"]
    page.wait_for_function("text => document.querySelector('#target-text textarea').value === text", arg=back)
    assert page.input_value("#source-text textarea") == translations["en-de"]
    page.locator("#heat-map .heat-label[data-column]", has_text="<2en>").wait_for()
    assert page.input_value("#translation-model input") == "everyday"


def test_languages_bring_a_model_that_has_them(visit, site):
    page = visit()
    choose_model(page, "multi30k-en-fr", "English → French")
    enter(page)
    api = Client(site, verbose=False)
    truth = api.predict(SENTENCE, "en-fr", model="multi30k-en-fr", api_name="/translate")
    page.wait_for_function("text => document.querySelector('#target-text textarea').value === text", arg=truth["text"])

    # The model has one direction only, so the other one brings a model that has it, and the page says so.
    page.click("#swap-languages")
    page.wait_for_function("document.querySelector('#translation-model input').value === 'everyday'")
    page.locator("#translate-status", has_text="everyday · beam search").wait_for()
    assert page.input_value("#pair input") == "French → English"
    assert page.input_value("#source-text textarea") == truth["text"]

    # The model brings its languages, too, and other languages their model.
    choose(page, "translation-model", "multi30k-en-de")
    page.wait_for_function("document.querySelector('#pair input').value === 'English → German'")
    choose(page, "pair", "English → French")
    page.wait_for_function("document.querySelector('#translation-model input').value !== 'multi30k-en-de'")


def test_two_hundred_tokens_are_drawn_layer_by_layer(visit):
    """A long sentence: the maps, one layer of them at a time, and every step of its decoding."""
    page = visit()
    words = [
        "a",
        "man",
        "in",
        "a",
        "blue",
        "shirt",
        "and",
        "a",
        "woman",
        "in",
        "a",
        "red",
        "dress",
        "and",
        "two",
        "children",
        "with",
        "a",
        "small",
        "brown",
        "dog",
        "are",
        "walking",
        "along",
        "a",
        "busy",
        "street",
        "next",
        "to",
        "a",
        "large",
        "old",
        "building",
        "with",
        "many",
        "windows",
        "while",
        "several",
        "people",
        "are",
        "sitting",
        "on",
        "benches",
        "and",
        "reading",
        "books",
    ]
    choose_model(page, "multi30k-en-fr", "English → French")
    enter(page, " ".join((words * 6)[:210]))
    page.wait_for_function("document.querySelectorAll('#heat-map .heat-label[data-row]').length > 200")
    rows, columns = len(labels(page, "row")), len(labels(page, "column"))
    assert rows > 200 and columns > 190
    choose(page, "layer", "3")
    titled(page, "Cross attention, layer 3")
    page.locator("#look").get_by_text("bertviz", exact=True).click()
    page.locator("#bertviz [role=alert]", has_text="freezes a browser").wait_for()
    page.locator("#look").get_by_text("Lines", exact=True).click()
    page.locator("#lines canvas").wait_for()
    open_view(page, "Word by word")
    page.locator(".decode-strip").first.wait_for()
    assert page.inner_text(".decode-name") == f"Step 1 of {rows}"
    page.focus(".decode-slider")
    page.keyboard.press("End")
    assert page.inner_text(".decode-name") == f"Step {rows} of {rows}"
    choose(page, "decoding-layer", "1")
    page.locator("#decoding-steps", has_text="Layer 1, while").wait_for()


def point_at(page, word, click=False):
    """Point at a word of one of the two boxes, where a copy of the text lies below the field."""
    box = word.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    if click:
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_pointing_at_a_word_lights_up_its_partners_in_the_boxes(visit):
    page = visit()
    enter(page)
    target = page.locator('.word-glass .word[data-side="target"]')
    assert " ".join(target.all_inner_texts()) == page.input_value("#target-text textarea")
    assert " ".join(page.locator('.word-glass .word[data-side="source"]').all_inner_texts()) == SENTENCE
    linked = 0
    for index in range(target.count()):
        point_at(page, target.nth(index))
        page.wait_for_function(
            "index => document.querySelectorAll('.word-glass [data-side=target]')[index].classList.contains('lit')",
            arg=index,
        )
        assert page.locator('.word-glass .word.lit[data-side="target"]').count() == 1
        linked += page.locator('.word-glass .word.lit[data-side="source"]').count()
    assert linked >= target.count() - 1
    page.mouse.move(0, 0)
    page.locator(".word.lit").first.wait_for(state="detached")

    # Another word at its place, and the model goes on from there; it is one more of the translations.
    before = page.input_value("#target-text textarea")
    point_at(page, target.nth(1), click=True)
    option = page.locator(".word-choice:not(.chosen)").first
    instead = option.evaluate("node => node.firstChild.textContent")
    option.click()
    page.wait_for_function("old => document.querySelector('#target-text textarea').value !== old", arg=before)
    assert page.input_value("#target-text textarea").split()[1].startswith(instead)
    page.locator("#now", has_text=page.input_value("#target-text textarea")).wait_for()


def test_a_text_that_is_pasted_is_kept_and_ends_an_old_error(visit):
    page = visit()
    page.fill("#source-text textarea", "東京タワー")
    page.click("#translate-button")
    page.locator("#translate-status [role=alert]").wait_for()
    page.focus("#source-text textarea")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("It is pasted.")  # no key types it
    page.locator("#translate-status [role=alert]").wait_for(state="detached")
    page.wait_for_function("location.hash.includes('It+is+pasted.')")
    page.reload()
    page.wait_for_function("document.querySelector('#source-text textarea')?.value === 'It is pasted.'")


def test_it_opens_with_something_finished_and_comes_back_after_a_reload(visit):
    page = visit()
    assert page.input_value("#source-text textarea").startswith("The animal didn't cross the street")
    assert page.input_value("#target-text textarea").startswith("Das Tier")
    assert "A stored example" in page.inner_text("#translate-status")

    # What no longer belongs to the text is dimmed and says so.
    page.fill("#source-text textarea", SENTENCE)
    page.locator("#words", has_text="The text has changed since").wait_for()
    page.locator("body.translate-stale").wait_for()
    enter(page)
    page.locator("body:not(.translate-stale)").wait_for()
    translation = page.input_value("#target-text textarea")
    page.click('.thumb[data-layer="0"][data-head="1"]')
    titled(page, "Cross attention, layer 1, head 2")
    open_view(page, "Through the model")
    page.locator(".through-figure").wait_for()
    page.wait_for_function("location.hash.includes('view=through') && location.hash.includes('layer=1&head=2')")
    page.reload()
    page.locator(".through-figure").wait_for()
    page.wait_for_function("text => document.querySelector('#target-text textarea').value === text", arg=translation)
    open_view(page, "Who looks at whom")
    titled(page, "Cross attention, layer 1, head 2")


def test_what_is_typed_before_the_page_is_ready_stays(visit):
    """The script types as soon as the box is there, before the opening's translation has come from the server."""
    script = """new MutationObserver((changes, observer) => {
      const box = document.querySelector('#source-text textarea');
      if (!box || !box.value) return;
      observer.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => {  // painted: a visitor can type
        window.typedBefore = !document.querySelector('#heat-map .heat-title');
        box.value = 'A dog runs.';
        box.dispatchEvent(new Event('input', { bubbles: true }));
      }));
    }).observe(document, { childList: true, subtree: true })"""
    page = visit(prepare=lambda page: page.add_init_script(script))
    assert page.evaluate("window.typedBefore") is True
    page.wait_for_function(f"({SHOWN})('A dog runs.')")  # it is translated, as no opening belongs to it
    assert page.input_value("#source-text textarea") == "A dog runs."


def test_the_language_is_noticed(visit):
    page = visit()
    enter(page, "Der Hund ist nicht auf der Straße und die Katze ist müde.")
    page.locator("#better-pair", has_text="Read it as German").click()
    page.wait_for_function("document.querySelector('#pair input').value === 'German → English'")
    page.wait_for_function("document.querySelector('#target-text textarea').value.startsWith('The dog')")


def test_through_the_model_ends_with_its_own_probabilities(visit, site):
    page = visit()
    enter(page)
    open_view(page, "Through the model")
    page.locator(".through-figure").wait_for()
    steps = Client(site, verbose=False).predict(SENTENCE, "en-de", 4, 0.6, "", 0, api_name="/trace")["steps"]
    best = steps[1]["top"][0]  # the second step is shown first
    number = page.locator(".through-next .heat-weight").nth(2)  # below the two knobs' own
    assert float(number.get_attribute("title")) == pytest.approx(best["probability"], rel=1e-3)
    for key in ("source", "encoder_attention", "encoder_norm", "decoder_attention", "decoder_feed_forward", "linear"):
        page.click(f'.through-box[data-part="{key}"]')
        page.locator(f'.through-box.chosen[data-part="{key}"]').wait_for()
        assert page.locator(".through-panel canvas").count() > 0
    page.locator(".through-panel canvas").first.hover()
    assert f" of {WIDTH}" in page.inner_text(".through-panel .heat-readout")
    # Temperature and top-k act at once.
    slide = "(node, value) => { node.value = value; node.dispatchEvent(new Event('input', { bubbles: true })); }"
    page.locator(".through-knob input[name=top_k]").evaluate(slide, 1)
    page.wait_for_function(
        "document.querySelectorAll('.through-next .through-bar .heat-weight')[0].textContent === '1.0000'"
    )
    page.click('.through-box[data-part="cross_attention"]')
    page.locator(".through-link", has_text="See the whole map").click()
    titled(page, "Cross attention")


def test_which_heads_matter_is_what_the_library_says(visit, site):
    page = visit()
    enter(page)
    titled(page, "Cross attention")
    page.click("#ablate-button")
    page.locator("#ablate-note .note-status").wait_for()
    truth = Client(site, verbose=False).predict(SENTENCE, "en-de", 4, api_name="/ablate")
    assert f"{truth['logprob']:.3f}" in page.inner_text("#ablate-note")
    for name, kind in (("Cross", "cross"), ("Encoder", "encoder")):
        choose_kind(page, name)
        titled(page, f"{name} attention")
        assert len(truth[kind]) == LAYERS[kind]
        for layer, head in ((0, 0), (LAYERS[kind] - 1, 2)):
            change = truth[kind][layer][head]
            title = f"without it the log-probability changes by {change:.3f}"
            page.locator(f'.thumb[data-layer="{layer}"][data-head="{head}"][title$="{title}"]').wait_for()

    # The numbers are none of the next sentence's.
    enter(page, "A dog runs.")
    page.locator(".thumb-change").first.wait_for(state="detached")


def test_settings_reach_the_search(visit):
    page = visit()
    page.get_by_text("Model and search").click()
    beam = page.get_by_label("number input for Beam size")
    beam.wait_for()
    for _ in range(10):  # the page may still be filling what was unfolded just now
        beam.fill("1")
        beam.press("Tab")
        with contextlib.suppress(TimedOut):
            taken = "document.querySelector('#search-settings input[type=range]').value === '1'"
            page.wait_for_function(taken, timeout=5_000)
            break
    enter(page)
    titled(page, "Cross attention")
    hypotheses(page)
    page.wait_for_function("document.querySelectorAll('#n-best [role=\"row\"][data-index]').length === 1")

    # How many are shown; a length penalty of 2 divides by more.
    set_number(page, "#beam", 6)
    set_number(page, "#count", 5)
    translated_again(page)
    page.wait_for_function("document.querySelectorAll('#n-best [role=\"row\"][data-index]').length === 5")
    cell = lambda column: page.locator(f'#n-best [data-row="0"][data-col="{column}"]').inner_text()  # noqa: E731
    before = float(cell(2))
    set_number(page, "#alpha", 2)
    translated_again(page)
    page.wait_for_function(
        'before => Number(document.querySelector(\'#n-best [data-row="0"][data-col="2"]\').innerText) > before',
        arg=before,
    )
    score, logprob, tokens = (float(cell(column)) for column in (2, 3, 4))
    assert score == pytest.approx(logprob / ((5 + tokens + 1) / 6) ** 2, abs=0.002)
    assert not cell(5).strip()

    page.get_by_label("Beam search, read back").click()
    translated_again(page)
    page.wait_for_function("document.querySelector('#n-best [data-row=\"0\"][data-col=\"5\"]').innerText.trim() !== ''")
    score, logprob, tokens, back = (float(cell(column)) for column in (2, 3, 4, 5))
    assert score == pytest.approx((logprob + 0.25 * back) / ((5 + tokens + 1) / 6) ** 2, abs=0.002)

    # One draw among the single likeliest token is what greedy search writes.
    page.locator("#search").get_by_text("Greedy").click()
    translated_again(page)
    page.wait_for_function("document.querySelectorAll('#n-best [role=\"row\"][data-index]').length === 1")
    greedy = page.input_value("#target-text textarea")
    page.locator("#search").get_by_text("Sampling").click()
    page.fill("#top-k input", "1")
    page.locator("#top-k input").press("Tab")
    translated_again(page)
    page.wait_for_function("document.querySelectorAll('#n-best [role=\"row\"][data-index]').length > 1")
    assert page.input_value("#target-text textarea") == greedy

    # The copy button, where the browser lets a page read what was copied.
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#target-text button").first.click()
    page.wait_for_function("async text => (await navigator.clipboard.readText()) === text", arg=greedy)


def test_an_example_is_translated_at_once(visit):
    page = visit()
    page.get_by_text("Examples", exact=True).click()
    page.get_by_text("Two young girls are playing soccer in the park.").click()
    page.locator("#now", has_text="Two young girls").wait_for()
    page.locator("#translate-examples").wait_for(state="hidden")  # what was chosen from makes room
    assert "girls" in page.input_value("#source-text textarea")
    assert page.input_value("#target-text textarea").startswith("Zwei")


MARKUP = "A man <img src=x onerror=alert(1)> <b id=planted>rides</b>."


@pytest.mark.quick
def test_markup_typed_as_text_is_text_everywhere(visit):
    page = visit()
    enter(page, MARKUP)
    titled(page, "Cross attention")
    for kind in ("Encoder", "Decoder"):
        choose_kind(page, kind)
        titled(page, f"{kind} attention")
    assert page.locator("#planted").count() == 0
    assert page.locator("main img[src='x']").count() == 0
    assert page.input_value("#source-text textarea") == MARKUP


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "enter a sentence"),
        ("   \n ", "enter a sentence"),
        ("word " * 2000, "10,000 characters"),
        ("一二三四五六七", "script"),
    ],
)
def test_bad_text_gets_one_sentence_and_stays(visit, text, words):
    page = visit()
    enter(page, text)
    alert = page.locator("#translate-status [role=alert]")
    alert.wait_for()
    sentence = alert.inner_text()
    assert words in sentence and "Traceback" not in sentence and "\n" not in sentence
    assert page.input_value("#source-text textarea") == text
    # The page is alive: a good sentence is translated right after.
    enter(page)
    alert.wait_for(state="detached")
    titled(page, "Cross attention")


def test_emoji_alone_come_back_and_the_page_says_that_no_attention_was_paid(visit):
    page = visit()
    enter(page, "🙂🚲")
    page.wait_for_function("document.querySelector('#target-text textarea').value.includes('🚲')")
    page.locator("#attention-note [role=alert]").wait_for()
    assert page.locator("#heat-map").count() == 0 and page.locator(".word-glass .word").count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_fits_a_phone(visit, dark):
    page = visit(width=390, height=800, dark=dark)
    enter(page, "A woman in a red dress is reading a book on a bench.")
    titled(page, "Cross attention")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.body.classList.contains('dark')") is dark
    box = page.locator("#heat-map .heat-scroll").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
