"""Makes the pictures of README.md with the program itself: python -m lab.pictures http://127.0.0.1:7860/

Uses the shipped weights and examples, and Chromium for the screenshots of a running page. Takes a minute or two on two
cores.
"""

import shutil
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Error, sync_playwright

from training.arguments import CommandLine
from training.assets import examples_dir
from training.command import one_sentence
from vton.inputs import photo
from vton.pipeline import TryOn

DOCS = Path(__file__).resolve().parents[1] / "docs"

STRIP = ("pose", "parse", "garment", "agnostic", "segmentation", "warped_cloth", "misalignment", "result")
CELL = (180, 240)  # width, height
SENTENCE = "A woman in a red dress is reading a book on a bench."
PAIRS = (
    ("man-white-tee-office", "t-shirt-printed"),
    ("man-white-shirt", "jumper-green-turtleneck"),
    ("woman-denim-shirt", "long-sleeves-turquoise"),
)


def strips(pairs: list[list[str]], tryon: TryOn) -> Image.Image:
    """One row a pair: the photo, the most telling maps, and the result cut to the person's frame."""
    names = ("photo", *STRIP)
    sheet = Image.new("RGB", (len(names) * (CELL[0] + 6) + 6, len(pairs) * (CELL[1] + 6) + 30), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(15)
    for column, name in enumerate(names):
        draw.text((6 + column * (CELL[0] + 6), 7), name.replace("_", " "), fill="#453e36", font=font)
    for row, (person, garment) in enumerate(pairs):
        result = tryon.run(person, garment, size=(512, 384), seed=0)
        pictures = {"photo": result.person, **result.pictures()}
        # The frame of a result has the same 3:4 window as every map.
        pictures["result"] = photo.crop(result.result, result.frame, result.options.size)
        for column, name in enumerate(names):
            picture = Image.fromarray(np.asarray(pictures[name])).convert("RGB").resize(CELL, Image.Resampling.LANCZOS)
            sheet.paste(picture, (6 + column * (CELL[0] + 6), 30 + row * (CELL[1] + 6)))
    return sheet


def screenshots(address: str) -> None:
    """What a visitor sees of each tab, light and wide."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1200})
        page.set_default_timeout(240_000)
        try:
            page.goto(address + "?__theme=light")
        except Error:
            raise ValueError(f"No page answers at {address}; start it with `python app.py`.") from None
        page.locator("#heat-map svg").wait_for()  # of the example that the page opens with
        page.locator("#source-text textarea").fill(SENTENCE)
        page.click("#translate-button")
        page.wait_for_timeout(4000)
        page.screenshot(path=DOCS / "translate.png")

        page.locator("#views").get_by_role("tab", name="Word by word", exact=True).first.click()
        slider = page.locator("#decoding-steps input[type=range]")
        slider.wait_for()
        page.wait_for_timeout(3000)
        slider.focus()
        for _ in range(5):
            slider.press("ArrowRight")
        page.wait_for_timeout(500)
        page.screenshot(path=DOCS / "decoding.png")

        page.get_by_role("tab", name="Try on", exact=True).first.click()
        page.wait_for_timeout(4000)
        page.screenshot(path=DOCS / "try-on.png")

        page.get_by_role("tab", name="GAN", exact=True).first.click()
        page.get_by_role("button", name="Play").first.click()
        page.wait_for_timeout(20_000)
        page.get_by_role("button", name="Pause").first.click()
        page.wait_for_timeout(1500)
        page.screenshot(path=DOCS / "gan.png")
        browser.close()


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = CommandLine(prog="python -m lab.pictures", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("address", help="of the running page")
    address = parser.parse_args(argv).address
    screenshots(address)
    folder = examples_dir()
    pairs = [[str(folder / "people" / f"{a}.jpg"), str(folder / "garments" / f"{b}.jpg")] for a, b in PAIRS]
    strips(pairs, TryOn.from_pretrained("tryon-lite")).save(DOCS / "strips.jpg", quality=88, optimize=True)
    for name in ("translate", "decoding", "try-on", "gan"):
        picture = Image.open(DOCS / f"{name}.png").convert("RGB")
        # A palette keeps the screenshots small.
        picture.quantize(256, dither=Image.Dither.NONE).save(DOCS / f"{name}.png", optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
