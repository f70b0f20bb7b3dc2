"""The head of a drawn person: face and hair."""

from __future__ import annotations

import numpy as np

from lab.tryon.drawing.canvas import Canvas, mix
from lab.tryon.drawing.geometry import smooth
from lab.tryon.drawing.person import Look
from vton.labels import FACE_LIP, HAIR_LIP


def draw_hair_mass(canvas: Canvas, rng, points, look: Look, crown, label=HAIR_LIP):
    """Hair with strands that run away from the crown."""
    area = canvas.coverage(np.asarray(points))
    if area is None:
        return
    where, x, y, alpha = area
    angle = np.arctan2(y - crown[1] + 60, x - crown[0])
    radius = np.hypot(x - crown[0], y - crown[1])
    strands = rng.standard_normal(96).astype(np.float32)
    strands = 0.5 * strands + 0.5 * np.convolve(np.tile(strands, 3), np.ones(9) / 3, "same")[96:192]
    place = (angle + np.pi) / (2 * np.pi) * 95 + 0.004 * radius
    texture = np.interp(place.ravel() % 95, np.arange(96), strands).reshape(place.shape).astype(np.float32)
    shine = np.exp(-(((radius - 66) / 22) ** 2)) * np.clip(0.6 - (x - crown[0]) / 160, 0, 1)
    light = 1 + 0.09 * texture + 0.28 * shine - 0.0010 * np.clip(radius - 40, 0, 200)
    canvas.blend(where, alpha, look.hair * light[..., None].astype(np.float32) + 10 * shine[..., None], label)


def draw_back_hair(canvas: Canvas, rng, look: Look, place, neck):
    """The hair behind the head; place: coordinates of the head -> pixels."""
    crown = place(0, -95)
    if look.hair_style == "bun":
        centre = place(0, -128)
        angles = np.linspace(0, 2 * np.pi, 28, endpoint=False)
        draw_hair_mass(
            canvas,
            rng,
            centre + np.stack([40 * np.cos(angles), 34 * np.sin(angles)], -1) * look.head,
            look,
            place(-8, -150),
        )
    if look.hair_style in ("bob", "long"):
        drop = 92 if look.hair_style == "bob" else 240
        half_width = 96 if look.hair_style == "bob" else 104
        outer = [
            (-70, -85),
            (-92, -20),
            (-half_width, 40),
            (-half_width + 6, drop),
            (-30, drop - 8),
            (30, drop - 8),
            (half_width - 6, drop),
            (half_width, 40),
            (92, -20),
            (70, -85),
            (0, -116),
        ]
        shape = smooth(place(*np.array(outer).T))
        draw_hair_mass(canvas, rng, shape, look, crown)
        canvas.glow(place(0, 60), 60, 70, look.hair * 0.45, 0.75)


def draw_head(canvas: Canvas, look: Look, place):
    """The face over the neck: ears, skin, eyes, nose and mouth. place: see `head_frame`."""
    skin, h = look.skin, look.head
    deep = shade_of(skin)
    # Ears, then the face with light from the upper left.
    for sign in (-1, 1):
        canvas.limb(place(sign * 67, -20), place(sign * 64, 4), 12 * h, 9 * h, skin * 0.95, FACE_LIP)
        canvas.glow(place(sign * 68, -10), 5 * h, 9 * h, deep, 0.35)
    half = [(26, -104), (52, -86), (66, -46), (67, -6), (61, 32), (46, 62), (24, 80)]
    oval = [*half, (0, 84), *[(-x, y) for x, y in half[::-1]], (0, -110)]
    c = place(0, -10)
    canvas.polygon(
        smooth(place(*np.array(oval).T)),
        skin,
        FACE_LIP,
        lambda x, y: np.clip(
            1.045 - 0.17 * (((x - c[0]) / (70 * h) + 0.18) ** 2) - 0.10 * np.clip((y - c[1]) / (95 * h), -1, 1) ** 2,
            0.6,
            1.1,
        ),
    )
    for sign in (-1, 1):
        canvas.glow(place(sign * 38, 14), 20 * h, 15 * h, mix(skin, (226, 96, 92), 0.5), 0.30)
        canvas.glow(place(sign * 29, -36), 19 * h, 11 * h, deep, 0.20)
    canvas.glow(place(60, 30), 18 * h, 48 * h, deep, 0.22)
    canvas.glow(place(-20, -68), 34 * h, 18 * h, np.minimum(skin * 1.12 + 6, 255), 0.35)
    for sign in (-1, 1):
        draw_eye(canvas, look, place, sign)
    draw_nose(canvas, look, place)
    draw_mouth(canvas, look, place)


def shade_of(skin: np.ndarray) -> np.ndarray:
    """The colour of skin in deep shade."""
    return mix(skin * 0.62, (120, 50, 40), 0.25)


