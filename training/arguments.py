"""The arguments that commands have in common, each checked before a command begins.

    parser = CommandLine(prog="python -m ...", description="...")
    parser.add_argument("--beam", type=integer(1, MAX_BEAM), default=4)
    parser.add_argument("--data", type=an_existing_file, required=True)
    parser.add_argument("--out", type=a_folder_to_write, required=True)
    parser.add_argument("--device", type=a_device, default="auto")

A function here turns the text of one argument into its value, and refuses with one sentence what the command could not
use. `training.command.one_sentence` prints it and makes it the exit status 2. Nothing heavy is imported, so that
`--help` answers at once.
"""

import argparse
import functools
import math
import os
import typing
from collections.abc import Callable, Mapping, Set
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Any, NoReturn

MAX_SEED = 2**63 - 1  # of torch's generators
MAX_BEAM = 256  # hypotheses at each step; the papers have 4 and 21


def in_words(error: OSError) -> str:
    """What the system says, without its number, and of which file: one sentence."""
    if error.strerror is None:
        return str(error)
    return f"{error.strerror}: '{str(error.filename)[:200]}'" if error.filename is not None else error.strerror


class Misuse(ValueError):
    """A command line that cannot be used; the message is one sentence."""


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows a description as it stands, and the default of every option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        has_default = action.default not in (None, []) and action.default is not False
        return super()._get_help_string(action) if has_default else action.help


class CommandLine(argparse.ArgumentParser):
    """`argparse.ArgumentParser`, whose errors are raised as `Misuse` instead of ending the process."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_Help, **options)

    def error(self, message: str) -> NoReturn:
        """Raises `Misuse`."""
        raise Misuse(message)


def _refuse(sentence: str) -> NoReturn:
    raise argparse.ArgumentTypeError(sentence)


def integer(least: int = 0, most: int = 10**9) -> Callable[[str], int]:
    """A whole number from `least` to `most`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            _refuse(f"a whole number is needed, not '{text[:40]}'")
        if not least <= value <= most:
            _refuse(f"it goes from {least:,} to {most:,}, but is {text[:40]}")
        return value

    return read


def a_number(least: float = -math.inf, most: float = math.inf, above: float = -math.inf) -> Callable[[str], float]:
    """A finite number from `least` to `most`, and more than `above`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            _refuse(f"a number is needed, not '{text[:40]}'")
        if not math.isfinite(value):
            _refuse(f"a finite number is needed, not '{text[:40]}'")
        if not (least <= value <= most and value > above):
            bounds = [
                *([f"more than {above:g}"] if above > -math.inf else []),
                *([f"at least {least:g}"] if least > -math.inf else []),
                *([f"at most {most:g}"] if most < math.inf else []),
            ]
            _refuse(f"it has to be {' and '.join(bounds)}, but is {text[:40]}")
        return value

    return read


def a_boolean(text: str) -> bool:
    """True for true, yes, on and 1, False for false, no, off and 0."""
    if text.lower() in ("true", "yes", "1", "on"):
        return True
    if text.lower() in ("false", "no", "0", "off"):
        return False
    _refuse(f"'{text}' is neither true nor false")


a_seed = integer(0, MAX_SEED)


def a_device(text: str) -> str:
    """The word auto, or the name of a device that this machine has."""
    from training.devices import choose_device

    try:
        choose_device(text)
    except ValueError as error:
        _refuse(str(error))
    return text


def an_existing_file(text: str) -> Path:
    """A file that is there."""
    if os.path.isdir(text):
        _refuse(f"'{text}' is a folder; name a file")
    if not os.path.isfile(text):
        _refuse(f"there is no file '{text}'")
    return Path(text)


def an_existing_folder(text: str) -> Path:
    """A folder that is there."""
    if os.path.isfile(text):
        _refuse(f"'{text}' is a file; name a folder")
    if not os.path.isdir(text):
        _refuse(f"there is no folder '{text}'")
    return Path(text)


def something_existing(text: str) -> Path:
    """A file or folder that is there."""
    if not os.path.exists(text):
        _refuse(f"there is no file or folder '{text}'")
    return Path(text)


def a_folder_to_write(text: str) -> Path:
    """A folder, or a place where one can be made."""
    if os.path.exists(text) and not os.path.isdir(text):
        _refuse(f"'{text}' is a file, but a folder is written there; choose another name")
    return _writable(text)


def a_file_to_write(*endings: str) -> Callable[[str], Path]:
    """A file, or a place where one can be made. endings: what its name may end with; none = anything."""

    def read(text: str) -> Path:
        if os.path.isdir(text):
            _refuse(f"'{text}' is a folder, but a file is written there; choose another name")
        if endings and not text.lower().endswith(endings):
            _refuse(f"the name of the file has to end in {' or '.join(endings)}, but is '{Path(text).name}'")
        return _writable(text)

    return read


def _writable(text: str) -> Path:
    """The path, after a look at the folders that it leads through."""
    if not text or "\0" in text:
        _refuse("a name cannot be empty or hold the character 0")
    path = Path(text)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            _refuse(f"'{text}' is a link that leads nowhere")
    except OSError as error:
        _refuse(in_words(error))
    present = next((one for one in (path, *path.absolute().parents) if one.exists()), Path("/"))
    if present != path and not present.is_dir():
        _refuse(f"'{present}' is a file, so nothing can be written below it")
    if not os.access(present, os.W_OK):
        _refuse(f"'{present}' may not be written to")
    return path


def expect(name: str, value: Any, kinds: type | tuple[type, ...], what: str) -> None:
    """Raises TypeError, which names the argument of a Python call, unless `value` is of one of `kinds`.

    what: what it has to be, such as "a text". A bool counts as a number only where `kinds` has bool.
    """
    types = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise TypeError(f"{name} has to be {what}, but is of type {type(value).__name__}.")


# What a declared type admits, and how it is told.
KINDS: dict[Any, tuple[type | tuple[type, ...], str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    tuple: ((tuple, list), "a pair of numbers"),
    frozenset: (Set, "a set"),
    type(None): (type(None), "None"),
}


def expect_fields(kind: type, values: Mapping[str, Any]) -> None:
    """Raises TypeError, as `expect` does, unless values are of the types that a dataclass declares for these fields.

    kind: the dataclass; values: by the names of its fields; what else there is, is left to the dataclass.
    """
    types = _field_types(kind)
    for name, value in values.items():
        if name in types:
            expect(name, value, *types[name])


@functools.lru_cache
def _field_types(kind: type) -> dict[str, tuple[tuple[type, ...], str]]:
    fields: dict[str, tuple[tuple[type, ...], str]] = {}
    for name, hint in typing.get_type_hints(kind).items():
        types: list[type] = []
        words: list[str] = []
        for one in typing.get_args(hint) if isinstance(hint, UnionType) else (hint,):
            one = typing.get_origin(one) or one
            own, word = KINDS.get(one, (one, f"a {one.__name__}"))
            types += own if isinstance(own, tuple) else [own]
            words.append(word)
        fields[name] = tuple(types), " or ".join(words)
    return fields
