"""Data that visitors bring for a training: what was chosen, checks of it, and copies into the run's folder."""

import functools
import gzip
import zlib
from pathlib import Path
from typing import NamedTuple

from ui.train.survey import Survey
from ui.train.survey import survey as read_survey

BUNDLE, UPLOAD, LOCAL = "bundled", "upload", "folder"
MAX_BYTES = 2 * 2**30
MAX_TABLE = 200 * 2**20
FILE_TYPES = [".tsv", ".csv", ".gz", ".zip", ".mrg"]


class Data(NamedTuple):
    """Where the data of a training come from.

    Attributes:
        kind: BUNDLE, UPLOAD or LOCAL.
        upload: path of the uploaded file.
        folder: what was typed as a folder or file of this machine.
        source, target: columns of a table.
    """

    kind: str
    upload: str | None = None
    folder: str | None = ""
    source: str = ""
    target: str = ""

    @property
    def place(self) -> str:
        """The folder or file of this machine as a command names it, "" where none is named."""
        return str(self.path) if (self.folder or "").strip() else ""

    @property
    def path(self) -> Path:
        """The same as a path."""
        return Path((self.folder or "").strip()).expanduser()


def table_suffix(upload: str) -> str:
    """.tsv, .csv, .tsv.gz or .csv.gz."""
    name = Path(upload).name.lower()
    return "." + ".".join(name.rsplit(".", 2)[-2:] if name.endswith(".gz") else [name.rsplit(".", 1)[-1]])


def trees_suffix(upload: str) -> str:
    """.mrg or .mrg.gz. Raises ValueError for another ending."""
    name = Path(upload).name.lower()
    for suffix in (".mrg", ".mrg.gz"):
        if name.endswith(suffix):
            return suffix
    raise ValueError(f"{Path(upload).name} has none of the endings .mrg, .mrg.gz.")


@functools.lru_cache(maxsize=8)
def _survey(path: str, mtime: float, source: str, target: str) -> Survey:
    return read_survey(path, source, target)


def survey(data: Data) -> Survey | None:
    """What the chosen columns of a table hold, None where no table is chosen. Read once while the file stays as it is.

    Raises ValueError or FileNotFoundError with one sentence for a table that cannot be read.
    """
    table = table_of(data)
    if table is None or not (data.source and data.target):
        return None
    if table.suffix == ".gz":
        check_size_inside(table)
    return _survey(str(table), table.stat().st_mtime, data.source, data.target)


def table_of(data: Data) -> Path | None:
    """The file whose pairs are learned from: the upload, or that of a folder; None while there is none."""
    if data.kind == UPLOAD:
        return Path(data.upload) if data.upload else None
    return table_in(data.path) if data.kind == LOCAL and data.place else None


def table_in(path: Path) -> Path:
    """The file itself, or the folder's train.tsv or train.csv. Raises FileNotFoundError."""
    from transformer.data import find_split

    table = path if path.is_file() else find_split(path, "train")
    if table is None:
        raise FileNotFoundError(f"The folder {path.name!r} holds no train.tsv or train.csv.")
    return table


def check_size_inside(file: Path, most: int = MAX_TABLE) -> None:
    """Raises ValueError when a gzipped table is larger than `most` bytes unpacked; reading finds damaged ones."""
    size = 0
    try:
        with gzip.open(file) as stream:
            while chunk := stream.read(2**20):
                size += len(chunk)
                if size > most:
                    raise ValueError(
                        f"{file.name} unpacks to more than {most / 2**20:.0f} MiB; upload a smaller table."
                    )
    except (OSError, EOFError, zlib.error):
        return
