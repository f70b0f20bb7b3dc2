"""The person's pose: BODY_25 keypoints from MediaPipe Pose, and the drawn skeleton P (VITON-HD, section 3.1)."""

import contextlib
import functools
import json
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from vton import joints
from vton.inputs.photo import InputError, crop, frame_person, keypoints_to_photo

OPACITY = 0.6


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
    """Draw the skeleton as OpenPose does: limbs as ellipses in the colour of their second joint, then joints as discs,
    opacity 0.6, on black.

    keypoints: (25, 3) x, y, confidence in pixels of the picture; size: (H, W). Returns (H, W, 3) uint8 RGB.
    Half-width of a limb W / 120, radius of a joint W / 100: measured on the published 768x1024 renderings. Hands and
    face are not drawn. A limb with a missing end is left out.
    """
    H, W = size
    canvas = np.zeros((H, W, 3), np.float32)
    keypoints = np.asarray(keypoints, np.float32)
    visible = joints.present(keypoints)
    points = keypoints[:, :2]
    for a, b in joints.LIMBS:
        if visible[a] and visible[b]:
            axis = points[b] - points[a]
            length = float(np.hypot(*axis))
            if length > 1e-3:
                _blend_ellipse(
                    canvas, (points[a] + points[b]) / 2, axis / length, length / 2, W / 120, joints.COLOURS[b]
                )
    for i in np.flatnonzero(visible):
        _blend_ellipse(canvas, points[i], (1.0, 0.0), W / 100, W / 100, joints.COLOURS[i])
    return canvas.astype(np.uint8)


def mirror_keypoints(keypoints: np.ndarray, width: int) -> np.ndarray:
    """(25, 3) keypoints of the mirror image of a picture `width` pixels wide: left joints become right ones."""
    keypoints = np.asarray(keypoints, np.float32)
    out = keypoints.copy()
    out[:, 0] = width - 1 - keypoints[:, 0]
    out[~joints.present(keypoints)] = 0
    return out[joints.FLIP]


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


# BODY_25 joint -> MediaPipe landmark. Neck and mid hip are middles, small toes have no counterpart.
_LANDMARK = {joints.JOINTS.index(name): landmark for name, landmark in (("nose", 0), ("right eye", 5), ("left eye", 2))}
for _part, _left in zip(
    ("ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle", "heel", "big toe"),
    (7, 11, 13, 15, 23, 25, 27, 29, 31),
):
    _LANDMARK |= {joints.JOINTS.index(f"left {_part}"): _left, joints.JOINTS.index(f"right {_part}"): _left + 1}
_MIDDLES = {joints.NECK: joints.SHOULDERS, joints.MID_HIP: joints.HIPS}
# A joint of an arm, a leg or a foot is lost with its parent; parents come first.
_PARENTS = [
    (b, a)
    for a, b in joints.LIMBS
    if a not in (joints.NECK, joints.MID_HIP, joints.NOSE, joints.RIGHT_EYE, joints.LEFT_EYE)
]
MIN_VISIBILITY = 0.5
WORKING_SIZE = 1024
MIN_WINDOW = 400  # pixels; smaller parts of a photo are not searched
MIN_TRUNK = 64  # pixels from neck to hips of a person who is looked for in parts of a photo

NOBODY = "No person was found; use a photo that shows one person from the front, from head to hips."


@dataclass(frozen=True)
class Pose:
    """A person in a photo."""

    keypoints: np.ndarray  # (25, 3) float32 x, y, confidence in pixels of the photo, missing joints are 0, 0, 0
    person_mask: np.ndarray  # (H, W) float32, 0 to 1, 1 is person
    others: int = 0  # how many more people were seen (0 or 1)


_lock = threading.Lock()


@contextlib.contextmanager
def _silent_stderr():
    """MediaPipe's C++ part logs to descriptor 2, where Python's sys.stderr cannot stop it."""
    try:
        sys.stderr.flush()
        original, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except (OSError, AttributeError, ValueError):  # no stderr at all
        yield
        return
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)
        os.close(null)


@functools.cache
def _estimator() -> Any:
    """MediaPipe's estimator; an instance takes a second to build, so one serves all."""
    from mediapipe.python.solutions.pose import Pose as MediaPipePose

    # model_complexity 1 is the model that the wheel carries; 0 and 2 would be downloaded.
    return MediaPipePose(static_image_mode=True, model_complexity=1, enable_segmentation=True)


