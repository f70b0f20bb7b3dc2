"""What the Try on tab draws, as pictures and as values for its scripts; the numbers come from vton."""

import base64
import re
import secrets
from collections.abc import Sequence
from html import escape
from typing import Any

import cv2
import numpy as np

from ui import figures, theme
from ui.figures import percent
from vton import labels
from vton import verdict as measured
from vton.inputs import photo
from vton.maps import MAPS
from vton.pipeline import STAGES
from vton.record import LABEL_MAPS, label_png, png
from vton.result import PICTURES, TryOnResult

# Pictures of a result whose labels can be read: the field that holds them.
LEGENDS = {"parse": "parse", "agnostic_map": "parse_agnostic", "segmentation": "segmentation", "divided": "divided"}
WORDS = theme.data("tryon/words.json")  # of what is read of a garment, and how it was cut out
# What can be painted: map of the page -> (title, the map of the library, label that the brush starts with).
PAINTABLE: dict[str, tuple[str, str, int]] = WORDS["paintable"]
MASK_NAMES: dict[str, tuple[str, str]] = WORDS["masks"]
MASK_COLOURS = {
    "painted_mask": np.array([(30, 60, 120), (255, 255, 255)], np.uint8),
    "misalignment": np.array([(60, 60, 60), labels.MISALIGNED_COLOUR], np.uint8),
}
READABLE = ("sleeves", "neckline")  # what a network reads of a garment
CANVAS = 1024  # longer side of the garment's picture on the canvas


def symbol(text: str) -> str:
    """A symbol of vton.maps as HTML: what follows "_" stands lower."""
    return re.sub(r"_(\w+)", r"<sub>\1</sub>", escape(text))


def data_url(picture: np.ndarray) -> str:
    """A PNG inside an address, exact."""
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode("ascii")


def garment_readings(attributes: Any) -> dict[str, str]:
    """What was read of a garment, by the names of the options that it decides: "short sleeves (97 %)"."""
    return {
        name: f"{WORDS[name][attributes[name].value]} ({percent(attributes[name].certainty)})"
        for name in READABLE
        if name in attributes
    }


def caption(result: Any, name: str) -> str:
    """HTML line under a map: its stage, shape and time, and whether the stage ran again or was corrected."""
    entry = MAPS[name]
    height, width = getattr(result, PICTURES[name][0]).shape[:2]
    parts = [f"{height} × {width}"]
    seconds = result.seconds.get(entry.stage)
    if seconds is not None:
        parts.append(f"{seconds:.2f} s" if seconds >= 0.005 else "under 0.01 s")
    if name == "warped_cloth":
        parts.append("by the flow" if result.flow is not None else "by the spline")
    if name == "misalignment":
        parts.append(f"{percent(result.misaligned_share, 1)} of the predicted cloth")
    if name == "garment_mask" and result.garment_cut is not None:
        parts.append(WORDS["cuts"][result.garment_cut.method]["caption"])
    if name == "garment":
        parts += garment_readings(result.garment_cut.attributes).values()
    sources = {
        "garment_mask": "painted_mask",
        "garment": "painted_mask",
        "agnostic_map": "parse_agnostic",
        "warped_cloth": "control_points",
    }
    if sources.get(name, name) in result.corrected:
        parts.append("<b>corrected</b>")
    return f'<p class="map-facts">{escape(entry.stage)} · {" · ".join(parts)}</p>'


def legend(result: Any, name: str) -> str:
    """HTML legend of a label map, empty for the others."""
    if name not in LEGENDS:
        return ""
    names, palette = LABEL_MAPS[LEGENDS[name]]
    return figures.legend(getattr(result, LEGENDS[name]), names, palette)


def quality(result: Any, device: str, licence: str) -> str:
    """HTML list of what a result rests on: pose, side, coverage, misalignment, seed, weights, device, licence."""
    facts = result.quality
    side = {"front": "from the front", "side": "from the side", "back": "from behind", "unknown": "not told"}[
        facts["facing"]
    ]
    rows = [
        ("Pose", f"{facts['joints']} of {facts['joints_wanted']} joints found", facts["joints"] >= 9),
        ("Seen", side, facts["facing"] == "front"),
    ]
    if "cloth_coverage" in facts:
        coverage = facts["cloth_coverage"]
        rows += [
            ("Cloth coverage", f"{percent(coverage, 1)} of the predicted region", coverage > 0.85),
            ("Misaligned", percent(facts["misaligned_share"], 1), facts["misaligned_share"] < 0.15),
        ]
    if result.corrected:
        rows.append(("Corrected", ", ".join(name.replace("_", " ") for name in result.corrected), True))
    rows += [
        ("Size, seed", f"{result.options.size[0]} × {result.options.size[1]}, {result.options.seed}", True),
        ("Weights", f"{result.weights} · {device.upper()}", True),
        ("Licence", licence, True),
    ]
    items = "".join(
        f'<dt>{escape(name)}</dt><dd class="{"" if good else "weak"}">{escape(text)}</dd>' for name, text, good in rows
    )
    return f'<dl class="quality">{items}</dl>'


