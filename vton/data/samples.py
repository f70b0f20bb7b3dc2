"""Training samples of the try-on networks: photographed people in their own garment laid flat, and draped people."""

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from vton import attributes, labels
from vton.data.draped.people import DrapedPeople
from vton.data.hems import hem_of
from vton.data.pack import Pack, change_colours, maps_in_frame, shift_frame
from vton.data.pairs import WHITE, Pair, flatten_garment
from vton.geometry import affine, warp_picture
from vton.inputs import pose
from vton.inputs.agnostic import agnostic_image, agnostic_parse
from vton.rules.sleeves import sleeve_kind

SOURCES = ("worn", "draped")
VARIANTS = 3  # ways in which each worn garment is laid flat


class Sampler:
    """Draws samples. A sample is a dict of pictures in the person's frame of `size` (H, W):

    person (H,W,3) uint8; keypoints (25,3); pose P, agnostic I_a (H,W,3) uint8; parse_agnostic S_a one-hot (13,H,W);
    cloth (H,W,3) uint8 on (246,246,246), cloth_mask (1,H,W); worn (H,W,3) and worn_mask (1,H,W): the truth of the warp;
    parse (H,W) uint8, the photograph's LIP labels; segmentation (H,W) uint8 13 classes, its truth; carried (1,H,W):
    True = out of the loss; background (1,H,W): neither person nor carried; source;
    grid (H,W,2) float32 and placed (1,H,W): the true warp as in `Pair`, and where it is known (of draped people alone);
    attributes (LENGTH,): what is known of the garment, see `vton.attributes`.
    """

    def __init__(
        self,
        pack: Pack | None,
        size: tuple[int, int],
        split: str = "train",
        draped: DrapedPeople | None = None,
        share: float = 1.0,
    ):
        """draped: draped people; share: of the samples, beside photographs."""
        if pack is None and draped is None:
            raise ValueError("Samples come from a packed file of photographs, from draped people, or from both.")
        self.pack, self.size, self.split, self.draped, self.share = pack, size, split, draped, share
        self.people = pack.people(split) if pack else []
        self._flat: dict[tuple[int, int], tuple | None] = {}

    def sample(
        self, rng: np.random.Generator, source: str | None = None, augment: bool = True, index: int | None = None
    ) -> dict[str, np.ndarray]:
        """One sample. source: one of SOURCES; None = a mixture. index: which person; None = any."""
        for _ in range(50):
            kind = source or self._source(rng)
            pair = self._drape(rng, augment, index) if kind == "draped" else self._photo(rng, augment, index)
            if pair is not None:
                return pair
            index = None
        raise ValueError(
            "No usable pair was found in 50 tries; too few of the photographs show a garment that can be laid flat."
        )

    def _source(self, rng: np.random.Generator) -> str:
        """Where the next sample comes from."""
        return "draped" if self.draped and (not self.pack or rng.random() < self.share) else "worn"

    def each(self, source: str, seed: int) -> Iterator[dict[str, np.ndarray]]:
        """Samples without augmentation of every person of the split that `source` can use; of draped people no end."""
        for i in itertools.count() if source == "draped" else range(len(self.people)):
            rng = np.random.default_rng([seed, i])
            sample = self._drape(rng, False, i) if source == "draped" else self._photo(rng, False, i)
            if sample is not None:
                yield sample

    # -- photographs ---------------------------------------------------------------------------------------------

    def _photo(self, rng, augment, index):
        assert self.pack is not None  # without one all samples are draped
        number = self.people[int(rng.integers(len(self.people))) if index is None else index % len(self.people)]
        person = self.pack.person(number)
        frame, mirror, angle = person.frame.copy(), False, 0.0
        if augment:
            frame, mirror, angle = shift_frame(frame, rng, 0.03, 0.07), bool(rng.random() < 0.5), rng.normal(0, 3)
        matrix = affine(frame, self.size, angle, mirror)
        image = warp_picture(person.image, matrix, self.size, fill=(200, 200, 200))
        parse, carried, keypoints = maps_in_frame(person, matrix, self.size, mirror)
        flat = self._flat_garment(number, person, int(rng.integers(VARIANTS)))
        if flat is None:
            return None
        cloth, mask = (flat[0][:, ::-1], flat[1][:, ::-1]) if mirror else flat
        upper = np.isin(parse, labels.UPPER_LIP)
        worn = np.where(upper[..., None], image, WHITE).astype(np.uint8)
        segmentation = labels.lip_to_13(parse)
        pair = Pair(cloth, mask, worn, upper, groups={"sleeves": sleeve_kind(segmentation, keypoints)})
        return self._finish(rng, image, parse, keypoints, pair, segmentation, carried, "worn", augment)

    def _flat_garment(self, number, person, variant):
        """The worn garment laid flat at `size`; a pure function of the person and the variant, kept in memory."""
        key = (number, variant)
        if key not in self._flat:
            pair = flatten_garment(person, self.size, np.random.default_rng([number, variant]))
            self._flat[key] = pair and (pair.cloth, pair.cloth_mask)
        return self._flat[key]

    # -- draped people -------------------------------------------------------------------------------------------

    def _drape(self, rng, augment, index=None):
        assert self.draped is not None  # without them none are asked for
        number = self.draped.number(rng) if index is None else index
        mirror = augment and bool(rng.random() < 0.5)
        image, parse, keypoints, pair = self.draped.sample(number, rng, mirror)
        if pair.truth_mask.mean() < 0.03:
            return None
        carried = np.zeros(parse.shape, bool)
        return self._finish(rng, image, parse, keypoints, pair, labels.lip_to_13(parse), carried, "draped", False)

    # -- common end ----------------------------------------------------------------------------------------------

    def _finish(self, rng, image, parse, keypoints, pair, segmentation, carried, source, augment):
        if augment:
            state = rng.bit_generator.state
            image = change_colours(image, rng, 0.6)
            if source == "worn":  # the same change of light for the garment that the photograph shows
                rng.bit_generator.state = state
                cloth = change_colours(pair.cloth, rng, 0.6)
                worn = np.where(pair.truth_mask[..., None], image, WHITE).astype(np.uint8)
                cloth = np.where(pair.cloth_mask[..., None], cloth, WHITE).astype(np.uint8)
                pair = dataclasses.replace(pair, cloth=cloth, truth=worn)
        return {
            "person": image,
            "keypoints": keypoints.astype(np.float32),
            "pose": pose.draw_pose(keypoints, self.size),
            "agnostic": agnostic_image(image, parse, keypoints, thorough=True),
            "parse_agnostic": labels.one_hot(labels.lip_to_13(agnostic_parse(parse, keypoints)), 13),
            "cloth": np.ascontiguousarray(pair.cloth),
            "cloth_mask": pair.cloth_mask[None],
            "worn": pair.truth,
            "worn_mask": pair.truth_mask[None],
            "segmentation": segmentation.astype(np.uint8),
            "carried": carried[None],
            "parse": parse.astype(np.uint8),
            "background": ((parse == 0) & ~carried)[None],
            "source": np.int64(SOURCES.index(source)),
            "grid": np.zeros((*parse.shape, 2), np.float32) if pair.grid is None else pair.grid,
            "placed": (pair.truth_mask & (pair.grid is not None))[None],
            "attributes": attributes.encode({"hem": hem_of(segmentation, keypoints)} | pair.groups),
        }
