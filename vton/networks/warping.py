"""Warping the cloth: thin-plate spline and the geometric matching module (section 3.3, Fig. 11).

Convention: coordinates are (x, y), normalised so that the picture spans [-1, 1] (`align_corners=False`). A warp is a
sampling grid: for every place of the *output* it says where in the *cloth* to look. Control points lie on a regular
grid of the output, x varying slowest; theta moves the places in the cloth that they look at.
Attribute names are those of the released checkpoint `gmm_final.pth`: they are a file format.
"""

from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vton.networks.config import NETWORK_SIZE, MatchingConfig

FAINT = 0.25  # share of a warped mask; below it the colours are mostly the ground's
EXTENT = 0.9  # control points and sampling grid of the release span [-0.9, 0.9]


def control_grid(n: int) -> Tensor:
    """(n*n, 2) regular control points on [-0.9, 0.9], x varying slowest."""
    axis = torch.linspace(-EXTENT, EXTENT, n)
    return torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)


def radial_basis(r2: np.ndarray) -> np.ndarray:
    """U(r) = r^2 log r^2, with U(0) = 0; the argument is r^2."""
    return r2 * np.log(np.where(r2 == 0, 1.0, r2))


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # a training may be given the matrix that a try-on has left here
def spline_matrix(n: int, height: int, width: int) -> Tensor:
    """(height*width, n*n) matrix that turns the control points' targets into the sampling grid.

    A thin-plate spline is linear in the targets Q: grid = [U, 1, x, y] L^-1 [Q; 0], where L = [[K, A], [A^T, 0]]
    (Bookstein 1989), K_ij = U(|p_i - p_j|) and A = [1, x, y]. All but Q is known in advance, which leaves one product.
    """
    points = control_grid(n).double().numpy()
    count = len(points)

    def terms(x, y):
        squared = (x[:, None] - points[:, 0]) ** 2 + (y[:, None] - points[:, 1]) ** 2
        return np.concatenate([radial_basis(squared), np.stack([np.ones(len(x)), x, y], 1)], 1)

    system = np.zeros((count + 3, count + 3))
    system[:count] = terms(*points.T)
    system[count:, :count] = system[:count, count:].T
    inverse = np.linalg.inv(system)[:, :count]
    ys, xs = np.linspace(-EXTENT, EXTENT, height), np.linspace(-EXTENT, EXTENT, width)
    matrix = np.empty((height, width, count), np.float32)
    for y, row in zip(ys, matrix):  # row by row it stays in the cache: ten times as quick as all at once
        row[:] = terms(xs, np.full(width, y)) @ inverse
    return torch.from_numpy(matrix.reshape(-1, count))


def sampling_grid(theta: Tensor, size: tuple[int, int]) -> Tensor:
    """Thin-plate spline: control-point offsets to a sampling grid.

    theta: (B, 2 n^2) offsets, all x first, then all y, in normalised units; zero is the identity.
    size: (H, W) of the output.
    Returns (B, H, W, 2) for `grid_sample`.
    """
    n = round((theta.shape[1] / 2) ** 0.5)
    if 2 * n * n != theta.shape[1]:
        raise ValueError(f"theta must hold two numbers for each point of a square grid; got {theta.shape[1]} numbers.")
    points = control_grid(n).to(theta)
    targets = points + theta.reshape(-1, 2, n * n).transpose(1, 2)
    matrix = spline_matrix(n, *size).to(theta)
    return (matrix @ targets).reshape(len(theta), *size, 2)


def refine(theta: Tensor, n: int) -> Tensor:
    """The same warp with n x n control points: theta (B, 2 m^2) -> (B, 2 n^2),
    read off the spline at the new points.
    """
    if 2 * n * n == theta.shape[1]:
        return theta
    places = sampling_grid(theta, (n, n)).transpose(1, 2).reshape(len(theta), n * n, 2)  # x varies slowest
    return (places - control_grid(n).to(theta)).transpose(1, 2).reshape(len(theta), -1)


def warp(picture: Tensor, grid: Tensor, padding: str = "border", sampling: str = "bilinear") -> Tensor:
    """W(c, theta): `picture` (B,C,h,w) seen through a sampling grid (B,H,W,2) -> (B,C,H,W).

    sampling: "bilinear" as in the release, or "bicubic", which blurs less and may leave the picture's range a little.
    """
    return F.grid_sample(picture, grid, mode=sampling, padding_mode=padding, align_corners=False)


def warp_inside(picture: Tensor, mask: Tensor, grid: Tensor) -> Tensor:
    """W(c, theta), sampled bicubically, in which the ground beside the mask does not show at the mask's outline.

    picture: (B,C,h,w). mask: (B,1,h,w) in {0, 1}, the weight of its colours. Where the warped mask is faint, the whole
    picture is warped. Returns (B,C,H,W).
    """
    weight = warp(mask, grid, sampling="bicubic")
    own = warp(picture * mask, grid, sampling="bicubic") / weight.clamp_min(FAINT)
    return torch.where(weight > FAINT, own, warp(picture, grid, sampling="bicubic"))