def rerun(result: Any) -> str:
    """One plain sentence: which stages ran again and how long they took."""
    if not result.resumed_from:
        return ""
    stages = [stage for stage in STAGES[STAGES.index(result.resumed_from) :] if stage in result.seconds]
    earlier = STAGES[: STAGES.index(result.resumed_from)]
    times = ", ".join(f"{stage} {result.seconds[stage]:.2f} s" for stage in stages)
    return f"Run again: {times}. Kept as they were: {', '.join(earlier)}."


def map_overlay(result: Any, name: str) -> dict[str, Any]:
    """Value for `static/tryon/label_canvas.js`: one map over the person, a garment's map over its canvas."""
    pictures = result.pictures()
    picture = pictures[name]
    base = result.photo if picture.shape[:2] != tuple(result.options.size) else result.person
    if name in ("garment", "garment_mask"):
        base = result.cloth
    if max(base.shape[:2]) > CANVAS and base is result.photo:  # a whole photograph is looked at reduced
        ratio = CANVAS / max(base.shape[:2])
        size = (round(base.shape[1] * ratio), round(base.shape[0] * ratio))
        base, picture = (cv2.resize(p, size, interpolation=cv2.INTER_AREA) for p in (base, picture))
    value = {
        "name": name,
        "title": f"{MAPS[name].title} over the photo",
        "width": base.shape[1],
        "height": base.shape[0],
        "base": data_url(base),
        "labels": "",
        "names": [],
        "palette": [],
        "over": "",
        "paint": False,
    }
    if name in LEGENDS:
        names, palette = LABEL_MAPS[LEGENDS[name]]
        value |= _labels(getattr(result, LEGENDS[name]), names, palette)
    elif name == "misalignment":
        value |= _labels((result.misalignment > 127).astype(np.uint8), MASK_NAMES[name], MASK_COLOURS[name])
    else:
        value["over"] = data_url(picture)
    return value


def _labels(label_map: np.ndarray, names: Sequence[str], palette: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(label_map, np.uint8).tobytes()).decode("ascii")
    return {"labels": data, "names": list(names), "palette": np.asarray(palette).tolist()}


def paintable_maps(result: Any) -> list[str]:
    """Which of PAINTABLE can be corrected in a record; the garment's mask also where none was found."""
    if result is None:
        return []
    can_cut = result.garment_photo is not None and "parse" in result.seconds
    return [name for name in PAINTABLE if (can_cut if name == "painted_mask" else getattr(result, name) is not None)]


def painting(result: Any, name: str) -> dict[str, Any]:
    """Value for `static/tryon/label_canvas.js` with a brush: the labels of one map, one byte a pixel, over the picture
    they belong to.
    """
    title, _, brush = PAINTABLE[name]
    names: tuple[str, ...]
    if name == "painted_mask":
        picture = result.garment_photo[..., :3]
        ratio = min(1.0, CANVAS / max(picture.shape[:2]))
        size = (max(1, round(picture.shape[1] * ratio)), max(1, round(picture.shape[0] * ratio)))
        base = cv2.resize(picture, size, interpolation=cv2.INTER_AREA) if ratio < 1 else picture
        mask = cv2.resize(_cut(result), size, interpolation=cv2.INTER_AREA) > 127
        names, palette, values = MASK_NAMES[name], MASK_COLOURS[name], mask.astype(np.uint8)
    elif name == "misalignment":
        base, names, palette = result.warped_cloth, MASK_NAMES[name], MASK_COLOURS[name]
        base = np.where(result.warped_mask[..., None] > 127, base, result.agnostic)
        values = (result.misalignment > 127).astype(np.uint8)
    else:
        base, values, (names, palette) = result.person, getattr(result, name), LABEL_MAPS[name]
    return {
        "name": name,
        "title": f"{title}, to be painted",
        "width": base.shape[1],
        "height": base.shape[0],
        "base": data_url(base),
        "over": "",
        "paint": True,
        "brush": brush,
        **_labels(values, names, palette),
    }


