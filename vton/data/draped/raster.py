"""A z-buffer in torch: which triangle each pixel shows, on a CPU core in some ten milliseconds, or on a GPU."""

from collections.abc import Callable

import torch

Solid = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def rasterise(
    corners: torch.Tensor, size: tuple[int, int], solid: Solid | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The nearest triangle at every pixel's centre.

    corners (F, 3, 3) float32: x and y in pixels (the first pixel's centre is at 0, 0), and depth, smaller = nearer;
    size (H, W); solid: from triangles (n,) and weights (n, 3) to (n,) bool, False in a hole of the texture. Depth and
    weights are linear on the screen, which is exact enough for triangles of a few pixels.
    Returns face (H, W) int64, -1 where there is none; weights (H, W, 3) float32 of its corners.
    """
    height, width = size
    low = corners[..., :2].amin(1).ceil().clamp(min=0)
    high = torch.minimum(corners[..., :2].amax(1).floor(), corners.new_tensor([width - 1, height - 1]))
    a, b, c = corners[..., :2].unbind(1)
    area = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    span = (high - low + 1).clamp(min=0).long()
    count = torch.where(area.abs() > 1e-9, span[:, 0] * span[:, 1], 0)
    owner = torch.repeat_interleave(torch.arange(len(corners), device=corners.device), count)
    number = (torch.arange(len(owner), device=corners.device) - (count.cumsum(0) - count)[owner]).float()
    wide = span[:, 0].clamp(min=1).float()[owner]
    row = ((number + 0.5) / wide).floor()
    x, y = low[:, 0][owner] + number - row * wide, low[:, 1][owner] + row
    # Weights of the second and third corner grow linearly over the screen: their slopes are the triangle's own.
    inverse = 1 / torch.where(count > 0, area, 1)
    slopes = torch.stack(
        [(c - a)[:, 1] * inverse, -(c - a)[:, 0] * inverse, -(b - a)[:, 1] * inverse, (b - a)[:, 0] * inverse], 1
    )
    begin = torch.stack([-(slopes[:, k] * a[:, 0] + slopes[:, k + 1] * a[:, 1]) for k in (0, 2)], 1)
    second = begin[:, 0][owner] + slopes[:, 0][owner] * x + slopes[:, 1][owner] * y
    third = begin[:, 1][owner] + slopes[:, 2][owner] * x + slopes[:, 3][owner] * y
    inside = (second >= -1e-5) & (third >= -1e-5) & (second + third <= 1 + 1e-5)
    owner, second, third = owner[inside], second[inside], third[inside]
    pixel = (y[inside] * width + x[inside]).long()
    weights = torch.stack([1 - second - third, second, third], 1)
    if solid is not None:
        opaque = solid(owner, weights)
        owner, weights, pixel = owner[opaque], weights[opaque], pixel[opaque]
    z = corners[..., 2]
    depth = z[:, 0][owner] * weights[:, 0] + z[:, 1][owner] * weights[:, 1] + z[:, 2][owner] * weights[:, 2]
    nearest = torch.full((height * width,), torch.inf, device=corners.device)
    nearest.scatter_reduce_(0, pixel, depth, "amin")
    foremost = depth <= nearest[pixel]
    face = torch.full((height * width,), -1, dtype=torch.int64, device=corners.device)
    share = torch.zeros((height * width, 3), device=corners.device)
    face[pixel[foremost]] = owner[foremost]
    share[pixel[foremost]] = weights[foremost]
    return face.view(height, width), share.view(height, width, 3)
