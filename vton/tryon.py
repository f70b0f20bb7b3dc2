"""`python -m vton.tryon person.jpg garment.jpg --out DIR`: every map of a try-on as a PNG, and a zip to go on from.

`python -m vton.tryon --record try-on.zip --edit segmentation=mine.png --out DIR` goes on from a map corrected by hand.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from PIL import Image

from training.arguments import CommandLine, a_device, a_folder_to_write, an_existing_file
from training.command import one_sentence
from training.memory import keep_memory
from vton.options import add_arguments, from_arguments

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = CommandLine(prog="python -m vton.tryon", description="Try a garment on a person.")
    parser.add_argument("person", type=an_existing_file, nargs="?")
    parser.add_argument("garment", type=an_existing_file, nargs="?")
    parser.add_argument("--out", type=a_folder_to_write, required=True, metavar="DIR", help="folder for the maps")
    parser.add_argument("--model", default="tryon-lite", help="name of a shipped model, or a folder")
    parser.add_argument("--device", type=a_device, default="auto")
    add_arguments(parser)
    parser.add_argument(
        "--until", default="composite", metavar="STAGE", help="stop after this stage, such as misalignment"
    )
    parser.add_argument(
        "--record", type=an_existing_file, metavar="ZIP", help="go on from a saved try-on instead of two pictures"
    )
    parser.add_argument(
        "--edit", metavar="MAP=FILE", help="with --record: a corrected map, such as segmentation=mine.png"
    )
    given = parser.parse_args(argv)
    if (given.record is None) == (given.garment is None) or (given.edit and given.record is None):
        raise ValueError("name a person and a garment, or a saved try-on with --record.")
    options = from_arguments(given)
    from vton import record
    from vton.pipeline import STAGES, TryOn

    tryon = TryOn.from_pretrained(given.model, given.device)
    if given.record is not None:
        result = record.load(given.record)
        if given.edit:
            name, _, file = given.edit.partition("=")
            result = tryon.correct(result, name, record.read_map(result, name, Path(file)), until=given.until)
        else:
            first = next((stage for stage in STAGES if stage not in result.seconds), STAGES[-1])
            result = tryon.resume(result, first, until=given.until)
    else:
        result = tryon.run(given.person, given.garment, options, until=given.until)
    given.out.mkdir(parents=True, exist_ok=True)
    for name, picture in result.pictures().items():
        Image.fromarray(picture).save(given.out / f"{name}.png")
    (given.out / "settings.json").write_text(json.dumps(record.settings(result), indent=1) + "\n", encoding="utf-8")
    record.save(result, given.out / "try-on.zip", model=given.model)
    for note in result.notes:
        print(f"note: {note}", file=sys.stderr)
    print(given.out)
    return 0


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
