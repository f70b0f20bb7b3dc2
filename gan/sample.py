"""`python -m gan.sample --model digits --count 64 --out samples.png`:
a sheet of fair draws from a trained generator.
"""

import sys

import torch

from gan import pictures, sampling
from gan.digits import SIDE, read_digits
from training.arguments import CommandLine, a_file_to_write, a_seed, an_existing_folder, integer
from training.command import one_sentence

COLUMNS = 16
MAX_DIGITS = 10_000  # digits of one sheet


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; writes one picture."""
    parser = CommandLine(prog="python -m gan.sample", description=__doc__)
    parser.add_argument("--model", default="digits", help="name of a shipped model, or a model folder")
    parser.add_argument("--count", type=integer(1, MAX_DIGITS), default=64)
    parser.add_argument("--seed", type=a_seed, default=0)
    out, data = "picture to write: PNG, JPEG or WebP, as its name ends", "digits: show the nearest one beside each"
    parser.add_argument("--out", type=a_file_to_write(*pictures.ENDINGS), required=True, metavar="FILE", help=out)
    parser.add_argument("--data", type=an_existing_folder, metavar="DIR", help=data)
    parser.add_argument("--walk", action="store_true", help="walk from each sample to the next in z, a row for each")
    options = parser.parse_args(argv)
    pair = sampling.load(options.model)
    if pair.config.data != SIDE * SIDE:
        raise ValueError(f"'{options.model}' makes {pair.config.data} numbers and no pictures of {SIDE} x {SIDE}.")
    z = sampling.noise(pair.generator, options.count, options.seed)
    if options.walk:
        ends = list(zip(z, z.roll(-1, 0)))
        walks = [sampling.decode(pair.generator, sampling.walk(a, b, COLUMNS)) for a, b in ends]
        picture = pictures.sheet(torch.cat(walks), COLUMNS)
    else:
        rows, beside = sampling.decode(pair.generator, z), None
        if options.data:
            training = read_digits(options.data).train
            beside = training[sampling.nearest(rows, training)[0]]
        picture = pictures.sheet(rows, COLUMNS, beside)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    pictures.save(options.out, picture)
    print(f"{options.count} samples in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
