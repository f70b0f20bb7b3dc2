"""A try-on's record as one zip: every map as PNG, every array as npz, the settings as JSON; and back again.

A zip holds NAME.png (names as in vton.maps, and photo.png, garment_photo.png), arrays.npz and settings.json. The two
photos and the result are in it as PNG alone: they are large, and PNG is exact. Nothing is ever unpickled, and what
comes back is bounded before it is read.
"""

import dataclasses
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vton import labels
from vton.inputs.garment import Garment
from vton.inputs.photo import LONGEST, Frame, InputError, load_image
from vton.inputs.reading import Attribute
from vton.networks.garment_reader import GROUPS
from vton.options import DEFAULTS, Options
from vton.result import TryOnResult
from vton.stages import READERS, STAGES, TABLE

FOREIGN = "This is not a file that a try-on has saved; choose its zip or its settings.json."
MAX_ARRAYS = 200_000_000  # bytes of arrays.npz and of any array in it, unpacked
MAX_SETTINGS = 200_000
AS_PNG = ("photo", "garment_photo", "result")  # fields that the zip holds as PNG, not in arrays.npz
# Label maps by the field that holds them: the names and colours of their labels.
LABEL_MAPS = {
    "parse": (labels.LIP, labels.LIP_COLOURS),
    "parse_agnostic": (labels.LIP, labels.LIP_COLOURS),
    "segmentation": (labels.SEGMENTATION, labels.SEGMENTATION_COLOURS),
    "divided": (labels.DIVIDED, labels.DIVIDED_COLOURS),
}


def png(picture: np.ndarray) -> bytes:
    """PNG file of a (H, W), (H, W, 3) or (H, W, 4) uint8 picture, exact."""
    buffer = io.BytesIO()
    # Fast compression: a phone photo at full size would take seconds with the default.
    Image.fromarray(np.ascontiguousarray(picture)).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def label_png(label_map: np.ndarray, palette: np.ndarray) -> bytes:
    """PNG file with a palette: pixels are the labels (H, W) uint8 themselves; palette (n, 3) uint8: their colours."""
    picture = Image.fromarray(np.ascontiguousarray(label_map, np.uint8), "P")
    picture.putpalette(np.asarray(palette, np.uint8).ravel().tolist())
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def read_label_png(source: Any, palette: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The labels of a PNG of `label_png`, of one whose grey levels are labels, or of one in the palette's colours.

    source: path or bytes; shape: (H, W) that it must have. Returns (H, W) uint8. Raises InputError with a sentence for
    another size, for unknown labels and for colours between two labels' colours (a picture that was scaled or saved as
    JPEG).
    """
    try:
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=("PNG",)) as picture:
            size = picture.height, picture.width
            if size == tuple(shape):
                is_indexed = picture.mode in ("P", "L", "1")
                values = np.array(picture if picture.mode == "P" else picture.convert("L" if is_indexed else "RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise InputError("A label map is a PNG file; save it as PNG from your editor.") from None
    if size != tuple(shape):
        raise InputError(
            f"The map must be {shape[1]} x {shape[0]} pixels like the one on the page, but is {size[1]} x {size[0]}."
        )
    if is_indexed:
        if values.max() >= len(palette):
            raise InputError(
                f"This map holds the label {values.max()}, but the labels go from 0 to {len(palette) - 1}."
            )
        return values.astype(np.uint8)
    classes = (values[..., None, :] == palette).all(-1).argmax(-1)
    if (palette[classes] != values).any():
        raise InputError(
            "Some colours of this map are none of the labels' colours; save it as PNG, without smoothing or scaling."
        )
    return classes.astype(np.uint8)


def read_map(result: TryOnResult, name: str, source: Any) -> np.ndarray:
    """A corrected map out of a file, in the form in which `TryOn.correct` takes it.

    name: one of stages.READERS; source: path or bytes. Label maps: see `read_label_png`. Masks: any PNG, white =
        inside.
    Control points: JSON, a list of n^2 pairs x, y in [-1, 1] of the cloth, or an object with it under "control_points".
    Raises InputError or ValueError with one sentence.
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    if name == "control_points":
        try:
            values = json.loads(data) if len(data) < MAX_SETTINGS else None
            values = values.get("control_points") if isinstance(values, dict) else values
            return np.array(values, np.float32)
        except (ValueError, TypeError, RecursionError):
            raise InputError("Control points come as JSON, a list of x, y pairs.") from None
    if name in LABEL_MAPS and name in READERS:
        return read_label_png(data, LABEL_MAPS[name][1], result.options.size)
    if name not in READERS:
        raise InputError(f"'{name}' cannot be corrected; these can: {', '.join(READERS)}.")
    mask = load_image(data)
    if name == "misalignment" and mask.shape[:2] != tuple(result.options.size):
        raise InputError(
            f"The map must be {result.options.size[1]} x {result.options.size[0]} pixels like the one on the page."
        )
    return np.where(mask.mean(2) > 127, np.uint8(255), np.uint8(0))


