"""From two photographs to a try-on: the numbered stages in order, each a step over one growing record.

    1 photo          decode both pictures
    2 pose           joints, the 3:4 frame, the drawn skeleton P
    3 parse          the person's LIP labels S
    4 garment        cut out, laid on the canvas: c and M_c
    5 agnostic       I_a and S_a (section 3.1)
    6 segmentation   S-hat (3.2)
    7 warp           theta, W(c, theta) and W(M_c, theta) (3.3)
    8 misalignment   M_misalign (equations 3 and 4)
    9 synthesis      I-hat (3.4)
   10 composite      I-hat back into the photograph at its own size

Only this file knows the record. Stages are functions of the record so far; nothing is replaced by a fallback: a stage
that cannot do its work raises InputError with a sentence for the visitor.
"""
from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Callable

import cv2
import numpy as np
import torch
from torch import Tensor, nn

from training.assets import model_dir
from training.weights import fill, load_model
from vton import agnostic, alias, composite, garment, labels, neckline, parsing, photo, pose, rules, segmentation, sleeves, warping
from vton.config import NETWORK_SIZE, AliasConfig, MatchingConfig, ParserConfig, SegmentationConfig, from_dict
from vton.fit import fit_control_points
from vton.labels import UPPER
from vton.photo import Frame, InputError

STAGES = ("photo", "pose", "parse", "garment", "agnostic", "segmentation", "warp", "misalignment", "synthesis", "composite")
SIZES = ((256, 192), (512, 384), (1024, 768))
GRIDS = (5, 10)  # control points along a side
SLEEVES = ("auto", "predicted", *sleeves.KINDS)
COVERED = "The garment's sleeves look long, so they cover the arms; if they are not, choose their length."
# Maps that a person may correct, and the first stage that reads them.
READ_BY = {"parse": "agnostic", "painted_mask": "garment", "parse_agnostic": "segmentation", "segmentation": "warp",
           "control_points": "misalignment", "misalignment": "synthesis"}
# The stage that makes them; a painted mask is always a person's.
_MADE_BY = {"parse": "parse", "parse_agnostic": "agnostic", "segmentation": "segmentation", "control_points": "warp",
            "misalignment": "misalignment"}
SEAM = 8  # pixels by which the edited region may grow for a soft seam


@dataclass(frozen=True)
class Options:
    """What a visitor can set. size: (H, W) of the maps; seed: of the noise; fit: adapt the control points to the predicted
    region; norm: "alias" or "instance" (VITON-HD*); noise: the two noises of the paper's system; detail: bring what the
    photographs know into the final picture (colours and fine detail of the garment, background, skin tone); grid: control
    points along a side of the spline. The network predicts 5; a finer grid goes on from the fitted warp with more freedom;
    sleeves: their length on the predicted segmentation: "predicted" by the network alone, "auto" the same but for long
    sleeves that it has left bare and strips too thin for a sleeve, or "none", "short", "long" as a person says; neckline:
    "predicted" by the network alone, or "auto": the throat stays bare unless the garment has a high collar or a hood; hem:
    "predicted" by the network alone, or "auto": it is even, and no background shows between it and the trousers;
    mirror: the segmentation is the mean of the network's answers for the picture and for its mirror image."""

    size: tuple[int, int] = (512, 384)
    seed: int = 0
    fit: bool = True
    norm: str = "alias"
    noise: bool = True
    detail: bool = True
    grid: int = 5
    sleeves: str = "auto"
    neckline: str = "auto"
    hem: str = "auto"
    mirror: bool = True

    def check(self) -> None:
        """Raises ValueError with one sentence for values that do not exist."""
        if tuple(self.size) not in SIZES:
            raise ValueError(f"size must be one of {', '.join(f'{h}x{w}' for h, w in SIZES)}, but is {self.size[0]}x{self.size[1]}.")
        if self.norm not in alias.NORMS:
            raise ValueError(f"norm must be one of {', '.join(alias.NORMS)}, but is '{self.norm}'.")
        if self.grid not in GRIDS:
            raise ValueError(f"grid must be one of {', '.join(map(str, GRIDS))}, but is {self.grid}.")
        if self.sleeves not in SLEEVES:
            raise ValueError(f"sleeves must be one of {', '.join(SLEEVES)}, but is '{self.sleeves}'.")
        for name in ("neckline", "hem"):
            if getattr(self, name) not in rules.CHOICES:
                raise ValueError(f"{name} must be one of {', '.join(rules.CHOICES)}, but is '{getattr(self, name)}'.")


