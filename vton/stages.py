"""The ten stages of a try-on, each a function from the record so far to the fields that it makes.

Nothing is replaced by a fallback: a stage that cannot do its work raises InputError with a sentence for the visitor. A
new stage is a function and a line of `TABLE`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from vton import attributes, inference, labels
from vton.inference import Conditions, Networks
from vton.inputs import agnostic, garment, parsing, photo, pose
from vton.inputs.photo import InputError
from vton.networks import alias, flow, segmentation, warping
from vton.networks.config import NETWORK_SIZE
from vton.options import GRIDS, Options
from vton.result import TryOnResult
from vton.rules import final_picture, neckline
from vton.rules import segmentation as rules
from vton.rules.fit import FitExceptions
from vton.tensors import (
    labels_to_tensor,
    mask_to_tensor,
    picture_to_tensor,
    tensor_to_mask,
    tensor_to_picture,
    tensor_to_share,
)

SLEEVES_LOOK = "The garment's sleeves look"  # how the note on sleeves that the network has drawn otherwise begins
SLEEVE_LOOKS = {
    "none": "absent, so the arms are bare; if they are not, choose their length.",
    "short": "short, so they end above the elbow; if they are not, choose their length.",
    "long": "long, so they cover the arms; if they are not, choose their length.",
}
WEARER_NOTE = (
    "Somebody wears the garment in its picture: it was cut out of that person, and what hair or arms hide is missing."
)
TURN_NOTE = "The garment's picture was turned so that the garment is upright."
REDUCTION_NOTE = (
    "The photo is {} pixels long, so the result is reduced to {}; crop the photo to keep its own resolution."
)
OPEN = "The warped garment leaves"  # how the note on a large misaligned share begins
MAX_OPEN = 0.15  # misaligned share of the cloth region above which that is said; fitted warps leave 2 to 3 %
SMALLEST_REGION = 50  # pixels of predicted cloth without which nothing can be warped
NO_FLOW = "These networks have no flow warper; choose the thin-plate spline as the warp, or networks with a flow."
NO_HEM = "These networks have not learned to tuck a garment in; choose another hem, or the networks that come with it."
FURTHEST = 3.0  # of a control point from the cloth's middle; further out there is nothing of the cloth


Run = Callable[[Networks, TryOnResult], dict[str, Any]]  # the work of a stage: the fields of the record that it makes


class Stage(NamedTuple):
    """One stage."""

    name: str
    run: Run  # (networks, record) -> fields of the record
    makes: dict[str, str]  # these fields, and the kind of array in each, "" for other things (kinds: see `vton.record`)
    reads: tuple[str, ...] = ()  # maps that a person may correct and that this stage is the first to read


def decode(networks: Networks, r: TryOnResult) -> dict[str, Any]:
    """1 photo: both pictures upright, in sRGB, of bounded size."""
    person, product = r.sources
    fields = {
        "photo": photo.load_image(person),
        "garment_photo": photo.load_image(product, alpha=True),
        "sources": None,
    }
    side = photo.longest_side(person)
    return fields | {"notes": (REDUCTION_NOTE.format(side, photo.LONGEST),)} if side > photo.LONGEST else fields


def find_pose(networks: Networks, r: TryOnResult) -> dict[str, Any]:
    """2 pose: joints, the 3:4 frame, the drawn skeleton P."""
    detection = pose.detect(r.photo)
    frame = photo.frame_person(detection.keypoints, r.photo.shape[:2])
    keypoints = photo.keypoints_to_frame(detection.keypoints, frame, r.options.size)
    return {
        "frame": frame,
        "keypoints": keypoints,
        "person": photo.crop(r.photo, frame, r.options.size),
        "person_mask": photo.crop(detection.person_mask.astype(np.float32), frame, r.options.size, "linear", 0),
        "pose": pose.draw_pose(keypoints, r.options.size),
        "notes": r.notes + tuple(pose.check(detection, r.photo.shape[:2])),
    }


def parse_person(networks: Networks, r: TryOnResult) -> dict[str, Any]:
    """3 parse: the person's LIP labels S. A scarf is taken for part of the garment, with which it goes."""
    parse = parsing.parse(networks.parser, r.person, r.keypoints, r.person_mask)
    parse[parse == labels.SCARF_LIP] = labels.UPPER_LIP[0]
    # Where the frame sticks out of the photograph its border is repeated: nobody is there.
    inside = photo.crop(np.ones(r.photo.shape[:2], np.uint8), r.frame, r.options.size, "nearest", 0)
    return {"parse": np.where(inside > 0, parse, labels.BACKGROUND).astype(np.uint8)}


