"""A crowd of visitors at one page: `python -m lab.checks.load --visitors 20 --seed 1`.

Starts `app.py` on a free port of this machine. Half of the visitors try on, half translate, all at once; of those who
try on, one cancels, one reloads and one leaves in mid-run, in a browser. Every input carries a mark that only its own
output may show: a number in the text, a coloured patch in the corner of both photographs. Prints one JSON object with
the times of each kind and every check; the exit status is 1 where one failed.

The checks: every run has a result with its own mark and nobody else's; every run that waited was told its place; the
queue of translations holds translations alone, and some of them overtake try-ons that waited before them; memory comes
back to within 15 % of what it was after a first translation and try-on; the server logged no error. Linux only, with
Chromium on the PATH.
"""

import asyncio
import colorsys
import io
import json
import random
import re
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gradio_client import Client, handle_file
from PIL import Image

from benchmarks.server import ROOT, Server, chromium
from training.arguments import CommandLine, a_seed, integer
from training.command import one_sentence

HABITS = ("cancel", "reload", "leave")
PATCH = 24  # pixels
SIZE = "256x192"
LONGEST = 600  # seconds of one run, its wait included, before it counts as lost
PATIENT = {"timeout": 120}  # seconds for one answer of the server
REST = 60  # seconds for the memory to come back
MAX_GROWTH = 1.15
SENTENCES = (
    "The number is {}.",
    "Room {} is free today.",
    "A man with the number {} is riding a bicycle.",
    "The woman in room {} is reading a book.",
)
LOG_ERROR = re.compile(r"Traceback|ERROR|unexpected error")


@dataclass
class Run:
    """One request of one visitor.

    Times are seconds since the crowd began; places: (place, size of the queue) as told.
    """

    kind: str
    start: float
    end: float = 0.0
    wait: float = 0.0
    places: list[tuple[int, int]] = field(default_factory=list)
    wrong: str = ""

    @property
    def seconds(self) -> float:
        """From asking to the answer."""
        return self.end - self.start


# -- marks ------------------------------------------------------------------------------------------------------------


def photos_with_mark(folder: Path, number: int, total: int) -> tuple[Path, Path, tuple[int, int, int]]:
    """A person and a garment with this visitor's patch in the upper left corner. Returns both files and its colour."""
    red, green, blue = (round(255 * c) for c in colorsys.hsv_to_rgb(number / total, 0.9, 0.8))
    files = []
    for kind in ("people", "garments"):
        examples = sorted((ROOT / "assets" / "examples" / kind).glob("*.jpg"))
        picture = np.array(Image.open(examples[number % len(examples)]).convert("RGB"))
        picture[:PATCH, :PATCH] = red, green, blue
        files.append(folder / f"{kind}-{number}.png")
        Image.fromarray(picture).save(files[-1], compress_level=1)
    return files[0], files[1], (red, green, blue)


def wrong_pictures(archive: bytes | Path, colour: tuple[int, int, int]) -> str:
    """What is wrong with a try-on's zip: "" where both photographs and the result carry this patch."""
    with zipfile.ZipFile(io.BytesIO(archive) if isinstance(archive, bytes) else archive) as file:
        for name in ("photo", "garment_photo", "result"):
            picture = np.asarray(Image.open(io.BytesIO(file.read(f"{name}.png"))).convert("RGB"))
            if (picture[:PATCH, :PATCH] != colour).any():
                return f"{name} shows {picture[0, 0].tolist()} instead of {list(colour)}"
    return ""


def wrong_text(text: str, number: int, others: Sequence[int]) -> str:
    """What is wrong with a translation: "" where it holds this number and none of the others."""
    numbers = [int(one) for one in re.findall(r"\d{5}", text)]
    return "" if number in numbers and not set(numbers) & set(others) else f"{text!r} instead of one with {number}"


# -- visitors ---------------------------------------------------------------------------------------------------------


