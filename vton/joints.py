"""The 25 body joints of OpenPose (BODY_25) by name. Left and right are the person's own.

Keypoints are (25, 3) arrays x, y, confidence; a row of zeros is a missing joint.
"""

import numpy as np

from training.files import read_table
from vton.labels import mirror

# Each with the colour in which OpenPose draws it.
_JOINTS = read_table(__file__)
JOINTS = tuple(name for name, _ in _JOINTS)
COLOURS = np.array([colour for _, colour in _JOINTS], np.float32)
NOSE, NECK, MID_HIP = (JOINTS.index(name) for name in ("nose", "neck", "mid hip"))
# Shoulder, elbow and wrist; hip, knee and ankle.
RIGHT_ARM = RIGHT_SHOULDER, RIGHT_ELBOW, RIGHT_WRIST = (2, 3, 4)
LEFT_ARM = LEFT_SHOULDER, LEFT_ELBOW, LEFT_WRIST = (5, 6, 7)
RIGHT_LEG = RIGHT_HIP, RIGHT_KNEE, RIGHT_ANKLE = (9, 10, 11)
LEFT_LEG = LEFT_HIP, LEFT_KNEE, LEFT_ANKLE = (12, 13, 14)
RIGHT_EYE, LEFT_EYE, RIGHT_EAR, LEFT_EAR = 15, 16, 17, 18

SHOULDERS = (RIGHT_SHOULDER, LEFT_SHOULDER)
HIPS = (RIGHT_HIP, LEFT_HIP)
TRUNK = (*SHOULDERS, *HIPS)
ARMS = {"right": RIGHT_ARM, "left": LEFT_ARM}
UPPER_BODY = (NOSE, NECK, *RIGHT_ARM, *LEFT_ARM, MID_HIP, *HIPS)  # the joints that a try-on reads

FLIP = mirror(JOINTS)  # joint -> joint of the mirrored picture

# OpenPose's limbs, from joint to joint along chains, in the order in which it draws them.
CHAINS = (
    (NECK, MID_HIP),
    (NECK, RIGHT_SHOULDER),
    (NECK, LEFT_SHOULDER),
    RIGHT_ARM,
    LEFT_ARM,
    (MID_HIP, *RIGHT_LEG),
    (MID_HIP, *LEFT_LEG),
    (NECK, NOSE),
    (NOSE, RIGHT_EYE, RIGHT_EAR),
    (NOSE, LEFT_EYE, LEFT_EAR),
    (LEFT_ANKLE, 19, 20),  # big and small toe
    (LEFT_ANKLE, 21),  # heel
    (RIGHT_ANKLE, 22, 23),
    (RIGHT_ANKLE, 24),
)
LIMBS = tuple(limb for chain in CHAINS for limb in zip(chain, chain[1:]))


def present(keypoints: np.ndarray) -> np.ndarray:
    """(25, 3) x, y, confidence -> (25,) bool, True where the joint was found: finite, confident, not at (0, 0)."""
    keypoints = np.asarray(keypoints)
    if keypoints.shape != (25, 3):
        raise ValueError(f"Keypoints are 25 rows of x, y, confidence (BODY_25), not {keypoints.shape}.")
    with np.errstate(invalid="ignore"):
        return np.isfinite(keypoints).all(1) & (keypoints[:, 2] > 0) & (keypoints[:, :2] != 0).any(1)


def distance(keypoints: np.ndarray, a: int, b: int) -> float:
    """Pixels between two joints of (25, 3) x, y, confidence; 0 where one of them is missing."""
    there = present(keypoints)
    return float(np.linalg.norm(keypoints[a, :2] - keypoints[b, :2])) if there[a] and there[b] else 0.0
