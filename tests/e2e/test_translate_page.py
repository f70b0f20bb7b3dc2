"""The Translate tab as a visitor uses it."""

import pytest
from driving import HEADS, LAYERS, SENTENCE, choose, choose_model, enter, labels, open_view, set_number, titled
from gradio_client import Client


def hypotheses(page):
    """Rows of the n-best table."""
    return page.locator('#n-best [role="row"][data-index]')


def test_text_in_translation_and_every_attention_map_out(visit, site):
    page = visit()
    enter(page)
    titled(page, f"Cross attention, layer {LAYERS['cross']}, mean over heads")
    translation = page.input_value("#target-text textarea")
    assert translation.strip() and translation != SENTENCE
    assert "tokens/s" in page.inner_text("#translate-status")
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
    assert truth["rows"][1] in readout and truth["columns"][1] in readout
    assert "chosen" in page.get_attribute('.thumb[data-layer="1"][data-head="1"]', "class")

    # Encoder and decoder: the other two sentences on the axes, and as many layers as each of them has.
    page.get_by_label("Encoder", exact=True).check()
    titled(page, "Encoder attention, layer 2, head 2")
    assert labels(page, "row") == labels(page, "column") == truth["columns"]
    assert thumbs.count() == LAYERS["encoder"] * HEADS
    page.click(f'.thumb[data-layer="{LAYERS["encoder"] - 1}"][data-head="1"]')
    titled(page, f"Encoder attention, layer {LAYERS['encoder']}, head 2")
    choose(page, "layer", str(LAYERS["encoder"] - 1))
    titled(page, f"Encoder attention, layer {LAYERS['encoder'] - 1}, head 2")
    page.get_by_label("Decoder", exact=True).check()
    titled(page, f"Decoder attention, layer {min(LAYERS['encoder'] - 1, LAYERS['decoder'])}, head 2")
    assert thumbs.count() == LAYERS["decoder"] * HEADS
    assert labels(page, "row") == truth["rows"] and labels(page, "column") == ["<s>", *truth["rows"][:-1]]

    choose(page, "layer", "1")
    choose(page, "head", "4")
    titled(page, "Decoder attention, layer 1, head 4")
    choose(page, "head", "Mean over heads")
    titled(page, "Decoder attention, layer 1, mean over heads")

    # Stretched colours end at the map's own maximum, and the scale says so.
    page.get_by_label("Encoder", exact=True).check()
    titled(page, "Encoder attention, layer 1, mean over heads")
    weights = api.predict(SENTENCE, "en-de", "encoder", 1, 0, 4, api_name="/attend")["weights"]
    page.get_by_label("Stretch colours").check()
    page.locator("#heat-map .heat-scale", has_text=f"{max(map(max, weights)):.3f}").wait_for()


def test_another_hypothesis_shows_its_own_attention(visit, site):
    page = visit()
    enter(page)
    titled(page, "Cross attention")
    answer = Client(site, verbose=False).predict(SENTENCE, "en-de", 4, 0.6, 4, api_name="/translate")
    third = answer["sentences"][0]["hypotheses"][2]
    page.locator('#n-best [data-row="2"][data-col="1"]').click()
    page.wait_for_function(
        "tokens => JSON.stringify([...document.querySelectorAll('#heat-map .heat-label[data-row] title')]"
        ".map(node => node.textContent).slice(0, -1)) === JSON.stringify(tokens)",
        arg=third["tokens"],
    )


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

    # Both sentences stand there in both languages, and each word finds its partners in its own sentence.
    pairs = page.locator(".words-pair")
    assert pairs.count() == 2
    for pair, word in ((0, "dog"), (1, "soccer.")):
        own = pairs.nth(pair)
        own.locator('.word[data-side="source"]', has_text=word).hover()
        own.locator('.word.lit[data-side="target"]').first.wait_for()
        assert pairs.nth(1 - pair).locator(".word.lit").count() == 0
        assert own.locator(".word.lit[data-side='source']").all_inner_texts() == [word]