class Crowd:
    """The visitors of one server and all their runs. began: when the clock of `Run.start` starts."""

    def __init__(self, server: Server, folder: Path, visitors: int, seed: int) -> None:
        self.server, self.folder, self.total = server, folder, visitors
        self.runs: list[Run] = []
        self.began = time.monotonic()
        self.marks = random.Random(seed).sample(range(10_000, 100_000), visitors + 1)

    def now(self) -> float:
        """Seconds since the crowd began."""
        return time.monotonic() - self.began

    def client(self) -> Client:
        """A new visitor by program."""
        return Client(
            self.server.address, verbose=False, download_files=str(self.folder / "down"), httpx_kwargs=PATIENT
        )

    def _ask(self, client: Client, kind: str, check: Callable[[Any], str], **inputs: Any) -> Run:
        """One request from its beginning to its answer, and what is wrong with the answer."""
        run = Run(kind.partition(" ")[0], self.now())
        self.runs.append(run)
        job = client.submit(api_name=f"/{run.kind}", **inputs)
        polls = 0
        while not job.done() and self.now() - run.start < LONGEST:
            status = job.status()
            if status.code.name == "IN_QUEUE":
                polls += 1
                run.wait = self.now() - run.start
                if status.rank is not None and (not run.places or run.places[-1] != (status.rank, status.queue_size)):
                    run.places.append((status.rank, status.queue_size))
            time.sleep(0.05)
        try:
            run.wrong = check(job.result(timeout=1))
        except Exception as error:
            run.wrong = f"lost: {type(error).__name__}: {error}"
        run.end = self.now()
        if polls > 20 and not run.places and not run.wrong:
            run.wrong = "waited without being told its place"
        run.kind = kind
        return run

    def translate(self, number: int, times: int, kind: str = "translate", until: threading.Event | None = None) -> None:
        """A visitor who translates so many sentences one after another.

        until: goes on till then, in ten times as many at most.
        """
        client, mark = self.client(), self.marks[number]
        others = [one for one in self.marks if one != mark]
        for turn in range(times if until is None else 10 * times):
            if until is not None and until.is_set() and turn >= times:
                break
            text = SENTENCES[(number + turn) % len(SENTENCES)].format(mark)
            self._ask(client, kind, lambda answer: wrong_text(answer["text"], mark, others), text=text)

    def try_on(self, number: int, times: int, kind: str = "try_on") -> None:
        """A visitor who tries on so many times."""
        client = self.client()
        person, garment, colour = photos_with_mark(self.folder, number, self.total)

        def check(answer: Any) -> str:
            files, _ = answer
            return wrong_pictures(Path(files[-1]), colour)

        inputs = {"person": handle_file(str(person)), "garment": handle_file(str(garment)), "size": SIZE}
        for turn in range(times):
            self._ask(client, kind, check, seed=turn, **inputs)

    async def in_browser(self, numbers: Sequence[int], habits: Sequence[str]) -> list[str]:
        """Visitors of the page with these habits.

        Who stays sees what comes of the run, who cancels or reloads in mid-run runs again and sees that, who leaves is
        gone. Returns what went wrong, a sentence each.
        """
        from playwright.async_api import async_playwright

        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
            )
            visitors = [BrowserVisitor(self, browser, *one) for one in zip(numbers, habits, strict=True)]
            wrong = [one for one in await asyncio.gather(*(visitor.visit() for visitor in visitors)) if one]
            await browser.close()
        if len(visitors) > 1 and not any(visitor.has_place for visitor in visitors):
            wrong.append("no visitor of the page was told a place in the queue")
        return wrong