def arrays(result: TryOnResult) -> dict[str, np.ndarray]:
    """Every array of a record by its field's name; of the cut-out, `cut_cloth` and `cut_mask`."""
    values = dict(vars(result))
    if result.garment_cut is not None:
        values |= {"cut_cloth": result.garment_cut.cloth, "cut_mask": result.garment_cut.mask}
    if result.misalignment is not None and result.segmentation is not None:
        values["divided"] = result.divided
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def settings(result: TryOnResult) -> dict[str, Any]:
    """What one needs to repeat a record, what is known about it, and how long each stage took, as a JSON value."""
    cut = result.garment_cut
    return {
        "weights": result.weights,
        **dataclasses.asdict(result.options),
        "seconds": {stage: round(float(value), 4) for stage, value in result.seconds.items()},
        "notes": list(result.notes),
        "corrected": list(result.corrected),
        "resumed_from": result.resumed_from,
        "quality": result.quality if result.keypoints is not None else {},
        "frame": list(dataclasses.astuple(result.frame)) if result.frame else None,
        "cut_out_by": cut.method if cut else "",
        "open_neck": bool(cut and cut.open_neck),
        "garment": {name: list(read) for name, read in cut.attributes.items()} if cut else {},
    }


def pictures(result: TryOnResult) -> dict[str, np.ndarray]:
    """The two photos and every map so far, uint8, by the name of its file."""
    sources = {"photo": result.photo, "garment_photo": result.garment_photo}
    return {**{name: picture for name, picture in sources.items() if picture is not None}, **result.pictures()}


def save(result: TryOnResult, target: Any, files: dict[str, str] | None = None, **more: Any) -> None:
    """Write the zip. target: path or binary file; files: PNG files by name that are there; more: of the settings."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: value for name, value in arrays(result).items() if name not in AS_PNG})
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:  # PNG and npz are compressed already
        if files is None:
            for name, picture in pictures(result).items():
                archive.writestr(f"{name}.png", png(picture))
        else:
            for name, path in files.items():
                archive.write(path, f"{name}.png")
        archive.writestr("arrays.npz", buffer.getvalue())
        archive.writestr("settings.json", json.dumps({**settings(result), **more}, indent=2) + "\n")


def read_settings(source: Any) -> dict[str, Any]:
    """The checked settings of a zip or settings.json (path or bytes): `options` (Options), `weights` and the rest.

    Raises InputError with one sentence for a file that is neither.
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                data = _member(archive, "settings.json", MAX_SETTINGS)
        if len(data) > MAX_SETTINGS:
            raise InputError(FOREIGN)
        values = json.loads(data)
        fields = {name: values[name] for name in DEFAULTS.keys() & set(values)} | {"size": tuple(values["size"])}
        size = tuple(int(side) for side in fields["size"])
        if any(not isinstance(value, type(DEFAULTS[name])) for name, value in fields.items()) or len(size) != 2:
            raise InputError(FOREIGN)
        options = Options(**{**fields, "size": size})
        weights = str(values.get("weights", ""))
    except InputError:
        raise
    except Exception:  # a foreign or damaged zip raises as many kinds of errors as there are places in its readers
        raise InputError(FOREIGN) from None
    options.check()
    return {**values, "options": options, "weights": weights}


def _member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    info = archive.getinfo(name)
    if info.file_size > most:
        raise InputError("This zip holds more than a try-on does; choose one that this page has saved.")
    return archive.read(info)


