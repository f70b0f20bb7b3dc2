"""The drawn person below the neck: body, pose, clothes, skin and light."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from lab.tryon.drawing.canvas import Canvas, mix, smooth_noise
from lab.tryon.drawing.geometry import Skeleton, smooth
from vton import joints, labels

POSES = ("down", "hips", "raised")
HAIR = ("short", "bob", "long", "bun")
SKIN = [
    (252, 224, 204),
    (244, 206, 178),
    (228, 182, 148),
    (205, 153, 116),
    (168, 116, 82),
    (128, 84, 60),
    (96, 62, 46),
]
HAIR_COLOURS = [
    (38, 28, 26),
    (62, 42, 32),
    (98, 64, 40),
    (146, 98, 56),
    (196, 152, 92),
    (122, 52, 30),
    (150, 146, 142),
]
TROUSER_COLOURS = [
    (52, 72, 108),
    (42, 44, 52),
    (120, 104, 86),
    (84, 104, 136),
    (70, 78, 62),
    (146, 130, 112),
    (96, 48, 56),
]
BACKGROUNDS = [(226, 226, 224), (214, 220, 226), (230, 220, 208), (206, 216, 208), (222, 210, 216), (196, 204, 212)]
IRIS = [(92, 62, 40), (70, 48, 34), (88, 116, 140), (92, 116, 82), (60, 44, 36)]


@dataclass(frozen=True)
class Look:
    """What a drawn person looks like: colours (3,) in [0, 255] and a hair style."""

    skin: np.ndarray
    hair: np.ndarray
    hair_style: str
    iris: np.ndarray
    lips: np.ndarray
    lower: np.ndarray
    skirt: bool
    background: np.ndarray
    head: float  # size of the head
    tilt: float  # of the head, radians
    face: float  # width of the face


def head_frame(nose: np.ndarray, look: Look):
    """Function that takes x, y around the nose, in an upright head of usual size, to the picture."""
    c, s = np.cos(look.tilt), np.sin(look.tilt)

    def place(x, y):
        x, y = np.asarray(x, float) * look.head * look.face, np.asarray(y, float) * look.head
        return np.stack([nose[0] + c * x - s * y, nose[1] + s * x + c * y], -1)

    return place


def sample_person(rng, pose: str | None) -> tuple[Skeleton, Look, np.ndarray]:
    """A body in a pose, its looks, and the nose's place."""
    pose = pose or str(rng.choice(POSES, p=(0.55, 0.3, 0.15)))
    size = rng.uniform(0.94, 1.03) * {"down": 1.0, "hips": 0.96, "raised": 0.79}[pose]
    neck = np.array([384 + rng.uniform(-22, 22), 340 + rng.uniform(-8, 10)])
    slope = rng.uniform(-5, 5)
    wide = size * rng.uniform(120, 134)
    shoulders = neck + np.array([[-wide, slope], [wide, -slope]])
    middle = neck + np.array([rng.uniform(-14, 14), 394 * size])
    hip_wide, hip_slope = 80 * size, rng.uniform(-5, 5)
    hips = middle + np.array([[-hip_wide, hip_slope], [hip_wide, -hip_slope]])
    build = rng.uniform(0.92, 1.06)
    chest, waist, hip = wide * 0.86 * build, wide * 0.77 * build, wide * 0.94 * build
    elbows, wrists = sample_arms(rng, pose, shoulders, middle, hip, size)
    skeleton = Skeleton(
        neck,
        shoulders,
        elbows,
        wrists,
        hips,
        chest,
        waist,
        hip,
        (38 * size * build, 31 * size * build, 21 * size),
    )
    look = sample_look(rng, size)
    nose = neck + np.array([rng.uniform(-10, 10), -172 * size])
    return skeleton, look, nose


def sample_arms(
    rng: np.random.Generator, pose: str, shoulders: np.ndarray, middle: np.ndarray, hip: float, size: float
) -> tuple[np.ndarray, np.ndarray]:
    """Elbows (2, 2) and wrists (2, 2) in a pose. middle: of the hips; hip: half their width; size: of the body."""
    upper_arm, forearm = 232 * size, 222 * size
    elbows, wrists = np.empty((2, 2)), np.empty((2, 2))
    for side, sign in ((0, -1), (1, 1)):
        if pose == "hips":  # the hands rest beside the hips; the elbows follow
            wrists[side] = middle + (sign * (hip + rng.uniform(62, 80)), rng.uniform(-70, -34))
            reach = wrists[side] - shoulders[side]
            length = min(float(np.linalg.norm(reach)), 0.97 * (upper_arm + forearm))
            along = (upper_arm**2 - forearm**2 + length**2) / (2 * length)
            out = np.array([reach[1], -reach[0]]) / np.linalg.norm(reach) * sign
            elbows[side] = (
                shoulders[side] + reach / np.linalg.norm(reach) * along + out * np.sqrt(max(upper_arm**2 - along**2, 0))
            )
            continue
        if pose == "down":
            upper = rng.uniform(0.25, 0.38)
            lower = upper - rng.uniform(0.08, 0.3)
        else:
            upper = rng.uniform(1.25, 1.5)
            lower = upper + rng.uniform(1.05, 1.3)
        elbows[side] = shoulders[side] + upper_arm * np.array([sign * np.sin(upper), np.cos(upper)])
        wrists[side] = elbows[side] + forearm * np.array([sign * np.sin(lower), np.cos(lower)])
    return elbows, wrists