def cut_garment(networks: Networks, r: TryOnResult) -> dict[str, Any]:
    """4 garment: cut out, laid on the canvas: c and M_c."""
    if r.painted_mask is not None:
        cut = garment.cut_by_mask(r.garment_photo, r.painted_mask, networks.garment)
    else:
        try:
            cut = garment.cut_out(r.garment_photo, networks.garment)
        except garment.GarmentOnPerson:
            cut = garment.cut_from_wearer(r.garment_photo, networks.parser, networks.garment)
    notes = tuple(note for note in r.notes if note not in (WEARER_NOTE, TURN_NOTE))
    notes += ((WEARER_NOTE,) if cut.method == "worn" else ()) + ((TURN_NOTE,) if cut.turns else ())
    canvas = garment.place(cut, r.options.size)
    upright = np.ascontiguousarray(np.rot90(r.garment_photo, cut.turns))
    fields = {"garment_cut": cut, "cloth": canvas.cloth, "cloth_mask": canvas.mask, "notes": notes}
    return fields | {"garment_photo": upright} if cut.turns else fields


def make_agnostic(networks: Networks, r: TryOnResult) -> dict[str, Any]:
    """5 agnostic: I_a and S_a (section 3.1)."""
    if not np.isin(r.parse, labels.UPPER_LIP).any():
        raise InputError(
            "No upper garment was found on the person; use a photo that shows the person from head to hips."
        )
    return {
        "agnostic": agnostic.agnostic_image(r.person, r.parse, r.keypoints, thorough=True),
        "parse_agnostic": agnostic.agnostic_parse(r.parse, r.keypoints),
        "pose": pose.draw_pose(r.keypoints, r.options.size),
    }


def conditions(networks: Networks, r: TryOnResult) -> Conditions:
    """What the generators are given, out of a record from the stage "agnostic" on."""
    device = networks.device
    return Conditions(
        picture_to_tensor(r.agnostic, device),
        picture_to_tensor(r.pose, device),
        picture_to_tensor(r.cloth, device),
        mask_to_tensor(r.cloth_mask, device),
    )


