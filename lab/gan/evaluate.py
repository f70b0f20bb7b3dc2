"""`python -m lab.gan.evaluate --model digits --data DIR`: Table 1's Parzen log-likelihood, and why not to trust it.

Beside the generator stand a k-means baseline, a Gaussian, and the training data themselves, each as the centres of the
window. Theis, van den Oord and Bethge 2016 (section 3.2) found the centroids above the data; so they are here.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time

import torch
from torch import Tensor

from gan import parzen, sampling
from gan.digits import Digits, read_digits
from gan.parzen import APART, Score, squared_distances
from training.arguments import CommandLine, a_file_to_write, a_seed, an_existing_folder, integer
from training.command import one_sentence
from training.files import write_atomic

SAMPLES = 10_000
CENTROIDS = 2000
ROUNDS = 15
PAPER = (225.0, 2.0)  # Table 1: adversarial nets on MNIST


def k_means(data: Tensor, count: int, rounds: int = ROUNDS, seed: int = 0) -> Tensor:
    """Lloyd's algorithm: `count` centroids (count, d) of rows (n, d), begun at rows drawn at random.

    A centroid that loses all its rows stays where it is. Raises ValueError for more centroids than rows.
    """
    if not 1 <= count <= len(data):
        raise ValueError(f"k-means needs 1 to {len(data)} centroids for {len(data)} rows, but {count} were asked for.")
    centres = data[torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:count]].clone()
    for _ in range(rounds):
        nearest = torch.cat([squared_distances(part, centres).argmin(1) for part in data.split(1000)])
        sums = torch.zeros_like(centres).index_add_(0, nearest, data)
        sizes = torch.bincount(nearest, minlength=count)[:, None]
        means = torch.where(sizes > 0, sums / sizes.clamp_min(1), centres)
        if torch.equal(means, centres):
            break
        centres = means
    return centres


def gaussian(data: Tensor, count: int, seed: int = 0) -> Tensor:
    """`count` draws (count, d) from the Gaussian with the mean and the covariance of the rows (n, d)."""
    mean = data.mean(0)
    values, vectors = torch.linalg.eigh(torch.cov(data.T).double())
    spread = (vectors * values.clamp_min(0).sqrt()).float()
    z = torch.randn(count, len(mean), generator=torch.Generator().manual_seed(seed))
    return mean + z @ spread.T


def table(samples: Tensor, digits: Digits, centroids: int = CENTROIDS) -> dict[str, Score]:
    """Scores of the generator's samples, k-means, a Gaussian and the training data, each by the same procedure."""
    centres = {
        "adversarial nets": samples,
        f"k-means, {centroids:,} centroids": k_means(digits.train, centroids),
        "Gaussian": gaussian(digits.train, len(samples)),
        "training data": digits.train,
    }
    return {name: parzen.evaluate(rows, digits.valid, digits.test) for name, rows in centres.items()}


def lines(scores: dict[str, Score]) -> list[str]:
    """The table as text."""
    out = [f"{'centres of the window':28} {'log-likelihood':>18}   sigma"]
    out += [f"{name:28} {s.mean:10.1f} +- {s.error:4.1f}   {s.sigma:.3f}" for name, s in scores.items()]
    return out


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; prints the table."""
    parser = CommandLine(prog="python -m lab.gan.evaluate", description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="digits", help="name of a shipped model, or a model folder")
    parser.add_argument(
        "--data", type=an_existing_folder, required=True, metavar="DIR", help="folder with digits as IDX files"
    )
    parser.add_argument(
        "--samples", type=integer(2, sampling.MAX_SAMPLES), default=SAMPLES, help="draws from the generator"
    )
    parser.add_argument("--centroids", type=integer(2, sampling.MAX_SAMPLES), default=CENTROIDS, help="of k-means")
    parser.add_argument("--seed", type=a_seed, default=0)
    parser.add_argument("--json", type=a_file_to_write(), metavar="FILE", help="also write the scores there")
    options = parser.parse_args(argv)
    digits = read_digits(options.data)
    pair = sampling.load(options.model)
    if pair.config.data != digits.train.shape[1]:
        raise ValueError(f"'{options.model}' makes {pair.config.data} numbers and no digits.")
    began = time.perf_counter()
    scores = table(sampling.sample(pair.generator, options.samples, options.seed), digits, options.centroids)
    print("\n".join([*lines(scores), "", APART, f"{time.perf_counter() - began:.0f} s"]))
    if options.json:
        report = {
            "samples": options.samples,
            "seed": options.seed,
            "scores": {name: dataclasses.asdict(score) for name, score in scores.items()},
        }
        write_atomic(options.json, json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