class BrowserVisitor:
    """One visitor of the Try on tab, in a window of its own. habit: "stay" or one of `HABITS`."""

    def __init__(self, crowd: Crowd, browser: Any, number: int, habit: str) -> None:
        self.crowd, self.browser, self.habit, self.has_place = crowd, browser, habit, False
        self.person, self.garment, self.colour = photos_with_mark(crowd.folder, number, crowd.total)

    async def visit(self) -> str:
        """All that this visitor does. Returns what went wrong, "" if nothing did."""
        try:
            self.page = await (await self.browser.new_context(accept_downloads=True)).new_page()
            self.page.set_default_timeout(1000 * LONGEST)
            await self.page.goto(self.crowd.server.address)
            await self._fill()
            await self.page.click("#tryon-button")
            await self._working()
            if self.habit == "leave":
                await self.page.context.close()
                return ""
            kind, start = "try_on first", self.crowd.now()
            if self.habit != "stay":
                await (self._cancel() if self.habit == "cancel" else self._reload())
                kind, start = "try_on page", self.crowd.now()
                await self.page.click("#tryon-button")
                await self._working()
            wrong = await self._result()
            self.crowd.runs.append(Run(kind, start, self.crowd.now(), wrong=wrong))
            return ""
        except Exception as error:
            return f"the visitor who wanted to {self.habit}: {error}"

    async def _fill(self) -> None:
        page = self.page
        await page.get_by_role("tab", name="Try on", exact=True).click()
        for name, file in (("person", self.person), ("garment", self.garment)):
            await page.locator(f"#{name}").get_by_role("button", name="Remove Image").click()
            await page.locator(f"#{name} img").wait_for(state="detached")
            await page.set_input_files(f"#{name} input[type=file]", str(file))
            await page.locator(f"#{name} img").wait_for()
        await page.click("#size input")
        await page.get_by_role("option", name="256 × 192, quick", exact=True).click()

    async def _working(self) -> None:
        """Waits until the run is at work, and sees whether a place in the queue was told before."""
        await self.page.wait_for_function(
            """() => {
              const text = document.querySelector('#tryon-status').innerText;
              window.told = window.told || /queue: \\d+/.test(text);
              return /Working on/.test(text);
            }"""
        )
        self.has_place = self.has_place or await self.page.evaluate("Boolean(window.told)")

    async def _cancel(self) -> None:
        await self.page.click("#cancel-button")
        await self.page.locator("#tryon-status", has_text="Cancelled").wait_for()
        await self.page.wait_for_function("() => !document.querySelector('#tryon-button').disabled")

    async def _reload(self) -> None:
        await self.page.reload()
        await self._fill()

    async def _result(self) -> str:
        """What is wrong with the zip of the run at work, once it has ended."""
        await self.page.locator("#tryon-summary [data-record]").wait_for(state="attached")
        async with self.page.expect_download() as download:
            await self.page.click("#download-zip")
        return wrong_pictures(Path(await (await download.value).path()), self.colour)


# -- what came of it --------------------------------------------------------------------------------------------------


def overtaken(runs: Sequence[Run]) -> int:
    """Pairs of a translation and a try-on that was asked for before it and answered after it."""
    slow = [run for run in runs if run.kind == "try_on"]
    quick = [run for run in runs if run.kind == "translate"]
    return sum(before.start < run.start and run.end < before.end for run in quick for before in slow)


def percentiles(runs: Sequence[Run], kind: str) -> dict[str, float]:
    """Count, and the 50th and 95th percentile of the seconds from asking to the answer."""
    seconds = [run.seconds for run in runs if run.kind == kind]
    if not seconds:
        return {"runs": 0}
    p50, p95 = np.percentile(seconds, [50, 95])
    return {"runs": len(seconds), "p50": round(float(p50), 2), "p95": round(float(p95), 2)}


