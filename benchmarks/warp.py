"""The sampling grid of the thin-plate spline against a direct transcription of the published formulas.

    python -m benchmarks.warp --threads 2

The transcription does for every warp what the formulas say: it evaluates U(r) = r^2 log r^2 for every pixel and control
point and sums weights times U and the affine part, once for x and once for y. Ours is one product with a matrix that
depends on nothing but the sizes. Prints one JSON object per grid; `first` is ours with that matrix still to be made,
`seconds` with it kept, which is how a warp is used.
"""

import json
from timeit import repeat, timeit

import torch
from torch import Tensor

from training.arguments import CommandLine, integer
from training.command import one_sentence
from vton.networks.warping import EXTENT, control_grid, sampling_grid, spline_matrix


class DirectSpline:
    """Thin-plate spline of CP-VTON (Wang et al. 2018), which solves for weights and affine part apart."""

    def __init__(self, n: int, size: tuple[int, int]):
        height, width = size
        self.points = control_grid(n)
        count = n * n
        difference = self.points[:, None] - self.points[None]
        system = torch.zeros(count + 3, count + 3)
        system[:count, :count] = self.basis(difference.square().sum(-1))
        system[:count, count:] = torch.cat((torch.ones(count, 1), self.points), 1)
        system[count:, :count] = system[:count, count:].T
        self.inverse = torch.linalg.inv(system.double()).float()
        ys, xs = torch.linspace(-EXTENT, EXTENT, height), torch.linspace(-EXTENT, EXTENT, width)
        self.x, self.y = xs.expand(height, width), ys[:, None].expand(height, width)

    @staticmethod
    def basis(square: Tensor) -> Tensor:
        """The spline's radial function U(r) = r^2 log r^2, of r^2."""
        return square * torch.log(torch.where(square == 0, torch.ones_like(square), square))

    def grid(self, theta: Tensor) -> Tensor:
        """(B, 2 n^2) -> (B, H, W, 2)."""
        batch, (height, width), count = len(theta), self.x.shape, len(self.points)
        coordinates = []
        for axis in range(2):
            targets = self.points[:, axis] + theta[:, axis * count : (axis + 1) * count]
            weights = targets @ self.inverse[:count, :count].T
            affine = targets @ self.inverse[count:, :count].T
            # U of every pixel and every control point, once per axis.
            dx = self.x.expand(batch, height, width)[..., None] - self.points[:, 0]
            dy = self.y.expand(batch, height, width)[..., None] - self.points[:, 1]
            u = self.basis(dx.square() + dy.square())
            bend = (weights[:, None, None] * u).sum(-1)
            plane = affine[:, 0, None, None] + affine[:, 1, None, None] * self.x + affine[:, 2, None, None] * self.y
            coordinates.append(plane + bend)
        return torch.stack(coordinates, -1)


@torch.inference_mode()
def measure(n: int, size: tuple[int, int], repeats: int) -> dict:
    """Seconds of both for one warp, and how far their grids lie apart."""
    theta = torch.empty(1, 2 * n * n).uniform_(-0.1, 0.1, generator=torch.Generator().manual_seed(0))
    direct = DirectSpline(n, size)
    spline_matrix.cache_clear()
    first = timeit(lambda: sampling_grid(theta, size), number=1)
    difference = float((direct.grid(theta) - sampling_grid(theta, size)).abs().max())
    seconds_direct = min(repeat(lambda: direct.grid(theta), number=1, repeat=repeats))
    seconds = min(repeat(lambda: sampling_grid(theta, size), number=1, repeat=repeats))
    return {
        "grid": f"{n}x{n}",
        "size": f"{size[0]}x{size[1]}",
        "threads": torch.get_num_threads(),
        "seconds_direct": seconds_direct,
        "seconds": seconds,
        "first": first,
        "ratio": seconds / seconds_direct,
        "ratio_first": first / seconds_direct,
        "largest_difference": difference,
    }


@one_sentence
def main(argv: list[str] | None = None) -> None:
    """The command line."""
    parser = CommandLine(description=__doc__)
    parser.add_argument("--threads", type=integer(1, 1024), default=2)
    parser.add_argument("--height", type=integer(64, 4096), default=1024, help="the width is three quarters of it")
    parser.add_argument("--grids", type=integer(2, 64), nargs="+", default=[5, 10, 20])
    parser.add_argument("--repeats", type=integer(1), default=3)
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    for n in options.grids:
        print(json.dumps(measure(n, (options.height, options.height * 3 // 4), options.repeats)), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
