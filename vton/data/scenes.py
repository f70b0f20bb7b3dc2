"""People in their frames as ALIAS trains on them: each with its maps, made once and then read from a file.

A scene is what a photograph says about one person in one frame. `dress` makes a training sample of it: the wall behind
the person, the garment's colours, the gray region and the garment given as W(c, theta) are drawn anew each time.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from vton import labels
from vton.data.draped.people import DrapedPeople
from vton.data.pack import Pack, change_colours, maps_in_frame, shift_frame, turn_hue
from vton.data.pairs import WHITE, wobble
from vton.geometry import affine
from vton.inputs import pose
from vton.inputs.agnostic import agnostic_image, margin_at, open_gray
from vton.inputs.photo import disc

WALL, PASTE, HAIR = (labels.ALIAS.index(name) for name in ("background", "paste", "hair"))
UPPER, ARMS = labels.ALIAS.index("upper"), (labels.ALIAS.index("left arm"), labels.ALIAS.index("right arm"))


@dataclass
class Scene:
    """One person, as photographed or draped."""

    picture: np.ndarray  # (H,W,3) uint8
    pose: np.ndarray  # (H,W,3) uint8
    classes: np.ndarray  # (H,W) uint8 of ALIAS
    gray: np.ndarray  # (H,W) bool, painted in I_a
    carried: np.ndarray  # (H,W) bool, out of every loss
    neck: np.ndarray  # (H,W) bool, bare
    silhouette: np.ndarray  # (H,W) float32 in [0, 1], 0 = background
    warped: np.ndarray  # (H,W,3) uint8, of draped people the product picture by the true warp
    warped_mask: np.ndarray  # (H,W) bool, where it is cloth

    @property
    def skin(self) -> np.ndarray:
        """(H, W) bool: bare arms and neck."""
        return self.neck | np.isin(self.classes, ARMS)


class Scenes:
    """The people of one split at one size (H, W), each in `variants` frames. A scene depends on its number alone.

    cache: folder for finished scenes, a file each; None = each is made anew whenever it is asked for. Draped people
    come after the photographed ones; share: theirs of what is drawn at random. Without a pack all are draped.
    """

    def __init__(
        self,
        pack: Pack | None,
        size: tuple[int, int],
        split: str = "train",
        variants: int = 4,
        cache: Path | None = None,
        draped: DrapedPeople | None = None,
        share: float = 1.0,
    ):
        self.pack, self.size, self.variants, self.draped, self.share = pack, size, variants, draped, share
        if pack is None and draped is None:
            raise ValueError("Scenes come from a packed file of photographs, from draped people, or from both.")
        self.people = pack.people(split) if pack else []
        count = (draped.drawing_count or 2 * len(draped.records)) if draped else 0
        self.draped_numbers = range(len(self.people) * variants, len(self.people) * variants + count)
        self.folder: Path | None = None
        if cache:
            content: list = [len(draped.drapes), count] if draped else []
            if pack:
                content += [[pack.names[n] for n in self.people], pack.person(self.people[0]).image.shape]
            key = hashlib.sha256(f"{size} {variants} {content}".encode()).hexdigest()[:12]
            self.folder = cache / f"scenes-{key}"
            self.folder.mkdir(parents=True, exist_ok=True)

    def draw(self, rng: np.random.Generator) -> Scene:
        """A scene at random that shows enough of a garment."""
        while True:
            from_photo = self.people and (not self.draped or rng.random() >= self.share)
            number = rng.integers(self.draped_numbers.start) if from_photo else rng.choice(self.draped_numbers)
            scene = self[int(number)]
            if has_garment(scene):
                return scene

    def __getitem__(self, number: int) -> Scene:
        file = self.folder / f"{number}.npz" if self.folder else None
        if file and file.is_file():
            with np.load(file, allow_pickle=False) as maps:
                return Scene(**maps)
        scene = self._make(number)
        if file:
            part = file.with_name(f".{number}-{os.getpid()}.npz")  # several workers may make the same one
            np.savez_compressed(part, **vars(scene))
            os.replace(part, file)
        return scene

    def _make(self, number: int) -> Scene:
        if self.draped and number in self.draped_numbers:
            return draped_scene(self.draped, number - self.draped_numbers.start)
        assert self.pack is not None  # without one all are draped
        person = self.pack.person(self.people[number // self.variants])
        variant, frame = number % self.variants, person.frame.copy()
        rng, angle = np.random.default_rng([number, 77]), 0.0
        if variant:  # the first one is the frame as the pipeline takes it
            frame, angle = shift_frame(frame, rng, 0.05, 0.1), rng.normal(0, 3)
        matrix, mirror = affine(frame, self.size, angle, variant % 2 == 1), variant % 2 == 1
        image = cv2.warpAffine(
            person.image, matrix, self.size[::-1], flags=cv2.INTER_AREA, borderMode=cv2.BORDER_REPLICATE
        )
        parse, carried, keypoints = maps_in_frame(person, matrix, self.size, mirror)
        return make_scene(image, parse, keypoints, carried)


def has_garment(scene: Scene) -> bool:
    """Whether a scene shows enough of a garment to learn from."""
    return bool((scene.classes == UPPER).mean() > 0.03)


def draped_scene(people: DrapedPeople, number: int) -> Scene:
    """A draped person with the product picture by the true warp."""
    image, parse, keypoints, pair = people.sample(number, np.random.default_rng([number, 78]), number % 2 == 1)
    assert pair.grid is not None  # draped people's warps are known
    height, width = parse.shape
    at = ((pair.grid + 1) * np.array([width, height], np.float32) - 1) / 2
    warped = cv2.remap(pair.cloth, at.astype(np.float32), None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return make_scene(image, parse, keypoints, np.zeros(parse.shape, bool), warped, pair.truth_mask)


def make_scene(
    image: np.ndarray,
    parse: np.ndarray,
    keypoints: np.ndarray,
    carried: np.ndarray,
    warped: np.ndarray | None = None,
    warped_mask: np.ndarray | None = None,
) -> Scene:
    """The scene of a picture with LIP labels, joints and carried mask, and the cloth by its true warp where known."""
    body = cv2.GaussianBlur(((parse > 0) | carried).astype(np.float32), (0, 0), image.shape[1] / 256)
    silhouette = np.clip(2 * body - 1, 0, 1)  # inside the outline alone, where nothing of the old background is left
    return Scene(
        picture=image,
        pose=pose.draw_pose(keypoints, parse.shape),
        classes=labels.thirteen_to_7(labels.lip_to_13(parse)),
        gray=(agnostic_image(image, parse, keypoints, thorough=True) == 128).all(2),
        carried=carried,
        neck=parse == labels.NECK_LIP,
        silhouette=(255 * silhouette).astype(np.uint8) / np.float32(255),  # in the steps that runs so far have seen
        warped=np.zeros_like(image) if warped is None else warped,
        warped_mask=np.zeros(parse.shape, bool) if warped_mask is None else warped_mask,
    )


# -- windows -------------------------------------------------------------------------------------------------------


def halve(scene: Scene) -> Scene:
    """The scene at half the height and width."""
    size = scene.classes.shape[1] // 2, scene.classes.shape[0] // 2

    def small(name):
        a = np.ascontiguousarray(getattr(scene, name))
        if a.dtype == bool:
            return cv2.resize(a.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
        return cv2.resize(a, size, interpolation=cv2.INTER_NEAREST if name == "classes" else cv2.INTER_AREA)

    return Scene(*map(small, Scene.__dataclass_fields__))


def random_crop(scene: Scene, rng: np.random.Generator) -> Scene:
    """A window of half the height and width at full resolution, around a random pixel of the gray region."""
    height, width = scene.classes.shape
    ys, xs = np.nonzero(scene.gray) if scene.gray.any() else ([height // 2], [width // 2])
    pick = int(rng.integers(len(ys)))
    y = int(np.clip(ys[pick] - height // 4, 0, height - height // 2))
    x = int(np.clip(xs[pick] - width // 4, 0, width - width // 2))
    window = np.s_[y : y + height // 2, x : x + width // 2]
    return Scene(*(getattr(scene, name)[window] for name in Scene.__dataclass_fields__))


# -- a training sample ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """Shares of the samples that are changed, in [0, 1]."""

    studio: float = 0.5  # a plain wall behind the person
    recoloured: float = 0.4  # another hue of the garment
    flattened: float = 0.6  # W(c, theta) without the photograph's light
    cut: float = 0.7  # parts of the garment are missing in W(c, theta)
    bent: float = 0.35  # W(c, theta) is a little deformed,
    deformation: float = 0.01  # by so many picture widths
    shown: float = 0.0  # I_a shows parts of what stays as it was, see `open_parts`
    lowered: float = 0.0  # I_a hides what a longer old garment would, see `below_hem`


def dress(scene: Scene, rng: np.random.Generator, look: Look = Look()) -> dict[str, np.ndarray]:
    """One sample of a scene: person, agnostic, pose, warped (H,W,3) uint8; warped_mask, region, carried, skin, rim
    (1,H,W) bool; segmentation (7,H,W) float32.

    rim: background inside the gray region, which should stay as it was.
    """
    if rng.random() < look.studio:
        scene = before_wall(scene, rng)
    picture, upper = change_colours(scene.picture, rng, 0.6), scene.classes == UPPER
    new_hue = rng.random() < look.recoloured
    state = rng.bit_generator.state
    if new_hue:
        picture = recolour(picture, upper, rng)
    gray = scene.gray
    if rng.random() < 0.5:  # how far the gray reaches beyond the outline is a matter of chance too
        reach = disc(int(rng.integers(1, max(2, gray.shape[1] // 48))))
        gray = gray | (cv2.dilate(gray.astype(np.uint8), reach) > 0) & (scene.classes == 0)
    hem = np.zeros_like(gray)
    if look.lowered and rng.random() < look.lowered:
        hem = below_hem(scene, rng)
    gray = gray | hem
    hidden = gray
    if look.shown and rng.random() < look.shown:
        hidden = gray & ~open_parts(scene, gray & ~hem, rng)
    cloth, mask = picture, upper
    if scene.warped_mask.any():  # the product picture itself, in the same colours
        cloth, mask = scene.warped, scene.warped_mask
        if new_hue:
            again = np.random.default_rng()
            again.bit_generator.state = state
            cloth = recolour(cloth, mask, again)
    elif rng.random() < look.flattened:
        cloth = flatten(cloth, upper, rng)
    if rng.random() < look.cut:
        mask = cut(mask, rng)
    cloth = np.where(mask[..., None], cloth, WHITE).astype(np.uint8)
    if rng.random() < look.bent:
        cloth, mask = wobble(cloth, mask, rng, look.deformation * rng.uniform(0.3, 1.6))
    return {
        "person": picture,
        "agnostic": np.where(hidden[..., None], np.uint8(128), picture),
        "pose": scene.pose,
        "warped": cloth,
        "warped_mask": mask[None],
        "segmentation": labels.one_hot(scene.classes, 7),
        "region": gray[None],
        "carried": scene.carried[None],
        "skin": (scene.skin & gray)[None],
        "rim": (gray & (scene.classes == 0) & ~scene.neck)[None],
    }


def below_hem(scene: Scene, rng: np.random.Generator) -> np.ndarray:
    """(H, W) bool: what a longer garment than the one that is worn would hide of trousers and wall."""
    height, width = scene.classes.shape
    upper = (scene.classes == UPPER).astype(np.float32)
    down = np.float32([[1, 0, 0], [0, 1, height * rng.uniform(0.02, 0.14)]])
    lower = cv2.warpAffine(upper, down, (width, height), flags=cv2.INTER_NEAREST) > 0
    return lower & np.isin(scene.classes, (WALL, PASTE)) & ~scene.neck


def open_parts(scene: Scene, gray: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What of the gray region I_a shows after all, since it stays as it was: (H,W) bool, part of `gray`.

    The garment that is taken off may have hidden more than the new one does: arms, the neck and a band around the
    garment stay hidden by chance, and so does a margin of any width.
    """
    width = gray.shape[1]
    wall = (scene.classes == 0) & ~scene.neck
    unchanged = wall | scene.skin | (scene.classes == HAIR)
    for part in (*(scene.classes == arm for arm in ARMS), scene.neck, scene.classes == UPPER):
        if part.any() and rng.random() < 0.4:
            reach = disc(int(rng.integers(1, max(2, width // 12))))
            unchanged = unchanged & (cv2.dilate(part.astype(np.uint8), reach) == 0)
    return open_gray(gray, unchanged, int(rng.integers(1, 4 * margin_at(width) + 1)))


def before_wall(scene: Scene, rng: np.random.Generator) -> Scene:
    """The person cut out and set before a plain wall of any tone, lit a little from one side."""
    height, width = scene.classes.shape
    tone = np.clip(rng.uniform(25, 250) + rng.normal(0, 12, 3), 10, 252)
    slope = rng.normal(0, 18, 2)
    light = slope[0] * np.linspace(-1, 1, width)[None] + slope[1] * np.linspace(-1, 1, height)[:, None]
    wall = np.clip(tone + light[..., None] + rng.normal(0, rng.uniform(0, 3), (height, width, 1)), 0, 255)
    share = scene.silhouette[..., None]
    picture = (scene.picture * share + wall * (1 - share)).astype(np.uint8)
    return replace(scene, picture=picture)


def recolour(picture: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The garment in another hue. picture (H,W,3) uint8, upper (H,W) bool."""
    new = turn_hue(picture, rng, 0.7, 6)
    share = cv2.GaussianBlur(upper.astype(np.float32), (0, 0), 0.8)[..., None]
    return (picture * (1 - share) + new * share).astype(np.uint8)


def flatten(picture: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The garment as in a product picture: broad light and shadow taken away, then another exposure and a slight cast.

    Lightness (CIELAB) is divided by its Gaussian mean over the garment, which is held within a quarter of the garment's
    own mean, so that a black sleeve on a white shirt stays black.
    """
    lab = cv2.cvtColor(picture.astype(np.float32) / 255, cv2.COLOR_RGB2Lab)
    if not upper.any():
        return picture
    weight, sigma, scale = upper.astype(np.float32), picture.shape[1] / rng.uniform(8, 20), 4
    small = (picture.shape[1] // scale, picture.shape[0] // scale)  # broad light needs no more pixels

    def broad(a):
        return cv2.resize(
            cv2.GaussianBlur(cv2.resize(a, small, interpolation=cv2.INTER_AREA), (0, 0), sigma / scale),
            picture.shape[1::-1],
            interpolation=cv2.INTER_LINEAR,
        )

    mean = float(lab[..., 0][upper].mean())
    light = broad(lab[..., 0] * weight) / (broad(weight) + 1e-4)
    away = np.clip(light / max(mean, 1), 0.75, 1.33) ** np.float32(rng.uniform(0.6, 1.0))
    lab[..., 0] = np.clip(lab[..., 0] / away * np.float32(np.exp(rng.normal(0.03, 0.1))), 0, 100)
    lab[..., 1:] = lab[..., 1:] + rng.normal(0, 2, 2).astype(np.float32)
    new = np.clip(cv2.cvtColor(lab, cv2.COLOR_Lab2RGB) * 255, 0, 255).astype(np.uint8)
    return np.where(upper[..., None], new, picture)


def cut(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What a warp leaves of the garment's region: borders worn away, and sometimes a sleeve's end or the hem missing.

    mask (H, W) bool. Returns a part of it, at least half as large.
    """
    height, width = mask.shape
    rest = mask & wobble(np.zeros((height, width, 3), np.uint8), mask, rng, rng.uniform(0.004, 0.03))[1]
    if rng.random() < 0.4 and mask.any():
        ys, xs = np.nonzero(mask)
        angle = rng.uniform(0, 2 * np.pi)
        along = np.cos(angle) * xs + np.sin(angle) * ys  # what lies furthest in one direction goes
        rest[ys, xs] &= along < np.quantile(along, 1 - rng.uniform(0.02, 0.25))
    return rest if rest.sum() > 0.5 * mask.sum() else mask
