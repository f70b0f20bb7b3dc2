"""`python -m lab.translator.series --run DIR --steps 100 300 1000 --out DIR`: keeps a training as a recorded series.

The page reads runs as they are; the series that ships (`assets/series`) was recorded so, see `transformer.series`.
"""

from __future__ import annotations

import json
import sys

from training.arguments import CommandLine, a_folder_to_write, an_existing_folder, integer
from training.command import one_sentence
from transformer.series import record


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints each kept update and its figures."""
    parser = CommandLine(prog="python -m lab.translator.series", description="Record a training as a series.")
    parser.add_argument("--run", type=an_existing_folder, required=True, help="folder of a run of the Transformer")
    parser.add_argument("--steps", type=integer(), nargs="+", help="updates to keep; all checkpoints if left out")
    parser.add_argument("--out", type=a_folder_to_write, required=True, help="folder to write")
    options = parser.parse_args(argv)
    series = record(options.run, options.out, options.steps)
    for step in series.steps:
        print(step, json.dumps(series.figures_at(step)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
