"""The ALIAS generator against a direct transcription of its published architecture: same weights, same answer.

    python -m benchmarks.alias --threads 2

Each variant runs in a process of its own, so that its peak memory (the largest resident set of the whole process, with
interpreter and weights) is its own. Prints a JSON object per variant and one with the ratios ours / direct.

The transcription follows section 3.4, A.2 and Figs. 4, 5 and 12 one step after the other: full maps of gamma and beta
for every layer, the two regions standardised one after the other over the whole picture, torch's own spectral norm.
"""

import argparse
import json
import resource
import sys
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import spectral_norm

from training.arguments import CommandLine, integer
from training.command import one_sentence
from vton.networks import alias_inference
from vton.networks.alias import AliasGenerator, gaussian_noise, misalignment
from vton.networks.config import LITE, PAPER, AliasConfig

CONFIGS = {"paper": PAPER.alias, "lite": LITE.alias}


class DirectNorm(nn.Module):
    """ALIAS normalisation, Fig. 5."""

    def __init__(self, masked: bool, channels: int, labels: int, hidden: int):
        super().__init__()
        self.masked = masked
        self.noise_scale = nn.Parameter(torch.zeros(channels))
        self.conv_shared = nn.Sequential(nn.Conv2d(labels, hidden, 3, padding=1), nn.ReLU())
        self.conv_gamma = nn.Conv2d(hidden, channels, 3, padding=1)
        self.conv_beta = nn.Conv2d(hidden, channels, 3, padding=1)
        self.standardise = nn.InstanceNorm2d(channels, affine=False)

    def region(self, h, mask):
        """One region: the rest is filled with its mean, so that instance normalisation sees the region alone."""
        size = mask.sum((2, 3), keepdim=True)
        size = torch.where(size == 0, torch.ones_like(size), size)
        mean = (h * mask).sum((2, 3), keepdim=True) / size
        whole = h * mask + (1 - mask) * mean
        return self.standardise(whole) * torch.sqrt(size / (h.shape[2] * h.shape[3]))

    def forward(self, h, segmentation, misalign, noise):
        """h (B,C,H,W), segmentation and misalign maps of its size -> the modulated h."""
        if noise is not None:
            h = h + noise * self.noise_scale.view(1, -1, 1, 1)
        normalised = self.region(h, 1 - misalign) + self.region(h, misalign) if self.masked else self.standardise(h)
        shared = self.conv_shared(segmentation)
        gamma = self.conv_gamma(shared)
        beta = self.conv_beta(shared)
        return normalised * (1 + gamma) + beta


class DirectBlock(nn.Module):
    """ALIAS residual block, Fig. 4 b."""

    def __init__(self, inputs: int, outputs: int, labels: int, hidden: int, masked: bool):
        super().__init__()
        middle = min(inputs, outputs)
        self.conv_0 = spectral_norm(nn.Conv2d(inputs, middle, 3, padding=1))
        self.conv_1 = spectral_norm(nn.Conv2d(middle, outputs, 3, padding=1))
        self.norm_0 = DirectNorm(masked, inputs, labels, hidden)
        self.norm_1 = DirectNorm(masked, middle, labels, hidden)
        self.learned_shortcut = inputs != outputs
        if self.learned_shortcut:
            self.conv_s = spectral_norm(nn.Conv2d(inputs, outputs, 1, bias=False))
            self.norm_s = DirectNorm(masked, inputs, labels, hidden)

    def forward(self, x, segmentation, misalign, noise):
        """x (B,C,H,W) -> (B,outputs,H,W); the maps are brought to its size."""
        size = x.shape[2:]
        segmentation = F.interpolate(segmentation, size=size, mode="nearest")
        misalign = F.interpolate(misalign, size=size, mode="nearest")

        def plane():
            return None if noise is None else noise((len(x), 1, *size))

        shortcut = self.conv_s(self.norm_s(x, segmentation, misalign, plane())) if self.learned_shortcut else x
        dx = self.conv_0(F.leaky_relu(self.norm_0(x, segmentation, misalign, plane()), 0.2))
        dx = self.conv_1(F.leaky_relu(self.norm_1(dx, segmentation, misalign, plane()), 0.2))
        return shortcut + dx


