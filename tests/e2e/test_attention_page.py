"""The views below a translation as a visitor uses them: attention, one head, saving, and the tour."""

import csv
import io
import json

import numpy as np
import pytest
from driving import HEADS, LAYERS, SENTENCE, ask_what_if, choose, choose_kind, open_view, set_number, titled, translate
from gradio_client import Client
from PIL import Image

from ui.translate.words import plain

MARKUP = "A man <img src=x onerror=alert(1)> <b id=planted>rides</b>."


def look(page, name):
    page.locator("#look").get_by_text(name, exact=True).click()


def readout(page, where, row, column):
    """Points at a cell of a heat map; the exact weight that is read there."""
    page.locator(f"{where} .heat-frame").scroll_into_view_if_needed()
    frame = page.locator(f"{where} .heat-frame").bounding_box()
    rows, columns = (page.locator(f"{where} .heat-label[data-{axis}]").count() for axis in ("row", "column"))
    x, y = frame["width"] / columns * (column + 0.5), frame["height"] / rows * (row + 0.5)
    page.mouse.move(frame["x"] + x, frame["y"] + y)
    page.locator(f"{where} .heat-weight").wait_for()
    return np.float32(page.get_attribute(f"{where} .heat-weight", "title")), (frame["x"] + x, frame["y"] + y)


def test_every_way_to_look_at_attention(visit, site):
    page = visit(height=1600)
    translate(page)
    api = Client(site, verbose=False)

    def attend(kind="cross", layer=LAYERS["cross"], head=0, without_ends=False):
        return api.predict(SENTENCE, "en-de", kind, layer, head, 4, without_ends, "", api_name="/attend")

    # What is read on the map is the library's number to the last digit, also for the combinations of heads.
    for name, head in (("Mean over heads", 0), ("Largest over heads", -1), ("Rollout over layers", -2)):
        if head:
            choose(page, "head", name)
            titled(page, {-1: "largest over heads", -2: "rollout"}[head])
        truth = np.float32(attend(head=head)["weights"])
        assert readout(page, "#heat-map", 1, 1)[0] == truth[1, 1]
    choose(page, "head", "Mean over heads")
    titled(page, "mean over heads")

    # A click on a cell tells every head.
    weight, place = readout(page, "#heat-map", 2, 3)
    page.mouse.click(*place)
    page.locator("#cell-note b[title]").first.wait_for()
    every = [np.float32(node.get_attribute("title")) for node in page.locator("#cell-note b[title]").all()]
    assert every == [np.float32(attend(head=head)["weights"][2][3]) for head in range(1, HEADS + 1)]

    # Without start and end the rows sum to 1 again.
    page.get_by_label("Hide start and end").check()
    titled(page, "without start and end")
    assert readout(page, "#heat-map", 1, 1)[0] == np.float32(attend(without_ends=True)["weights"][1][1])
    page.get_by_label("Hide start and end").uncheck()
    page.locator("#heat-map .heat-label[data-column]", has_text="</s>").wait_for()

    # Cells below the threshold go blank, their numbers with them.
    before = page.locator("#heat-map .heat-number").count()
    set_number(page, "#threshold", 0.5)
    page.wait_for_function("count => document.querySelectorAll('#heat-map .heat-number').length < count", arg=before)
    large = (np.array(attend()["weights"]) >= 0.5).sum()
    page.wait_for_function(
        "count => document.querySelectorAll('#heat-map .heat-number').length === count", arg=int(large)
    )
    set_number(page, "#threshold", 0)

    # Lines: all heads, one alone, and one word isolated and kept.
    look(page, "Lines")
    page.locator("#lines canvas").wait_for()
    assert page.locator(".line-chip").count() == HEADS and page.locator(".line-chip.off").count() == 0
    lines = lambda: int(page.get_attribute("#lines [data-lines], #lines[data-lines]", "data-lines"))  # noqa: E731
    whole = lines()
    word = page.locator('.line-token[data-side="row"]').nth(1)
    word.click()
    assert 0 < lines() < whole and "pinned" in word.get_attribute("class")
    first = page.locator("#lines .heat-readout .heat-weight").first
    own = max(max(attend(head=head)["weights"][1]) for head in range(1, HEADS + 1))
    assert np.float32(first.get_attribute("title")) == np.float32(own)
    word.click()
    page.locator(".line-chip").nth(1).dblclick()
    assert page.locator(".line-chip.off").count() == HEADS - 1
    page.locator(".line-chip").nth(2).click()
    assert page.locator(".line-chip.off").count() == HEADS - 2

    # bertviz, in a frame that can reach nothing.
    look(page, "bertviz")
    for name, marks in (("Heads", "#attention line"), ("Model", ".attn-line-group line, svg line")):
        page.locator("#bertviz-view").get_by_text(name, exact=True).click()
        frame = page.frame_locator("#bertviz iframe")
        frame.locator(marks).nth(50).wait_for(state="attached")
        assert frame.locator(marks).count() > 50
    look(page, "Map")
    page.locator("#heat-map svg").wait_for()

    # The table of heads opens a head; gradients and occlusion stand beside attention.
    page.get_by_text("What each head does").click()
    cell = lambda column: page.locator(f'#statistics-table [data-row="0"][data-col="{column}"]')  # noqa: E731
    layer, head = (cell(column).inner_text().strip() for column in (0, 1))
    cell(2).click()
    titled(page, f"layer {layer}, head {head}")
    page.click("#reasons-button")
    page.locator("#reasons-note", has_text="occlusion").wait_for()
    readout(page, "#occlusion-map", 1, 1)
    readout(page, "#gradient-map", 1, 1)
    assert "nats" in page.inner_text("#gradient-map .heat-readout")


