"""The 25 body joints of OpenPose (BODY_25) by name. Left and right are the person's own.

Keypoints are (25, 3) arrays x, y, confidence; a row of zeros is a missing joint.
"""

from __future__ import annotations

import numpy as np

JOINTS = (
    "nose",
    "neck",
    "right shoulder",
    "right elbow",
    "right wrist",
    "left shoulder",
    "left elbow",
    "left wrist",
    "mid hip",
    "right hip",
    "right knee",
    "right ankle",
    "left hip",
    "left knee",
    "left ankle",
    "right eye",
    "left eye",
    "right ear",
    "left ear",
    "left big toe",
    "left small toe",
    "left heel",
    "right big toe",
    "right small toe",
    "right heel",
)
NOSE, NECK, MID_HIP = (JOINTS.index(name) for name in ("nose", "neck", "mid hip"))
# Shoulder, elbow and wrist; hip, knee and ankle.
RIGHT_ARM = RIGHT_SHOULDER, RIGHT_ELBOW, RIGHT_WRIST = (2, 3, 4)
LEFT_ARM = LEFT_SHOULDER, LEFT_ELBOW, LEFT_WRIST = (5, 6, 7)
RIGHT_LEG = RIGHT_HIP, RIGHT_KNEE, RIGHT_ANKLE = (9, 10, 11)
LEFT_LEG = LEFT_HIP, LEFT_KNEE, LEFT_ANKLE = (12, 13, 14)
RIGHT_EYE, LEFT_EYE, RIGHT_EAR, LEFT_EAR = 15, 16, 17, 18
LEFT_BIG_TOE, LEFT_SMALL_TOE, LEFT_HEEL = 19, 20, 21
RIGHT_BIG_TOE, RIGHT_SMALL_TOE, RIGHT_HEEL = 22, 23, 24

SHOULDERS = (RIGHT_SHOULDER, LEFT_SHOULDER)
HIPS = (RIGHT_HIP, LEFT_HIP)
TRUNK = (*SHOULDERS, *HIPS)
ARMS = {"right": RIGHT_ARM, "left": LEFT_ARM}
UPPER_BODY = (NOSE, NECK, *RIGHT_ARM, *LEFT_ARM, MID_HIP, *HIPS)  # the joints that a try-on reads

# Joint -> joint of the mirrored picture.
FLIP = np.array(
    [JOINTS.index(name.replace("right", "LEFT").replace("left", "right").replace("LEFT", "left")) for name in JOINTS]
)


def present(keypoints: np.ndarray) -> np.ndarray:
    """(25, 3) x, y, confidence -> (25,) bool, True where the joint was found: finite, confident, not at (0, 0)."""
    keypoints = np.asarray(keypoints)
    if keypoints.shape != (25, 3):
        raise ValueError(f"Keypoints are 25 rows of x, y, confidence (BODY_25), not {keypoints.shape}.")
    with np.errstate(invalid="ignore"):
        return np.isfinite(keypoints).all(1) & (keypoints[:, 2] > 0) & (keypoints[:, :2] != 0).any(1)