def predict_segmentation(networks: Networks, r: TryOnResult) -> dict[str, Any]:
    """6 segmentation: S-hat (3.2), after the rules on hem, sleeves and neckline."""
    network = cast(segmentation.SegmentationGenerator, networks.segmentation)
    config = network.config
    if r.options.hem == attributes.TUCKED and config.attributes < attributes.LENGTH:
        raise ValueError(NO_HEM)
    noise = mirror = None
    if r.options.noise:
        generator = torch.Generator().manual_seed(r.seed)
        noise = segmentation.binary_noise((1, 1, *NETWORK_SIZE), generator, networks.device)
    if r.options.mirror:
        skeleton = pose.draw_pose(pose.mirror_keypoints(r.keypoints, r.options.size[1]), r.options.size)
        mirror = picture_to_tensor(skeleton, networks.device)
    groups = attributes.condition_groups(r.garment_cut.attributes, r.options.sleeves, r.options.hem)
    code = torch.from_numpy(attributes.encode(groups))[None].to(networks.device)
    # In training nobody knew what was carried, so the generator has not learned what it looks like.
    carried = r.parse_agnostic == labels.CARRIED_LIP
    parse = labels.lip_to_13(np.where(carried, np.uint8(labels.BACKGROUND), r.parse_agnostic))
    view = agnostic.hide_hem(parse, r.keypoints, groups["hem"]) if config.hides_hem else parse
    view_tensor = labels_to_tensor(view, len(labels.SEGMENTATION), networks.device)
    inputs = replace(conditions(networks, r), parse_agnostic=view_tensor, attributes=code)
    classes = inference.place_hem(network, inputs, r.keypoints, groups["hem"], noise, mirror)
    predicted = rules.restore_bottom(classes[0].cpu().numpy().astype(np.uint8), parse, view)
    carries = carries_neckline(r)
    if r.options.hem != "predicted":
        predicted = rules.straighten_hem(rules.close_cloth(predicted))
    result, sleeves = rules.apply_rules(
        predicted,
        r.keypoints,
        r.garment_cut.attributes,
        r.options.sleeves,
        "predicted" if carries else r.options.neckline,
    )
    if carries:
        result = carry_neckline(networks, r, result)
    notes = tuple(note for note in r.notes if not note.startswith(SLEEVES_LOOK))
    return {"segmentation": result, "notes": (*notes, f"{SLEEVES_LOOK} {SLEEVE_LOOKS[sleeves]}") if sleeves else notes}


def carries_neckline(r: TryOnResult) -> bool:
    """Whether the cut-out's outline has the shape of its neck, and nobody wants another: the inside of its back or its
    hood is cut off, or it has a high collar.
    """
    read = r.garment_cut.attributes.get("neckline")
    clear = r.garment_cut.open_neck or (read is not None and read.exact == "high")
    return clear and r.options.neckline == "auto"


def carry_neckline(networks: Networks, r: TryOnResult, classes: np.ndarray) -> np.ndarray:
    """S-hat (H, W) with the garment's own neck opening, as a first warp carries it, which knows nothing of the neck
    that is predicted: the flow's, which has learned from regions with the neck filled, or the spline's, whose fit
    leaves the neck out of account.
    """
    inputs, upper = conditions(networks, r), classes == labels.UPPER
    open_neck = fit_exceptions(networks, replace(r, segmentation=classes))._replace(open=True)
    if not open_neck.neck.any() or upper.sum() < SMALLEST_REGION:
        return classes
    if networks.flow is not None:
        _, first = flow_warp(networks.flow, inputs, neckline.with_whole_neck(classes, r.keypoints))
    else:
        region = mask_to_tensor(upper, networks.device)
        _, theta = inference.predict_warp(networks.matching, inputs, region, r.options.fit, exceptions=open_neck)
        first = inference.warp_cloth(theta, inputs)
    return neckline.follow_warp(classes, r.keypoints, tensor_to_mask(first.mask) > 127)


def fit_exceptions(networks: Networks, r: TryOnResult) -> FitExceptions:
    """Where the fit goes by more than the masks, for a record with a segmentation: hair, and a neck that is known."""
    near = neckline.around_neck(r.keypoints, r.segmentation.shape) & carries_neckline(r)
    hair = r.segmentation == labels.HAIR
    return FitExceptions(*(mask_to_tensor(part, networks.device) for part in (hair, near)))


def warps_by_flow(networks: Networks, options: Options) -> bool:
    """Whether the flow bends the garment. Raises ValueError where it is asked for and the networks have none."""
    if options.warp == "flow" and networks.flow is None:
        raise ValueError(NO_FLOW)
    as_spline = not options.fit or options.grid != GRIDS[0]  # somebody has chosen what only the spline has
    return options.warp == "flow" or (options.warp == "auto" and networks.flow is not None and not as_spline)


