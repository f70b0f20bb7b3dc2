"""Opens an uploaded zip without trusting it."""

import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath

MAX_FILES = 200_000
MAX_BYTES = 8 * 2**30  # unpacked
MAX_RATIO = 200  # of one file of some size; pictures and text stay far below
_CHUNK = 2**20


def unpack(file: Path | str, folder: Path, most_bytes: int = MAX_BYTES, most_files: int = MAX_FILES) -> int:
    """Unpacks a zip into the new or empty `folder`; returns the number of files. On failure nothing is left of it.

    Raises ValueError with one sentence that names the entry: no zip, damaged, absolute or `..` paths, links, encrypted,
    too many files, or more bytes than `most_bytes` (counted while writing, whatever the zip says of itself).
    """
    file, folder = Path(file), Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"The folder {folder.name!r} is not empty; nothing was unpacked into it.")
    try:
        return _unpack(file, folder, most_bytes, most_files)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, _UnpackError) or not isinstance(error, Exception):
            raise
        if isinstance(error, OSError):
            raise _UnpackError(f"{file.name} could not be unpacked ({error.strerror or error}).") from None
        # Damaged archives raise as many kinds of errors as there are places in zipfile and its decompressors.
        words = " ".join(str(error).split())[:100] or type(error).__name__
        raise _UnpackError(f"{file.name} is not a zip file, or is damaged ({words}); make it again.") from None


class _UnpackError(ValueError):
    """A sentence of this module, and not one of the libraries that it uses."""


def _unpack(file: Path, folder: Path, most_bytes: int, most_files: int) -> int:
    with zipfile.ZipFile(file) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if not entries:
            raise _UnpackError(f"{file.name} is an empty zip.")
        if len(entries) > most_files:
            raise _UnpackError(f"{file.name} holds {len(entries):,} files; at most {most_files:,} can be unpacked.")
        for entry in entries:
            _check(entry, file.name)
        if (total := sum(entry.file_size for entry in entries)) > most_bytes:
            raise _UnpackError(
                f"{file.name} would unpack to {total / 2**20:,.0f} MiB; at most {most_bytes / 2**20:,.0f} are taken."
            )
        room = most_bytes
        for entry in entries:
            target = folder.joinpath(*PurePosixPath(entry.filename).parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            room -= _write(archive, entry, target, room, file.name)
        return len(entries)


def _check(entry: zipfile.ZipInfo, name: str) -> None:
    path = PurePosixPath(entry.filename)
    place = entry.filename[:100]
    if (
        not path.parts
        or path.is_absolute()
        or ".." in path.parts
        or "\\" in entry.filename
        or ":" in path.parts[0]
        or "\0" in entry.filename
    ):
        raise _UnpackError(f"{name} holds {place!r}, a path that leads out of its folder; it was not unpacked.")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise _UnpackError(f"{name} holds the link {place!r}; a zip with links is not unpacked.")
    if entry.flag_bits & 1:
        raise _UnpackError(f"{name} is encrypted ({place!r}); make a zip without a password.")
    if entry.file_size > 2**20 and entry.file_size > MAX_RATIO * max(1, entry.compress_size):
        raise _UnpackError(
            f"{name} holds {place!r}, which grows {entry.file_size // max(1, entry.compress_size):,} times when "
            "unpacked; no picture or text does that."
        )


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, room: int, name: str) -> int:
    """Writes one entry; returns its size, which a made-up header cannot hide."""
    size = 0
    with archive.open(entry) as source, open(target, "xb") as sink:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > room or size > entry.file_size:
                raise _UnpackError(
                    f"{name} holds {entry.filename[:100]!r}, which is larger than the zip says; it was not unpacked."
                )
            sink.write(chunk)
    return size
