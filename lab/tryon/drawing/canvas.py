"""A picture and its label map that are painted together: polygons, limbs, soft spots and strokes."""

from __future__ import annotations

import cv2
import numpy as np


class Canvas:
    """A picture and its label map that are painted together. All coordinates are for 768 x 1024."""

    def __init__(self, size: tuple[int, int]):
        self.H, self.W = size
        self.s = self.W / 768
        self.rgb = np.zeros((self.H, self.W, 3), np.float32)
        self.labels = np.zeros((self.H, self.W), np.uint8)

    def window(self, low, high, margin: float = 2):
        """Slices and pixel coordinates (x, y) of the box between two corners; None when it is outside."""
        x0, y0 = (np.floor(np.asarray(low) * self.s - margin)).astype(int)
        x1, y1 = (np.ceil(np.asarray(high) * self.s + margin)).astype(int) + 1
        x0, y0, x1, y1 = max(x0, 0), max(y0, 0), min(x1, self.W), min(y1, self.H)
        if x0 >= x1 or y0 >= y1:
            return None
        x = (np.arange(x0, x1, dtype=np.float32) + 0.5)[None] / self.s
        y = (np.arange(y0, y1, dtype=np.float32) + 0.5)[:, None] / self.s
        return (slice(y0, y1), slice(x0, x1)), x, y

    def blend(self, where, alpha, colour, label=None):
        """Lays a colour over `where` (slices) by alpha in [0, 1], and the label where alpha is at least a half."""
        part = self.rgb[where]
        part += alpha[..., None] * (colour - part)
        if label is not None:
            self.labels[where][alpha > 0.5] = label

    def coverage(self, points: np.ndarray):
        """Antialiased alpha of a filled polygon (k, 2); returns (slices, x, y, alpha) or None."""
        box = self.window(points.min(0), points.max(0))
        if box is None:
            return None
        where, x, y = box
        alpha = np.zeros((y.size, x.size), np.uint8)
        offset = np.array([where[1].start, where[0].start])
        corners = np.round((points * self.s - 0.5 - offset) * 16).astype(np.int32)
        cv2.fillPoly(alpha, [corners], 255, cv2.LINE_AA, 4)
        return where, x, y, alpha.astype(np.float32) / 255

    def polygon(self, points, colour, label=None, shade=None, opacity=1.0):
        """shade: function of x, y (arrays in 768-pixel units) that gives a brightness factor."""
        area = self.coverage(np.asarray(points, float))
        if area is None:
            return
        where, x, y, alpha = area
        colour = np.asarray(colour, np.float32)
        if shade is not None:
            colour = colour * np.broadcast_to(shade(x, y), alpha.shape)[..., None]
        self.blend(where, alpha * opacity, colour, label)

    def limb_field(self, a, b, radius_a, radius_b, depth):
        """A tapered, rounded limb, lit from the upper left: slices, alpha and brightness; None when outside."""
        a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
        reach = max(radius_a, radius_b)
        box = self.window(np.minimum(a, b) - reach, np.maximum(a, b) + reach)
        if box is None:
            return None
        where, x, y = box
        axis = b - a
        length2 = max(float(axis @ axis), 1e-6)
        t = np.clip(((x - a[0]) * axis[0] + (y - a[1]) * axis[1]) / length2, 0, 1)
        dx, dy = x - (a[0] + t * axis[0]), y - (a[1] + t * axis[1])
        radius = radius_a + (radius_b - radius_a) * t
        alpha = np.clip((radius - np.sqrt(dx * dx + dy * dy)) * self.s + 0.5, 0, 1)
        # The surface of a cylinder under a light from the upper left in front.
        nx, ny = dx / radius, dy / radius
        nz = np.sqrt(np.clip(1 - nx * nx - ny * ny, 0, 1))
        return where, alpha, 1 + depth * (np.clip(-0.45 * nx - 0.3 * ny + 0.84 * nz, 0, 1) - 0.86)

    def limb(self, a, b, radius_a, radius_b, colour, label=None, depth=0.34):
        """A tapering, shaded limb from a to b."""
        field = self.limb_field(a, b, radius_a, radius_b, depth)
        if field is not None:
            where, alpha, light = field
            self.blend(where, alpha, np.asarray(colour, np.float32) * light[..., None], label)

    def glow(self, centre, radius_x, radius_y, colour, opacity, angle: float = 0.0):
        """A soft spot of colour: shadow, blush, light."""
        centre = np.asarray(centre, float)
        reach = 2.2 * max(radius_x, radius_y)
        box = self.window(centre - reach, centre + reach)
        if box is None:
            return
        where, x, y = box
        c, s = np.cos(angle), np.sin(angle)
        u, v = (x - centre[0]) * c + (y - centre[1]) * s, (y - centre[1]) * c - (x - centre[0]) * s
        alpha = opacity * np.exp(-((u / radius_x) ** 2 + (v / radius_y) ** 2))
        self.blend(where, alpha.astype(np.float32), np.asarray(colour, np.float32))

    def line(self, points, width, colour, opacity=1.0):
        """A stroke with round ends through points (k, 2)."""
        points = np.asarray(points, float)
        box = self.window(points.min(0) - width, points.max(0) + width)
        if box is None:
            return
        where, x, y = box
        distance = np.full((y.size, x.size), 1e9, np.float32)
        for a, b in zip(points[:-1], points[1:]):
            axis = b - a
            t = np.clip(((x - a[0]) * axis[0] + (y - a[1]) * axis[1]) / max(float(axis @ axis), 1e-6), 0, 1)
            distance = np.minimum(distance, (x - a[0] - t * axis[0]) ** 2 + (y - a[1] - t * axis[1]) ** 2)
        alpha = np.clip((width / 2 - np.sqrt(distance)) * self.s + 0.5, 0, 1) * min(1.0, max(width * self.s, 0.35))
        self.blend(where, (opacity * alpha).astype(np.float32), np.asarray(colour, np.float32))


def mix(a, b, t: float) -> np.ndarray:
    """(1 - t) a + t b."""
    return np.asarray(a, np.float32) * (1 - t) + np.asarray(b, np.float32) * t


def smooth_noise(rng, hw: tuple[int, int], cells: tuple[int, int]) -> np.ndarray:
    """Smooth noise (H, W) float32 with mean 0 and standard deviation near 1."""
    field = rng.standard_normal((cells[0] + 3, cells[1] + 3)).astype(np.float32)
    return cv2.resize(field, (hw[1], hw[0]), interpolation=cv2.INTER_CUBIC)
