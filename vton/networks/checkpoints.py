"""The released VITON-HD checkpoints: seg_final.pth, gmm_final.pth, alias_final.pth (licence CC BY-NC 4.0).

They are read with `weights_only=True`, so that a file can bring tensors and nothing else. Names and shapes are compared
before anything is loaded; the widths follow from the shapes.
"""

import pickle
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from training.weights import fill
from vton.networks.alias import AliasGenerator
from vton.networks.config import PAPER
from vton.networks.segmentation import SegmentationGenerator
from vton.networks.warping import MatchingModule

FILES = {"segmentation": "seg_final.pth", "matching": "gmm_final.pth", "alias": "alias_final.pth"}


def read_state(file: Path) -> dict[str, Tensor]:
    """A .pth file's tensors by name.

    Raises ValueError with one sentence for a file that is cut off, or no set of weights.
    """
    with open(file, "rb") as stream:
        if stream.read(64).lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
            raise ValueError(
                f"{file.name} is a web page, not a checkpoint: the download asked for a confirmation; open its "
                "link in a browser."
            )
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # the reader raises many kinds, as the bytes happen to be
        # Of a file that is cut off in the format before torch 1.6 it says so, under the name of another mistake.
        if isinstance(error, pickle.UnpicklingError) and "truncated" not in str(error):
            raise ValueError(
                f"{file.name} holds more than tensors, or is no checkpoint at all; it was not opened."
            ) from None
        size = f"{file.stat().st_size / 2**20:.1f} MiB"
        raise ValueError(f"{file.name} is damaged or only partly downloaded ({size}); download it again.") from None
    if not isinstance(state, dict) or not state or not all(isinstance(v, Tensor) for v in state.values()):
        raise ValueError(f"{file.name} is not a set of named weights.")
    return state


def _rows(state: dict[str, Tensor], key: str, file: str) -> int:
    if key not in state:
        raise ValueError(f"{file} does not hold '{key}': it is not the file of that network.")
    return state[key].shape[0]


def load_segmentation(file: Path) -> SegmentationGenerator:
    """The segmentation generator out of seg_final.pth, in evaluation mode."""
    state = read_state(file)
    network = SegmentationGenerator(replace(PAPER.segmentation, width=_rows(state, "conv1.0.weight", file.name)))
    fill(network, state, "the segmentation generator")
    return network.eval()


def load_matching(file: Path) -> MatchingModule:
    """The geometric matching module out of gmm_final.pth, in evaluation mode."""
    state = read_state(file)
    network = MatchingModule(replace(PAPER.matching, width=_rows(state, "extractionA.model.0.weight", file.name)))
    fill(network, state, "the geometric matching module")
    return network.eval()


def load_alias(file: Path) -> AliasGenerator:
    """The ALIAS generator out of alias_final.pth, in evaluation mode."""
    state = read_state(file)
    names = {"head": "conv_0.weight", "hidden": "head_0.norm_0.conv_shared.0.weight", "injected": "conv_1.weight"}
    rows = {size: _rows(state, name, file.name) for size, name in names.items()}
    _rows(state, "conv_img.weight", file.name)
    width = 2 * state["conv_img.weight"].shape[1]
    levels = 3 + len({k.split(".")[0] for k in state if k.startswith("up_")})
    sizes = {"width": width, "widest": rows.pop("head") // width, "levels": levels, **rows}
    network = AliasGenerator(replace(PAPER.alias, **sizes))
    fill(network, state, "the ALIAS generator")
    return network.eval()


def load_released(folder: Path | str) -> dict[str, nn.Module]:
    """The three released networks of a folder: segmentation, matching, alias."""
    folder = Path(folder)
    loaders = {"segmentation": load_segmentation, "matching": load_matching, "alias": load_alias}
    for name in FILES.values():  # all of them are there before the first is read
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"There is no {name} in '{folder.name}'; the released files are {', '.join(FILES.values())}."
            )
    return {kind: load(folder / FILES[kind]) for kind, load in loaders.items()}
