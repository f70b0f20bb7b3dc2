"""Atomic writes: a reader finds the whole file or none."""

import os
from pathlib import Path


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
