"""The views Word by word and What if as a visitor uses them: every control once."""

import json
from contextlib import suppress

import pytest
from driving import HEADS, LAYERS, ask_what_if, choose, choose_kind, labels, open_view, set_number, titled, translate
from gradio_client import Client
from playwright.sync_api import TimeoutError

from ui.translate.words import plain

SENTENCE = "Two young girls are playing soccer in the park."
MARKUP = "A man <img src=x onerror=alert(1)> <b id=planted>rides</b>."


def tokens(page, kind):
    return page.locator(f".decode-tokens .{kind}").all_inner_texts()


@pytest.fixture(scope="module")
def traced(site):
    return Client(site, verbose=False).predict(SENTENCE, "en-de", 4, 0.6, "", LAYERS["decoder"], api_name="/trace")


def test_an_address_leads_to_its_step(visit, site):
    page = visit()
    translate(page, SENTENCE)
    open_view(page, "Word by word")
    page.locator(".decode-strip").first.wait_for()
    page.focus(".decode-slider")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash.includes('view=decoding') && location.hash.includes('step=4')")
    address = page.evaluate("location.hash")
    page.evaluate("sessionStorage.clear()")  # as somebody else who follows the link
    page.goto("about:blank")
    page.goto(f"{site}{address}")
    page.locator(".decode-name", has_text="Step 4 of").wait_for()
    page.wait_for_timeout(500)
    assert "step=4" in page.evaluate("location.hash")


TOP = "Math.round(document.querySelector('#card-segmentation')?.getBoundingClientRect().top)"


def test_an_address_leads_a_new_visitor_to_a_step_of_the_example_and_to_a_stage_of_the_try_on(visit, site):
    def arrive(address):
        page = visit()
        page.evaluate("sessionStorage.clear()")
        page.goto("about:blank")
        page.goto(f"{site}#{address}")
        return page

    arrive("view=decoding&step=4").locator(".decode-name", has_text="Step 4 of").wait_for()
    page = arrive("tab=try-on&view=steps&stage=segmentation")
    page.wait_for_function(f"Math.abs({TOP} - 84) <= 2")
    page.wait_for_timeout(1500)  # pictures above it arrive
    assert abs(page.evaluate(TOP) - 84) <= 2