def test_one_head_is_worked_out_and_two_words_are_swapped(visit, site):
    page = visit(height=1600)
    translate(page)
    page.click('.thumb[data-layer="1"][data-head="1"]')
    titled(page, "Cross attention, layer 2, head 2")
    _, place = readout(page, "#heat-map", 3, 1)
    page.mouse.click(*place)
    page.locator("#cell-note b[title]").first.wait_for()
    open_view(page, "One head")
    titled(page, "Cross attention, layer 2, head 2, query 4", "#head-steps")
    api = Client(site, verbose=False)

    def weights():
        cells = page.locator("#head-steps .step-weight")
        return np.array([np.float32(cell.get_attribute("title")) for cell in cells.all()])

    truth = api.predict(SENTENCE, "en-de", "cross", 2, 2, 4, False, "", api_name="/attend")
    np.testing.assert_allclose(weights(), np.float32(truth["weights"][3]), atol=2e-6)
    assert page.locator("#head-steps .step-token").all_inner_texts()[1:] == [plain(one) for one in truth["columns"]]
    page.locator("#head-steps .step-query canvas").hover()
    assert "dimension" in page.inner_text("#head-steps .heat-readout")

    scaled = weights().max()
    page.get_by_label("Divide by √d_k").uncheck()
    page.locator("#head-steps th", has_text="not scaled").wait_for()
    assert weights().max() >= scaled
    page.get_by_label("Divide by √d_k").check()
    page.locator("#head-steps th", has_text="÷").wait_for()

    choose_kind(page, "decoder", "one-kind")
    titled(page, "Decoder attention", "#head-steps")
    hidden = page.locator("#head-steps .forbidden").count()
    assert hidden > 0 and (weights()[-hidden:] == 0).all()
    page.locator("#one-mask input").uncheck()
    page.wait_for_function(
        "[...document.querySelectorAll('#head-steps .forbidden .step-weight')].every(cell => Number(cell.title) > 0)"
    )
    choose(page, "one-layer", "1")
    titled(page, "layer 1", "#head-steps")
    choose(page, "one-head", "4")
    titled(page, "head 4", "#head-steps")
    page.click("#one-query input")
    page.locator("#one-query").get_by_role("option").first.click()
    titled(page, "query 1:", "#head-steps")

    page.get_by_text("Where does the order of the words come from?").click()
    page.locator("#positions canvas").hover()
    assert "sine" in page.inner_text("#positions .heat-readout")
    for box, option in (("swap-first", "2 · man"), ("swap-second", "6 · bicycle.")):
        choose(page, box, option)
    page.click("#swap-button")
    page.locator("#swapped .swap-table").wait_for()
    told = page.inner_text("#swapped")
    assert "A bicycle. is riding a man" in told and "the same" in told and "0.0 %" in told