def sample_look(rng: np.random.Generator, size: float) -> Look:
    """Skin, hair, eyes, trousers or skirt, and the wall behind. size: of the body."""
    skin = np.array(SKIN[rng.integers(len(SKIN))], np.float32) + rng.uniform(-6, 6)
    return Look(
        skin,
        np.array(HAIR_COLOURS[rng.integers(len(HAIR_COLOURS))], np.float32),
        str(rng.choice(HAIR)),
        np.array(IRIS[rng.integers(len(IRIS))], np.float32),
        mix(skin * (0.86, 0.56, 0.56), (186, 60, 72), 0.35),
        np.array(TROUSER_COLOURS[rng.integers(len(TROUSER_COLOURS))], np.float32),
        bool(rng.random() < 0.25),
        np.array(BACKGROUNDS[rng.integers(len(BACKGROUNDS))], np.float32),
        size * rng.uniform(0.97, 1.05),
        rng.uniform(-0.09, 0.09),
        rng.uniform(0.94, 1.04),
    )


def body_keypoints(skeleton: Skeleton, nose: np.ndarray, look: Look, size: tuple[int, int]) -> np.ndarray:
    """BODY_25 joints (25, 3) of a drawn person; x, y in pixels, confidence 1, or 0 outside the picture."""
    H, W = size
    keypoints = np.zeros((len(joints.JOINTS), 3), np.float32)
    head = head_frame(nose, look)
    places = {
        joints.NOSE: nose,
        joints.NECK: skeleton.shoulders.mean(0),
        joints.MID_HIP: skeleton.hips.mean(0),
        joints.RIGHT_EYE: head(-29, -30),
        joints.LEFT_EYE: head(29, -30),
        joints.RIGHT_EAR: head(-66, -10),
        joints.LEFT_EAR: head(66, -10),
        **dict(zip(joints.HIPS, skeleton.hips)),
    }
    for side, (shoulder, elbow, wrist) in enumerate((joints.RIGHT_ARM, joints.LEFT_ARM)):
        places |= {shoulder: skeleton.shoulders[side], elbow: skeleton.elbows[side], wrist: skeleton.wrists[side]}
    for joint, place in places.items():
        x, y = np.asarray(place) * W / 768
        if 0 <= x < W and 0 <= y < H:
            keypoints[joint] = x, y, 1
    return keypoints


def draw_lower_body(canvas: Canvas, rng, skeleton: Skeleton, look: Look):
    """Hips and legs, in trousers or a skirt."""
    left, right = skeleton.hips - (0, 54)
    middle = (left + right) / 2
    width = skeleton.hip + 4
    waist_y = middle[1] - 70
    length = rng.uniform(190, 290)
    if look.skirt:
        for hip, label in ((left, labels.RIGHT_LEG_LIP), (right, labels.LEFT_LEG_LIP)):
            canvas.limb(hip * (0.9, 1) + middle * (0.1, 0) + (0, 140), hip + (0, 460), 50, 42, look.skin * 0.98, label)
        hem = middle[1] + length
        shape = [
            (middle[0] - width * 0.82, waist_y),
            (middle[0] + width * 0.82, waist_y),
            (middle[0] + width * 1.04, middle[1] + 30),
            (middle[0] + width * 1.18, hem),
            (middle[0], hem + 10),
            (middle[0] - width * 1.18, hem),
            (middle[0] - width * 1.04, middle[1] + 30),
        ]
        u = width * 1.1
        canvas.polygon(
            smooth(np.array(shape), {0, 1, 3, 5}),
            look.lower,
            labels.SKIRT_LIP,
            lambda x, y: 1.04 - 0.30 * ((x - middle[0]) / u + 0.25) ** 2 + 0.03 * np.sin((x - middle[0]) / 13),
        )
    else:
        reach = 0.5 * width
        for sign in (-1, 1):
            top = np.array([middle[0] + sign * reach * 0.96, middle[1] + 10])
            canvas.limb(top, top + (sign * 8, 460), reach + 10, reach - 8, look.lower, labels.PANTS_LIP, 0.5)
        shape = [
            (middle[0] - width * 0.86, waist_y),
            (middle[0] + width * 0.86, waist_y),
            (middle[0] + width, middle[1]),
            (middle[0] + width * 0.98, middle[1] + 70),
            (middle[0], middle[1] + 110),
            (middle[0] - width * 0.98, middle[1] + 70),
            (middle[0] - width, middle[1]),
        ]
        canvas.polygon(
            smooth(np.array(shape), {0, 1}),
            look.lower,
            labels.PANTS_LIP,
            lambda x, y: 1.04 - 0.34 * ((x - middle[0]) / width + 0.2) ** 2,
        )
        dark = look.lower * 0.6
        canvas.line(
            [(middle[0] + 2, middle[1] + 20), (middle[0], middle[1] + 112), (middle[0] - 1, 1030)], 3, dark, 0.6
        )
        for sign in (-1, 1):
            canvas.line(
                [(middle[0] + sign * width * 0.84, middle[1] - 16), (middle[0] + sign * width * 0.6, middle[1] + 34)],
                3,
                dark,
                0.6,
            )