def test_decoding_step_by_step(visit, traced):
    page = visit()
    translate(page, SENTENCE)
    open_view(page, "Word by word")
    page.locator(".decode-strip").first.wait_for()
    steps, total = traced["steps"], len(traced["steps"])
    assert page.inner_text(".decode-name") == f"Step 1 of {total}"

    # The arrow keys move the slider, and nothing is asked of the server for it.
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.focus(".decode-slider")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.click("button[aria-label='Next step']")
    page.click("button[aria-label='Previous step']")
    assert page.inner_text(".decode-name") == f"Step 4 of {total}"
    assert asked == []
    step = steps[3]
    read = page.locator(".decode-tokens").first
    expected = [plain(one) for one in (*step["input"], step["token"], *[later["token"] for later in steps[4:]])]
    assert read.locator(".decode-token").all_inner_texts() == expected
    assert read.locator(".decode-chosen").inner_text() == plain(step["token"])
    assert f"Entropy {step['entropy']:.3f} nats" in page.inner_text(".decode-entropy >> nth=0")
    for place, one in enumerate(step["top"][:3]):
        button = page.locator(".top-token").nth(place)
        assert plain(one["token"]) in button.inner_text()
        assert float(button.get_attribute("title")) == pytest.approx(one["probability"], rel=1e-4)
    assert page.locator(".cache-row").count() == LAYERS["decoder"]
    assert f"{step['cache_bytes'] / 1024:.1f} KiB" in page.inner_text("#decoding-steps")

    # What is read off the strips is what the library says; what is to come is masked.
    strip, frame = page.locator(".decode-strip").first, page.locator(".decode-strip .heat-frame").first
    strip.scroll_into_view_if_needed()
    box = frame.bounding_box()
    cell, high = box["width"] / total, box["height"] / HEADS
    readout = page.locator("#decoding-steps .heat-readout").first
    page.mouse.move(box["x"] + 1.5 * cell, box["y"] + 1.5 * high)
    assert readout.inner_text().startswith(f"head 2, {plain(step['input'][1])}: {step['decoder'][1][1]:.4f}")
    page.mouse.move(box["x"] + (total - 0.5) * cell, box["y"] + 0.5 * high)
    assert "masked" in readout.inner_text()
    strip.focus()
    page.keyboard.press("ArrowDown")  # on from the cell that was pointed at
    assert readout.inner_text().startswith("head 2, ")

    choose(page, "decoding-layer", "1")
    page.locator("#decoding-steps", has_text="Layer 1, while").wait_for()
    choose(page, "cache-layer", "2")
    choose(page, "cache-head", "3")
    page.locator(".cache-values", has_text="keys of layer 2, head 3").wait_for()
    assert page.locator(".cache-strip").count() == 2
    assert "after 4 of" in page.locator(".cache-strip").first.get_attribute("aria-label")
    readout = page.locator(".cache-values .heat-readout", has_text="piece 1, dimension")
    for place in range(40):  # a redraw that comes late takes the readout with it; the pointer moves on
        page.locator(".cache-strip").first.hover(position={"x": 5 + place % 2, "y": 5})
        with suppress(TimeoutError):
            readout.wait_for(timeout=1000)
            break
    assert readout.is_visible()

    # The search: every node of the library's tree, and another length penalty without another search.
    nodes = page.locator(".tree-node")
    assert nodes.count() == len(traced["tree"])
    for state in ("beam", "finished", "pruned"):
        assert page.locator(f".tree-node.{state}").count() == sum(n["state"] == state for n in traced["tree"])
    asked.clear()
    page.locator(".alpha-slider").fill("2")
    ranked = sorted(traced["finished"], key=lambda one: -one["logprob"] / ((5 + one["tokens"]) / 6) ** 2)
    rows = page.locator(".rank-table tbody tr")
    assert rows.count() == len(ranked) and asked == []
    for row, one in zip(rows.all(), ranked):
        assert one["text"] in row.inner_text()
        assert f"{one['logprob'] / ((5 + one['tokens']) / 6) ** 2:.3f}" in row.inner_text()

    # Another token at this step goes on from the same cache.
    second = page.locator(".top-token:not([disabled])").first
    token = second.locator(".top-name").inner_text()
    second.click()
    page.locator("#branch .outcome").wait_for()
    said = page.inner_text("#branch")
    assert token in said and "4 cached pieces were used again" in said and "(−" in said
    assert page.locator("#branch .word-new").count() > 0
    page.click("#branch-adopt")
    page.locator("#decoding-note", has_text="These are the steps of").wait_for()
    page.locator("#branch-card").wait_for(state="hidden")

    # A pruned branch of the tree is forced.
    page.locator(".tree-node.pruned[role=button]").first.click()
    page.locator("#branch", has_text="as that branch of the search does").wait_for()
    page.click("#branch-back")
    page.locator("#branch-card").wait_for(state="hidden")
    page.locator(".decode-tokens .decode-token", has_text=plain(steps[0]["token"])).first.wait_for()


