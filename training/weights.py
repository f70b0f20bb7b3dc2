"""One format for trained weights: a folder with `config.json` and `model.safetensors`."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

Kind = TypeVar("Kind")
Module = TypeVar("Module", bound=nn.Module)
LARGEST, DEEPEST = 10_000_000, 1000  # of a size and of a number of layers in a configuration that came as a file


def save_model(
    folder: Path | str, config: dict[str, Any], state: dict[str, Tensor], dtype: torch.dtype = torch.float16
) -> None:
    """Writes config.json and model.safetensors; floating-point tensors are stored as `dtype`.

    Raises ValueError when a value does not fit into `dtype` (fp16 ends at 65,504).
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, value in state.items():
        value = value.detach().cpu()
        if value.is_floating_point():
            small = value.to(dtype)
            if not torch.isfinite(small).all():
                raise ValueError(f"The weight '{name}' holds a value that is not finite in {dtype}; it was not saved.")
            value = small
        tensors[name] = value.contiguous().clone()
    temporary = folder / "model.safetensors.part"
    save_file(tensors, temporary)
    temporary.chmod(0o644)  # safetensors writes for the owner alone
    os.replace(temporary, folder / "model.safetensors")
    save_config(folder, config)


def save_config(folder: Path, config: dict[str, Any]) -> None:
    """Writes config.json into an existing folder."""
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load_model(folder: Path | str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Reads a folder written by `save_model`: the config and the weights, floating-point ones as float32.

    Raises ValueError with one sentence when a file is missing, cut off, or not of this format.
    """
    folder = Path(folder)
    config_file, weights_file = folder / "config.json", folder / "model.safetensors"
    for file in (config_file, weights_file):
        if not file.is_file():
            raise ValueError(f"'{folder.name}' is not a model folder: {file.name} is missing.")
    config = load_config(folder)
    state = read_tensors(weights_file)
    for name, value in state.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise ValueError(f"The weight '{name}' in '{folder.name}' is not finite; these weights are of no use.")
    return config, {k: v.float() if v.is_floating_point() else v for k, v in state.items()}


def read_tensors(file: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file. Raises ValueError with one sentence when it is damaged or cannot be read."""
    try:
        return load_file(file)
    except Exception as error:  # of safetensors, of the system, and of torch where a header lies about its tensors
        raise ValueError(
            f"{file.name} in '{file.parent.name}' is damaged or cut off; copy it again ({error})."
        ) from None


def load_config(folder: Path) -> dict[str, Any]:
    """The object in config.json. Raises ValueError with one sentence when there is none."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"'{folder.name}' is not a model folder: config.json is missing.") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"config.json in '{folder.name}' is not readable JSON ({error}).") from None
    if not isinstance(config, dict):
        raise ValueError(f"config.json in '{folder.name}' must hold one JSON object.")
    return config


def from_json(kind: type[Kind], values: Any) -> Kind:
    """A config dataclass out of a JSON object that may come from anywhere.

    kind: a dataclass whose fields have defaults; values: what the file holds.
    Raises ValueError with one sentence for what is no object, unknown fields, values of another type than the
    default's, and sizes that no network has.
    """
    if not isinstance(values, dict):
        raise ValueError(f"The config of {kind.__name__} must be a JSON object with its fields.")
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - set(defaults))
    if unknown:
        raise ValueError(
            f"Unknown field '{unknown[0][:40]}' in the config of {kind.__name__}; known are: "
            f"{', '.join(sorted(defaults))}."
        )
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    for name, value in fields.items():
        _check_field(kind.__name__, name, value, defaults[name])
    return kind(**fields)


def _check_field(kind: str, name: str, value: Any, default: Any) -> None:
    types = (int, float) if isinstance(default, float) else (type(default),)
    parts = value if isinstance(value, tuple) else (value,)
    kinds = [type(part) for part in default] if isinstance(default, tuple) and default else list(types)
    fits = isinstance(value, tuple) == isinstance(default, tuple) and all(type(part) in kinds for part in parts)
    if default is not None and not fits:
        raise ValueError(
            f"The field '{name}' in the config of {kind} has to be like {default!r}, not {str(value)[:40]!r}."
        )
    most = DEEPEST if "layers" in name or "levels" in name else LARGEST
    if any(isinstance(part, (int, float)) and not abs(part) <= most for part in parts):
        raise ValueError(
            f"The field '{name}' in the config of {kind} is {str(value)[:40]}; at most {most:,} is possible."
        )


def build(make: Callable[[], Module], state: dict[str, Tensor], what: str) -> Module:
    """A module with these weights, which is made only when every name and shape fits.

    make: builds the module. Raises ValueError as `fill` does, before memory is taken for what a hostile configuration
    promises.
    """
    try:
        with torch.device("meta"):
            plan = make()
    except ValueError:
        raise
    except Exception as error:  # sizes that are allowed one by one, and together are more than a tensor can have
        raise ValueError(f"The configuration describes no {what} that can be built ({error}).") from None
    _compare(plan, state, what)
    module = make()
    module.load_state_dict(state)
    return module


def fill(module: nn.Module, state: dict[str, Tensor], what: str) -> None:
    """Loads `state` into `module`, after comparing every name and shape.

    Raises ValueError that names the first difference: a silent partial load is impossible.
    """
    _compare(module, state, what)
    module.load_state_dict(state)


def _compare(module: nn.Module, state: dict[str, Tensor], what: str) -> None:
    own = module.state_dict()
    missing, unknown = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
    if missing:
        raise ValueError(f"The weights do not fit {what}: '{missing[0]}' is missing ({len(missing)} missing in all).")
    if unknown:
        raise ValueError(f"The weights do not fit {what}: '{unknown[0]}' is unknown ({len(unknown)} unknown in all).")
    for name, value in own.items():
        if value.shape != state[name].shape:
            raise ValueError(
                f"The weights do not fit {what}: '{name}' has shape {tuple(state[name].shape)}, "
                f"expected {tuple(value.shape)}."
            )