def _estimate(photo: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """MediaPipe on one picture. Returns (33, 3) float64 x, y in 0 to 1 and visibility, and the (H, W) mask; or None."""
    with _lock, _silent_stderr():  # two threads inside one instance raise
        answer = _estimator().process(np.ascontiguousarray(photo))
    if answer.pose_landmarks is None or answer.segmentation_mask is None:
        return None
    landmarks = np.array([(p.x, p.y, p.visibility) for p in answer.pose_landmarks.landmark])
    return landmarks, np.array(answer.segmentation_mask, np.float32).clip(0, 1)


_MIRROR_LANDMARKS = np.array([0, 4, 5, 6, 1, 2, 3, 8, 7, 10, 9] + [i + 1 if i % 2 else i - 1 for i in range(11, 33)])


def _estimate_both(photo: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The photo and its mirror image, as `_estimate` gives them; one answer, or two when they see two people.

    Of one person, landmarks that agree are averaged, others take the more visible answer at reduced confidence.
    """
    plain, mirror = _estimate(photo), _estimate(photo[:, ::-1])
    if mirror is not None:
        mirror = _unmirror(mirror[0]), mirror[1][:, ::-1]
    if plain is None or mirror is None:
        return [answer for answer in (plain, mirror) if answer is not None]
    (a, mask_a), (b, mask_b) = plain, mirror
    if _overlap(mask_a, mask_b) < 0.4:
        return [plain, mirror]
    hw = np.array(photo.shape[1::-1])
    trunk = np.linalg.norm((a[[11, 12], :2].mean(0) - a[[23, 24], :2].mean(0)) * hw)
    apart = np.linalg.norm((a[:, :2] - b[:, :2]) * hw, axis=1)
    best = np.where((a[:, 2] >= b[:, 2])[:, None], a, b)
    best[:, 2] *= 0.8
    mean = np.where((apart <= 0.15 * trunk)[:, None], (a + b) / 2, best)
    return [(mean, (mask_a + mask_b) / 2)]


def _overlap(mask_a: np.ndarray, mask_b: np.ndarray) -> float:
    """Share of the smaller silhouette that the larger one covers."""
    a, b = mask_a > 0.5, mask_b > 0.5
    return float((a & b).sum() / max(1, min(a.sum(), b.sum())))


def _unmirror(landmarks: np.ndarray) -> np.ndarray:
    landmarks = landmarks[_MIRROR_LANDMARKS].copy()
    landmarks[:, 0] = 1 - landmarks[:, 0]
    return landmarks


def _to_body_25(landmarks: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(33, 3) landmarks, (H, W) mask -> (25, 3) keypoints in pixels of the mask; doubtful joints become 0, 0, 0."""
    H, W = mask.shape
    keypoints = np.zeros((25, 3))
    for joint, landmark in _LANDMARK.items():
        keypoints[joint] = landmarks[landmark] * (W, H, 1)
    for joint, (a, b) in _MIDDLES.items():
        keypoints[joint, :2] = (keypoints[a, :2] + keypoints[b, :2]) / 2
        keypoints[joint, 2] = min(keypoints[a, 2], keypoints[b, 2])
    trunk = np.linalg.norm(keypoints[joints.NECK, :2] - keypoints[joints.MID_HIP, :2])
    outside = cv2.distanceTransform((mask < 0.5).astype(np.uint8), cv2.DIST_L2, 5)
    for joint, (x, y, visibility) in enumerate(keypoints):
        inside = 0 <= x < W and 0 <= y < H
        if visibility < MIN_VISIBILITY or not inside or outside[int(y), int(x)] > max(0.1 * trunk, 0.01 * H):
            keypoints[joint] = 0
    for joint, parent in _PARENTS:
        if not keypoints[parent].any():
            keypoints[joint] = 0
    return keypoints.astype(np.float32)


def _plausible(keypoints: np.ndarray, mask: np.ndarray) -> bool:
    """A person has both shoulders and a silhouette that is more than a speck."""
    visible = joints.present(keypoints)
    return bool(visible[list(joints.SHOULDERS)].all() and (mask > 0.5).mean() > 0.002)


def _find(photo: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Plausible people, as keypoints (25, 3) and mask (H, W): none, one, or two where photo and mirror image differ."""
    people = [(_to_body_25(*answer), answer[1]) for answer in _estimate_both(photo)]
    return [person for person in people if _plausible(*person)]


def _confirm(photo: np.ndarray, keypoints: np.ndarray) -> bool:
    """Look again, at the frame around the person only: a real one is found in the same place."""
    try:
        frame = frame_person(keypoints, photo.shape[:2])
    except InputError:
        return False
    again = _find(crop(photo, frame, (512, 384)))
    if len(again) != 1:
        return False
    points = keypoints_to_photo(again[0][0], frame, (512, 384))
    trunk = np.linalg.norm(keypoints[joints.MID_HIP, :2] - keypoints[joints.NECK, :2])
    both = joints.present(points) & joints.present(keypoints)
    apart = np.linalg.norm(points[:, :2] - keypoints[:, :2], axis=1)
    return bool(both[[joints.NOSE, *joints.TRUNK]].all() and np.median(apart[both]) < 0.12 * trunk)


def _find_small(photo: np.ndarray, hw: tuple[int, int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The person of a wide scene, looked for in overlapping windows: MediaPipe misses people under half its picture.

    photo: (H, W, 3) uint8; the answer, none or one, is in pixels of the picture's copy of size hw.
    """
    H, W = photo.shape[:2]
    for share in (0.6, 0.36):
        side = round(share * max(H, W))
        if side < MIN_WINDOW:
            break
        h, w = min(H, side), min(W, side)
        candidates = []
        for top in np.linspace(0, H - h, 1 + int(np.ceil((H - h) / (0.6 * h)))).astype(int):
            for left in np.linspace(0, W - w, 1 + int(np.ceil((W - w) / (0.6 * w)))).astype(int):
                window = photo[top : top + h, left : left + w]
                ratio = min(1.0, 512 / max(h, w))
                answer = _estimate(cv2.resize(window, None, fx=ratio, fy=ratio, interpolation=cv2.INTER_AREA))
                if answer is None:
                    continue
                keypoints = _to_body_25(*answer) / (ratio, ratio, 1)
                trunk = np.linalg.norm(keypoints[joints.MID_HIP, :2] - keypoints[joints.NECK, :2])
                # Patterns look like tiny people now and then; people that small are of no use anyway.
                if (
                    joints.present(keypoints)[[joints.NOSE, joints.NECK, *joints.SHOULDERS, joints.MID_HIP]].all()
                    and trunk >= MIN_TRUNK
                    and _confirm(window, keypoints)
                ):
                    # A window through somebody's body shows less of a person than the window beside it.
                    whole = float(keypoints[[joints.NOSE, *joints.TRUNK], 2].sum())
                    candidates.append((whole, top, left, keypoints, answer[1]))
        if candidates:
            _, top, left, keypoints, mask = max(candidates, key=lambda one: one[0])
            there = joints.present(keypoints)
            keypoints[there, :2] = (keypoints[there, :2] + (left, top)) * (hw[1] / W, hw[0] / H)
            full = np.zeros((H, W), np.float32)
            full[top : top + h, left : left + w] = cv2.resize(mask, (w, h), interpolation=cv2.INTER_LINEAR)
            return [(keypoints.astype(np.float32), cv2.resize(full, hw[::-1], interpolation=cv2.INTER_AREA))]
    return []


def _paint_over(photo: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Cover the box around a silhouette with the colour around it; its shape alone would be found again."""
    rows, columns = np.flatnonzero((mask > 0.3).any(1)), np.flatnonzero((mask > 0.3).any(0))
    margin = max(4, len(columns) // 20)
    box = (slice(max(0, rows[0] - margin), rows[-1] + margin), slice(max(0, columns[0] - margin), columns[-1] + margin))
    rest = np.ones(photo.shape[:2], bool)
    rest[box] = False
    out = photo.copy()
    out[box] = np.median(photo[rest], axis=0) if rest.any() else 128
    return out


def detect(photo: np.ndarray, search: bool = True) -> Pose:
    """Find the person in a photograph.

    photo: (H, W, 3) uint8 RGB, upright; search: look for a small person in its parts when the whole shows none.
    Returns a Pose in pixels of the photo. Of several people the one with the largest silhouette is taken, and `others`
    is 1. Raises InputError when nobody is found. Left and right are the person's own.
    """
    photo = np.asarray(photo)
    if photo.ndim != 3 or photo.shape[2] != 3 or photo.dtype != np.uint8:
        raise ValueError("The photo is an (H, W, 3) uint8 RGB picture.")
    H, W = photo.shape[:2]
    ratio = min(1.0, WORKING_SIZE / max(H, W))
    size = (max(1, round(W * ratio)), max(1, round(H * ratio)))
    small = cv2.resize(photo, size, interpolation=cv2.INTER_AREA) if ratio < 1 else photo

    people = _find(small) or (_find_small(photo, small.shape[:2]) if search else [])
    if not people:
        raise InputError(NOBODY)
    if len(people) == 1:
        # MediaPipe reports one person; with that one painted over it reports the next.
        people += [other for other in _find(_paint_over(small, people[0][1])) if _overlap(people[0][1], other[1]) < 0.2]
    area = [float((mask > 0.5).sum()) for _, mask in people]
    keypoints, mask = people[int(np.argmax(area))]
    others = int(sorted(area)[-2] > 0.15 * max(area)) if len(people) > 1 else 0
    keypoints = keypoints.copy()
    keypoints[:, :2] *= (W / small.shape[1], H / small.shape[0])
    return Pose(keypoints, cv2.resize(mask, (W, H), interpolation=cv2.INTER_LINEAR), others)


def facing(keypoints: np.ndarray) -> str:
    """The side of a person that is seen: "front", "side", "back", or "unknown"; keypoints (25, 3).

    Unknown is a person without shoulders, and one in a photograph that lies on its side: left and right say nothing
    there.
    """
    k, visible = np.asarray(keypoints), joints.present(keypoints)
    if not visible[list(joints.SHOULDERS)].all() or lies(k):
        return "unknown"
    if joints.distance(k, *joints.SHOULDERS) < 0.35 * joints.distance(k, joints.NECK, joints.MID_HIP):
        return "side"  # there, which shoulder comes first says nothing
    return "back" if k[joints.RIGHT_SHOULDER, 0] > k[joints.LEFT_SHOULDER, 0] else "front"


def lies(keypoints: np.ndarray) -> bool:
    """Whether the trunk is more level than upright, or upside down, as in a photograph that was not turned."""
    k, visible = np.asarray(keypoints), joints.present(keypoints)
    if not (visible[joints.MID_HIP] and visible[joints.NECK]):
        return False
    right, down = k[joints.MID_HIP, :2] - k[joints.NECK, :2]
    return bool(down < abs(right))


def check(pose: Pose, hw: tuple[int, int]) -> list[str]:
    """What makes a photo unsuited: sentences for the visitor, none when all is well.

    pose: in pixels of the photo; hw: the photo's (H, W).
    """
    k, visible = pose.keypoints, joints.present(pose.keypoints)
    notes = []
    if pose.others:
        notes.append("Several people are in the photo; the largest one is dressed.")
    shoulders, view = joints.distance(k, *joints.SHOULDERS), facing(k)
    if lies(k):
        notes.append("The photo seems to lie on its side; turn it upright first.")
    if view == "back":
        notes.append("The person seems to be seen from behind; a photo from the front gives a better result.")
    elif view == "side":
        notes.append("The person stands sideways; a photo from the front gives a better result.")
    if not visible[joints.MID_HIP]:
        notes.append(
            "The hips are not in the photo, so the garment's lower edge is a guess; show the person down to the thighs."
        )
    else:
        legs = (leg[:2] for leg in (joints.RIGHT_LEG, joints.LEFT_LEG))
        thighs = [float(k[knee, 1] - k[hip, 1]) for hip, knee in legs if visible[hip] and visible[knee]]
        if thighs and max(thighs) < 0.45 * joints.distance(k, joints.NECK, joints.MID_HIP):
            notes.append("The person seems to sit; a standing person gives a better result.")
    for side, (shoulder, elbow, wrist) in joints.ARMS.items():
        if visible[shoulder] and not visible[elbow]:
            notes.append(f"The {side} arm is hidden or cut off; the sleeve there is a guess.")
        elif visible[shoulder] and not visible[wrist]:
            notes.append(f"The {side} forearm is hidden or cut off; the sleeve there is a guess.")
    wrists = [joints.RIGHT_WRIST, joints.LEFT_WRIST]
    if view == "front" and visible[wrists].all() and k[wrists[0], 0] > k[wrists[1], 0]:
        notes.append("The arms are crossed in front of the body; let them hang at the sides for a better result.")
    if shoulders and shoulders < 0.06 * min(hw):
        notes.append("The person is small in the photo; come closer for a sharper result.")
    return notes


def along_arm(
    keypoints: np.ndarray, joints: tuple[int, int, int], size: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Place along an arm, (H, W): 0 shoulder, 1 elbow, 2 wrist, more beyond it; and the distance in upper arms, (H, W).

    keypoints: (25, 3) in pixels of a picture of `size` (H, W); joints: its shoulder, elbow and wrist, all three found.
    """
    a, b, c = (np.asarray(keypoints[j][:2], np.float64) for j in joints)
    y, x = np.mgrid[: size[0], : size[1]]
    unit = max(float(np.linalg.norm(b - a)), 1.0)

    def segment(p, q):
        d = q - p
        share = ((x - p[0]) * d[0] + (y - p[1]) * d[1]) / max(float(d @ d), 1e-6)
        near = share.clip(0, 1)
        return share, np.hypot(x - p[0] - near * d[0], y - p[1] - near * d[1]) / unit

    upper, upper_distance = segment(a, b)
    lower, lower_distance = segment(b, c)
    first = upper_distance <= lower_distance
    return np.where(first, upper.clip(0, 1), 1 + lower.clip(min=0)), np.where(first, upper_distance, lower_distance)