class DirectGenerator(nn.Module):
    """ALIAS generator, Fig. 12. The names are those of vton.networks.alias, so that one state dict serves both."""

    def __init__(self, config: AliasConfig):
        super().__init__()
        self.config = config
        channels = config.channels()
        self.blocks = ["head_0", "G_middle_0", "G_middle_1"] + [f"up_{i}" for i in range(config.levels - 3)]
        previous = 0
        for level, (name, width) in enumerate(zip(self.blocks, channels)):
            masked = level < config.masked
            injected = config.injected if level else channels[0]
            setattr(self, f"conv_{level}", nn.Conv2d(config.inputs, injected, 3, padding=1))
            setattr(self, name, DirectBlock(previous + injected, width, config.classes + masked, config.hidden, masked))
            previous = width
        self.conv_img = nn.Conv2d(previous, 3, 3, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")

    def forward(self, x, segmentation, divided, misalign, noise=None):
        """The picture (B,3,H,W) in [-1, 1]; arguments as in `vton.networks.alias.AliasGenerator`."""
        height, width = x.shape[2:]
        levels = self.config.levels
        sizes = [(height // 2 ** (levels - 1 - i), width // 2 ** (levels - 1 - i)) for i in range(levels)]
        inputs = [F.interpolate(x, size=size, mode="nearest") for size in sizes]
        features = [getattr(self, f"conv_{i}")(inputs[i]) for i in range(levels)]
        h = features[0]
        for level, name in enumerate(self.blocks):
            if level:
                h = torch.cat((self.up(h), features[level]), 1)
            h = getattr(self, name)(h, divided if level < self.config.masked else segmentation, misalign, noise)
        return torch.tanh(self.conv_img(F.leaky_relu(h, 0.2)))


VARIANTS = {"direct": DirectGenerator, "ours": AliasGenerator}


def inputs(size: tuple[int, int], seed: int = 4) -> dict[str, torch.Tensor]:
    """I_a, P and W(c, theta) (1,9,H,W), S, S_div and M_misalign of a draped person, the cloth warped a little wrong."""
    from vton import labels
    from vton.data.draped.people import load_people
    from vton.networks.warping import sampling_grid, warp

    image, parse, _, pair = load_people(size).sample(seed, np.random.default_rng(seed))
    seven = torch.from_numpy(labels.one_hot(labels.thirteen_to_7(labels.lip_to_13(parse)), 7))[None]
    cloth_mask = torch.from_numpy(pair.truth_mask).float()[None, None]
    theta = torch.full((1, 50), 0.02)
    misalign, divided = misalignment(seven, warp(cloth_mask, sampling_grid(theta, size)))
    picture = torch.from_numpy(image.transpose(2, 0, 1) / 127.5 - 1).float()[None]
    x = torch.cat((picture * (1 - seven[:, 2:3]), picture.flip(1), picture * cloth_mask), 1)
    return {"x": x, "segmentation": seven, "divided": divided, "misalign": misalign}


def peak_mib() -> float:
    """Largest resident set of this process so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux ru_maxrss still remembers the process that started this one
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


@torch.no_grad()
def build(variant: str, config: AliasConfig) -> Any:
    """One variant in evaluation mode with random weights that follow from their names, so that both have the same.

    Nothing is read from a file: that would count as memory twice.
    """
    network = VARIANTS[variant](config).eval()
    state = network.state_dict()
    for name, value in state.items():
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        if name.endswith("noise_scale"):
            value.fill_(0.1)
        elif value.dim() > 1:
            value.normal_(0, value[0].numel() ** -0.5, generator=generator)
        elif not name.endswith(("weight_u", "weight_v")):
            value.normal_(0, 0.05, generator=generator)
    for name, weight in state.items():
        if name.endswith("weight_orig"):  # the largest singular value, roughly
            matrix, u, v = weight.flatten(1), state[name[:-4] + "u"], state[name[:-4] + "v"]
            v.copy_(F.normalize(matrix.sum(0), dim=0))
            u.copy_(F.normalize(matrix @ v, dim=0))
    return network


@torch.inference_mode()
def measure(variant: str, options: argparse.Namespace, arrays: dict[str, np.ndarray]) -> tuple[dict, np.ndarray]:
    """One variant in this process: seconds of each forward pass and peak memory, and the answer."""
    torch.set_num_threads(options.threads)
    size = (options.height, options.height * 3 // 4)
    network, tensors = build(variant, CONFIGS[options.config]), {k: torch.from_numpy(v) for k, v in arrays.items()}
    answer: Callable[..., Any] = partial(alias_inference.forward, network) if variant == "ours" else network
    memory, seconds, cpu_seconds = peak_mib(), [], []
    for _ in range(options.repeats):
        start, cpu = time.perf_counter(), time.process_time()
        out = answer(**tensors, noise=gaussian_noise(1) if options.noise else None)
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu)  # of all threads; does not count what other programs take
    result = {
        "variant": variant,
        "config": options.config,
        "size": f"{size[0]}x{size[1]}",
        "threads": options.threads,
        "noise": options.noise,
        "seconds": [round(s, 3) for s in seconds],
        "cpu_seconds": [round(s, 3) for s in cpu_seconds],
        "peak_mib": round(peak_mib()),
        "peak_mib_before": round(memory),
    }
    return result, out.numpy()


def compare(options: argparse.Namespace) -> None:
    """Both variants in processes of their own, then the ratios."""
    arrays = {k: v.contiguous().numpy() for k, v in inputs((options.height, options.height * 3 // 4)).items()}
    results, answers = {}, {}
    for variant in VARIANTS:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            results[variant], answers[variant] = process.submit(measure, variant, options, arrays).result()
        print(json.dumps(results[variant]), flush=True)
    direct, ours = results["direct"], results["ours"]
    print(
        json.dumps(
            {
                "time_ratio": round(min(ours["seconds"]) / min(direct["seconds"]), 3),
                "cpu_time_ratio": round(min(ours["cpu_seconds"]) / min(direct["cpu_seconds"]), 3),
                "memory_ratio": round(ours["peak_mib"] / direct["peak_mib"], 3),
                "largest_difference": float(np.abs(answers["direct"] - answers["ours"]).max()),
                "network": asdict(CONFIGS[options.config]),
            }
        ),
        flush=True,
    )


@one_sentence
def main(argv: list[str] | None = None) -> None:
    """The command line."""
    parser = CommandLine(description=__doc__)
    parser.add_argument("--threads", type=integer(1, 1024), default=2)
    parser.add_argument("--config", choices=list(CONFIGS), default="paper")
    parser.add_argument("--height", type=integer(64, 4096), default=1024, help="the width is three quarters of it")
    parser.add_argument("--repeats", type=integer(1), default=2)
    parser.add_argument("--noise", type=integer(0, 1), default=1)
    compare(parser.parse_args(argv))


if __name__ == "__main__":
    raise SystemExit(main())