def measure(
    visitors: int = 20, try_ons: int = 2, translations: int = 6, seed: int = 1, windows: bool = True
) -> dict[str, Any]:
    """The crowd at a page of its own.

    Args:
        visitors: at least 10; half of them try on (three in a browser), half translate.
        try_ons, translations: requests of each visitor of that kind.
        seed: of the marks.
        windows: whether three of those who try on come in a browser.

    Returns the times of each kind, the memory in MB after the first runs, at most and at the end, and `failures`: what
    did not hold, a sentence each.
    """
    if visitors < (10 if windows else 4):
        raise ValueError("A crowd has at least 10 visitors: three of those who try on come in a browser.")
    half, habits = visitors // 2, HABITS if windows else ()
    with tempfile.TemporaryDirectory(prefix="atelier-load-") as name, Server("--training", "off") as server:
        crowd = Crowd(server, Path(name), visitors, seed)
        crowd.try_on(visitors, 2, "try_on first")
        crowd.translate(visitors, 2, "translate first")
        failures = asyncio.run(crowd.in_browser([visitors], ["stay"])) if windows else []
        memory = [server.memory()]
        with ThreadPoolExecutor(visitors) as pool:
            list(pool.map(lambda n: crowd.translate(n, 2, "translate alone"), range(half, visitors)))
            over = threading.Event()
            watch = pool.submit(_watch, server, memory, over)
            end_of_try_ons = threading.Event()
            slow = [pool.submit(crowd.try_on, number, try_ons) for number in range(len(habits), half)]
            quick = [
                pool.submit(crowd.translate, number, translations, until=end_of_try_ons)
                for number in range(half, visitors)
            ]
            if windows:
                failures += asyncio.run(crowd.in_browser(range(3), habits))
            for task in slow:
                task.result()
            end_of_try_ons.set()
            for task in quick:
                task.result()
            over.set()
            watch.result()
        end = _at_rest(server, memory[0])
        return report(crowd.runs, [*memory, end], failures, server.log, visitors - half)


def _watch(server: Server, memory: list[float], over: threading.Event) -> None:
    while not over.wait(0.5):
        memory.append(server.memory())


def _at_rest(server: Server, before: float) -> float:
    """The memory once it is back near `before`, or after a while."""
    deadline = time.monotonic() + REST
    while server.memory() > MAX_GROWTH * before and time.monotonic() < deadline:
        time.sleep(1)
    return server.memory()


def report(
    runs: Sequence[Run], memory: Sequence[float], failures: Sequence[str], log: str, translators: int
) -> dict[str, Any]:
    """What `measure` returns. memory: first after the warm-up, last at rest; translators: visitors who translate."""
    failures = [*failures, *(f"{run.kind}: {run.wrong}" for run in runs if run.wrong)]
    sizes = [size for run in runs if run.kind.startswith("translate") for _, size in run.places]
    if sizes and max(sizes) > translators:
        failures.append(f"a translation was told a queue of {max(sizes)}, more than there are visitors who translate")
    count = overtaken(runs)
    if not count:
        failures.append("no translation was answered before a try-on that was asked for earlier")
    if memory[-1] > MAX_GROWTH * memory[0]:
        failures.append(f"memory: {memory[-1]:.0f} MB at rest, {memory[0]:.0f} MB after the first runs")
    failures += [line for line in log.splitlines() if LOG_ERROR.search(line)]
    kinds = ("translate alone", "translate", "try_on", "try_on page")
    return {
        "seconds": {kind: percentiles(runs, kind) for kind in kinds},
        "overtaken": count,
        "told_a_place": sum(bool(run.places) for run in runs),
        "memory_mb": {"first": round(memory[0]), "most": round(max(memory)), "rest": round(memory[-1])},
        "failed": failures,
    }


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = CommandLine(prog="python -m lab.checks.load", description="A crowd of visitors at one page.")
    parser.add_argument("--visitors", type=integer(10, 1000), default=20, help="at least 10")
    parser.add_argument("--try-ons", type=integer(1, 1000), default=2, help="of each visitor who tries on")
    parser.add_argument("--translations", type=integer(1, 1000), default=6, help="of each visitor who translates")
    parser.add_argument("--seed", type=a_seed, default=1)
    options = parser.parse_args(argv)
    if chromium() is None:
        parser.error("Three of the visitors come in a browser: put Chromium on the PATH.")
    figures = measure(options.visitors, options.try_ons, options.translations, options.seed)
    print(json.dumps(figures, indent=1))
    return int(bool(figures["failed"]))


if __name__ == "__main__":
    raise SystemExit(main())