def test_what_if_it_began_otherwise_or_lost_heads(visit, site):
    page = visit()
    translate(page, SENTENCE)
    before = page.input_value("#target-text textarea")
    open_view(page, "What if")

    # A beginning of one's own.
    page.fill("#prefix textarea, #prefix input", "Drei Mäd")
    page.click("#prefix-button")
    page.locator("#prefix-result .outcome").wait_for()
    assert page.locator("#prefix-result tbody tr td").nth(1).inner_text().startswith("Drei Mäd")
    page.fill("#prefix textarea, #prefix input", "犬")
    page.click("#prefix-button")
    page.locator("#prefix-result [role=alert]", has_text="vocabulary lacks").wait_for()

    # Nothing is changed yet.
    ask_what_if(page, "model")
    page.locator("#edit-map .heat-title").wait_for()
    page.click("#intervention-button")
    page.locator("#intervention-result [role=alert]", has_text="switch a head off").wait_for()

    # Heads: what each is worth, one off, then all of the last layer.
    page.click("#matter-button")
    page.locator("#matter-note .note-status").wait_for()
    truth = Client(site, verbose=False).predict(SENTENCE, "en-de", 4, api_name="/ablate")
    last = LAYERS["cross"]
    assert {kind: len(truth[kind]) for kind in LAYERS} == LAYERS
    assert page.locator(".switch").count() == sum(LAYERS.values()) * HEADS
    change = truth["cross"][last - 1][3]
    shown = page.inner_text(f".switch[data-key='cross/{last - 1}/3']")
    assert shown == f"{change:+.2f}".replace("-", "−")
    page.click(f".switch[data-key='cross/{last - 1}/3']")
    page.locator("#edit-list li", has_text=f"cross layer {last}: head 4 off").wait_for()
    page.click("#intervention-button")
    page.locator("#intervention-result .outcome").wait_for()
    forced = truth["logprob"] + change
    row = page.locator("#intervention-result tbody tr").first.inner_text()
    assert f"{truth['logprob']:.3f}" in row
    assert float(row.split()[-2]) == pytest.approx(forced, abs=0.002)
    every = ", ".join(map(str, range(1, HEADS + 1)))
    page.click(f"button[aria-label='cross: all heads of layer {last}']")
    page.locator("#edit-list li", has_text=f"cross layer {last}: heads {every} off").wait_for()
    page.click(f"button[aria-label='encoder: all heads of layer {LAYERS['encoder']}']")
    page.locator("#edit-list li", has_text=f"encoder layer {LAYERS['encoder']}").wait_for()
    page.click("#intervention-button")
    page.locator("#intervention-result .word-gone").first.wait_for()
    gone = page.locator("#intervention-result .word-gone").first
    assert gone.inner_text().startswith("−") and gone.inner_text()[1:].strip() in before
    page.click("#restore-button")
    page.locator("#edit-list", has_text="Nothing is changed").wait_for()
    page.locator(".switch.off").first.wait_for(state="detached")


def test_what_if_a_weight_were_another(visit):
    page = visit()
    translate(page, SENTENCE)
    ask_what_if(page, "model")
    page.locator("#edit-map .heat-title").wait_for()

    # A cell of the map fills in row and column; controls for everything else.
    choose_kind(page, "Encoder", "edit-kind")
    page.locator("#edit-map .heat-title", has_text="Encoder attention").wait_for()
    choose(page, "edit-layer", str(LAYERS["encoder"]))
    page.locator("#edit-map .heat-title", has_text=f"Encoder attention, layer {LAYERS['encoder']}").wait_for()
    choose_kind(page, "Decoder", "edit-kind")
    page.locator("#edit-map .heat-title", has_text="Decoder attention").wait_for()
    choose_kind(page, "Cross", "edit-kind")
    page.locator("#edit-map .heat-title", has_text="Cross attention").wait_for()
    choose(page, "edit-layer", "2")
    choose(page, "edit-head", "2")
    svg = page.locator("#edit-map svg")
    page.locator("#edit-map .heat-title", has_text="layer 2, head 2").wait_for()
    chosen = "document.querySelector('#edit-column input').value.startsWith('3 ·')"
    for _ in range(4):  # a list that loses the focus may draw the map once more, which takes the focus from it
        svg.focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        with suppress(TimeoutError):
            page.wait_for_function(chosen, timeout=8000)
            break
    page.wait_for_function(chosen)
    assert page.input_value("#edit-row input").startswith("2 ·")
    slider_at = "weight => document.querySelector('#edit-weight input[type=range]').value === weight"
    set_number(page, "#edit-weight", "0.75")
    page.wait_for_function(slider_at, arg="0.75")
    page.get_by_label("stay as they are").check()
    page.click("#edit-add")
    page.locator("#edit-list li", has_text="gets 0.75; the others stay").wait_for()
    assert page.locator("#edit-list li", has_text="cross layer 2, head 2, row 2").count() == 1
    choose(page, "edit-row", "Every row")
    page.click("#edit-column input")
    page.locator("#edit-column").get_by_role("option").first.click()
    page.get_by_label("share what is left").check()
    set_number(page, "#edit-weight", "1")
    page.wait_for_function(slider_at, arg="1")
    page.click("#edit-add")
    page.locator("#edit-list li", has_text="every row").wait_for()
    page.click("#intervention-button")
    page.locator("#intervention-result .outcome-how", has_text="every row").wait_for()

    # Another view and back: what was changed is still there; another sentence starts anew.
    open_view(page, "Word by word")
    page.locator(".decode-strip").first.wait_for()
    open_view(page, "What if")
    page.locator("#edit-list li", has_text="every row").wait_for()
    page.fill("#source-text textarea", "A dog runs.")
    page.click("#translate-button")
    page.locator("#edit-list", has_text="Nothing is changed").wait_for()