@dataclass(frozen=True)
class TryOnResult:
    """The record of one try-on. H, W = the size of the maps; H0, W0 = the photograph's size after its orientation.

    A field is None until its stage has run. Pictures are uint8 RGB, masks uint8 0/255.
    """

    options: Options
    photo: np.ndarray | None = None  # (H0, W0, 3)
    garment_photo: np.ndarray | None = None  # (h, w, 3 or 4) as uploaded
    painted_mask: np.ndarray | None = None  # (h', w') the garment's mask where a person has painted it, 255 = garment
    garment_cut: garment.Garment | None = None  # the cut-out at the uploaded picture's size
    frame: Frame | None = None  # 3:4 window in photo pixels
    person: np.ndarray | None = None  # (H, W, 3) the window's content, I
    keypoints: np.ndarray | None = None  # (25, 3) float32 x, y, confidence in pixels of `person`
    person_mask: np.ndarray | None = None  # (H, W) float32 in [0, 1]
    pose: np.ndarray | None = None  # (H, W, 3) skeleton P
    parse: np.ndarray | None = None  # (H, W) uint8 LIP labels, S
    cloth: np.ndarray | None = None  # (H, W, 3) c on (246, 246, 246)
    cloth_mask: np.ndarray | None = None  # (H, W) M_c
    agnostic: np.ndarray | None = None  # (H, W, 3) I_a
    parse_agnostic: np.ndarray | None = None  # (H, W) uint8 LIP labels, S_a
    segmentation: np.ndarray | None = None  # (H, W) uint8 13 classes, S-hat
    theta: np.ndarray | None = None  # (50,) float32 offsets as the network gave them
    control_points: np.ndarray | None = None  # (25, 2) float32 places in the cloth, normalised, after the fit
    warped_cloth: np.ndarray | None = None  # (H, W, 3) W(c, theta)
    warped_mask: np.ndarray | None = None  # (H, W) W(M_c, theta)
    misalignment: np.ndarray | None = None  # (H, W) M_misalign
    synthesis: np.ndarray | None = None  # (H, W, 3) I-hat
    region: np.ndarray | None = None  # (H0, W0) opacity of the edit: 0 = the photograph stays byte for byte
    result: np.ndarray | None = None  # (H0, W0, 3)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    weights: str = ""
    corrected: tuple[str, ...] = ()  # maps that a person has changed, see READ_BY
    resumed_from: str = ""  # first stage of the last run, "" when all of them ran

    @property
    def seed(self) -> int:
        return self.options.seed

    @property
    def misaligned_share(self) -> float:
        """Share of the predicted cloth region that the warped cloth does not cover."""
        region = self.segmentation == labels.SEGMENTATION.index("upper")
        return float((self.misalignment[region] > 127).mean()) if region.any() else 0.0

    @property
    def divided(self) -> np.ndarray:
        """S-hat_div as labels (H, W) uint8: ALIAS's 7 classes, and 7 for the misaligned part of the upper garment (eq. 4)."""
        return np.where(self.misalignment > 127, np.uint8(7), labels.thirteen_to_7(self.segmentation))

    @property
    def pasted(self) -> np.ndarray:
        """The baseline (H, W, 3): the warped garment laid on I_a, without any generator."""
        return np.where(self.warped_mask[..., None] > 127, self.warped_cloth, self.agnostic)

    @property
    def quality(self) -> dict[str, Any]:
        """What the result rests on: joints found, the side that is seen, share of the predicted cloth that is covered and open."""
        found = photo.present(self.keypoints)[list(pose.UPPER_BODY)]
        known = {"joints": int(found.sum()), "joints_wanted": len(found), "facing": pose.facing(self.keypoints)}
        if self.misalignment is not None:
            share = self.misaligned_share
            known |= {"cloth_coverage": round(1 - share, 4), "misaligned_share": round(share, 4)}
        return known

    def pictures(self) -> dict[str, np.ndarray]:
        """Every map so far as a uint8 picture, label maps coloured, in the order of Fig. 3; names as in vton.maps."""
        makers = {
            "pose": lambda: self.pose, "parse": lambda: labels.colour(self.parse), "garment": lambda: self.cloth,
            "garment_mask": lambda: self.cloth_mask, "agnostic": lambda: self.agnostic,
            "agnostic_map": lambda: labels.colour(self.parse_agnostic),
            "segmentation": lambda: labels.colour(self.segmentation, labels.SEGMENTATION_COLOURS),
            "warped_cloth": lambda: self.warped_cloth, "warped_mask": lambda: self.warped_mask,
            "misalignment": lambda: self.misalignment, "divided": lambda: labels.colour(self.divided, labels.DIVIDED_COLOURS),
            "pasted": lambda: self.pasted, "synthesis": lambda: self.synthesis, "region": lambda: self.region,
            "result": lambda: self.result}
        sources = {"garment": "cloth", "garment_mask": "cloth_mask", "agnostic_map": "parse_agnostic",
                   "divided": "misalignment", "pasted": "misalignment"}
        return {name: make() for name, make in makers.items() if getattr(self, sources.get(name, name)) is not None}


