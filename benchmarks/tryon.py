"""Seconds from a photograph and a product shot to the finished picture, by stage, with a shipped model.

    python -m benchmarks.tryon --threads 2

An example person and garment, default settings, the model loaded before the clock starts. The first run of a size is
given apart: it makes what is kept, such as the spline's matrix. Prints one JSON object a size: the median run and its
stages, CPU time of all threads (which does not count what other programs take), and the peak memory.
"""

import json
import time

import numpy as np
import torch
from PIL import Image

from benchmarks.alias import peak_mib
from training.arguments import CommandLine, a_device, integer
from training.assets import examples_dir
from training.command import one_sentence
from training.memory import keep_memory
from vton.options import SIZES, read_size, to_text
from vton.pipeline import STAGES, TryOn

PHOTO = (1280, 960)  # pixels of the person's photograph


def example(name: str) -> np.ndarray:
    """A shipped example picture as large as a photograph, (H, W, 3) uint8."""
    return np.asarray(Image.open(examples_dir() / name).convert("RGB").resize(PHOTO[::-1]))


def measure(tryon: TryOn, size: tuple[int, int], repeats: int) -> dict:
    """Median seconds of one try-on at `size` and of its stages."""
    person, garment = example("person-1.png"), example("garment-stripes.png")
    runs = []
    for _i in range(repeats + 1):
        start, cpu = time.perf_counter(), time.process_time()
        result = tryon.run(person, garment, size=size)
        if tryon.device.type == "cuda":
            torch.cuda.synchronize()
        runs.append((time.perf_counter() - start, time.process_time() - cpu, result.seconds))
    first, *runs = runs
    seconds, cpu, stages = sorted(runs, key=lambda run: run[0])[len(runs) // 2]
    return {
        "size": to_text(size),
        "model": tryon.name,
        "device": str(tryon.device),
        "threads": torch.get_num_threads(),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "first": round(first[0], 2),
        "peak_mib": round(peak_mib()),
        "stages": {name: round(stages[name], 3) for name in STAGES},
    }


@one_sentence
def main(argv: list[str] | None = None) -> None:
    """The command line."""
    parser = CommandLine(description=__doc__)
    parser.add_argument("--threads", type=integer(1, 1024), default=2)
    parser.add_argument("--model", default="tryon-lite")
    parser.add_argument("--device", type=a_device, default="auto")
    parser.add_argument("--repeats", type=integer(1), default=3)
    parser.add_argument("--sizes", nargs="+", default=[to_text(size) for size in SIZES])
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    keep_memory()
    tryon = TryOn.from_pretrained(options.model, options.device)
    for size in options.sizes:
        print(json.dumps(measure(tryon, read_size(size), options.repeats)), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