def test_compare_two_sentences_and_two_settings(visit):
    page = visit()
    translate(page, SENTENCE)
    ask_what_if(page, "sides")
    page.wait_for_function("text => document.querySelector('#compare-text-a textarea')?.value === text", arg=SENTENCE)
    for side in ("a", "b"):
        choose(page, f"compare-model-{side}", "multi30k-en-de")
        page.click(f"#compare-pair-{side} input")
        page.locator(f"#compare-pair-{side}").get_by_role("option").first.click()
    page.click("#compare-button")
    page.locator("#compare-result", has_text="Both translations are the same").wait_for()
    page.fill("#compare-text-b textarea", SENTENCE.replace("girls", "boys"))
    for side, beam, alpha in (("A", "5", "0.5"), ("B", "1", "1.5")):
        for name, value in ((f"Beam size {side}", beam), (f"Length penalty {side}", alpha)):
            number = page.get_by_label(f"number input for {name}")
            number.fill(value)
            number.press("Tab")
    page.click("#compare-button")
    page.locator("#compare-result .word-new").first.wait_for()
    page.locator("#compare-map-b .heat-title").wait_for()
    axis = "nodes => nodes.map(node => node.querySelector('title').textContent)"
    assert "▁boys" in page.locator("#compare-map-b .heat-label[data-column]").evaluate_all(axis)
    assert "▁girls" in page.locator("#compare-map-a .heat-label[data-column]").evaluate_all(axis)
    choose_kind(page, "Encoder", "compare-kind")
    page.locator("#compare-map-b .heat-title", has_text="Encoder attention").wait_for()
    choose(page, "compare-layer", "2")
    choose(page, "compare-head", "3")
    for side in ("a", "b"):
        page.locator(f"#compare-map-{side} .heat-title", has_text="Encoder attention, layer 2, head 3").wait_for()
    page.fill("#compare-text-b textarea", " ")
    page.click("#compare-button")
    page.locator("#compare-result [role=alert]", has_text="B: there is no text").wait_for()
    assert page.input_value("#compare-text-a textarea") == SENTENCE


def test_a_list_whose_choices_are_on_their_way_stays_closed(visit):
    """An open list that becomes shorter is a script error of Gradio's, which `visit` would report."""
    page = visit()
    translate(page, SENTENCE)
    ask_what_if(page, "sides")
    page.wait_for_function("text => document.querySelector('#compare-text-a textarea')?.value === text", arg=SENTENCE)
    held = []
    page.route("**/*", lambda route: held.append(route) if route.request.method == "POST" else route.continue_())
    choose(page, "compare-model-a", "multi30k-en-de")
    page.locator("#compare-pair-a input:disabled").wait_for()
    page.click("#compare-pair-a input", force=True)
    assert page.locator("#compare-pair-a").get_by_role("option").count() == 0
    for route in held:
        route.continue_()
    page.unroute("**/*")
    page.locator("#compare-pair-a input:enabled").wait_for()
    page.click("#compare-pair-a input")
    page.wait_for_function("document.querySelectorAll('#compare-pair-a [role=option]').length === 1")


