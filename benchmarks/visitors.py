"""Seconds of one try-on alone and of two that are asked for at once, as the page runs them.

    python -m benchmarks.visitors --threads 2

Two example people and garments, default settings. In each turn the same two try-ons run one after the other and then at
once, so that a busy machine slows both; what counts is the ratio of the two times, the median of the turns. Prints one
JSON object: the seconds of one alone, of both one after the other and of both at once, the time until the first of
these was there, and `ratio`, at once over one after the other.
"""

import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from benchmarks.tryon import example
from training.arguments import CommandLine, a_device, integer
from training.command import one_sentence
from training.memory import keep_memory
from ui.services import Services, last
from vton.options import read_size, to_text

PAIRS = (("person-1.png", "garment-stripes.png"), ("person-3.png", "garment-letters.png"))


def measure(size: tuple[int, int], turns: int, device: str = "auto") -> dict[str, Any]:
    """Times in seconds of try-ons at `size` (H, W) over so many turns. Raises AssertionError where pictures differ."""
    services = Services(device=device)
    pairs = [(example(person), example(garment)) for person, garment in PAIRS]

    def run(pair: tuple) -> tuple[float, np.ndarray]:
        result = last(services.stream_tryon(*pair, size=size))
        return time.perf_counter(), result.result

    run(pairs[0])  # loads the networks, and makes what is kept for a size
    alone, in_turn, at_once, first = [], [], [], []
    for _ in range(turns):
        start = time.perf_counter()
        apart = [run(pair) for pair in pairs]
        alone.append(apart[0][0] - start)
        in_turn.append(apart[-1][0] - start)
        start = time.perf_counter()
        with ThreadPoolExecutor(len(pairs)) as pool:
            together = list(pool.map(run, pairs))
        ends = [end - start for end, _ in together]
        at_once.append(max(ends))
        first.append(min(ends))
        for (_, theirs), (_, ours) in zip(apart, together):
            np.testing.assert_array_equal(theirs, ours)
    ratio = statistics.median(both / apart for both, apart in zip(at_once, in_turn))
    times = {"alone": alone, "in_turn": in_turn, "at_once": at_once, "first_of_both": first}
    return {
        "size": to_text(size),
        "threads": torch.get_num_threads(),
        **{name: round(statistics.median(values), 2) for name, values in times.items()},
        "ratio": round(ratio, 2),
    }


@one_sentence
def main(argv: list[str] | None = None) -> None:
    """The command line."""
    parser = CommandLine(description=__doc__)
    parser.add_argument("--threads", type=integer(1, 1024), default=2)
    parser.add_argument("--turns", type=integer(1), default=5)
    parser.add_argument("--size", default="512x384")
    parser.add_argument("--device", type=a_device, default="auto")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    keep_memory()
    print(json.dumps(measure(read_size(options.size), options.turns, options.device)), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
