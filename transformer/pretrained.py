"""Any trained Transformer by its name or folder: a translator, or a parser, which translates into trees."""

import json
from pathlib import Path

from training import assets
from transformer.parsing.parser import Parser
from transformer.translator import Translator


def from_pretrained(name: str | Path, device: str = "auto") -> Translator:
    """A `Parser` where the folder's config.json names the tokens of trees, else a `Translator`.

    Arguments and errors as those of `Translator.from_pretrained`.
    """
    return (Parser if _writes_trees(name) else Translator).from_pretrained(name, device)


def _writes_trees(name: str | Path) -> bool:
    """False, too, for whatever `Translator.from_pretrained` will say something of."""
    try:
        folder = assets.model_or_dir(name)
        return "symbols" in json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
