"""The GAN tab as a visitor meets it: play, pause, back in time, drawing, and nothing at work once it is left."""

import base64

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError


@pytest.fixture
def lab(visit):
    """The page at the first view of the GAN tab."""
    page = visit()
    page.get_by_role("tab", name="GAN", exact=True).click()
    page.locator("#gan-line-game .game-readout").wait_for()
    return page


def iteration(page, kind="line"):
    return int(page.locator(f"#gan-{kind}-game .game").get_attribute("data-iteration"))


def until(page, more_than, kind="line"):
    page.wait_for_function(
        "([kind, least]) => Number(document.querySelector(`#gan-${kind}-game .game`).dataset.iteration) > least",
        arg=[kind, more_than],
    )


def asked(page):
    """Requests for pictures, filled as they are sent."""
    sent = []
    page.on("request", lambda request: "component_server" in request.url and sent.append(request))
    return sent


def at_rest(page, sent, kind="line"):
    """Wait until no game is played and what was asked for is answered; nothing may be asked for any more."""
    page.locator(f"#gan-{kind}-game .game[data-playing=no]").wait_for(state="attached")
    for request in list(sent):
        request.response()
    count = len(sent)
    page.evaluate("() => new Promise((done) => setTimeout(done, 500))")
    assert count and len(sent) == count


@pytest.mark.quick
def test_play_pause_and_back(lab):
    sent = asked(lab)
    lab.click("#gan-line-play")
    until(lab, 30)
    lab.evaluate("document.querySelector('#gan-line-pause').click()")
    held = iteration(lab)
    at_rest(lab, sent)
    assert iteration(lab) == held
    slider = lab.locator("#gan-line-game input[type=range]")
    slider.focus()
    slider.press("Home")
    lab.wait_for_function("document.querySelector('#gan-line-game .game').dataset.iteration === '0'")
    lab.click("#gan-line-one")
    until(lab, 0)
    assert iteration(lab) == 1


@pytest.mark.parametrize("leave", ["About", "In two dimensions"])
def test_leaving_the_tab_stops_the_game(lab, leave):
    sent = asked(lab)
    lab.click("#gan-line-play")
    until(lab, 10)
    lab.get_by_role("tab", name=leave).click()
    at_rest(lab, sent)


def test_a_learning_rate_of_100_is_told_and_a_page_can_be_saved(lab):
    lab.get_by_role("button", name="Learning rates and more").first.click()
    lab.locator("#gan-line-rule").get_by_text("SGD, momentum 0.5").click()
    for field in ("lr", "lr-d"):
        box = lab.locator(f"#gan-line-{field} input")
        box.fill("100")
        box.press("Tab")
    lab.click("#gan-line-play")
    lab.locator("#gan-line-game .game-alarm.failed", has_text="last good state").wait_for()
    lab.click("#gan-line-save")
    lab.locator("#gan-line-files a").first.wait_for()
    assert lab.locator("#gan-line-files a").count() >= 2
    with lab.expect_download() as got:
        lab.get_by_role("button", name="Save picture (PNG)").first.click()
    assert got.value.suggested_filename.endswith(".png")


def test_own_points_are_drawn_with_the_keys(lab):
    lab.get_by_role("tab", name="In two dimensions").click()
    lab.locator("#gan-plane-game .game-readout").wait_for()
    lab.click("#gan-plane-data input")
    lab.get_by_role("option", name="Points that I draw").click()
    sheet = lab.locator("#gan-plane-game canvas.drawing")
    sheet.wait_for()
    sheet.focus()
    for key in ("ArrowRight", "ArrowRight", "Enter", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "Enter"):
        sheet.press(key)
    lab.locator("#gan-plane-game .game-readout", has_text="of 2").wait_for()
    lab.click("#gan-plane-one")
    until(lab, 0, "plane")


def test_the_tour_opens_each_view(lab):
    lab.click("#gan-tour-start")
    for title, view in (("A counterfeiter", "line"), ("The best answer", "line"), ("Two numbers", "line"),
                        ("The Helvetica", "plane"), ("Why the other loss", "loss"), ("Digits", "digits")):  # fmt: skip
        lab.locator("#gan-tour-card", has_text=title).wait_for()
        if view != "digits":
            lab.locator(f"#gan-{view}-game .game-readout").wait_for()
        if title != "Digits":
            lab.click("#gan-tour-next")
    lab.locator("#gan-digits-parzen").wait_for()
    lab.click("#gan-tour-end")
    lab.locator("#gan-tour-start").wait_for()


def test_a_phone_sees_everything_without_scrolling_sideways(visit):
    page = visit(width=390, dark=True)
    page.get_by_role("tab", name="GAN", exact=True).click()
    page.locator("#gan-line-game .game-readout").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0


def test_programs_play_and_draw_over_http(site):
    api = Client(site, verbose=False)
    found = api.predict("ring", 4, 2, "minimax", 2, 0.001, 0.002, "sgd", 3, api_name="/gan_step")
    assert [(row["iteration"], row["d_steps"]) for row in found["table"]] == [(0, 0), (2, 4), (4, 8)]
    again = api.predict("ring", 4, 2, "minimax", 2, 0.001, 0.002, "sgd", 3, api_name="/gan_step")
    assert again == found and len(found["samples"][0]) == 2
    drawn = api.predict(3, 1, api_name="/gan_sample")
    assert base64.b64decode(drawn["png"])[:4] == b"\x89PNG" and len(drawn["opinions"]) == 3
    with pytest.raises(AppError, match="Unknown distribution"):
        api.predict("torus", api_name="/gan_step")
