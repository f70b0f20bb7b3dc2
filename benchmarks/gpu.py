"""The CPU and a graphics card side by side: `python -m benchmarks.gpu`.

Agreement: the same translations, and pictures within 2 of 255 levels, each stage on the card given what the CPU made
before it (32-bit products, no TF32). Then tokens and pictures a second in fp32 and (by autocast, where the hardware
multiplies in it) in bf16, peak memory, and a short training whose loss has to fall. Prints a Markdown table; the exit
status is 1 if the two disagree, 2 without a card. `--device cpu` measures the CPU against itself.
"""

import contextlib
import json
import os
import tempfile
import time
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks.alias import peak_mib
from training import Run, fit
from training.arguments import CommandLine, integer
from training.assets import examples_dir
from training.command import one_sentence
from training.devices import has_bf16, present_devices
from transformer.train import TranslationRecipe, TranslationTask
from transformer.translator import Translator
from vton import labels
from vton.networks import alias
from vton.options import to_text
from vton.pipeline import TryOn
from vton.result import TryOnResult
from vton.stages import conditions
from vton.tensors import labels_to_tensor, mask_to_tensor, picture_to_tensor

LEVELS = 2  # of 255, by which pictures may differ
# The maps of each stage that are compared, and the stage that makes them.
MAPS = {"segmentation": "segmentation", "warped_cloth": "warp", "misalignment": "misalignment", "result": "synthesis"}
SENTENCES = (
    "A man in a blue shirt is standing on a ladder cleaning a window.",
    "Two young children play with a red ball in front of a house.",
    "The dog runs through the snow.",
    "Several people wait for a train on a crowded platform, and one of them reads a newspaper.",
    "A woman with a straw hat sells fruit at the market.",
    "Three cyclists ride along the river in the evening sun.",
)
SUBJECTS, VERBS = ("red", "blue", "old", "new", "small", "long"), ("sees", "finds", "takes", "hides")


def time_of(device: torch.device) -> float:
    """The time once everything asked of the device is done, in seconds."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def seconds_of(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """The shortest of several runs, after one that is not counted."""
    work()
    return min(timeit.repeat(work, timer=lambda: time_of(device), number=1, repeat=repeats))


def precision(device: torch.device, name: str) -> contextlib.AbstractContextManager:
    """Autocast for "bf16"; nothing for "fp32"."""
    return torch.autocast(device.type, torch.bfloat16) if name == "bf16" else contextlib.nullcontext()


def translations(translator: Translator, sentences: Sequence[str]) -> list[str]:
    """One translation a sentence, by beam search."""
    return [one.text for one in translator.translate(list(sentences), "en", "de")]


def differences(record: TryOnResult, tryon: TryOn) -> dict[str, float]:
    """How far another device is from a finished record, each stage beginning with what the record holds.

    Returns:
        Of label maps the share of other labels in percent; of pictures the largest difference in levels of 255.
    """
    figures = {}
    for name, stage in MAPS.items():
        other = tryon.resume(record, stage, until="composite" if name == "result" else stage)
        ours, theirs = (np.asarray(getattr(one, name), np.int16) for one in (record, other))
        figures[name] = float((ours != theirs).mean() * 100 if name == "segmentation" else np.abs(ours - theirs).max())
    return figures


def pictures(tryon: TryOn, record: TryOnResult, batch: int) -> Callable[[], object]:
    """The synthesis of `batch` pictures at once, equal to the record's, as a function."""
    maps = conditions(tryon, record)
    seven = labels_to_tensor(labels.thirteen_to_7(record.segmentation), len(labels.ALIAS), tryon.device)
    misalign = mask_to_tensor(record.misalignment, tryon.device)
    x = torch.cat((maps.agnostic, maps.pose, picture_to_tensor(record.warped_cloth, tryon.device)), 1)
    inputs = [one.repeat(batch, 1, 1, 1) for one in (x, seven, alias.divide(seven, misalign), misalign)]

    @torch.inference_mode()
    def work() -> object:
        return tryon.alias(*inputs)

    return work