def derivatives(grid: Tensor) -> Tensor:
    """The warp's Jacobian, (B, H-1, W-1, 2, 2), relative to the identity's: rows are the x and y that a sampling grid
    (B, H, W, 2) takes from the picture, columns its derivatives to the right and downwards.
    """
    height, width = grid.shape[1:3]
    dx = (grid[:, :-1, 1:] - grid[:, :-1, :-1]) * (width - 1) / (2 * EXTENT)
    dy = (grid[:, 1:, :-1] - grid[:, :-1, :-1]) * (height - 1) / (2 * EXTENT)
    return torch.stack((dx, dy), -1)


def jacobian(grid: Tensor) -> Tensor:
    """Determinant of the warp's Jacobian, (B, H-1, W-1), relative to the identity's. Negative = the cloth is folded."""
    (a, b), (c, d) = (row.unbind(-1) for row in derivatives(grid).unbind(-2))
    return a * d - b * c


class FeatureExtraction(nn.Module):
    """Convolution, ReLU, batch norm, four times halving the size; the last convolution has no batch norm (Fig. 11)."""

    def __init__(self, inputs: int, channels: int):
        super().__init__()
        widths = [channels, 2 * channels, 4 * channels, 8 * channels]
        layers: list[nn.Module] = []
        for a, b in pairwise([inputs, *widths]):
            layers += [nn.Conv2d(a, b, 4, stride=2, padding=1), nn.ReLU(), nn.BatchNorm2d(b)]
        last = widths[-1]
        layers += [nn.Conv2d(last, last, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(last)]
        self.model = nn.Sequential(*layers, nn.Conv2d(last, last, 3, padding=1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        """x (B,inputs,256,192) -> features (B,C,16,12)."""
        return self.model(x)


class Regression(nn.Module):
    """Correlation (B,192,16,12) -> theta (B, 2 n^2) in (-1, 1)."""

    def __init__(self, inputs: int, outputs: int, channels: int):
        super().__init__()
        layers: list[nn.Module] = []
        widths = pairwise([inputs, *(factor * channels for factor in (8, 4, 2, 1))])
        for (a, b), (kernel, stride) in zip(widths, ((4, 2), (4, 2), (3, 1), (3, 1))):
            layers += [nn.Conv2d(a, b, kernel, stride, padding=1), nn.BatchNorm2d(b), nn.ReLU()]
        self.conv = nn.Sequential(*layers)
        self.linear = nn.Linear(channels * 4 * 3, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Correlation (B,192,16,12) -> theta (B, 2 n^2)."""
        return self.linear(self.conv(x).flatten(1)).tanh()


def correlation(person: Tensor, cloth: Tensor) -> Tensor:
    """Cosine similarity of every person feature with every cloth feature.

    Both (B,C,h,w). Returns (B, w*h, h, w): channel x*h + y belongs to the person's feature at (y, x) (column-major),
    the position to the cloth's.
    """
    person, cloth = F.normalize(person, dim=1), F.normalize(cloth, dim=1)
    b, c, h, w = person.shape
    # result[b, i, j] = sum_c person[b, c, i] * cloth[b, c, j]
    return (person.permute(0, 3, 2, 1).reshape(b, w * h, c) @ cloth.reshape(b, c, h * w)).reshape(b, w * h, h, w)


class MatchingModule(nn.Module):
    """Geometric matching module (section 3.3): where on the cloth does each control point of the person look?"""

    def __init__(self, config: MatchingConfig = MatchingConfig()):
        super().__init__()
        self.config = config
        self.extractionA = FeatureExtraction(config.person_inputs, config.width)
        self.extractionB = FeatureExtraction(config.cloth_inputs, config.width)
        places = (NETWORK_SIZE[0] // 16) * (NETWORK_SIZE[1] // 16)
        self.regression = Regression(places, 2 * config.grid**2, config.width)

    def forward(self, person: Tensor, cloth: Tensor) -> Tensor:
        """The person's maps (B,7,256,192), S_c 1, P 3, I_a 3, and the cloth (B,3,256,192), which is not masked -> theta
        (B, 2 n^2) in (-1, 1); pictures in [-1, 1].
        """
        return self.regression(correlation(self.extractionA(person), self.extractionB(cloth)))


@torch.inference_mode()
def match(network: MatchingModule, cloth_region: Tensor, pose: Tensor, agnostic: Tensor, cloth: Tensor) -> Tensor:
    """theta (B, 2 n^2) from full-size inputs, which are resized to 256x192 by nearest neighbour.

    cloth_region S-hat_c (B,1,H,W) 0 or 1; pose P, agnostic I_a, cloth c (B,3,H,W) in [-1, 1].
    """
    person = torch.cat((cloth_region, pose, agnostic), 1)
    return network(
        F.interpolate(person, NETWORK_SIZE, mode="nearest"), F.interpolate(cloth, NETWORK_SIZE, mode="nearest")
    )