def test_what_is_saved_is_what_is_shown_and_opens_without_a_connection(visit, browser, tmp_path, site):
    page = visit()
    translate(page, MARKUP)
    page.click('.thumb[data-layer="1"][data-head="2"]')
    titled(page, "Cross attention, layer 2, head 3")
    page.click("#save-button")
    page.locator("#saved-files a").first.wait_for()
    files = {}
    for link in page.locator("#saved-files a").all():
        with page.expect_download() as download:
            link.click()
        name = download.value.suggested_filename
        download.value.save_as(tmp_path / name)
        files[name.rsplit(".", 1)[1]] = tmp_path / name
    assert set(files) == {"png", "svg", "csv", "json", "npz", "html"}
    truth = Client(site, verbose=False).predict(MARKUP, "en-de", "cross", 2, 3, 4, False, "", api_name="/attend")
    weights = np.float32(truth["weights"])
    archive = np.load(files["npz"], allow_pickle=False)
    np.testing.assert_array_equal(archive["cross"][1, 2], weights)
    np.testing.assert_array_equal(np.float32(json.loads(files["json"].read_text())["map"]["weights"]), weights)
    table = list(csv.reader(io.StringIO(files["csv"].read_text())))
    np.testing.assert_array_equal(np.array([row[1:] for row in table[1:]], dtype=np.float32), weights)
    assert Image.open(files["png"]).width > 200

    # The saved page and the drawing, in a browser without any network.
    context = browser.new_context(offline=True, viewport={"width": 1100, "height": 1400})
    wrong = []
    alone = context.new_page()
    alone.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    alone.on("pageerror", lambda error: wrong.append(str(error)))
    alone.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    alone.on("request", lambda request: request.url.startswith(("file:", "data:")) or wrong.append(request.url))
    try:
        alone.goto(files["html"].as_uri())
        titled(alone, "Cross attention, layer 2, head 3")
        assert readout(alone, "#heat-map", 1, 1)[0] == weights[1, 1]
        assert alone.locator("#planted").count() == 0 and alone.locator("img").count() == 0
        assert "<img src=x onerror=alert(1)>" in alone.inner_text("body")
        alone.select_option("#kind", "decoder")
        titled(alone, "Decoder attention, layer 2")
        alone.locator(".thumb").first.click()
        titled(alone, "Decoder attention, layer 1, head 1")
        alone.select_option("#look", "lines")
        alone.locator("#lines canvas").wait_for()
        alone.goto(files["svg"].as_uri())
        assert alone.locator("svg").count() == 1 and alone.locator("#planted").count() == 0
        assert wrong == []
    finally:
        context.close()

    # Every view has the button; what was offered goes with it.
    for name, saved in (("One head", "neurons"), ("Word by word", "word-by-word"), ("What it knows", "logit-lens")):
        open_view(page, name)
        page.locator("#saved-files").wait_for(state="hidden")
        page.wait_for_timeout(1500)
        page.click("#save-button")
        page.locator("#saved-files", has_text=saved).wait_for()
    page.locator("#layers-question input[value=learning]").check()
    page.locator("#learning-text").wait_for()
    page.click("#save-button")
    page.locator("#save-status [role=alert]", has_text="Read a sentence first").wait_for()


def test_markup_is_text_in_every_view(visit):
    page = visit()
    translate(page, MARKUP)
    look(page, "Lines")
    page.locator("#lines canvas").wait_for()
    look(page, "bertviz")
    for name in ("Heads", "Model"):
        page.locator("#bertviz-view").get_by_text(name, exact=True).click()
        page.frame_locator("#bertviz iframe").locator("#vis svg").first.wait_for()
        assert page.frame_locator("#bertviz iframe").locator("img, #planted").count() == 0
    views = {
        "Through the model": ".through-figure",
        "One head": "#head-steps .step-table",
        "Word by word": ".decode-strip",
    }
    for name, ready in views.items():
        open_view(page, name)
        page.locator(ready).first.wait_for()
    for part, ready in (("model", "#edit-map .heat-title"), ("sides", "#compare-button")):
        ask_what_if(page, part)
        page.locator(ready).first.wait_for()
    page.click("#tour-start")
    page.locator(".tour-card").wait_for()
    assert page.locator("#planted").count() == 0 and page.locator("main img[src='x']").count() == 0


MARKED = """() => {
  const one = document.querySelector('.tour-mark'), card = document.querySelector('#tour');
  if (!one) return null;
  const box = one.getBoundingClientRect(), told = card.getBoundingClientRect();
  const next = document.querySelector('#tour-next').getBoundingClientRect();
  return { top: box.top, card: told.top, next: next.bottom, high: box.height, inner: innerHeight };
}"""


BOX = """name => {
  const { x, y, width, height } = document.querySelector(name).getBBox();  // without the stroke
  return { x, y, width, height };
}"""