def train(steps: int, folder: Path, device: torch.device) -> tuple[float, float, float]:
    """A small Transformer on sentences made of a few words: the first loss, the last, and updates a second."""
    table = folder / "pairs.tsv"
    rows = [f"a {a} {b} hat {v} me\tein {a} {b} hut {v} mich" for a in SUBJECTS for b in SUBJECTS for v in VERBS]
    table.write_text("en\tde\n" + "\n".join(rows) + "\n", encoding="utf-8")
    recipe = TranslationRecipe(
        size="mini", data=str(table), vocab_size=60, tokens=1024, steps=steps, save_every=steps, log_every=1,
        evaluate_every=0, precision="bf16" if device.type == "cuda" else "no",
    )  # fmt: skip
    start = time.perf_counter()
    fit(TranslationTask(recipe), recipe, folder / "run", quiet=True)
    seconds = time.perf_counter() - start
    lines = Run(folder / "run").events_file.read_text(encoding="utf-8").splitlines()
    losses = [sum(event["losses"].values()) for event in map(json.loads, lines) if "losses" in event]
    return losses[0], losses[-1], steps / seconds


def measure(device: torch.device, size: tuple[int, int], sentences: int, batch: int, repeats: int, steps: int) -> dict:
    """All of it; see the module. Returns figures by name."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    texts = [SENTENCES[i % len(SENTENCES)] for i in range(sentences)]
    here, there = (Translator.from_pretrained("multi30k-en-de", device=str(one)) for one in ("cpu", device))
    other = sum(a != b for a, b in zip(translations(here, SENTENCES), translations(there, SENTENCES)))
    on_cpu, on_device = (TryOn.from_pretrained("tryon-lite", str(one)) for one in ("cpu", device))
    photos = examples_dir() / "person-1.png", examples_dir() / "garment-stripes.png"
    record = on_cpu.run(*photos, size=size)
    figures = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "other translations": other,
        "differences": differences(record, on_device),
    }
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    with torch.inference_mode():
        tokens = sum(len(s.hypotheses[0].tokens) for one in there.translate(texts, "en", "de") for s in one.sentences)
    work = pictures(on_device, record, batch)
    # Emulated bf16 would take minutes, and its figures would say nothing.
    for name in ("fp32", "bf16") if has_bf16(device.type) else ("fp32",):
        with precision(device, name):
            figures[f"tokens a second, {name}"] = tokens / seconds_of(
                lambda: translations(there, texts), device, repeats
            )
            figures[f"pictures a second, {name}"] = batch / seconds_of(work, device, repeats)
    on_card = device.type == "cuda"
    figures["peak MiB"] = torch.cuda.max_memory_allocated(device) / 2**20 if on_card else peak_mib()
    with tempfile.TemporaryDirectory(prefix="atelier-gpu-") as folder:
        figures["first loss"], figures["last loss"], figures["updates a second"] = train(steps, Path(folder), device)
    return figures


def agrees(figures: dict) -> bool:
    """Whether the device says what the CPU says, and learns."""
    worst = max(value for name, value in figures["differences"].items() if name != "segmentation")
    learns = figures["last loss"] < figures["first loss"]
    return (
        not figures["other translations"]
        and worst <= LEVELS
        and figures["differences"]["segmentation"] < 0.1
        and learns
    )


def table(figures: dict, size: tuple[int, int]) -> str:
    """Markdown rows of the figures."""
    flat = {f"{name}, {key}" if name == "differences" else name: one for name, value in figures.items()
            for key, one in (value.items() if isinstance(value, dict) else [("", value)])}  # fmt: skip
    rows = [f"| {name} | {value if isinstance(value, str) else f'{value:.4g}'} |" for name, value in flat.items()]
    return "\n".join([f"| {to_text(size)} | |", "|---|---|", *rows])


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = CommandLine(description="Compare a graphics card with the CPU, and measure it.")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--size", type=integer(64, 4096), nargs=2, default=(512, 384), metavar=("H", "W"))
    parser.add_argument("--sentences", type=integer(1), default=256, help="translated at once")
    parser.add_argument("--batch", type=integer(1), default=8, help="pictures synthesised at once")
    parser.add_argument("--repeats", type=integer(1), default=3)
    parser.add_argument("--steps", type=integer(1), default=60, help="updates of the short training")
    options = parser.parse_args(argv)
    if options.device not in present_devices():
        parser.error("There is no CUDA device here; `--device cpu` measures the CPU against itself.")
    if options.device == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"  # the training takes a card by itself where there is one
    size = tuple(options.size)
    figures = measure(
        torch.device(options.device), size, options.sentences, options.batch, options.repeats, options.steps
    )
    print(table(figures, size))
    good = agrees(figures)
    print("The device agrees with the CPU." if good else "The device does NOT agree with the CPU.")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