def paint_file(result: Any, name: str) -> bytes:
    """The map of `painting` as a PNG file for another program: labels with a palette, or a mask, white = inside."""
    if name in LABEL_MAPS:
        return label_png(getattr(result, name), LABEL_MAPS[name][1])
    if name == "misalignment":
        return png(result.misalignment)
    return png(_cut(result))


def _cut(result: Any) -> np.ndarray:
    """The garment in its photograph, (H, W) uint8: as it was painted, else as it was cut out, else nothing."""
    if result.painted_mask is not None:
        return result.painted_mask
    return result.garment_cut.mask if result.garment_cut else np.zeros(result.garment_photo.shape[:2], np.uint8)


def map_from_canvas(name: str, text: str, width: int, height: int) -> np.ndarray:
    """The map that comes back from the canvas, as `TryOn.correct` takes it. Raises ValueError with a sentence."""
    try:
        values = np.frombuffer(base64.b64decode(text, validate=True), np.uint8).reshape(int(height), int(width))
        most = len(MASK_NAMES[name]) if name in MASK_NAMES else len(LABEL_MAPS[name][0])
    except (ValueError, TypeError, KeyError):
        raise ValueError("The painted map did not arrive whole; paint again.") from None
    if values.size and values.max() >= most:
        raise ValueError("The painted map holds labels that do not exist; reset it and paint again.")
    return values * np.uint8(255) if name in MASK_NAMES else values.copy()


def warp_overlay(result: Any, cloth: np.ndarray | None = None, mask: np.ndarray | None = None) -> np.ndarray:
    """(H, W, 3) uint8: the person with the warped garment laid on, in orange where predicted cloth is uncovered.

    cloth, mask: another warp than the record's.
    """
    if cloth is None or mask is None:
        cloth, mask = result.warped_cloth, result.warped_mask
    picture = np.where(mask[..., None] > 127, cloth, result.person)
    orange = np.array(labels.MISALIGNED_COLOUR, np.float32)
    tint = (picture * 0.35 + orange * 0.65).astype(np.uint8)
    gap = (result.segmentation == labels.UPPER) & (mask <= 127)
    return np.where(gap[..., None], tint, picture)


def control_points(result: Any) -> dict[str, Any]:
    """Value for `static/tryon/control_points.js`: the points of a record, and what the browser bends the cloth with."""
    region = (result.segmentation == labels.UPPER).astype(np.uint8) * np.uint8(255)
    return {
        **points_overlay(result),
        "fresh": True,
        "start": result.control_points.tolist(),
        "width": result.options.size[1],
        "height": result.options.size[0],
        "person": data_url(result.person),
        "cloth": data_url(np.dstack([result.cloth, result.cloth_mask])),
        "region": data_url(region),
    }


def points_overlay(result: Any) -> dict[str, Any]:
    """The same for points that have been tried: what the networks make of them, in place of the browser's preview."""
    n = round(len(result.control_points) ** 0.5)
    return {
        "fresh": False,
        "points": result.control_points.tolist(),
        "exact": data_url(warp_overlay(result)),
        "note": f"{n} × {n} points, {percent(result.misaligned_share, 1)} of the predicted cloth uncovered (orange)",
    }


def beside(result: Any, line: str = "The result as it is") -> dict[str, str]:
    """What stands beside an editor: the person in the frame of the maps as the record dresses them."""
    # A number of its own: scripts hear only of values that differ from the last one.
    value = {"url": "", "line": line, "number": secrets.token_hex(4)}
    if result is None or result.result is None:
        return value
    return {**value, "url": data_url(photo.crop(result.result, result.frame, result.options.size))}


def verdict(result: TryOnResult) -> str:
    """HTML: how good a finished try-on looks by `vton.verdict`, and the stage behind each thing that is not right."""
    findings = measured.findings(result)
    worst = measured.grade(findings)
    lines = "".join(
        f'<li class="grade-{f.grade}">{escape(f.sentence)} <span class="hint">Stage: {escape(f.stage)}</span></li>'
        for f in findings
    )
    words = f"<strong>{measured.GRADES[worst].capitalize()}</strong>{f'<ul>{lines}</ul>' if lines else ''}"
    return f'<div class="verdict grade-{worst}" data-grade="{worst}">{words}</div>'
