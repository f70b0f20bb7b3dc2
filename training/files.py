"""Files: whole or not at all where they are written, and the tables that lie beside modules."""

import json
import os
from pathlib import Path
from typing import Any


def write_atomic(file: Path, content: bytes | str) -> None:
    """Writes under another name and renames at the end; text is written as UTF-8. The folder is made if need be.

    Raises `OSError` when the disk refuses it; then what stood there before stays, and nothing is left beside it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def read_table(module: str) -> Any:
    """What the JSON file holds that lies beside a module, under its name. module: its `__file__`."""
    return json.loads(Path(module).with_suffix(".json").read_text(encoding="utf-8"))