class TryOn:
    """The four networks and the stages between them."""

    def __init__(self, parser: nn.Module, generator: nn.Module, matching: nn.Module, synthesis: nn.Module, name: str = "",
                 device: str | torch.device = "cpu"):
        self.device, self.name = torch.device(device), name
        self.parser, self.segmentation, self.matching, self.alias = (
            m.to(self.device).eval().requires_grad_(False) for m in (parser, generator, matching, synthesis))
        self._stages = {name: getattr(self, f"_{name}") for name in STAGES}

    @classmethod
    def from_pretrained(cls, name_or_folder: str | Path, device: str = "auto") -> "TryOn":
        """Loads a shipped model by name or a folder with parser/, segmentation/, matching/ and alias/.

        device: "auto" (CUDA, then Apple's MPS, then CPU), "cpu", "cuda", "mps". Raises FileNotFoundError or ValueError with
        one sentence for a missing or foreign folder.
        """
        folder = Path(name_or_folder)
        if not (folder / "parser").is_dir():
            folder = model_dir(str(name_or_folder))
        return cls(*[load_network(kind, folder / kind) for kind in NETWORKS], name=folder.name, device=choose_device(device))

    # -- running -------------------------------------------------------------------------------------------------

    def run(self, person: Any, garment: Any, size: tuple[int, int] = (512, 384), seed: int = 0,
            on_stage: Callable[[str, int, int], None] | None = None, fit: bool = True, norm: str = "alias",
            noise: bool = True, detail: bool = True, grid: int = 5, sleeves: str = "auto", neckline: str = "auto",
            hem: str = "auto", mirror: bool = True, painted_mask: np.ndarray | None = None, until: str = STAGES[-1]) -> TryOnResult:
        """Dresses the person of one picture in the garment of the other.

        Args:
            person, garment: path, bytes, PIL picture or uint8 array (H,W,3 or 4).
            size: (H, W) of the maps, one of 256x192, 512x384, 1024x768. The other options: see Options.
            on_stage: called as on_stage(name, index, total) before each stage; an exception from it cancels the run.
            painted_mask: the garment's mask from a person's hand, see `garment.cut_by_mask`.
            until: the last stage to run; the record can be looked at, corrected and continued with `resume`.

        Raises InputError with a sentence for the visitor when a picture cannot be used; its attributes `stage` and
        `record` tell how far the run came, so that a map can be painted by hand and continued from.
        """
        options = Options(tuple(size), int(seed), bool(fit), norm, bool(noise), bool(detail), int(grid), sleeves, neckline,
                          hem, bool(mirror))
        options.check()
        corrected = ("painted_mask",) if painted_mask is not None else ()
        record = TryOnResult(options, weights=self.name, painted_mask=painted_mask, corrected=corrected)
        return self._continue(record, 0, until, on_stage, (person, garment))

    def resume(self, result: TryOnResult, stage: str, on_stage: Callable[[str, int, int], None] | None = None,
               until: str = STAGES[-1], **edited: Any) -> TryOnResult:
        """Runs again from `stage` up to `until` with changed fields or options; nothing before it is repeated.

        edited: fields of TryOnResult, or of Options (seed, fit, norm, noise, detail, grid, sleeves, neckline, hem, mirror).
        """
        if stage not in STAGES:
            raise ValueError(f"There is no stage '{stage}'; the stages are: {', '.join(STAGES)}.")
        if stage == "photo":
            raise ValueError("The first stage decodes the pictures; use run() for new pictures.")
        option_names = {f.name for f in dataclasses.fields(Options)} - {"size"}
        fields = {f.name for f in dataclasses.fields(TryOnResult)} - {"options", "seconds", "notes", "weights", "corrected",
                                                                        "resumed_from"}
        for name, value in edited.items():
            if name in option_names:
                continue
            if name not in fields:
                raise ValueError(f"'{name}' cannot be edited; what can be: {', '.join(sorted(fields | option_names))}.")
            old = None if name in ("painted_mask", "garment_photo") else getattr(result, name)  # these may have any size
            if isinstance(old, np.ndarray) and np.shape(value) != old.shape:
                raise ValueError(f"The edited {name} must have shape {old.shape}, but has {np.shape(value)}.")
        options = replace(result.options, **{k: v for k, v in edited.items() if k in option_names})
        options.check()
        changed = {k: v for k, v in edited.items() if k in fields}
        index = STAGES.index(stage)
        missing = [name for name in STAGES[:index] if name not in result.seconds]
        if missing:
            raise ValueError(f"The stage '{missing[0]}' has not run yet; continue from there.")
        seconds = {k: v for k, v in result.seconds.items() if STAGES.index(k) < index}
        # A correction counts until the stage that makes its map runs again.
        kept = [n for n in result.corrected if n not in edited and (n not in _MADE_BY or STAGES.index(_MADE_BY[n]) < index)]
        corrected = tuple(dict.fromkeys([*kept, *(n for n in changed if n in READ_BY and changed[n] is not None)]))
        record = replace(_before(result, index), **changed)
        return self._continue(replace(record, options=options, seconds=seconds, corrected=corrected, resumed_from=stage),
                              index, until, on_stage, None)

    def correct(self, result: TryOnResult, name: str, value: np.ndarray, on_stage: Callable[[str, int, int], None] | None = None,
                until: str = STAGES[-1]) -> TryOnResult:
        """Goes on from a map that a person has corrected, one of READ_BY; only the stages that read it run again.

        value: parse (H, W) LIP labels; parse_agnostic (H, W) LIP labels; segmentation (H, W) 13 classes; misalignment
        (H, W) 0/255; painted_mask: the garment's mask, see `garment.cut_by_mask`; control_points (n^2, 2), see
        `move_control_points`. Raises ValueError for anything else.
        """
        if name not in READ_BY:
            raise ValueError(f"'{name}' cannot be corrected; what can be: {', '.join(READ_BY)}.")
        value = np.asarray(value)
        most = {"parse": len(labels.LIP), "parse_agnostic": len(labels.LIP), "segmentation": len(labels.SEGMENTATION)}.get(name)
        if most and (value.dtype.kind not in "ui" or (value.size and not 0 <= value.min() <= value.max() < most)):
            raise ValueError(f"The corrected {name} holds labels from 0 to {most - 1}.")
        if name == "control_points":
            edited = self.move_control_points(result, value)
        else:
            edited = {name: value.astype(np.uint8)}
        return self.resume(result, READ_BY[name], on_stage, until, **edited)

    def redress(self, result: TryOnResult, garment: Any, on_stage: Callable[[str, int, int], None] | None = None,
                until: str = STAGES[-1]) -> TryOnResult:
        """The same person in another garment (path, bytes, PIL picture or array); the person's stages are not repeated."""
        picture = photo.load_image(garment, alpha=True)
        return self.resume(result, "garment", on_stage, until, garment_photo=picture, painted_mask=None)

    def _continue(self, record, first, until, on_stage, sources):
        if until not in STAGES[first:]:
            raise ValueError(f"The run ends with one of these stages: {', '.join(STAGES[first:])}; not '{until}'.")
        for index in range(first, STAGES.index(until) + 1):
            name = STAGES[index]
            if on_stage:
                on_stage(name, index, len(STAGES))
            start = time.perf_counter()
            try:
                made = self._photo(sources) if name == "photo" else self._stages[name](record)
            except InputError as error:
                error.stage, error.record = name, record
                raise
            record = replace(record, **made, seconds={**record.seconds, name: time.perf_counter() - start})
        return record

    # -- the stages ----------------------------------------------------------------------------------------------

    def _photo(self, sources):
        return {"photo": photo.load_image(sources[0]), "garment_photo": photo.load_image(sources[1], alpha=True)}

    def _pose(self, r):
        found = pose.detect(r.photo)
        frame = photo.frame_person(found.keypoints, r.photo.shape[:2])
        keypoints = photo.keypoints_to_frame(found.keypoints, frame, r.options.size)
        return {"frame": frame, "keypoints": keypoints, "person": photo.crop(r.photo, frame, r.options.size),
                "person_mask": photo.crop(found.person_mask.astype(np.float32), frame, r.options.size, "linear", 0),
                "pose": pose.draw_pose(keypoints, r.options.size), "notes": tuple(pose.check(found, r.photo.shape[:2]))}

    def _parse(self, r):
        parse = parsing.parse(self.parser, r.person, r.keypoints, r.person_mask)
        # Where the frame sticks out of the photograph its border is repeated: nobody is there.
        inside = photo.crop(np.ones(r.photo.shape[:2], np.uint8), r.frame, r.options.size, "nearest", 0)
        return {"parse": np.where(inside > 0, parse, 0).astype(np.uint8)}

    def _garment(self, r):
        if r.painted_mask is None:
            cut = garment.cut_out(r.garment_photo)
        else:
            cut = garment.cut_by_mask(r.garment_photo, r.painted_mask)
        placed = garment.place(cut, r.options.size)
        return {"garment_cut": cut, "cloth": placed.cloth, "cloth_mask": placed.mask}

    def _agnostic(self, r):
        if not np.isin(r.parse, labels.UPPER_LIP).any():
            raise InputError("No upper garment was found on the person; use a photo that shows the person from head to hips.")
        return {"agnostic": agnostic.agnostic_image(r.person, r.parse, r.keypoints, thorough=True),
                "parse_agnostic": agnostic.agnostic_parse(r.parse, r.keypoints), "pose": pose.draw_pose(r.keypoints, r.options.size)}

    def _segmentation(self, r):
        noise = None
        if r.options.noise:
            noise = segmentation.binary_noise((1, 1, *NETWORK_SIZE), torch.Generator().manual_seed(r.seed), self.device)
        parse = torch.from_numpy(labels.one_hot(labels.lip_to_13(r.parse_agnostic), 13))[None].to(self.device)
        mirrored = None
        if r.options.mirror:
            mirrored = self._tensor(pose.draw_pose(pose.mirrored(r.keypoints, r.options.size[1]), r.options.size))
        classes = segmentation.segment(self.segmentation, self._tensor(r.cloth), self._mask(r.cloth_mask), parse,
                                       self._tensor(r.pose), noise, mirrored)
        predicted, covered = rules.corrected(classes[0].cpu().numpy().astype(np.uint8), r.keypoints, r.cloth_mask,
                                             r.garment_cut.mask, r.options.sleeves, r.options.neckline,
                                             r.options.hem, np.isin(r.parse, labels.UPPER_LIP))
        notes = tuple(note for note in r.notes if note != COVERED)
        return {"segmentation": predicted, "notes": (*notes, COVERED) if covered else notes}

    def _warp(self, r):
        region = torch.from_numpy((r.segmentation == UPPER).astype(np.float32))[None, None]
        if region.sum() < 50:
            raise InputError("No place for the garment was predicted on this person; try a photo from the front, arms at the sides.")
        region = region.to(self.device)
        cloth, mask = self._tensor(r.cloth), self._mask(r.cloth_mask)
        theta = warping.match(self.matching, region, self._tensor(r.pose), self._tensor(r.agnostic), cloth)
        fitted = fit_control_points(theta, mask, region) if r.options.fit else theta
        if theta.shape[1] != 2 * r.options.grid**2:  # a finer grid goes on from where the network's own has come to
            fitted = warping.refine(fitted, r.options.grid)
            fitted = fit_control_points(fitted, mask, region) if r.options.fit else fitted
        return {"theta": theta[0].cpu().numpy(), **self._warped(fitted, cloth, mask, r.options.size)}

    def _warped(self, theta: Tensor, cloth: Tensor, mask: Tensor, size):
        grid = warping.sampling_grid(theta, size)
        n = round((theta.shape[1] / 2) ** 0.5)
        points = warping.control_grid(n) + theta.cpu().reshape(2, -1).T
        return {"control_points": points.numpy(), "warped_cloth": self._picture(warping.warp(cloth, grid)),
                "warped_mask": ((warping.warp(mask, grid, "zeros")[0, 0] > 0.5).to(torch.uint8) * 255).cpu().numpy()}

    def move_control_points(self, r: TryOnResult, points: np.ndarray) -> dict[str, np.ndarray]:
        """Fields of the warp stage for control points (n^2, 2) that a person has moved; pass them to `resume`."""
        points = np.asarray(points, np.float32)
        n = round(len(points) ** 0.5) if points.ndim == 2 else 0
        if n not in GRIDS or points.shape != (n * n, 2) or not np.isfinite(points).all():
            raise ValueError(f"Control points are n x n pairs of finite numbers with n one of {', '.join(map(str, GRIDS))}.")
        points = points.clip(-3, 3)  # further out there is nothing of the cloth
        offsets = torch.from_numpy(np.asarray(points, np.float32)) - warping.control_grid(n)
        theta = offsets.T.reshape(1, -1).to(self.device)
        return self._warped(theta, self._tensor(r.cloth), self._mask(r.cloth_mask), r.options.size)

    def _misalignment(self, r):
        seven = torch.from_numpy(labels.one_hot(labels.thirteen_to_7(r.segmentation), 7))[None]
        misalign, _ = alias.misalignment(seven, torch.from_numpy((r.warped_mask > 127).astype(np.float32))[None, None])
        return {"misalignment": (misalign[0, 0] * 255).to(torch.uint8).numpy()}

    def _synthesis(self, r):
        seven = torch.from_numpy(labels.one_hot(labels.thirteen_to_7(r.segmentation), 7))[None].to(self.device)
        misalign = (self._mask(r.misalignment) > 0.5).float()
        divided = torch.cat((seven, misalign), 1)
        divided[:, 2:3] -= misalign
        x = torch.cat((self._tensor(r.agnostic), self._tensor(r.pose), self._tensor(r.warped_cloth)), 1)
        noise = alias.gaussian_noise(r.seed, self.device) if r.options.noise else None
        with torch.inference_mode():
            picture = self.alias(x, seven, divided, misalign, norm=r.options.norm, noise=noise)
        return {"synthesis": self._picture(picture)}

    def _composite(self, r):
        region = edited_region(r)
        picture = carry_detail(r, from_photograph(r)) if r.options.detail else r.synthesis
        notes = [n for n in r.notes if not n.startswith("The warped garment leaves")]
        if r.misaligned_share > 0.15:
            notes.append(f"The warped garment leaves {r.misaligned_share:.0%} of its region open; the generator has filled it in.")
        return {"region": region, "result": photo.paste(r.photo, picture, r.frame, region), "notes": tuple(notes)}

    # -- borders between pictures and tensors --------------------------------------------------------------------

    def _tensor(self, picture: np.ndarray) -> Tensor:
        """(H,W,3) uint8 -> (1,3,H,W) in [-1, 1]."""
        return torch.from_numpy(picture.astype(np.float32).transpose(2, 0, 1) / 127.5 - 1)[None].to(self.device)

    def _mask(self, mask: np.ndarray) -> Tensor:
        """(H,W) uint8 0/255 -> (1,1,H,W) 0 or 1."""
        return torch.from_numpy((mask > 127).astype(np.float32))[None, None].to(self.device)

    @staticmethod
    def _picture(tensor: Tensor) -> np.ndarray:
        """(1,3,H,W) in [-1, 1] -> (H,W,3) uint8."""
        return ((tensor[0].float().clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8).permute(1, 2, 0).cpu().numpy()


def _before(r: TryOnResult, index: int) -> TryOnResult:
    """The record without what the stages from `index` on have made."""
    made = (("photo", "garment_photo"), ("frame", "keypoints", "person", "person_mask", "pose", "notes"), ("parse",),
            ("garment_cut", "cloth", "cloth_mask"), ("agnostic", "parse_agnostic"), ("segmentation",),
            ("theta", "control_points", "warped_cloth", "warped_mask"), ("misalignment",), ("synthesis",), ("region", "result"))
    later = [name for names in made[index:] for name in names]
    return replace(r, **{name: () if name == "notes" else None for name in later})


def edited_region(r: TryOnResult) -> np.ndarray:
    """Where the photograph may change: (removed garment, arms, neck) united with (predicted cloth and arms).

    Face, hair, hat, glasses, hands, and trousers that the garment does not cover lie outside. So does the neck where the
    prediction leaves it bare: the person's own is better than a painted one. Returns (H0, W0) uint8 opacity with a soft seam
    inside the region's own border, which is grown by at most SEAM pixels.
    """
    hands = np.isin(r.parse_agnostic, labels.ARMS_LIP)
    removed = (_removed(r) | (r.parse == labels.NECK_LIP)) & ~hands
    predicted = np.isin(r.segmentation, (UPPER, *labels.ARMS))
    kept = np.isin(r.parse, parsing.HEAD) | hands | own_skin(r, (labels.NECK_LIP,))
    region = ((removed | predicted) & ~kept).astype(np.uint8) * 255
    hw = r.photo.shape[:2]
    whole = photo.uncrop(region, r.frame, hw, "linear", 0)
    protected = photo.uncrop(kept.astype(np.uint8) * 255, r.frame, hw, "nearest", 0) > 0
    grow, further = (min(SEAM, max(1, round(r.frame.width / share))) for share in (192, 48))
    grown = _dilate(whole > 127, grow)
    # A parse seldom reaches the very outline: over the background, further growth takes away what is left of it.
    background = photo.uncrop(((r.parse == 0) & (r.segmentation == 0)).astype(np.uint8) * 255, r.frame, hw, "nearest", 0) > 0
    grown |= _dilate(whole > 127, further) & background
    soft = cv2.GaussianBlur(cv2.erode(grown, np.ones((3, 3), np.uint8)).astype(np.float32), (0, 0), grow / 3)
    opacity = np.where(grown > 0, np.clip(soft * 255, 0, 255), 0).astype(np.uint8)
    opacity[protected] = 0
    return opacity


def _removed(r: TryOnResult) -> np.ndarray:
    """(H, W) bool, the old garment and the arms as photographed, with the rim that the parse leaves to the background and
    the person mask does not."""
    taken = np.isin(r.parse, (*labels.UPPER_LIP, *labels.ARMS_LIP))
    rim = (r.parse == 0) & (r.person_mask > 0.35) & (_dilate(taken, r.options.size[1] // 20) > 0)
    return taken | rim


def _dilate(mask: np.ndarray, radius: int) -> np.ndarray:
    """(H, W) bool -> uint8 0/1, grown by `radius` pixels."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    return cv2.dilate(mask.astype(np.uint8), kernel)


def from_photograph(r: TryOnResult) -> np.ndarray:
    """I-hat (H, W, 3) with what the photograph knows better: the background that the old garment hid goes on from
    around it, and bare arms and a bare throat take the tone of the person's own skin."""
    arms, width = np.isin(r.segmentation, labels.ARMS), r.options.size[1]
    # Class "background" is also the neck, and where a collar has gone there is no wall behind it.
    under_collar = np.isin(r.parse, labels.UPPER_LIP) & neckline.opening(r.keypoints, r.options.size, neckline.DEEP)
    neck, own = own_skin(r, (labels.NECK_LIP,)), own_skin(r)
    throat = (r.segmentation == 0) & ((r.parse == labels.NECK_LIP) | under_collar) & ~neck
    face = r.parse == labels.LIP.index("face")
    picture = composite.smooth(composite.smooth(r.synthesis, arms, width / 32), throat, width / 32)
    # Bare arms tell the tone of what goes on from them; else hands do, which most photographs show, or the face.
    hands = composite.like_skin(r.person, np.isin(r.parse_agnostic, labels.ARMS_LIP), face)
    if own.sum() > arms.sum() / 8:
        picture = composite.match_skin(picture, arms, r.person, own, width / 12)
    else:
        picture = composite.match_skin(picture, arms, r.person, hands if hands.sum() > 5 * composite.FEWEST else face)
    picture = composite.round_limbs(picture, arms, arms | own)
    if neck.sum() > composite.FEWEST:
        picture = composite.match_skin(picture, throat, r.person, neck, width / 24)
    else:
        picture = composite.match_skin(picture, throat, r.person, face)
    outside = photo.crop(np.ones(r.photo.shape[:2], np.uint8), r.frame, r.options.size, "nearest", 0) == 0
    # MediaPipe's mask reaches a little beyond the outline.
    body = (r.parse > 0) | (cv2.erode(r.person_mask, np.ones((width // 24,) * 2, np.uint8)) > 0.5)
    removed = _dilate(_removed(r), round(width / 48)) > 0
    unknown = removed | body | (r.person_mask > 0.5) | (r.segmentation > 0) | outside
    behind = composite.continue_background(r.person, unknown)
    # The person has not moved: no arm lies where nobody was.
    background = (r.segmentation == 0) & ~throat | arms & ~body
    untouched = background & (r.parse == 0) & ~removed
    picture[untouched] = r.person[untouched]
    share = cv2.GaussianBlur((background & removed).astype(np.float32), (0, 0), width / 384)
    share = (share * background)[..., None]
    return (picture * (1 - share) + behind * share).round().astype(np.uint8)


def own_skin(r: TryOnResult, parts: tuple[int, ...] = labels.ARMS_LIP) -> np.ndarray:
    """(H, W) bool, where the photograph shows bare arms, or a bare neck, that the new garment leaves bare: they are the
    person's own. parts: LIP labels. The parser at times takes a sleeve for an arm and a collar for a neck, so the tone of the
    face decides."""
    bare = np.isin(r.parse, parts) & (r.segmentation != UPPER)
    return composite.like_skin(r.person, bare, r.parse == labels.LIP.index("face"))


def carry_detail(r: TryOnResult, picture: np.ndarray) -> np.ndarray:
    """The frame's content at its own size in the photograph, with the garment's fine detail. picture (H, W, 3): I-hat.

    In the aligned region print and colours come from the garment picture warped at full size, see
    `composite.carry_colours`. Returns (h, w, 3) uint8.
    """
    h, w = r.frame.height, r.frame.width
    scale = h / r.options.size[0]
    synthesis = cv2.resize(picture, (w, h), interpolation=cv2.INTER_CUBIC if scale > 1 else cv2.INTER_AREA).astype(np.float32)
    side = min(h, 2048) // 4 * 4
    cloth = torch.from_numpy(garment.place(r.garment_cut, (side, side * 3 // 4)).cloth.astype(np.float32)).permute(2, 0, 1)[None]
    mask = torch.from_numpy((r.cloth_mask > 127).astype(np.float32))[None, None]  # the one that may have been corrected
    n = round(len(r.control_points) ** 0.5)
    theta = (torch.from_numpy(r.control_points) - warping.control_grid(n)).T.reshape(1, -1)
    # The spline is smooth: its grid is computed at a quarter of the size and enlarged.
    grid = warping.sampling_grid(theta, (max(2, h // 4), max(2, w // 4))).permute(0, 3, 1, 2)
    grid = nn.functional.interpolate(grid, (h, w), mode="bilinear", align_corners=True).permute(0, 2, 3, 1)
    warped = warping.warp(cloth, grid)[0].permute(1, 2, 0).numpy()
    inside = warping.warp(mask, grid, "zeros")[0, 0].numpy() > 0.5
    upper = cv2.resize((r.segmentation == UPPER).astype(np.uint8), (w, h), interpolation=cv2.INTER_NEAREST) > 0
    dressed = composite.carry_colours(synthesis, warped, upper, upper & inside, 0.012 * w)
    return composite.keep(dressed, photo.crop(r.photo, r.frame, (h, w)), own_skin(r), 0.006 * w)


# -- loading -------------------------------------------------------------------------------------------------------

NETWORKS = {"parser": (ParserConfig, parsing.Parser, "the human parser"),
            "segmentation": (SegmentationConfig, segmentation.SegmentationGenerator, "the segmentation generator"),
            "matching": (MatchingConfig, warping.MatchingModule, "the geometric matching module"),
            "alias": (AliasConfig, alias.AliasGenerator, "the ALIAS generator")}


def load_network(kind: str, folder: Path) -> nn.Module:
    """One of the four networks out of a folder with config.json and model.safetensors, in evaluation mode."""
    config_class, network_class, what = NETWORKS[kind]
    config, state = load_model(folder)
    network = network_class(from_dict(config_class, config))
    fill(network, state, what)
    return network.eval()


def present_devices() -> list[str]:
    """The kinds of device this machine has, the fastest first."""
    return [*(["cuda"] if torch.cuda.is_available() else []), *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def choose_device(name: str) -> torch.device:
    """"auto" is CUDA, then Apple's MPS, then the CPU. ValueError when a named device is not there."""
    if name == "auto":
        name = present_devices()[0]
    if name in ("cuda", "mps") and name not in present_devices():
        raise ValueError(f"No {name.upper()} device was found; choose the device 'cpu' or 'auto'.")
    return torch.device(name)
