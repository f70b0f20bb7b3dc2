"""`python -m lab.tryon.contact_sheet --people DIR --garments DIR --out sheet.png`: many try-ons on one picture.

One row a pair, see `vton.contact_sheet`. Pairs run one after another; one that cannot be used shows its sentence.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from training.arguments import CommandLine, a_device, a_file_to_write, a_seed, integer, something_existing
from training.command import one_sentence
from training.memory import keep_memory
from vton.contact_sheet import DEFAULT_MAPS, Row, draw, fit_into, thumbnail
from vton.inputs import photo  # noqa: E402  (the line above has to come before MediaPipe's libraries)
from vton.maps import MAPS  # noqa: E402
from vton.options import add_arguments, from_arguments  # noqa: E402

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".avif", ".bmp")
MAX_PAIRS = 400


def files(folder: Path) -> list[Path]:
    """The pictures of a folder by name, or the one picture that is named. Raises FileNotFoundError with a sentence."""
    folder = Path(folder)
    if folder.is_file():
        return [folder]
    pictures = sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES) if folder.is_dir() else []
    if not pictures:
        raise FileNotFoundError(f"There are no pictures in '{folder.name}'; name a folder with JPEG or PNG files.")
    return pictures


def pairs(
    people: list[Path], garments: list[Path], every: bool = False, count: int = 0, seed: int | None = None
) -> list[tuple[Path, Path]]:
    """Which person wears what: the n-th person with the n-th garment, or `every` person with every garment.

    count: at most so many pairs (0: all, at most MAX_PAIRS); seed: shuffles both lists first.
    """
    people, garments = list(people), list(garments)
    if seed is not None:
        random = np.random.default_rng(seed)
        random.shuffle(people)
        random.shuffle(garments)
    if every:
        combinations = [(person, garment) for person in people for garment in garments]
    else:
        longest = count if count else max(len(people), len(garments))
        combinations = [(people[i % len(people)], garments[i % len(garments)]) for i in range(longest)]
    return combinations[: count or MAX_PAIRS][:MAX_PAIRS]


def rows(
    tryon: Any,
    selection: Iterable[tuple[Path, Path]],
    maps: tuple[str, ...] = DEFAULT_MAPS,
    cell: tuple[int, int] = (256, 192),
    crop: bool = True,
    after: Callable[[int, Row], None] | None = None,
    **options: Any,
) -> list[Row]:
    """Run every pair and keep its small cells: photo, garment, the maps, result.

    tryon: a TryOn; selection: pairs of paths; cell: (H, W) of a picture on the sheet; crop: show photo and result
    inside the 3:4 frame instead of the whole photograph; after: called with the pair's number and its row; options:
    those of TryOn.run.
    """
    table = []
    for number, (person, garment) in enumerate(selection):
        name = f"{person.stem} + {garment.stem}"
        try:
            result = tryon.run(person, garment, **options)
            pictures = result.pictures()
            around = [
                photo.crop(p, result.frame, result.options.size) if crop else p for p in (result.photo, result.result)
            ]
            columns = [around[0], result.garment_photo, *(pictures[name] for name in maps), around[1]]
            line = f"{sum(result.seconds.values()):.1f} s, {100 * result.misaligned_share:.1f} % open"
            row = Row(name, tuple(fit_into(picture, cell) for picture in columns), " · ".join([line, *result.notes]))
        except (ValueError, OSError) as error:  # one bad pair does not end the sheet
            row = Row(
                name, tuple(thumbnail(path, cell) for path in (person, garment)), "", " ".join(str(error).split())
            )
        table.append(row)
        if after:
            after(number, row)
    return table


def _parser() -> CommandLine:
    """The command line."""
    parser = CommandLine(prog="python -m lab.tryon.contact_sheet", description="Many try-ons on one picture.")
    parser.add_argument(
        "--people",
        type=something_existing,
        required=True,
        metavar="DIR",
        help="photographs of people, a folder or one file",
    )
    parser.add_argument(
        "--garments",
        type=something_existing,
        required=True,
        metavar="DIR",
        help="photographs of garments, a folder or one file",
    )
    parser.add_argument(
        "--out",
        type=a_file_to_write(".png", ".jpg", ".jpeg"),
        required=True,
        metavar="FILE",
        help="PNG or JPEG; more rows than --rows go to FILE-2, FILE-3 ...",
    )
    parser.add_argument("--count", type=integer(), default=0, help="at most so many pairs")
    parser.add_argument(
        "--every", action="store_true", help="every person with every garment, not the n-th with the n-th"
    )
    parser.add_argument("--shuffle", type=a_seed, metavar="SEED", help="shuffle people and garments first")
    parser.add_argument(
        "--maps", default=",".join(DEFAULT_MAPS), help=f"between garment and result, out of {','.join(MAPS)}"
    )
    parser.add_argument(
        "--cell", type=integer(64, 1024), default=256, help="height of a picture on the sheet, in pixels"
    )
    parser.add_argument("--rows", type=integer(1, 100), default=20, help="rows of one sheet")
    parser.add_argument("--whole", action="store_true", help="show whole photographs instead of the 3:4 frame")
    add_arguments(parser)
    parser.add_argument("--model", default="tryon-lite", help="name of a shipped model, or a folder")
    parser.add_argument("--device", type=a_device, default="auto")
    return parser


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    arguments = _parser().parse_args(argv)
    from vton.pipeline import TryOn

    options = from_arguments(arguments)
    maps = tuple(name.strip() for name in arguments.maps.split(",") if name.strip())
    unknown = [name for name in maps if name not in MAPS]
    if unknown:
        raise ValueError(f"There is no map '{unknown[0]}'; the maps are: {', '.join(MAPS)}.")
    selection = pairs(
        files(arguments.people), files(arguments.garments), arguments.every, arguments.count, arguments.shuffle
    )
    tryon = TryOn.from_pretrained(arguments.model, arguments.device)
    cell = (arguments.cell, arguments.cell * 3 // 4)
    failures = 0
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    for sheet, start in enumerate(range(0, len(selection), arguments.rows)):

        def report(number: int, row: Row, start: int = start) -> None:
            print(f"{start + number + 1}/{len(selection)}  {row.name}: {row.error or row.line}", flush=True)

        table = rows(
            tryon,
            selection[start : start + arguments.rows],
            maps,
            cell,
            not arguments.whole,
            report,
            options=options,
        )
        failures += sum(bool(row.error) for row in table)
        target = arguments.out if not sheet else arguments.out.with_stem(f"{arguments.out.stem}-{sheet + 1}")
        title = (
            f"{arguments.model}, {options.size[0]} x {options.size[1]}, seed {options.seed}, pairs {start + 1} to "
            f"{start + len(table)} of {len(selection)}"
        )
        Image.fromarray(draw(table, maps, cell, title)).save(target, quality=92)
        print(target)
    print(f"{len(selection) - failures} results, {failures} refused with a sentence.")
    return 0


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