def flow_warp(network: torch.nn.Module, inputs: Conditions, region: np.ndarray) -> tuple[torch.Tensor, inference.Warp]:
    """The flow (1,2,h,w) that lays the cloth on a region (H, W) bool, and the cloth as it lays it."""
    offsets = inference.predict_flow(network, inputs, mask_to_tensor(region, inputs.cloth.device))
    return offsets, inference.warp_by(flow.flow_grid(offsets, inputs.size), inputs)


def predict_warp(networks: Networks, r: TryOnResult) -> dict[str, Any]:
    """7 warp: theta, W(c, theta) and W(M_c, theta) (3.3), or the same two by the flow."""
    upper = r.segmentation == labels.UPPER
    if upper.sum() < SMALLEST_REGION:
        raise InputError(
            "No place for the garment was predicted on this person; try a photo from the front, arms at the sides."
        )
    inputs = conditions(networks, r)
    if warps_by_flow(networks, r.options):
        assert networks.flow is not None
        offsets, warp = flow_warp(networks.flow, inputs, upper)
        return {"flow": offsets[0].permute(1, 2, 0).cpu().numpy(), **warp_fields(warp)}
    region = mask_to_tensor(upper, networks.device)
    theta, final = inference.predict_warp(
        networks.matching, inputs, region, r.options.fit, r.options.grid, fit_exceptions(networks, r)
    )
    return {"theta": theta[0].cpu().numpy(), **spline_fields(final, inputs)}


def theta_of(networks: Networks, r: TryOnResult) -> np.ndarray:
    """theta (50,) float32 as the matching module gives it, before any fit: the record's, or predicted where the flow
    has warped the garment. r: a record with a segmentation.
    """
    if r.theta is not None:
        return r.theta
    region = mask_to_tensor(r.segmentation == labels.UPPER, networks.device)
    theta, _ = inference.predict_warp(networks.matching, conditions(networks, r), region, fit=False)
    return theta[0].cpu().numpy()


def warp_fields(warp: inference.Warp) -> dict[str, np.ndarray]:
    """Warped cloth and warped mask as the record holds them."""
    return {"warped_cloth": tensor_to_picture(warp.cloth), "warped_mask": tensor_to_mask(warp.mask)}


def spline_fields(theta: torch.Tensor, inputs: Conditions) -> dict[str, np.ndarray]:
    """Control points, warped cloth and warped mask as the record holds them. theta: (1, 2 n^2)."""
    n = round((theta.shape[1] / 2) ** 0.5)
    points = warping.control_grid(n) + theta.cpu().reshape(2, -1).T
    return {"control_points": points.numpy(), **warp_fields(inference.warp_cloth(theta, inputs))}


def move_control_points(networks: Networks, r: TryOnResult, points: np.ndarray) -> dict[str, np.ndarray]:
    """The warp's fields for control points (n^2, 2) that a person has moved.

    Raises ValueError for other shapes.
    """
    points = np.asarray(points, np.float32)
    n = round(len(points) ** 0.5) if points.ndim == 2 else 0
    if n not in GRIDS or points.shape != (n * n, 2) or not np.isfinite(points).all():
        raise ValueError(
            f"Control points are n x n pairs of finite numbers with n one of {', '.join(map(str, GRIDS))}."
        )
    offsets = torch.from_numpy(points.clip(-FURTHEST, FURTHEST)) - warping.control_grid(n)
    fields = spline_fields(offsets.T.reshape(1, -1).to(networks.device), conditions(networks, r))
    return {"theta": theta_of(networks, r), **fields}


def find_misalignment(networks: Networks, r: TryOnResult) -> dict[str, Any]:
    """8 misalignment: M_misalign (equations 3 and 4)."""
    seven = labels_to_tensor(labels.thirteen_to_7(r.segmentation), len(labels.ALIAS))
    misalign, _ = alias.misalignment(seven, mask_to_tensor(r.warped_mask))
    return {"misalignment": tensor_to_mask(misalign)}


