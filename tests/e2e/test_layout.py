"""Nothing is cut off, lies askew or has the wrong size, on a phone and on a wide screen."""

import pytest
from driving import ask_what_if, enter, open_view, titled

SENTENCE = "A woman in a red dress is reading a book on a bench."


def boxes(page, selector):
    """Bounding boxes of what is in sight, or comes into it."""
    page.locator(selector).locator("visible=true").first.wait_for()
    found = [one.bounding_box() for one in page.locator(selector).all() if one.is_visible()]
    assert found, selector
    return found


def middle(box):
    return box["y"] + box["height"] / 2


@pytest.fixture
def phone(visit):
    page = visit(width=390, height=800)
    enter(page, SENTENCE)
    titled(page, "Cross attention")
    return page


@pytest.fixture
def wide(visit):
    page = visit(width=1440)
    enter(page, SENTENCE)
    titled(page, "Cross attention")
    return page


def test_a_map_has_all_the_width_of_its_card_below_a_title_of_two_lines(phone):
    (card,), (map_,) = boxes(phone, "#heat-map .heat"), boxes(phone, "#heat-map .heat-scroll")
    assert map_["width"] == card["width"]


def test_an_arrow_stays_inside_its_fold(phone):
    for fold in phone.locator(".label-wrap").all():
        if fold.is_visible():
            (arrow,) = boxes(fold, ".icon")
            frame = fold.locator("..").bounding_box()
            assert frame["x"] < arrow["x"] and arrow["x"] + arrow["width"] < frame["x"] + frame["width"]


def test_no_dot_stands_before_the_first_word_of_the_foot(phone):
    assert phone.inner_text("footer").strip().startswith("Settings")


@pytest.mark.parametrize("name, beside", [("source-text", "character-count"), ("target-text", "words-hint")])
def test_what_stands_beside_a_name_is_on_its_line(wide, name, beside):
    (name_box,), (beside_box,) = (
        boxes(wide, f"#{name} [data-testid=block-info]"),
        boxes(wide, f"#{beside} span, #{beside} p"),
    )
    assert abs(middle(name_box) - middle(beside_box)) <= 2


def test_a_button_beside_a_field_stands_on_its_edge_and_is_no_taller_than_others(wide):
    def checked(button, frame):
        (found,), (around,) = boxes(wide, button), boxes(wide, frame)
        assert abs(found["y"] + found["height"] - around["y"] - around["height"]) <= 2
        return found["height"]

    ask_what_if(wide, "begin")
    beginning = checked("#prefix-button", ".row:has(> #prefix-button)")
    open_view(wide, "What it knows")
    wide.locator("#layers-question input[value=learning]").check()
    wide.locator("#learning-read").wait_for()
    assert checked("#learning-read", ".row:has(> #learning-read)") == beginning


def test_a_wide_screen_is_used(visit):
    (page,) = boxes(visit(width=1920), "#pages")
    assert page["width"] > 1400


def test_the_weights_of_one_head_stand_below_each_other(wide):
    open_view(wide, "One head")
    numbers = boxes(wide, "#head-steps .step-weight .step-number")
    assert len(numbers) > 5 and len({round(box["x"]) for box in numbers}) == 1


def test_the_lens_table_has_no_scroll_bars_of_its_own_on_a_phone(phone):
    open_view(phone, "What it knows")
    phone.locator(".lens-table").wait_for()
    sizes = "one => [one.scrollWidth - one.clientWidth, one.scrollHeight - one.clientHeight]"
    beyond = phone.locator(".step-scroll:has(.lens-table)").evaluate(sizes)
    assert beyond == [0, 0]


# How much wider a button is than its words, in pixels.
ROOM = """button => {
  const words = document.createRange();
  words.selectNodeContents(button);
  return button.getBoundingClientRect().width - words.getBoundingClientRect().width;
}"""


@pytest.mark.parametrize(
    ("tab", "view", "button"),
    [
        ("Translate", None, "#reasons-button"),
        ("Try on", "Compare", "#tryon-compare-button"),
        ("GAN", "Digits", "#gan-digits-draw"),
        ("GAN", "From here to try-on", "#gan-tryon-judge"),
    ],
)
def test_a_button_is_as_wide_as_its_words_need(visit, tab, view, button):
    page = visit(width=1440)
    page.get_by_role("tab", name=tab, exact=True).click()
    if view:
        page.get_by_role("tab", name=view, exact=True).click()
    page.locator(button).wait_for()
    assert page.locator(button).evaluate(ROOM) < 60


LONG = (
    "When the old man who lived in the small house near the river came back from the market with two bags of fresh "
    "vegetables, a loaf of bread and some flowers for his wife, he saw that the door was open and the light was on."
)


@pytest.mark.parametrize("sentence", [SENTENCE, LONG])
def test_a_map_fills_the_full_screen_to_its_last_row(visit, sentence):
    page = visit(width=1440)
    enter(page, sentence)
    titled(page, "Cross attention")
    page.locator("#heat-map").get_by_role("button", name="Full screen").click()
    page.locator("#heat-map").get_by_role("button", name="Leave full screen").wait_for()
    card = "#heat-map :is(.heat-svg, .heat-title, .heat-says, .heat-foot)"
    for box in boxes(page, card):
        assert box["x"] > 10 and box["x"] + box["width"] < 1430, box
        assert box["y"] > 10 and box["y"] + box["height"] < 890, box
    (map_,) = boxes(page, "#heat-map .heat-svg")
    assert map_["width"] > 1000 and map_["height"] > 600
    page.keyboard.press("Enter")  # the button keeps the focus
    page.locator("#heat-map").get_by_role("button", name="Full screen", exact=True).wait_for()


@pytest.mark.parametrize("width", [390, 1440])
def test_no_word_is_broken_in_the_columns_of_a_card(visit, width):
    page = visit(width=width)
    page.get_by_role("tab", name="About").click()
    page.get_by_role("button", name="Translates everyday text").click()
    page.get_by_role("button", name="Sizes, data, licence, commands and figures").click()
    for word in ("Vocabulary", "Hardware and time"):
        page.get_by_role("cell", name=word, exact=True).wait_for()
        cell = page.get_by_role("cell", name=word, exact=True)
        lines = cell.evaluate("node => { const range = new Range(); range.selectNodeContents(node); "
                              "return new Set([...range.getClientRects()].map(box => box.top)).size; }")  # fmt: skip
        assert lines <= len(word.split()), word


@pytest.mark.parametrize("button, answers", [("Print the questions", 0), ("Print with answers", 10)])
def test_a_printed_lesson_is_the_lesson_alone(visit, button, answers):
    page = visit()
    page.get_by_role("tab", name="Lessons").click()
    page.evaluate("() => { window.print = () => {}; }")  # no dialog, and no end of it
    page.get_by_role("button", name=button).click()
    page.emulate_media(media="print")
    assert page.locator(".lesson-stop:visible").count() == 10
    assert page.locator(".lesson-stop details:visible").count() == answers
    for what in ("#masthead", "#pages > .tab-wrapper", ".lesson-buttons", "footer"):
        assert page.locator(what).first.is_hidden(), what
