"""Where the data of a training come from: what a visitor may bring, checks of it, and the commands that prepare it."""

from __future__ import annotations

import functools
import gzip
import shutil
import zlib
from pathlib import Path
from typing import Any

from training.unpack import unpack
from transformer.survey import Survey
from transformer.survey import survey as read_survey

BUNDLED, UPLOAD, LOCAL = "bundled", "upload", "folder"
MOST_UNPACKED = 2 * 2**30
MOST_TABLE = 200 * 2**20
FILE_TYPES = [".tsv", ".csv", ".gz", ".zip", ".mrg"]
UPLOADS = {  # what each network reads; the others read photographs
    "transformer": "Table with two columns of text (TSV or CSV)",
    "gan": "Handwritten digits (IDX pictures, .gz)",
    "parse": "Trees in Penn Treebank brackets (.mrg)",
}
PHOTOGRAPHS = "Photographs in the VITON-HD layout (zip)"


def data_choices(network: str, local: bool) -> list[tuple[str, str]]:
    """Where the data of a network may come from, as (label, key). local: visitors may name folders."""
    found = {
        "transformer": [("A small grammar that comes with the page", BUNDLED), ("My own table: two columns", UPLOAD)],
        "gan": [("Points drawn from a formula", BUNDLED), ("My own handwritten digits", UPLOAD)],
        "parse": [("My own trees", UPLOAD)],
        "garment": [("Drawn garments", BUNDLED)],
    }.get(network, [("Drawn people", BUNDLED), ("My own photographs (zip)", UPLOAD)])
    return found + ([("A folder or file on this machine", LOCAL)] if local else [])


def upload_label(network: str) -> str:
    """What a visitor may bring for a network."""
    return UPLOADS.get(network, PHOTOGRAPHS)


def data_commands(
    network: str, data: str, upload: str | None, folder: str, source: str, target: str, run: Path
) -> tuple[list[list[str]], dict[str, Any]]:
    """The commands that have to run before the training, and the recipe's fields that name its data.

    Nothing is copied yet: the paths are those that `bring_data` will make. Raises ValueError for what is missing.
    """
    folder = str(Path((folder or "").strip()).expanduser()) if (folder or "").strip() else ""
    # Two columns are one direction, also where the preset has several of its own.
    words = (
        {"source": source, "target": target, "directions": ""} if network == "transformer" and data != BUNDLED else {}
    )
    if words and not (source and target):
        raise ValueError("Choose the column of the source and the column of the target.")
    if data == BUNDLED:
        return [], (
            {"data": "grammar", "source": "en", "target": "de", "directions": ""} if network == "transformer" else {}
        )
    if data == UPLOAD and not upload:
        what = {"transformer": "a table", "gan": "a file of digits", "parse": "a file of trees"}.get(network, "a zip")
        raise ValueError(f"Upload {what} first.")
    if data == LOCAL and not folder:
        raise ValueError("Write the path of a folder or file on this machine.")
    if network == "transformer":
        table = str(run / "data" / f"table{table_suffix(upload)}") if data == UPLOAD and upload else folder
        return [], {"data": table, **words}
    if network in ("gan", "parse"):
        inside = run / "data" / (f"train{trees_suffix(upload)}" if network == "parse" and upload else "")
        return [], {"data": str(inside) if data == UPLOAD else folder}
    if network == "garment":
        return [], {"data": folder}
    if data == LOCAL and folder.endswith(".npz"):
        return [], {"pack": folder}
    photos, prepared = (str(run / "data" / "set") if data == UPLOAD else folder), run / "data" / "prepared"
    return [["python", "-m", "vton.prepare", photos, "--out", str(prepared)]], {"pack": str(prepared / "pack.npz")}


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
def _survey(path: str, changed: float, source: str, target: str) -> Survey:
    return read_survey(path, source, target)


def survey(data: str, upload: str | None, folder: str, source: str, target: str) -> Survey | None:
    """What the chosen columns of a table hold, None where no table is chosen. Read once while the file stays as it is.

    Raises ValueError or FileNotFoundError with one sentence for a table that cannot be read.
    """
    table = table_of(data, upload, folder)
    if table is None or not (source and target):
        return None
    if table.suffix == ".gz":
        check_unpacked_size(table)
    return _survey(str(table), table.stat().st_mtime, source, target)


def table_of(data: str, upload: str | None, folder: str) -> Path | None:
    """The file whose pairs are learned from: the upload, or that of a folder; None while there is none."""
    if data == UPLOAD:
        return Path(upload) if upload else None
    if data != LOCAL or not (folder or "").strip():
        return None
    return table_in(Path(folder.strip()).expanduser())


def table_in(path: Path) -> Path:
    """The file itself, or the folder's train.tsv or train.csv. Raises FileNotFoundError."""
    from transformer.data import find_split

    table = path if path.is_file() else find_split(path, "train")
    if table is None:
        raise FileNotFoundError(f"The folder {path.name!r} holds no train.tsv or train.csv.")
    return table


def bring_data(network: str, data: str, upload: str | None, folder: str, source: str, target: str, run: Path) -> None:
    """Checks the data, and puts an upload where the command looks for it. Raises ValueError or FileNotFoundError."""
    if data == BUNDLED:
        return
    if data == UPLOAD and not upload:
        raise ValueError("Upload a file first.")
    given = Path(upload) if data == UPLOAD and upload else Path(folder.strip()).expanduser()
    if data == LOCAL and not given.exists():
        raise FileNotFoundError(f"There is no folder or file {folder.strip()!r} on this machine.")
    into = run / "data" if data == UPLOAD else None
    if network == "transformer":
        bring_table(given, source, target, into)
    elif network == "gan":
        bring_digits(given, into)
    elif network == "parse":
        bring_trees(given, into)
    elif network != "garment":
        bring_photos(network, given, into)


# Each of these checks `given` and copies it `into` the run's folder, if it is an upload; errors as in `bring_data`.


def bring_table(given: Path, source: str, target: str, into: Path | None) -> None:
    """A table of sentence pairs."""
    from transformer.data import read_parallel

    table = given if into else table_in(given)
    if table.suffix == ".gz":
        check_unpacked_size(table)
    if len(read_parallel(table, source, target)) < 2:
        raise ValueError(f"{table.name} holds one pair only; training needs at least two.")
    if into:
        _copy(given, into / f"table{table_suffix(given.name)}")


def bring_trees(given: Path, into: Path | None) -> None:
    """Trees in brackets."""
    from transformer.parsing.recipe import load_splits

    if into and given.suffix == ".gz":
        check_unpacked_size(given)
    load_splits(given)
    if into:
        _copy(given, into / f"train{trees_suffix(given.name)}")


def bring_photos(network: str, given: Path, into: Path | None) -> None:
    """People and garments in the VITON-HD layout."""
    from vton.prepare import find_set

    place = into / "set" if into else given
    if into:
        unpack(given, place, most_bytes=MOST_UNPACKED)
    if place.is_dir():
        find_set(place, garments=network in ("segmentation", "matching", "flow"))


def bring_digits(given: Path, into: Path | None) -> None:
    """Handwritten digits."""
    from gan.digits import read_digits, read_idx

    if into:
        read_idx(given)
        _copy(given, into / f"digits-images-idx3-ubyte{'.gz' if given.suffix == '.gz' else ''}")
    else:
        read_digits(given)


def _copy(upload: Path, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(upload, file)


def check_unpacked_size(file: Path, most: int = MOST_TABLE) -> None:
    """Raises ValueError when a gzipped table is larger than `most` bytes unpacked; damaged ones are told of later."""
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