def load(source: Any) -> TryOnResult:
    """The record out of a zip that `save` wrote (path or bytes). It can be looked at, corrected and continued at once.

    Raises InputError with one sentence for a zip that is foreign, damaged, too large, or whose maps do not fit
        together.
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    values = read_settings(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            blob = _member(archive, "arrays.npz", MAX_ARRAYS)
            there = [name for name in AS_PNG if f"{name}.png" in archive.namelist()]
            pictures = {name: _member(archive, f"{name}.png", MAX_ARRAYS) for name in there}
        with zipfile.ZipFile(io.BytesIO(blob)) as inner:
            if sum(info.file_size for info in inner.infolist()) > MAX_ARRAYS:
                raise InputError("This zip holds more than a try-on does; choose one that this page has saved.")
        maps = dict(np.load(io.BytesIO(blob), allow_pickle=False))
        maps |= {name: load_image(data, alpha=name == "garment_photo") for name, data in pictures.items()}
        return _assemble(maps, values)
    except InputError:
        raise
    except Exception:  # as in `read_settings`
        raise InputError(FOREIGN) from None


# The stage and the kind of each array that a zip holds (see `_fits`); of the garment's cut-out, picture and mask.
_CUT_OUT = {"cut_cloth": ("garment", "any3"), "cut_mask": ("garment", "any")}
_ARRAYS = {name: (stage.name, kind) for stage in TABLE for name, kind in stage.makes.items() if kind} | _CUT_OUT

_NEWER = ("rendered", "alpha", "unchanged", "kept")  # what the zips of earlier versions lack
_OF_SPLINE, _OF_FLOW = {"theta", "control_points"}, {"flow"}  # what a warp of either kind leaves, and not the other


def _fits(kind: str, value: np.ndarray, size: tuple[int, int], photo: np.ndarray) -> bool:
    """Whether an array is one of its kind, in a record whose maps are of `size` (H, W)."""
    shape = value.shape
    if kind in ("HWf", "joints", "theta", "points", "flow"):
        right = {
            "HWf": shape == size,
            "joints": shape == (25, 3),
            "theta": shape == (50,),
            "points": shape in ((25, 2), (100, 2)),
            "flow": len(shape) == 3 and shape[2] == 2 and 0 < min(shape[:2]) <= max(shape[:2]) <= LONGEST,
        }
        return right[kind] and value.dtype == np.float32 and bool(np.isfinite(value).all())
    if value.dtype != np.uint8 or not value.size:
        return False
    if kind in ("lip", "thirteen"):
        return shape == size and value.max() < (20 if kind == "lip" else 13)
    if kind.startswith("any"):
        channels = {"any": ((),), "any3": ((3,),), "any34": ((3,), (4,))}[kind]
        return len(shape) > 1 and max(shape[:2]) <= LONGEST and shape[2:] in channels
    return shape == {"HW": size, "HW3": (*size, 3), "photo": photo.shape[:2], "photo3": photo.shape}[kind]


def _attributes(values: Any) -> dict[str, Attribute]:
    """What a saved record says of the garment, as far as it says something that is known."""
    attributes = {}
    for name, groups in GROUPS.items():
        value, certainty, exact = (values or {}).get(name, ("", 0.0, ""))
        if exact in groups.get(value, ()):
            attributes[name] = Attribute(value, min(1.0, max(0.0, float(certainty))), exact)
    return attributes


def _assemble(maps: dict[str, np.ndarray], values: dict[str, Any]) -> TryOnResult:
    size = values["options"].size
    ran = {stage: float(values["seconds"][stage]) for stage in STAGES if stage in values["seconds"]}
    if list(ran) != list(STAGES[: len(ran)]) or "photo" not in ran:
        raise InputError(FOREIGN)
    fields = {}
    other = _OF_SPLINE if "flow" in maps else _OF_FLOW
    for name, (stage, kind) in _ARRAYS.items():
        if stage in ran and name not in other and (name in maps or name not in _NEWER):
            if not _fits(kind, maps[name], size, maps["photo"]):
                raise InputError(FOREIGN)
            fields[name] = maps[name]
    if "garment" in ran:
        cloth, mask = fields.pop("cut_cloth"), fields.pop("cut_mask")
        if cloth.shape[:2] != mask.shape:
            raise InputError(FOREIGN)
        method, open_neck = str(values["cut_out_by"])[:20], values.get("open_neck") is True
        fields["garment_cut"] = Garment(cloth, mask, method, _attributes(values.get("garment")), open_neck)
    if "painted_mask" in maps:
        if not _fits("any", maps["painted_mask"], size, maps["photo"]):
            raise InputError(FOREIGN)
        fields["painted_mask"] = maps["painted_mask"]
    if "pose" in ran:
        x0, y0, x1, y1 = (int(value) for value in values["frame"])
        h, w = maps["photo"].shape[:2]
        # A frame is a 3:4 box that meets the photograph and is at most a few times its size.
        meets = x0 < w and y0 < h and x1 > 0 and y1 > 0
        if not (meets and 0 < x1 - x0 <= 8 * max(h, w) and 4 * (x1 - x0) == 3 * (y1 - y0)):
            raise InputError(FOREIGN)
        fields["frame"] = Frame(x0, y0, x1, y1)
    return TryOnResult(
        values["options"],
        seconds=ran,
        weights=values["weights"],
        notes=tuple(str(note)[:500] for note in values["notes"][:20]),
        corrected=tuple(str(name)[:40] for name in values["corrected"][:20]),
        resumed_from=str(values["resumed_from"])[:40],
        **fields,
    )
