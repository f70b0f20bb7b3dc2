"""What a laboratory shows, in a form that the page's scripts read: tensors as base64 of float32, tables by column."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from torch import Tensor


def floats(values: Any) -> str:
    """Numbers as base64 of float32, as `floats` of drawing.js reads them."""
    array = values.detach().numpy() if isinstance(values, Tensor) else np.asarray(values)
    return base64.b64encode(np.ascontiguousarray(array, dtype=np.float32).tobytes()).decode()


def known(value: Any) -> Any:
    """A value without NaN, which JSON does not know: None in its place."""
    if isinstance(value, dict):
        return {name: known(part) for name, part in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def columns(rows: list[dict[str, float]]) -> dict[str, str]:
    """A table, one dict a row, as base64 by column."""
    return {name: floats([row[name] for row in rows]) for name in rows[0]} if rows else {}


def encode(picture: dict[str, Any]) -> dict[str, Any]:
    """A picture of `gan.laboratory.Laboratory` for the page."""
    made = {name: floats(value) if isinstance(value, Tensor) else known(value) for name, value in picture.items()}
    return {**made, "rows": columns(picture["rows"])}