def test_the_tour_stays_in_sight_marks_what_it_speaks_of_and_runs_what_it_needs(visit):
    page = visit(width=1440, height=900)
    page.click("#tour-start")
    leads = {
        1: ".through-figure",
        3: "#heat-map",
        4: ".thumb",
        7: "#lines",
        9: "#head-steps tr",
        11: "#head-switches",
        12: "#lens-table table",
        13: "#lens-map",
    }
    for number in range(1, 14):
        page.locator(f'.tour-card[data-stop="{number}"]').wait_for()
        page.locator(f"{leads.get(number, '')}.tour-mark").first.wait_for()
        page.wait_for_timeout(800)
        seen = page.evaluate(MARKED)
        assert seen["next"] <= seen["inner"] and 0 <= seen["top"] < seen["card"] - min(seen["high"], 60), (number, seen)
        cell = page.get_attribute(".tour-card", "data-cell")
        if cell:  # the very cell
            row, column = cell.split(",")
            place, frame = (page.evaluate(BOX, f"#heat-map .{name}") for name in ("heat-marked", "heat-frame"))
            assert round((place["y"] - frame["y"]) / place["height"]) == int(row)
            assert round((place["x"] - frame["x"]) / place["width"]) == int(column)
        if number < 13:
            page.click("#tour-next")
    page.locator("#lens-map .heat-title", has_text="Update").wait_for()
    assert page.locator("#head-switches").count() == 0 or not page.locator("#head-switches").is_visible()
    page.click("#tour-end")
    page.locator("#tour-start").wait_for()
    assert page.locator(".tour-mark").count() == 0


def test_the_tour_by_buttons_and_by_keys(visit):
    page = visit()
    translate(page, "A woman in a red dress is reading a book.")
    page.click("#tour-start")
    stop = lambda number: page.locator(f'.tour-card[data-stop="{number}"]').wait_for()  # noqa: E731
    stop(1)
    page.locator(".through-figure.tour-mark").wait_for()
    page.click("#tour-next")
    stop(2)
    assert "dress" in page.inner_text(".tour-card") and "▁" not in page.inner_text(".tour-card")
    page.locator("#tour-card").click()  # away from the fields, so that keys are the tour's
    page.keyboard.press("ArrowRight")
    stop(3)
    titled(page, "Encoder attention, layer 1")
    page.keyboard.press("ArrowLeft")
    stop(2)
    page.click("#tour-back")
    stop(1)
    page.locator("#tour-card").click()
    page.keyboard.press("Escape")
    page.locator("#tour-start").wait_for()


def test_sampling_greedy_swapped_languages_and_the_list_of_models(visit):
    page = visit()
    page.fill("#source-text textarea", SENTENCE)
    page.locator("#character-count", has_text=f"{len(SENTENCE)} / 5,000").wait_for()
    page.get_by_text("Model and search").click()
    page.locator("#search").get_by_text("Sampling").click()
    page.locator("#temperature").wait_for()
    set_number(page, "#temperature", 2)
    page.fill("#sampling-seed input", "7")
    page.locator("#sampling-seed input").press("Tab")

    changed = "before => ![before, ''].includes(document.querySelector('#target-text textarea').value)"

    def another(before):
        page.click("#translate-button")
        page.wait_for_function(changed, arg=before)
        return page.input_value("#target-text textarea")

    first = another(page.input_value("#target-text textarea"))
    page.fill("#sampling-seed input", "8")
    page.locator("#sampling-seed input").press("Tab")
    second = another(first)
    page.locator("#search").get_by_text("Greedy").click()
    page.locator("#count").wait_for(state="hidden")
    another(second)
    assert page.locator("#translation-model input").input_value()
    page.click("#swap-languages")
    page.wait_for_function(
        "document.querySelector('#translate-status [role=alert]')"
        " || document.querySelector('#pair input').value.startsWith('German')"
    )


@pytest.mark.parametrize("dark", [False, True])
def test_the_views_fit_a_phone(visit, dark):
    page = visit(width=390, height=800, dark=dark)
    translate(page)
    look(page, "Lines")
    page.locator("#lines canvas").wait_for()
    open_view(page, "One head")
    page.locator("#head-steps .step-table").wait_for()
    # All six steps are in sight: the table does not scroll sideways either.
    assert page.locator("#head-steps .step-scroll").evaluate("node => node.scrollWidth - node.clientWidth") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
