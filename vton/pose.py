"""The person's pose: BODY_25 keypoints from MediaPipe Pose, and the drawn skeleton P (VITON-HD, section 3.1)."""

import json
from pathlib import Path

import numpy as np

# OpenPose's BODY_25 limbs in the order in which OpenPose draws them; a limb has the colour of its second joint.
LIMBS = (
    (1, 8), (1, 2), (1, 5), (2, 3), (3, 4), (5, 6), (6, 7), (8, 9), (9, 10), (10, 11), (8, 12), (12, 13), (13, 14),
    (1, 0), (0, 15), (15, 17), (0, 16), (16, 18), (14, 19), (19, 20), (14, 21), (11, 22), (22, 23), (11, 24),
)
COLOURS = np.array([
    (255, 0, 85), (255, 0, 0), (255, 85, 0), (255, 170, 0), (255, 255, 0), (170, 255, 0), (85, 255, 0), (0, 255, 0),
    (255, 0, 0), (0, 255, 85), (0, 255, 170), (0, 255, 255), (0, 170, 255), (0, 85, 255), (0, 0, 255), (255, 0, 170),
    (170, 0, 255), (255, 0, 255), (85, 0, 255), (0, 0, 255), (0, 0, 255), (0, 0, 255), (0, 255, 255), (0, 255, 255),
    (0, 255, 255),
], np.float32)
OPACITY = 0.6
JOINTS = (
    "nose", "neck", "right shoulder", "right elbow", "right wrist", "left shoulder", "left elbow", "left wrist",
    "mid hip", "right hip", "right knee", "right ankle", "left hip", "left knee", "left ankle", "right eye",
    "left eye", "right ear", "left ear", "left big toe", "left small toe", "left heel", "right big toe",
    "right small toe", "right heel",
)
# Keypoint -> keypoint of the mirrored picture.
FLIP = np.array([0, 1, 5, 6, 7, 2, 3, 4, 8, 12, 13, 14, 9, 10, 11, 16, 15, 18, 17, 22, 23, 24, 19, 20, 21])


def present(keypoints: np.ndarray) -> np.ndarray:
    """(25, 3) x, y, confidence -> (25,) bool, True where the joint was found: finite, confident, not at (0, 0)."""
    keypoints = np.asarray(keypoints)
    if keypoints.shape != (25, 3):
        raise ValueError(f"Keypoints are 25 rows of x, y, confidence (BODY_25), not {keypoints.shape}.")
    with np.errstate(invalid="ignore"):
        return np.isfinite(keypoints).all(1) & (keypoints[:, 2] > 0) & (keypoints[:, :2] != 0).any(1)


def _blend_ellipse(canvas, centre, axis, half_length, half_width, colour):
    """Blend a filled ellipse into canvas (H, W, 3) float32; `axis` is the unit vector of its length."""
    H, W = canvas.shape[:2]
    reach_x = np.hypot(half_length * axis[0], half_width * axis[1]) + 1
    reach_y = np.hypot(half_length * axis[1], half_width * axis[0]) + 1
    x0, x1 = max(0, int(centre[0] - reach_x)), min(W, int(centre[0] + reach_x) + 2)
    y0, y1 = max(0, int(centre[1] - reach_y)), min(H, int(centre[1] + reach_y) + 2)
    if x0 >= x1 or y0 >= y1:
        return
    dx = np.arange(x0, x1, dtype=np.float32) - np.float32(centre[0])
    dy = (np.arange(y0, y1, dtype=np.float32) - np.float32(centre[1]))[:, None]
    u = (dx * axis[0] + dy * axis[1]) / half_length
    v = (dy * axis[0] - dx * axis[1]) / half_width
    value = np.sqrt(u * u + v * v)
    # First-order distance to the outline in pixels, so that thin limbs of small pictures are smooth.
    gradient = np.sqrt((u / half_length) ** 2 + (v / half_width) ** 2)
    distance = (1 - value) * value / np.maximum(gradient, 1e-6)
    alpha = OPACITY * np.where(value < 0.5, 1, np.clip(distance + 0.5, 0, 1))[..., None]
    window = canvas[y0:y1, x0:x1]
    window += alpha * (colour - window)


def draw_pose(keypoints: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Draw the skeleton as OpenPose does: limbs as ellipses, then joints as discs, opacity 0.6, on black.

    keypoints: (25, 3) x, y, confidence in pixels of the picture; size: (H, W). Returns (H, W, 3) uint8 RGB.
    Half-width of a limb W / 120, radius of a joint W / 100: measured on the published 768x1024 renderings. Hands and
    face are not drawn. A limb with a missing end is left out.
    """
    H, W = size
    canvas = np.zeros((H, W, 3), np.float32)
    keypoints = np.asarray(keypoints, np.float32)
    found = present(keypoints)
    points = keypoints[:, :2]
    for a, b in LIMBS:
        if found[a] and found[b]:
            axis = points[b] - points[a]
            length = float(np.hypot(*axis))
            if length > 1e-3:
                _blend_ellipse(canvas, (points[a] + points[b]) / 2, axis / length, length / 2, W / 120, COLOURS[b])
    for i in np.flatnonzero(found):
        _blend_ellipse(canvas, points[i], (1.0, 0.0), W / 100, W / 100, COLOURS[i])
    return canvas.astype(np.uint8)


def load_openpose_json(path) -> np.ndarray:
    """Read the first person's BODY_25 keypoints of an OpenPose file.

    Returns (25, 3) float32 x, y, confidence in pixels; all zero when the file holds nobody.
    Raises FileNotFoundError or ValueError with one sentence for a missing or foreign file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no keypoint file {path.name}; OpenPose writes NAME_keypoints.json.")
    try:
        people = json.loads(path.read_text())["people"]
        if not people:
            return np.zeros((25, 3), np.float32)
        values = np.array(people[0]["pose_keypoints_2d"], np.float32)
    except (ValueError, KeyError, TypeError, IndexError, UnicodeDecodeError):
        raise ValueError(f"{path.name} is not an OpenPose keypoint file.") from None
    if values.shape != (75,):
        raise ValueError(f"{path.name} holds {values.size // 3} body joints, but BODY_25 has 25.")
    return values.reshape(25, 3)
