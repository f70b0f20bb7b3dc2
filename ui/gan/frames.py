"""What a laboratory shows, in a form that the page's scripts read: tensors as base64 of float32, tables by column."""

import math
from typing import Any

from torch import Tensor

from ui import figures


def without_nan(value: Any) -> Any:
    """A value without NaN, which JSON does not know: None in its place."""
    if isinstance(value, dict):
        return {name: without_nan(part) for name, part in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def encode(picture: dict[str, Any]) -> dict[str, Any]:
    """A picture of `gan.laboratory.Laboratory` for the page."""
    rows = picture["rows"]
    frame = {
        name: figures.floats(value.detach()) if isinstance(value, Tensor) else without_nan(value)
        for name, value in picture.items()
    }
    return {**frame, "rows": {name: figures.floats([row[name] for row in rows]) for name in rows[0]} if rows else {}}