def draw_torso_skin(canvas: Canvas, skeleton: Skeleton, look: Look, place):
    """Shoulders, chest and neck: what necklines and missing sleeves leave bare."""
    (x, y), (left, right) = skeleton.neck, skeleton.shoulders
    chest = skeleton.chest
    shape = [
        (x + 38, y - 72),
        (x + 56, y - 46),
        right + (-4, -28),
        right + (8, 4),
        (x + chest * 0.84, y + 120),
        (x + chest * 0.7, y + 250),
        (x - chest * 0.7, y + 250),
        (x - chest * 0.84, y + 120),
        left + (-8, 4),
        left + (4, -28),
        (x - 56, y - 46),
        (x - 38, y - 72),
    ]
    canvas.polygon(
        smooth(np.array([np.asarray(p, float) for p in shape])),
        look.skin,
        labels.NECK_LIP,
        lambda px, py: 1.03 - 0.12 * ((px - x) / 150 + 0.2) ** 2 + 0 * py,
    )
    chin = place(0, 60)
    canvas.limb(chin, (x, y - 14), 43, 47, look.skin * 0.97, labels.NECK_LIP, 0.30)
    canvas.glow((chin[0] + 5, chin[1] + 30), 38, 20, look.skin * 0.62, 0.45)
    for sign in (-1, 1):  # collar bones
        canvas.line(
            [(x + sign * 20, y + 6), (x + sign * 58, y - 4), (x + sign * 98, y - 10)], 4, look.skin * 0.72, 0.28
        )


def draw_hand(canvas: Canvas, skeleton: Skeleton, look: Look, side: int, label: int):
    """The hand at the end of one arm; side: 0 or 1."""
    elbow, wrist = skeleton.elbows[side], skeleton.wrists[side]
    along = (wrist - elbow) / np.linalg.norm(wrist - elbow)
    across = np.array([along[1], -along[0]]) * (-1, 1)[side]  # away from the body for a hanging arm
    r = skeleton.arm[2]
    skin = look.skin
    palm = wrist + along * 1.7 * r
    canvas.limb(wrist, palm, r * 0.92, r * 1.02, skin, label)
    for i, length in enumerate((1.55, 1.8, 1.75, 1.35)):
        base = palm + across * r * (-0.72 + 0.48 * i) + along * 0.25 * r
        tip = base + along * r * length + across * r * 0.08 * (i - 1.5)
        canvas.limb(base, tip, r * 0.30, r * 0.22, skin * (0.97 - 0.015 * i), label, 0.5)
    thumb = wrist + along * 0.9 * r - across * r * 0.7
    canvas.limb(thumb, thumb + along * 1.5 * r - across * 0.55 * r, r * 0.34, r * 0.24, skin * 0.98, label, 0.5)


def body_light(canvas: Canvas, skeleton: Skeleton, rng) -> np.ndarray:
    """Brightness of cloth on the body: a round trunk, round sleeves that throw a shadow on it, and folds; (H, W)."""
    H, W, s = canvas.H, canvas.W, canvas.s
    x = (np.arange(W, dtype=np.float32) + 0.5)[None] / s
    y = (np.arange(H, dtype=np.float32) + 0.5)[:, None] / s
    axis = np.interp(y, (skeleton.neck[1], skeleton.hips[:, 1].mean()), (skeleton.neck[0], skeleton.hips[:, 0].mean()))
    u = (x - axis) / (1.25 * skeleton.chest)
    light = (1.06 - 0.24 * (u + 0.22) ** 2).astype(np.float32)
    folds = smooth_noise(rng, (H, W), (6, 9)) * np.clip((y - skeleton.neck[1] - 60) / 300, 0.25, 1)
    light += 0.035 * folds.astype(np.float32)
    for side in (0, 1):
        bones = (skeleton.shoulders[side], skeleton.elbows[side], skeleton.wrists[side])
        for a, b, ra, rb in zip(bones, bones[1:], skeleton.arm, skeleton.arm[1:]):
            field = canvas.limb_field(a, b, ra + 14, rb + 12, 0.5)
            if field is not None:
                where, alpha, brightness = field
                away = np.hypot(x[:, where[1]] - bones[0][0], y[where[0]] - bones[0][1])
                alpha = alpha * np.clip((away - 15) / 90, 0, 1)  # the sleeve grows out of the shoulder
                light[where] += alpha * (brightness - light[where])
    near = cv2.GaussianBlur(light, (0, 0), 6 * s)
    return 0.4 * light + 0.6 * near
