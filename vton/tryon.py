"""`python -m vton.tryon person.jpg garment.jpg --out DIR`: every map of a try-on as a PNG, and a zip to go on from.

`python -m vton.tryon --record try-on.zip --edit segmentation=mine.png --out DIR` goes on from a map corrected by hand.
"""

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
    until, zip_file = "stop after this stage, such as misalignment", "go on from a saved try-on instead of two pictures"
    edit = "with --record: a corrected map, such as segmentation=mine.png"
    parser.add_argument("--until", default="composite", metavar="STAGE", help=until)
    parser.add_argument("--record", type=an_existing_file, metavar="ZIP", help=zip_file)
    parser.add_argument("--edit", metavar="MAP=FILE", help=edit)
    arguments = parser.parse_args(argv)
    if (arguments.record is None) == (arguments.garment is None) or (arguments.edit and arguments.record is None):
        raise ValueError("name a person and a garment, or a saved try-on with --record.")
    options = from_arguments(arguments)
    from vton import record
    from vton.pipeline import STAGES, TryOn

    tryon = TryOn.from_pretrained(arguments.model, arguments.device)
    if arguments.record is not None:
        result = record.load(arguments.record)
        if arguments.edit:
            name, _, file = arguments.edit.partition("=")
            result = tryon.correct(result, name, record.read_map(result, name, Path(file)), until=arguments.until)
        else:
            first = next((stage for stage in STAGES if stage not in result.seconds), STAGES[-1])
            result = tryon.resume(result, first, until=arguments.until)
    else:
        result = tryon.run(arguments.person, arguments.garment, options, until=arguments.until)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, picture in result.pictures().items():
        Image.fromarray(picture).save(arguments.out / f"{name}.png")
    (arguments.out / "settings.json").write_text(json.dumps(record.settings(result), indent=1) + "\n", encoding="utf-8")
    record.save(result, arguments.out / "try-on.zip", model=arguments.model)
    for note in result.notes:
        print(f"note: {note}", file=sys.stderr)
    print(arguments.out)
    return 0


if __name__ == "__main__":
    keep_memory()
    sys.exit(main())
