"""What a visitor without a mouse, or with a screen reader, meets: axe-core in every tab, and the keyboard."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from driving import open_view

TABS = ("Translate", "Try on", "Train", "GAN", "Lessons", "About")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_in_any_tab(visit, dark):
    page, axe, found = visit(width=1440, dark=dark), Axe(), []
    for name in TABS:
        page.locator("#pages > .tab-wrapper").get_by_role("tab", name=name, exact=True).click()
        page.locator("#pages > .tab-wrapper").get_by_role("tab", name=name, exact=True, selected=True).wait_for()
        page.wait_for_timeout(2500)  # what the tab holds has come
        ran = axe.run(page).response
        assert len(ran["passes"]) > 10, "axe looked at nothing"
        found += [
            f"{name}: {one['id']} at {[node['target'] for node in one['nodes'][:5]]}"
            for one in ran["violations"]
            if one["impact"] in ("serious", "critical")
        ]
    assert found == []


@pytest.mark.parametrize("key", ["Escape", "Tab", "Shift+Tab"])
def test_a_menu_closes_by_key(visit, key):
    page = visit(width=1440)
    page.click("#layer input")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press(key)
    menu = page.locator("#layer [aria-expanded]").first
    page.wait_for_timeout(500)  # nor does it come back; the next one opens when it has the focus
    assert menu.get_attribute("aria-expanded") == "false"
    inside = page.evaluate("!!document.activeElement.closest('#layer')")
    assert inside == (key == "Escape")  # Escape stays, Tab goes on


def test_arrow_keys_move_within_a_group(visit):
    page = visit(width=1440)
    tabs = page.locator("#pages > .tab-wrapper [role=tab]")
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.innerText.trim()") == TABS[1]
    assert tabs.nth(1).get_attribute("aria-selected") == "true"
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.innerText.trim()") == TABS[-1]
    # A group is one stop of the Tab key.
    assert tabs.evaluate_all("all => all.filter(one => one.tabIndex === 0).length") == 1
    page.keyboard.press("Home")
    page.locator("#kind input:checked").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#heat-map .heat-title", has_text="Encoder").wait_for()
    assert page.locator("#kind input").evaluate_all("all => all.map(one => one.tabIndex)") == [-1, 0, -1]
    open_view(page, "What if")
    page.locator("#what-if input[value=model]").check()
    switches = page.locator(".switch")
    switches.first.wait_for()
    page.wait_for_function("[...document.querySelectorAll('.switch')].filter((one) => one.tabIndex === 0).length === 1")
    switches.nth(1).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.key") == switches.nth(2).get_attribute("data-key")


def test_a_few_stops_of_the_keyboard_lead_to_try_it_on(visit):
    page = visit(width=1440)
    page.locator("#pages > .tab-wrapper").get_by_role("tab", name="Try on", exact=True).click()
    page.locator("#tryon-button").wait_for()
    page.wait_for_timeout(2500)  # what the tab holds has come
    page.locator(".first-link").first.focus()  # the first thing of the page that takes the focus
    stops = ["first-link"]
    while len(stops) < 40 and "tryon-button" not in stops:
        page.keyboard.press("Tab")
        stops.append(page.evaluate("(document.activeElement.id || document.activeElement.outerHTML.slice(0, 80))"))
    assert len(stops) <= 20, stops