def test_four_directions_of_one_model_and_swapping_goes_back(visit, site):
    page = visit()
    page.get_by_text("Model and search").click()
    page.wait_for_function("document.querySelector('#translation-model input').value === 'everyday'")
    enter(page, "A dog runs.")
    titled(page, "Cross attention")  # by now the languages have come with the model
    page.click("#pair input")
    options = page.locator("#pair").get_by_role("option")
    options.first.wait_for()
    offered = options.evaluate_all("nodes => nodes.map(node => node.getAttribute('aria-label'))")
    assert offered == ["English → German", "German → English", "English → French", "French → English"]
    options.nth(3).click()
    options.first.wait_for(state="hidden")
    api = Client(site, verbose=False)
    translations = {"": page.input_value("#target-text textarea")}
    for pair, name in (("en-fr", "English → French"), ("en-de", "English → German")):
        choose(page, "pair", name)
        enter(page)
        page.wait_for_function(
            "old => { const now = document.querySelector('#target-text textarea').value; return now && now !== old; }",
            arg=list(translations.values())[-1],
        )
        translations[pair] = page.input_value("#target-text textarea")
        assert translations[pair] == api.predict(SENTENCE, pair, api_name="/translate")["text"]
    titled(page, "Cross attention")
    page.click("#swap-languages")
    page.wait_for_function("document.querySelector('#pair input').value === 'German → English'")
    page.wait_for_function(
        "text => document.querySelector('#source-text textarea').value === text", arg=translations["en-de"]
    )
    assert page.input_value("#target-text textarea") == ""
    page.click("#translate-button")
    page.wait_for_function("document.querySelector('#target-text textarea').value")
    back = api.predict(translations["en-de"], "de-en", api_name="/translate")["text"]
    assert page.input_value("#target-text textarea") == back
    page.locator("#heat-map .heat-label[data-column]", has_text="<2en>").wait_for()
    assert page.input_value("#translation-model input") == "everyday"


def test_languages_bring_a_model_that_has_them(visit, site):
    page = visit()
    choose_model(page, "multi30k-en-fr", "English → French")
    enter(page)
    titled(page, "Cross attention, layer 4")
    api = Client(site, verbose=False)
    truth = api.predict(SENTENCE, "en-fr", model="multi30k-en-fr", api_name="/translate")
    assert page.input_value("#target-text textarea") == truth["text"]

    # The model has one direction only, so the other one brings a model that has it.
    page.click("#swap-languages")
    page.wait_for_function("document.querySelector('#translation-model input').value === 'everyday'")
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
    words = (
        "a man in a blue shirt and a woman in a red dress and two children with a small brown dog are walking along a "
        "busy street next to a large old building with many windows while several people are sitting on benches and "
        "reading books"
    ).split()
    choose_model(page, "multi30k-en-fr", "English → French")
    enter(page, " ".join((words * 6)[:210]))
    titled(page, "Cross attention, layer 4")
    rows, columns = len(labels(page, "row")), len(labels(page, "column"))
    assert rows > 200 and columns > 190
    choose(page, "layer", "2")
    titled(page, "Cross attention, layer 2")
    page.locator("#look").get_by_text("bertviz: model", exact=True).click()
    page.locator("#bertviz [role=alert]", has_text="freezes a browser").wait_for()
    page.locator("#look").get_by_text("Lines", exact=True).click()
    page.locator("#lines canvas").wait_for()
    open_view(page, "Decoding")
    page.locator(".decode-strip").first.wait_for()
    assert page.inner_text(".decode-name") == f"Step 1 of {rows}"
    page.focus(".decode-slider")
    page.keyboard.press("End")
    assert page.inner_text(".decode-name") == f"Step {rows} of {rows}"
    choose(page, "decoding-layer", "1")
    page.locator("#decoding-steps", has_text="Layer 1, while").wait_for()


def test_pointing_at_a_word_lights_up_its_partners(visit):
    page = visit()
    enter(page)
    titled(page, "Cross attention")
    translation = page.input_value("#target-text textarea")
    target = page.locator('.word[data-side="target"]')
    assert " ".join(target.all_inner_texts()) == translation
    assert " ".join(page.locator('.word[data-side="source"]').all_inner_texts()) == SENTENCE
    linked = 0
    for index in range(target.count()):
        target.nth(index).hover()
        assert page.locator('.word.lit[data-side="target"]').count() == 1
        linked += page.locator('.word.lit[data-side="source"]').count()
    assert linked >= target.count() - 1
    page.mouse.move(0, 0)
    page.locator(".word.lit").first.wait_for(state="detached")


