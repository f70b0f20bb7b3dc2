"""The weighted mean of models that went on from the same weights (Wortsman et al. 2022, "Model soups" and "Robust
fine-tuning of zero-shot models").

    python -m transformer.mix BEFORE=1 AFTER=1 --out OUT

Fine-tuned weights fit their text better and other text at times worse; on the straight line back to where they came
from lie models that do well on both. Models that were trained separately from the start cannot be mixed: the mean of
their weights does not translate at all.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import torch
from torch import Tensor

from training import assets
from training.command import one_sentence
from training.weights import load_model, save_model
from transformer.shortlist import FILE


def mixed(parts: list[tuple[str, float]]) -> tuple[dict, dict[str, torch.Tensor], Path]:
    """(config, weights, folder of the first model) of the mean of (model, weight); weights are divided by their sum.

    A model is the name of a shipped one, or a folder. Raises `ValueError` with one sentence for weights that are not
    above 0, and for models of other sizes, vocabularies or languages than the first.
    """
    if any(not weight > 0 for _, weight in parts):
        raise ValueError("The weight of each model has to be above 0.")
    total, first = sum(weight for _, weight in parts), Path()
    config: dict = {}
    sums: dict[str, Tensor] = {}
    for name, weight in parts:
        folder = assets.model_or_dir(name)
        header, state = load_model(folder)
        if not sums:
            config, first, sums = header, folder, {key: torch.zeros_like(value) for key, value in state.items()}
        if header != config or (folder / "tokenizer.model").read_bytes() != (first / "tokenizer.model").read_bytes():
            raise ValueError(f"{folder.name} has another size, vocabulary or pair of languages than {first.name}.")
        for key, value in state.items():
            sums[key] += weight / total * value
    return config, sums, first


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = argparse.ArgumentParser(
        prog="python -m transformer.mix", description="Write the weighted mean of models."
    )
    options.add_argument(
        "parts", nargs="+", metavar="MODEL=WEIGHT", help="shipped models or folders with a common ancestor"
    )
    options.add_argument("--out", required=True, type=Path)
    given = options.parse_args(argv)
    parts = []
    for part in given.parts:
        name, _, weight = part.rpartition("=")
        try:
            parts.append((name, float(weight)))
        except ValueError:
            raise ValueError(f"A part is written MODEL=WEIGHT, with a number; got {part}.") from None
    config, state, first = mixed(parts)
    save_model(given.out, config, state)
    for name in ("tokenizer.model", FILE):  # both are of the vocabulary
        if (first / name).is_file():
            shutil.copyfile(first / name, given.out / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
