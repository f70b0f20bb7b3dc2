"""Stand-ins for the released VITON-HD checkpoints: every key and shape of the real ones, values from a formula.

The real files may not be redistributed. `released/shapes.json` lists their keys and shapes; `released/expected.npz`
holds what the released networks answer to `example_inputs()` with these values.
"""

import json
import zlib
from pathlib import Path

import numpy as np
import torch

FOLDER = Path(__file__).parent / "released"


def wave(key, shape, scale):
    """Hash noise in [-scale, scale), different for every key."""
    count = int(np.prod(shape)) if shape else 1
    values = np.sin(np.arange(count, dtype=np.float64) * 12.9898 + zlib.crc32(key.encode()) % 10007) * 43758.5453
    values = (values - np.floor(values)) * 2 - 1
    return torch.tensor(values * scale, dtype=torch.float32).reshape(shape)


def checkpoint(name):
    """The state dict of one of seg_final.pth, gmm_final.pth, alias_final.pth."""
    shapes, state = json.loads((FOLDER / "shapes.json").read_text())[name], {}
    for key, shape in shapes.items():
        leaf = key.rsplit(".", 1)[-1]
        if leaf == "num_batches_tracked":
            state[key] = torch.tensor(1)
        elif leaf == "running_var":
            state[key] = 1 + 0.5 * wave(key, shape, 1.0)
        elif leaf == "noise_scale":
            state[key] = torch.zeros(shape)
        elif leaf in ("running_mean", "bias"):
            state[key] = wave(key, shape, 0.05)
        elif leaf == "weight" and len(shape) == 1:
            state[key] = 1 + wave(key, shape, 0.1)
        elif leaf in ("weight", "weight_orig"):
            state[key] = wave(key, shape, (3.0 / int(np.prod(shape[1:]))) ** 0.5)
    for key in [k for k in state if k.endswith("weight_orig")]:
        matrix = state[key].flatten(1)
        v = torch.nn.functional.normalize(torch.ones(matrix.shape[1]), dim=0)
        for _ in range(30):
            u = torch.nn.functional.normalize(matrix @ v, dim=0)
            v = torch.nn.functional.normalize(matrix.t() @ u, dim=0)
        state[key[:-4] + "u"], state[key[:-4] + "v"] = u, v
    return {key: state[key] for key in shapes}


def example_inputs():
    """Inputs of the three networks, as recorded with the expected answers."""
    label = (wave("labels", (512, 384), 1.0) + 1) / 2
    seven = torch.nn.functional.one_hot((label * 7).long().clamp(0, 6), 7).permute(2, 0, 1)[None].float()
    misalign = seven[:, 2:3] * (wave("misalign", (1, 1, 512, 384), 1.0) > 0.3)
    divided = torch.cat((seven, misalign), 1)
    divided[:, 2:3] -= misalign
    return {
        "seg": wave("seg.input", (1, 21, 256, 192), 1.0),
        "person": wave("gmm.person", (1, 7, 256, 192), 1.0),
        "cloth": wave("gmm.cloth", (1, 3, 256, 192), 1.0),
        "alias": wave("alias.input", (1, 9, 512, 384), 1.0),
        "seven": seven,
        "divided": divided,
        "misalign": misalign,
    }


def expected():
    return np.load(FOLDER / "expected.npz")