def test_compare_two_shipped_models(visit, site):
    """The same sentence by two models: both maps are those of their own model, and no words are struck out.

    Of the layer 4 that is chosen, a model with fewer layers shows its last one.
    """
    page = visit()
    translate(page, SENTENCE)
    ask_what_if(page, "sides")
    page.wait_for_function("text => document.querySelector('#compare-text-a textarea')?.value === text", arg=SENTENCE)
    choose(page, "compare-model-b", "multi30k-en-fr")
    page.wait_for_function("document.querySelector('#compare-pair-b input')?.value === 'English → French'")
    page.click("#compare-button")
    titled(page, "Cross attention, layer 4", "#compare-map-b")
    page.locator("#compare-result", has_text="Two languages").wait_for()
    assert page.locator("#compare-result :is(.word-gone, .word-new)").count() == 0
    api = Client(site, verbose=False)
    rows = page.locator("#compare-result tbody tr")
    settings = (("a", "en-de", "", min(4, LAYERS["cross"])), ("b", "en-fr", "multi30k-en-fr", 4))
    for number, (side, pair, model, layer) in enumerate(settings):
        truth = api.predict(SENTENCE, pair, "cross", layer, 0, 4, False, model, api_name="/attend")
        titled(page, f"Cross attention, layer {layer}, mean over heads", f"#compare-map-{side}")
        assert truth["translation"] in rows.nth(number).inner_text()
        assert labels(page, "row", f"#compare-map-{side}") == truth["rows"]
        assert labels(page, "column", f"#compare-map-{side}") == truth["columns"]


def test_markup_is_text_in_every_view(visit):
    page = visit()
    translate(page, MARKUP)
    open_view(page, "Word by word")
    page.locator(".decode-strip").first.wait_for()
    page.locator(".top-token:not([disabled])").first.click()
    page.locator("#branch .outcome").wait_for()
    open_view(page, "What if")
    page.fill("#prefix textarea, #prefix input", "<b>Ein</b> <i id=planted>")
    page.click("#prefix-button")
    page.locator("#prefix-result .outcome, #prefix-result [role=alert]").first.wait_for()
    ask_what_if(page, "model")
    page.click(".switch[data-key='cross/1/0']")
    page.locator("#edit-list li").wait_for()
    page.click("#intervention-button")
    page.locator("#intervention-result .outcome").wait_for()
    ask_what_if(page, "sides")
    page.wait_for_function("document.querySelector('#compare-text-a textarea')?.value.includes('onerror')")
    page.click("#compare-button")
    page.locator("#compare-result .outcome").wait_for()
    assert page.locator("#planted").count() == 0
    assert page.locator("main img[src='x']").count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_the_views_fit_a_phone(visit, dark):
    page = visit(width=390, height=800, dark=dark)
    translate(page, SENTENCE)
    open_view(page, "Word by word")
    page.locator(".decode-strip").first.wait_for(state="attached")  # its cards are closed on a phone
    page.wait_for_function("document.documentElement.scrollWidth <= 390")
    assert page.evaluate("document.documentElement.scrollHeight") < 3 * 800  # it was five screens
    for name, held in (
        ("Attention of every head", "#decoding-layer"),
        ("Key/value cache", "#cache-head"),
        ("The search", "#beam-tree svg"),
        ("The length penalty ranks", ".rank-table"),
    ):
        assert not page.locator(held).is_visible()
        page.locator("summary", has_text=name).click()
        page.locator(held).wait_for()
    page.wait_for_function("document.documentElement.scrollWidth <= 390")
    for part, ready in (("begin", "#prefix"), ("model", "#edit-map .heat-title"), ("sides", "#compare-button")):
        ask_what_if(page, part)
        page.locator(ready).first.wait_for()
        page.wait_for_function("document.documentElement.scrollWidth <= 390")


def test_a_sentence_without_words_says_so(visit):
    page = visit()
    translate(page, SENTENCE)
    open_view(page, "Word by word")
    page.locator(".decode-strip").first.wait_for()
    page.fill("#source-text textarea", "🙂🚲")
    page.click("#translate-button")
    page.locator("#decoding-note [role=alert]", has_text="copied").wait_for()
    assert not page.locator("#decoding-steps").is_visible()


def test_trace_refuses_with_one_sentence(site):
    api = Client(site, verbose=False)
    for arguments in (("", "en-de", 4, 0.6, "", 0), (SENTENCE, "en-de", 4, 0.6, "no such model", 0)):
        with pytest.raises(Exception) as refused:
            api.predict(*arguments, api_name="/trace")
        assert "Traceback" not in str(refused.value) and str(refused.value).strip()
    json.dumps(api.predict(SENTENCE, api_name="/trace"))
