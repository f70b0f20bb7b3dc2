"""The weighted mean of models that went on from the same weights (Wortsman et al. 2022, "Model soups" and "Robust
fine-tuning of zero-shot models").

    python -m lab.translator.mix BEFORE=1 RUN=1 --out OUT

Fine-tuned weights fit their text better and other text at times worse; on the straight line back to where they came
from lie models that do well on both. Models that were trained separately from the start cannot be mixed: the mean of
their weights does not translate at all. A part may be a run: it counts as the mean of its last checkpoints.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch
from torch import Tensor

from training import assets
from training.arguments import CommandLine, a_folder_to_write
from training.checkpoint import average_checkpoints, list_checkpoints
from training.command import one_sentence
from training.run import Run
from training.weights import load_config, load_model, save_model
from transformer.shortlist import FILE

LAST = 3  # checkpoints of a run that count, or as many as there are


def part_weights(name: str) -> tuple[Path, dict, dict[str, Tensor]]:
    """(folder with the tokenizer, config, weights) of a shipped model, a model's folder or a run."""
    folder = assets.model_or_dir(name)
    if checkpoints := list_checkpoints(folder / "checkpoints"):
        config = load_config(Run(folder).model)
        return Run(folder).model, config, average_checkpoints(folder, min(LAST, len(checkpoints)))
    return (folder, *load_model(folder))


# What two models' configurations may differ in: how they were trained, and how they search.
FREE = ("max_length", "dropout", "attention_dropout", "label_smoothing", "length_penalty", "longest_words")


def must_agree(header: dict) -> dict:
    """What of two models' configurations has to be the same."""
    network = {key: value for key, value in header["transformer"].items() if key not in FREE}
    own = {key: value for key, value in header.items() if key not in FREE}
    return {**own, "transformer": network}


def mean_weights(parts: list[tuple[str, float]]) -> tuple[dict, dict[str, torch.Tensor], Path]:
    """(config of the first, weights, folder of the first) of the mean of (model, weight), divided by the weights' sum.

    A model is the name of a shipped one, a folder, or a run. Raises `ValueError` with one sentence for weights that are
    not above 0, and for models of other sizes, vocabularies or languages than the first.
    """
    if any(not weight > 0 for _, weight in parts):
        raise ValueError("The weight of each model has to be above 0.")
    total, first = sum(weight for _, weight in parts), Path()
    config: dict = {}
    sums: dict[str, Tensor] = {}
    for name, weight in parts:
        folder, header, state = part_weights(name)
        if not sums:
            config, first, sums = header, folder, {key: torch.zeros_like(value) for key, value in state.items()}
        vocabularies = [(one / "tokenizer.model").read_bytes() for one in (folder, first)]
        if must_agree(header) != must_agree(config) or vocabularies[0] != vocabularies[1]:
            raise ValueError(f"{folder.name} has another size, vocabulary or pair of languages than {first.name}.")
        for key, value in state.items():
            sums[key] += weight / total * value
    return config, sums, first


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = CommandLine(prog="python -m lab.translator.mix", description="Write the weighted mean of models.")
    parser.add_argument(
        "parts", nargs="+", metavar="MODEL=WEIGHT", help="shipped models, folders or runs with a common ancestor"
    )
    parser.add_argument("--out", required=True, type=a_folder_to_write)
    options = parser.parse_args(argv)
    parts = []
    for part in options.parts:
        name, _, weight = part.rpartition("=")
        try:
            parts.append((name, float(weight)))
        except ValueError:
            raise ValueError(f"A part is written MODEL=WEIGHT, with a number; got {part}.") from None
    config, state, first = mean_weights(parts)
    save_model(options.out, config, state)
    for name in ("tokenizer.model", FILE):  # both are of the vocabulary
        if (first / name).is_file():
            shutil.copyfile(first / name, options.out / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
