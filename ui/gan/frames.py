"""What a laboratory shows, in a form that the page's scripts read: tensors as base64 of float32, tables by column."""

import math
from typing import Any

from torch import Tensor

from ui import figures


def floats(values: Any) -> str:
    """A tensor's or other numbers as `figures.floats` packs them."""
    return figures.floats(values.detach().numpy() if isinstance(values, Tensor) else values)


def without_nan(value: Any) -> Any:
    """A value without NaN, which JSON does not know: None in its place."""
    if isinstance(value, dict):
        return {name: without_nan(part) for name, part in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def columns(rows: list[dict[str, float]]) -> dict[str, str]:
    """A table, one dict a row, as base64 by column."""
    return {name: floats([row[name] for row in rows]) for name in rows[0]} if rows else {}


def encode(picture: dict[str, Any]) -> dict[str, Any]:
    """A picture of `gan.laboratory.Laboratory` for the page."""
    frame = {
        name: floats(value) if isinstance(value, Tensor) else without_nan(value) for name, value in picture.items()
    }
    return {**frame, "rows": columns(picture["rows"])}
