"""What a model gets wrong, as `lab.translator.checklist` counted it among the texts of `assets/checklist`."""

import json
from collections.abc import Sequence
from pathlib import Path

FILE = "checklist.json"  # beside the weights


def load_summary(folder: Path) -> list[dict]:
    """The summary that lies beside the weights in `folder`; empty where their checklist was never counted."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def weak_kinds(rows: Sequence[dict], pair: str, least: float = 0.9) -> list[tuple[str, float, list[list[str]]]]:
    """The kinds of which the card's half has a smaller share right than `least`, the worst first.

    Each with its share, and (source, output) of what went wrong.
    """
    own = [(row["kind"], row["right"] / row["of"], row["wrong"]) for row in rows
           if row["half"] == "card" and row["pair"] == pair]  # fmt: skip
    return sorted((kind for kind in own if kind[1] < least), key=lambda kind: kind[1])