def test_which_heads_matter_is_what_the_library_says(visit, site):
    page = visit()
    enter(page)
    titled(page, "Cross attention")
    page.click("#ablate-button")
    page.locator("#ablate-note .note-status").wait_for()
    truth = Client(site, verbose=False).predict(SENTENCE, "en-de", 4, api_name="/ablate")
    assert f"{truth['logprob']:.3f}" in page.inner_text("#ablate-note")
    for name, kind in (("Cross", "cross"), ("Encoder", "encoder")):
        page.get_by_label(name, exact=True).check()
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
    page.wait_for_timeout(500)  # the settings slide open
    beam.fill("1")
    beam.press("Tab")
    page.wait_for_function("document.querySelector('#search-settings input[type=range]').value === '1'")
    enter(page)
    titled(page, "Cross attention")
    assert hypotheses(page).count() == 1

    # How many are shown; a length penalty of 2 divides by more.
    set_number(page, "#beam", 6)
    set_number(page, "#count", 5)
    page.click("#translate-button")
    page.wait_for_function("document.querySelectorAll('#n-best [role=\"row\"][data-index]').length === 5")
    cell = lambda column: page.locator(f'#n-best [data-row="0"][data-col="{column}"]').inner_text()  # noqa: E731
    before = float(cell(2))
    set_number(page, "#alpha", 2)
    page.click("#translate-button")
    page.wait_for_function(
        "before => Number(document.querySelector('#n-best [data-row=\"0\"][data-col=\"2\"]').innerText) > before",
        arg=before,
    )
    score, logprob, tokens = (float(cell(column)) for column in (2, 3, 4))
    assert score == pytest.approx(logprob / ((5 + tokens + 1) / 6) ** 2, abs=0.002)

    # One draw among the single likeliest token is what greedy search writes.
    page.locator("#search").get_by_text("Greedy").click()
    page.click("#translate-button")
    page.wait_for_function("document.querySelectorAll('#n-best [role=\"row\"][data-index]').length === 1")
    greedy = page.input_value("#target-text textarea")
    page.locator("#search").get_by_text("Sampling").click()
    page.fill("#top-k input", "1")
    page.locator("#top-k input").press("Tab")
    page.click("#translate-button")
    page.wait_for_function("document.querySelectorAll('#n-best [role=\"row\"][data-index]').length > 1")
    assert page.input_value("#target-text textarea") == greedy

    # The copy button, where the browser lets a page read what was copied.
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#target-text button").first.click()
    page.wait_for_function("async text => (await navigator.clipboard.readText()) === text", arg=greedy)


def test_an_example_fills_the_text(visit):
    page = visit()
    page.get_by_role("button", name="Two young girls are playing soccer in the park.").click()
    page.wait_for_function("document.querySelector('#source-text textarea').value.startsWith('Two young girls')")


MARKUP = "A man <img src=x onerror=alert(1)> <b id=planted>rides</b>."


def test_markup_typed_as_text_is_text_everywhere(visit):
    page = visit()
    enter(page, MARKUP)
    titled(page, "Cross attention")
    for kind in ("Encoder", "Decoder"):
        page.get_by_label(kind, exact=True).check()
        page.wait_for_timeout(500)
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
    titled(page, "Cross attention")
    assert page.locator("#translate-status [role=alert]").count() == 0


def test_emoji_alone_come_back_and_the_page_says_that_no_attention_was_paid(visit):
    page = visit()
    enter(page, "🙂🚲")
    page.wait_for_function("document.querySelector('#target-text textarea').value.includes('🚲')")
    page.locator("#attention-note [role=alert]").wait_for()
    assert page.locator("#heat-map").count() == 0 and page.locator(".word").count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_fits_a_phone(visit, dark):
    page = visit(width=390, height=800, dark=dark)
    enter(page, "A woman in a red dress is reading a book on a bench.")
    titled(page, "Cross attention")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.body.classList.contains('dark')") is dark
    box = page.locator("#heat-map .heat-scroll").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
