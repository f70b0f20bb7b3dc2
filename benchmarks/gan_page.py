"""How many pictures a second a visitor of the GAN tab sees: `python -m benchmarks.gan_page --seconds 20`.

Starts the page, opens it in Chromium (Playwright, of the extra `test`), presses Play on each game and counts the
pictures that were drawn. Beside the rate stand the processor's milliseconds a picture, of the page and of the browser,
and the kilobytes that travel: these are the same on a machine that is busy with something else; what page and browser
use while nothing is played is taken off. `pause_ms` is the time from the
click on Pause to the last picture drawn after it. Prints one JSON object.
"""

import contextlib
import json
import os
import time

import psutil
from playwright.sync_api import Error, Page, Response, sync_playwright

from benchmarks.server import Server, chromium
from training.arguments import CommandLine, a_number
from training.command import one_sentence

VIEWS = {"line": "Figure 1 in motion", "plane": "In two dimensions", "loss": "Why the other loss"}
PATIENCE = 400  # seconds for one answer of the page
REST = 3  # seconds in which nothing is played
PAUSE = 1500  # milliseconds after Pause in which a last picture would come


def cpu_seconds(root: int) -> float:
    """Processor time of a process and all that it started, in seconds."""
    total, process = 0.0, psutil.Process(root)
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended
            total += sum(one.cpu_times()[:2])  # user and system
    return total


def measure(page: Page, kind: str, seconds: float, server: int, browser: int) -> dict[str, float]:
    """Plays one game for so long, then pauses it."""
    page.get_by_role("tab", name=VIEWS[kind], exact=True).click()
    game = page.locator(f"#gan-{kind}-game .game")
    page.locator(f"#gan-{kind}-game .game-readout").wait_for()
    sizes: list[int] = []

    def count(answer: Response) -> None:
        sizes.append(int(answer.headers.get("content-length", 0)))

    page.on("response", count)

    def pictures() -> int:
        return int(game.get_attribute("data-pictures") or 0)

    page.wait_for_timeout(2000)
    idle, rest = (cpu_seconds(server), cpu_seconds(browser)), time.monotonic()
    page.wait_for_timeout(1000 * REST)
    rest = time.monotonic() - rest
    idle = (cpu_seconds(server) - idle[0]) / rest, (cpu_seconds(browser) - idle[1]) / rest
    page.click(f"#gan-{kind}-play")
    page.wait_for_timeout(2000)  # the first ones warm everything up
    before, at = pictures(), time.monotonic()
    cpu = cpu_seconds(server), cpu_seconds(browser)
    sizes.clear()
    page.wait_for_timeout(1000 * seconds)
    frames, duration = pictures() - before, time.monotonic() - at
    load = cpu_seconds(server) - cpu[0] - duration * idle[0], cpu_seconds(browser) - cpu[1] - duration * idle[1]
    kilobytes = sum(sizes) / 1000
    pause = page.evaluate(
        """([kind, settled]) => new Promise((done) => {
          const game = document.querySelector(`#gan-${kind}-game .game`), start = performance.now();
          let last = 0;
          new MutationObserver(() => { last = performance.now() - start; })
            .observe(game, { attributes: true, attributeFilter: ['data-pictures'] });
          document.querySelector(`#gan-${kind}-pause`).click();
          setTimeout(() => done(last), settled);
        })""",
        [kind, PAUSE],
    )
    page.remove_listener("response", count)
    return {
        "pictures_per_second": round(frames / duration, 1),
        "page_cpu_ms": round(1000 * load[0] / max(1, frames), 1),
        "browser_cpu_ms": round(1000 * load[1] / max(1, frames), 1),
        "kilobytes": round(kilobytes / max(1, frames), 1),
        "pause_ms": round(pause),
    }


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Measure every game, or those that are named."""
    parser = CommandLine(description="Pictures a second in the GAN tab.")
    parser.add_argument("--seconds", type=a_number(0), default=20, help="of each game")
    parser.add_argument("--games", nargs="+", choices=list(VIEWS), default=list(VIEWS))
    parser.add_argument("--address", help="of a page that runs already; its processor time is then not measured")
    options = parser.parse_args(argv)
    if chromium() is None:
        parser.error("needs Chromium on the PATH (Debian and Ubuntu: apt-get install chromium).")
    with contextlib.ExitStack() as stack:
        server = None if options.address else stack.enter_context(Server("--log-level", "error"))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(1000 * PATIENCE)
        address = server.address if server else options.address
        try:
            page.goto(address)
        except Error:
            raise ValueError(f"No page answers at {address}; start it with `python app.py`.") from None
        page.get_by_role("tab", name="GAN", exact=True).click()
        pids = server.process.pid if server else os.getpid(), os.getpid()
        figures = {kind: measure(page, kind, options.seconds, *pids) for kind in options.games}
        browser.close()
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