def what_stays(networks: Networks, r: TryOnResult) -> np.ndarray:
    """(H, W) 0/255: what of the gray region a generator that keeps parts of the photograph is shown after all."""
    if not (r.options.reveal and cast(alias.AliasGenerator, networks.alias).config.keeps):
        return np.zeros(r.options.size, np.uint8)
    gray = (r.agnostic == agnostic.GRAY).all(2)
    stays = agnostic.open_gray(gray, final_picture.photograph_parts(r), agnostic.margin_at(r.options.size[1]))
    return 255 * stays.astype(np.uint8)


def painter_conditions(networks: Networks, r: TryOnResult) -> Conditions:
    """What ALIAS is given, out of a record that knows what stays unchanged."""
    return replace(conditions(networks, r), alias_view=picture_to_tensor(r.alias_view, networks.device))


def synthesise(networks: Networks, r: TryOnResult) -> dict[str, Any]:
    """9 synthesis: I-hat (3.4)."""
    device = networks.device
    seven = labels_to_tensor(labels.thirteen_to_7(r.segmentation), len(labels.ALIAS), device)
    noise = alias.gaussian_noise(r.seed, device) if r.options.noise else None
    r = replace(r, unchanged=what_stays(networks, r))
    picture, rendered, alpha, photo_share = inference.synthesise(
        networks.alias,
        painter_conditions(networks, r),
        picture_to_tensor(r.warped_cloth, device),
        seven,
        mask_to_tensor(r.misalignment, device),
        r.options.norm,
        noise,
    )
    return {
        "synthesis": tensor_to_picture(picture),
        "rendered": tensor_to_picture(rendered),
        "alpha": tensor_to_share(alpha),
        "unchanged": r.unchanged,
        "kept": tensor_to_share(photo_share),
    }


def composite(networks: Networks, r: TryOnResult) -> dict[str, Any]:
    """10 composite: I-hat back into the photograph at its own size."""
    picture, share = final_picture.compose(r)
    region = photo.uncrop(share, r.frame, r.photo.shape[:2])
    notes = [note for note in r.notes if not note.startswith(OPEN)]
    if r.misaligned_share > MAX_OPEN:
        notes.append(f"{OPEN} {100 * r.misaligned_share:.0f} % of its region open; the generator has filled it in.")
    return {"region": region, "result": photo.paste(r.photo, picture, r.frame, region), "notes": tuple(notes)}


TABLE = (
    Stage("photo", decode, {"photo": "any3", "garment_photo": "any34"}),
    Stage(
        "pose",
        find_pose,
        {"frame": "", "person": "HW3", "person_mask": "HWf", "pose": "HW3", "keypoints": "joints", "notes": ""},
    ),
    Stage("parse", parse_person, {"parse": "lip"}),
    Stage("garment", cut_garment, {"cloth": "HW3", "cloth_mask": "HW", "garment_cut": ""}, ("painted_mask",)),
    Stage("agnostic", make_agnostic, {"agnostic": "HW3", "parse_agnostic": "lip"}, ("parse",)),
    Stage("segmentation", predict_segmentation, {"segmentation": "thirteen"}, ("parse_agnostic",)),
    Stage(
        "warp",
        predict_warp,
        {"theta": "theta", "control_points": "points", "flow": "flow", "warped_cloth": "HW3", "warped_mask": "HW"},
        ("segmentation",),
    ),
    Stage("misalignment", find_misalignment, {"misalignment": "HW"}, ("control_points",)),
    Stage(
        "synthesis",
        synthesise,
        {"synthesis": "HW3", "rendered": "HW3", "alpha": "HW", "unchanged": "HW", "kept": "HW"},
        ("misalignment",),
    ),
    Stage("composite", composite, {"region": "photo", "result": "photo3"}),
)
STAGES = tuple(stage.name for stage in TABLE)
# Maps that a person may correct, and the first stage that reads them.
READERS = {name: stage.name for stage in TABLE for name in stage.reads}
# Fields of the record, and the stage that makes them; a painted mask is always a person's.
MAKERS = {name: stage.name for stage in TABLE for name in stage.makes}