def draw_eye(canvas: Canvas, look: Look, place, sign: int):
    """One eye with its brow. sign: -1 at the left of the picture, 1 at the right."""
    h, deep = look.head, shade_of(look.skin)
    ex, ey = sign * 29, -30
    white = [
        (ex - 16, ey + 1),
        (ex - 8, ey - 6),
        (ex + 1, ey - 8),
        (ex + 9, ey - 6),
        (ex + 16, ey + 1),
        (ex + 8, ey + 6),
        (ex - 8, ey + 6),
    ]
    white = smooth(place(*np.array(white).T))
    canvas.polygon(white, (246, 244, 240), FACE_LIP, lambda x, y: 0.94 + 0 * (x + y))
    iris = place(ex, ey - 1)
    canvas.limb(iris, iris + 0.01, 7.6 * h, 7.6 * h, look.iris * 0.7, FACE_LIP, 0)
    canvas.limb(iris, iris + 0.01, 6.0 * h, 6.0 * h, look.iris * 1.15, FACE_LIP, 0)
    canvas.limb(iris, iris + 0.01, 3.4 * h, 3.4 * h, (18, 14, 14), FACE_LIP, 0)
    canvas.limb(
        iris + (-2.4 * h, -2.8 * h), iris + (-2.4 * h, -2.79 * h), 1.8 * h, 1.8 * h, (255, 255, 255), FACE_LIP, 0
    )
    lid = place(
        *np.array([(ex - 17, ey + 1), (ex - 8, ey - 7), (ex + 1, ey - 9), (ex + 9, ey - 7), (ex + 17, ey + 0)]).T
    )
    canvas.line(lid, 4.2 * h, (40, 26, 24), 0.92)
    canvas.line(lid + (0, -6 * h), 2.0 * h, deep, 0.45)
    under = place(*np.array([(ex - 13, ey + 5), (ex, ey + 8), (ex + 13, ey + 5)]).T)
    canvas.line(under, 1.8 * h, deep, 0.45)
    brow = place(
        *np.array(
            [
                (ex - sign * 17, ey - 18),
                (ex - sign * 4, ey - 23),
                (ex + sign * 9, ey - 23),
                (ex + sign * 20, ey - 16),
            ]
        ).T
    )
    canvas.line(brow, 6.0 * h, mix(look.hair, (50, 36, 30), 0.45), 0.78)


def draw_nose(canvas: Canvas, look: Look, place):
    """The nose: a shaded side, a lit tip, nostrils."""
    skin, h, deep = look.skin, look.head, shade_of(look.skin)
    canvas.line(place(*np.array([(8, -24), (10, -4), (13, 4)]).T), 6 * h, deep, 0.16)
    canvas.glow(place(-1, -12), 5 * h, 20 * h, np.minimum(skin * 1.1 + 8, 255), 0.40)
    canvas.glow(place(0, 2), 9 * h, 7 * h, np.minimum(skin * 1.08 + 6, 255), 0.45)
    canvas.line(place(*np.array([(-14, 5), (-9, 11), (-3, 10), (3, 10), (9, 11), (14, 5)]).T), 2.6 * h, deep, 0.55)
    for sign in (-1, 1):
        canvas.glow(place(sign * 6, 10), 3.6 * h, 2.2 * h, (60, 26, 24), 0.75)
    canvas.glow(place(0, 18), 9 * h, 5 * h, deep, 0.25)


def draw_mouth(canvas: Canvas, look: Look, place):
    """The mouth and the shadow under it."""
    h, deep = look.head, shade_of(look.skin)
    upper = [(-25, 38), (-12, 33), (-5, 31), (0, 33), (5, 31), (12, 33), (25, 38), (10, 39.5), (-10, 39.5)]
    lower = [(-24, 38.5), (-10, 40), (10, 40), (24, 38.5), (13, 49), (0, 52), (-13, 49)]
    canvas.polygon(smooth(place(*np.array(lower).T), {0, 3}), np.minimum(look.lips * 1.10, 255), FACE_LIP)
    canvas.polygon(smooth(place(*np.array(upper).T), {0, 6}), look.lips * 0.92, FACE_LIP)
    canvas.line(place(*np.array([(-26, 38), (-10, 40), (0, 39), (10, 40), (26, 38)]).T), 2.0 * h, look.lips * 0.45, 0.8)
    canvas.glow(place(-2, 45), 8 * h, 2.6 * h, (255, 236, 230), 0.35)
    canvas.glow(place(0, 58), 14 * h, 4 * h, deep, 0.30)


def draw_front_hair(canvas: Canvas, rng, look: Look, place, neck):
    """The hair before the face; place: coordinates of the head -> pixels."""
    crown = place(-18, -104)
    side = {"short": -34, "bun": -36, "bob": 30, "long": 22}[look.hair_style]
    inner = [(62, -30), (56, -56), (30, -76), (-6, -84), (-26, -80), (-46, -62), (-60, -30)]
    if look.hair_style == "bob":
        inner = [(60, side), (62, -28), (48, -54), (10, -58), (-30, -54), (-56, -44), (-60, side)]
    if look.hair_style == "long":
        inner = [(62, side), (60, -34), (40, -62), (4, -88), (-36, -66), (-58, -36), (-62, side)]
    outer = [
        (-76, side),
        (-80, -48),
        (-66, -100),
        (-34, -126),
        (0, -132),
        (36, -126),
        (68, -100),
        (82, -48),
        (77, side),
    ]
    shape = smooth(place(*np.array(inner + outer).T), {0, 6, 7, 15})
    canvas.glow(place(0, -62), 60 * look.head, 16 * look.head, look.skin * 0.55, 0.35)
    draw_hair_mass(canvas, rng, shape, look, crown)
    if look.hair_style == "long":
        for sign in (-1, 1):
            lock = [
                (sign * 62, 0),
                (sign * 74, -30),
                (sign * 92, 30),
                (sign * 104, 130),
                (sign * 96, 226),
                (sign * 84, 262),
                (sign * 70, 220),
                (sign * 68, 130),
                (sign * 66, 60),
            ]
            draw_hair_mass(canvas, rng, smooth(place(*np.array(lock).T)), look, crown)
