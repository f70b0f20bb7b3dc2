"""One format for trained weights: a folder with `config.json` and `model.safetensors`."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn


def save_model(folder: Path | str, config: dict[str, Any], state: dict[str, Tensor],
               dtype: torch.dtype = torch.float16) -> None:
    """Writes config.json and model.safetensors; floating-point tensors are stored as `dtype`.

    Raises ValueError when a value does not fit into `dtype` (fp16 ends at 65,504).
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, value in state.items():
        value = value.detach().cpu()
        if value.is_floating_point():
            stored = value.to(dtype)
            if not torch.isfinite(stored).all():
                raise ValueError(f"The weight '{name}' holds a value that is not finite in {dtype}; it was not saved.")
            value = stored
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
    try:
        state = load_file(weights_file)
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"model.safetensors in '{folder.name}' is damaged or cut off; copy it again ({error}).") from None
    return config, {k: v.float() if v.is_floating_point() else v for k, v in state.items()}


def load_config(folder: Path) -> dict[str, Any]:
    """The object in config.json. Raises ValueError with one sentence when there is none."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"'{folder.name}' is not a model folder: config.json is missing.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"config.json in '{folder.name}' is not readable JSON ({error}).") from None
    if not isinstance(config, dict):
        raise ValueError(f"config.json in '{folder.name}' must hold one JSON object.")
    return config


def fill(module: nn.Module, state: dict[str, Tensor], what: str) -> None:
    """Loads `state` into `module`, after comparing every name and shape.

    Raises ValueError that names the first difference: a silent partial load is impossible.
    """
    own = module.state_dict()
    missing, unknown = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
    if missing:
        raise ValueError(f"The weights do not fit {what}: '{missing[0]}' is missing ({len(missing)} missing in all).")
    if unknown:
        raise ValueError(f"The weights do not fit {what}: '{unknown[0]}' is unknown ({len(unknown)} unknown in all).")
    for name, value in own.items():
        if value.shape != state[name].shape:
            raise ValueError(f"The weights do not fit {what}: '{name}' has shape {tuple(state[name].shape)}, "
                             f"expected {tuple(value.shape)}.")
    module.load_state_dict(state)
