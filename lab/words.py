"""The English texts of the page that a table of words still lacks: python -m lab.words http://127.0.0.1:7860/

It walks through every tab, view, fold, list of choices, tour and lesson of a running page in Chromium, in a language
(`--language`; English lacks all of them), and prints a JSON array of {"key", "where"}. A text with changing parts
appears as it is at that moment; its key has {} in their place.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Callable

from playwright.sync_api import Error, Page, sync_playwright

from training.arguments import CommandLine
from training.command import one_sentence

MISSING = "visible => window.atelierLanguage.missing(document.body, visible)"
# What opens without leaving the page: folds of ours and of the page's library, each once.
FOLDS = """() => {
  for (const one of document.querySelectorAll('details:not([open])')) one.open = true;
  const folds = [...document.querySelectorAll('button.label-wrap:not(.open)')].filter(
    (one) => one.checkVisibility() && !one.dataset.walked);
  for (const one of folds) { one.dataset.walked = 1; one.click(); }
  return folds.length;
}"""
TABS = "[role=tablist] > [role=tab]"
COMPUTED = {"#lesson-views": ["#experiments-run", "#trophy-run"]}  # what a view tells only when it is asked
PAUSE = 0.7  # seconds after a click
LONGEST_WAIT = 60.0


class Walk:
    """One walk through the page. note: called with (where, texts) whenever something new may be in sight."""

    def __init__(self, page: Page, visible: bool, note: Callable[[str, list[str]], None]) -> None:
        self.page, self.visible, self.note = page, visible, note

    def settle(self) -> None:
        """Waits until the page's events have ended."""
        time.sleep(PAUSE)
        end = time.monotonic() + LONGEST_WAIT
        while time.monotonic() < end and self.page.locator(".progress-text:visible, .eta-bar:visible").count():
            time.sleep(0.3)

    def look(self, where: str) -> None:
        """Opens what is folded, and notes all texts."""
        self.settle()
        for _ in range(3):
            if not self.page.evaluate(FOLDS):
                break
            self.settle()
        self.note(where, self.page.evaluate(MISSING, self.visible))

    def press(self, selector: str, number: int = 0) -> bool:
        """Clicks the n-th visible element. Returns whether it could."""
        with contextlib.suppress(Error):
            one = self.page.locator(selector).locator("visible=true").nth(number)
            one.focus(timeout=3000)  # which opens a list of choices
            one.evaluate("one => one.click()")  # whatever lies over it
            return True
        return False

    def choices(self, where: str, inside: str) -> None:
        """Every radio button in turn, and the options of every list of choices."""
        selector = f"{inside} input[type=radio]"
        for number in range(self.page.locator(selector).locator("visible=true").count()):
            if self.press(selector, number):
                self.look(where)
        selector = f"{inside} input[role=listbox]"
        for number in range(self.page.locator(selector).locator("visible=true").count()):
            if self.press(selector, number):
                time.sleep(PAUSE)
                self.note(where, self.page.evaluate(MISSING, self.visible))
                self.page.keyboard.press("Escape")

    def views(self, where: str, group: str) -> None:
        """Every view of a group, with its choices."""
        tabs = self.page.locator(f"{group} > .tab-wrapper {TABS}").locator("visible=true")
        for number in range(tabs.count()):
            if self.press(f"{group} > .tab-wrapper {TABS}", number):
                name = f"{where}, {tabs.nth(number).get_attribute('data-tab-id')}"
                self.look(name)
                self.choices(name, group)
                for button in COMPUTED.get(group, []):
                    if self.press(button):
                        self.look(name)

    def tour(self, where: str, prefix: str) -> None:
        """Every stop of a tour."""
        if not self.press(f"#{prefix}tour-start"):
            return
        self.look(f"{where}, tour")
        while self.press(f"#{prefix}tour-next:not([disabled])"):
            self.look(f"{where}, tour")
        self.press(f"#{prefix}tour-end")

    def everything(self) -> None:
        """All tabs, in their order."""
        for tab, groups, prefix in (
            ("translate", ["#views"], ""),
            ("try-on", ["#tryon-views"], "tryon-"),
            ("gan", ["#gan-views"], "gan-"),
            ("train", [], ""),
            ("lessons", ["#lesson-views"], ""),
            ("about", [], ""),
        ):
            if not self.press(f"#pages > .tab-wrapper [data-tab-id={tab}]"):
                continue
            self.look(tab)
            for group in groups:
                self.views(tab, group)
            self.choices(tab, "#pages")
            if prefix or tab == "translate":
                self.tour(tab, prefix)


def walk(address: str, language: str, visible: bool) -> dict[str, str]:
    """Text -> where it was first seen."""
    places: dict[str, str] = {}

    def note(where: str, texts: list[str]) -> None:
        fresh = [text for text in texts if text not in places]
        places.update(dict.fromkeys(fresh, where))
        print(f"{where}: {len(fresh)} new", file=sys.stderr)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_context(locale=language, viewport={"width": 1280, "height": 900}).new_page()
        try:
            page.goto(address)
        except Error:
            raise ValueError(f"No page answers at {address}; start it with `python app.py`.") from None
        page.locator("#heat-map .heat-title").wait_for(timeout=120_000)
        try:
            Walk(page, visible, note).everything()
        finally:
            browser.close()
    return places


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    out = CommandLine(prog="python -m lab.words", description=(__doc__ or "").splitlines()[0])
    out.add_argument("address", help="of the running page")
    out.add_argument("--language", default="en", choices=("en", "de", "fr", "ko"))
    out.add_argument("--visible", action="store_true", help="only what is in sight")
    options = out.parse_args(argv)
    places = walk(options.address, options.language, options.visible)
    print(json.dumps([{"key": key, "where": where} for key, where in places.items()], ensure_ascii=False, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
