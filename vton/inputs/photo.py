"""Decoding of visitors' pictures, the 3:4 frame around a person, and the way back into the photograph.

Conventions: pictures are (H, W, 3) uint8 RGB, points are x, y in pixels with (0, 0) at the top left corner of the
top left pixel. A `Frame` is given in pixels of the photograph and may reach beyond it.
"""

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageCms, ImageOps

from vton import joints

# Formats that Pillow decodes by itself; others (EPS) would start foreign programs, and a damaged HEIC file ended the
# whole process in libheif.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "AVIF")
# What a picture may come as; None, where nothing was chosen, is told to the visitor.
SOURCES = (str, Path, bytes, bytearray, memoryview, np.ndarray, Image.Image, type(None))
HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")  # ISO/IEC 23008-12, annex B
HEIC = "This is a HEIC picture, as phones save it, which cannot be read here; save or send it as JPEG."
LONGEST = 4096
SHORTEST = 64
MAX_BYTES = 80_000_000
# Pixels that are decoded in full. JPEG can be decoded at 1/2, 1/4, 1/8, so more is allowed there.
MAX_PIXELS = 60_000_000
MAX_JPEG_PIXELS = 170_000_000

# VITON-HD's framing: share of the frame's height above the neck, and between neck and hips.
NECK_HEIGHT = 0.332
TRUNK_SHARE = 0.366
SHOULDER_SHARE = 0.42  # widest shoulders, as a share of the frame's width
TRUNK_PER_SHOULDERS = 1.45
MIN_FRAME = 160  # pixels; nobody can be dressed in a smaller frame
MAX_GROWTH = 1.4  # how far a frame may grow to take in the arms


class InputError(ValueError):
    """A visitor's input cannot be used; the message is one sentence that says what to do.

    stage, record: the stage of a try-on that it ended, and the record up to there.
    """

    stage: str = ""
    record: Any = None


def _open(source) -> Image.Image:
    if isinstance(source, Image.Image):
        return source
    if isinstance(source, np.ndarray):
        return _from_array(source)
    if isinstance(source, (str, Path)):
        path = Path(source)
        if not path.is_file():
            raise InputError(f"There is no picture {path.name}; check the name of the file.")
        size, stream = path.stat().st_size, path
    elif isinstance(source, (bytes, bytearray, memoryview)):
        size, stream = len(source), io.BytesIO(source)
    else:
        raise InputError("There is no picture yet; choose a JPEG, PNG or WebP file.")
    if size == 0:
        raise InputError("This file is empty; choose a JPEG, PNG or WebP picture.")
    if size > MAX_BYTES:
        raise InputError(f"This file is larger than {MAX_BYTES // 1_000_000} MB; save it as JPEG or make it smaller.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limits below are narrower
            return Image.open(stream, formats=FORMATS)
    except Image.DecompressionBombError:
        raise InputError(_too_large(None)) from None
    except Exception:  # damaged files raise as many kinds of errors as there are decoders
        if _is_heic(stream):
            raise InputError(HEIC) from None
        raise InputError("This file is not a picture that can be read; choose a JPEG, PNG or WebP file.") from None


def _is_heic(stream: Path | io.BytesIO) -> bool:
    """Whether a file begins as HEIC and HEIF files do."""
    start = stream.getvalue()[:12] if isinstance(stream, io.BytesIO) else stream.open("rb").read(12)
    return start[4:8] == b"ftyp" and start[8:12] in HEIC_BRANDS


def _too_large(pixels: int | None) -> str:
    size = f"has {pixels / 1e6:.0f} megapixels" if pixels else "has far too many pixels"
    return f"This picture {size}; make it smaller, {MAX_PIXELS // 1_000_000} megapixels are the most."


def _from_array(array: np.ndarray) -> Image.Image:
    if array.dtype == np.uint16:
        array = (array // 257).astype(np.uint8)
    is_picture = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3, 4))
    if array.dtype != np.uint8 or not is_picture or 0 in array.shape:
        raise InputError(
            f"A picture array is (H, W, 3) or (H, W, 4) uint8, not {array.shape} {array.dtype}; convert it first."
        )
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.shape[0] * array.shape[1] > MAX_PIXELS:
        raise InputError(_too_large(array.shape[0] * array.shape[1]))
    return Image.fromarray(np.ascontiguousarray(array))


def _to_srgb(image: Image.Image) -> Image.Image:
    """Translate colours into sRGB where the file carries another profile (phones save Display P3)."""
    profile = image.info.get("icc_profile")
    if not profile or image.mode not in ("RGB", "RGBA", "CMYK"):
        return image
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if "srgb" in ImageCms.getProfileDescription(source).lower():
            return image
        alpha = image.getchannel("A") if image.mode == "RGBA" else None
        flat = image.convert("RGB") if alpha else image
        flat = ImageCms.profileToProfile(flat, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
        if alpha:
            flat.putalpha(alpha)
        return flat
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return image


def _to_8_bit(image: Image.Image) -> Image.Image:
    """16-bit, 32-bit and floating point grey levels -> "L"; Pillow's own conversion would clip them."""
    values = np.asarray(image, np.float64)
    values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    top = 65535.0 if image.mode.startswith("I;16") else float(values.max(initial=0))
    if not image.mode.startswith("I;16"):
        top = next((limit for limit in (1.0, 255.0, 65535.0) if top <= limit), top)
    return Image.fromarray((values.clip(0, top) * (255.0 / top) + 0.5).astype(np.uint8))


def load_image(source, alpha: bool = False, longest: int = LONGEST) -> np.ndarray:
    """Decode a picture, turn it upright, bring it to 8-bit sRGB and to a bounded size.

    source: path, bytes, PIL image, or uint8/uint16 array (H, W), (H, W, 3), (H, W, 4).
    alpha: keep the transparency, if the picture has any; otherwise it is laid on white.
    longest: pictures whose longer side exceeds this many pixels are reduced to it.
    Returns (H, W, 3) uint8 RGB, or (H, W, 4) RGBA with `alpha` and a transparent picture.
    Raises InputError, with one sentence, for a file that is missing, no picture, damaged, too large or too small.
    """
    image = _open(source)
    pixels = image.width * image.height
    reducible = image.format in ("JPEG", "MPO")
    if pixels > (MAX_JPEG_PIXELS if reducible else MAX_PIXELS):
        raise InputError(_too_large(pixels))
    try:
        if reducible and not isinstance(source, Image.Image) and max(image.size) >= 2 * longest:
            ratio = longest / max(image.size)
            image.draft(None, (max(1, int(image.width * ratio)), max(1, int(image.height * ratio))))
        image.load()
    except Exception:
        raise InputError("This picture is damaged or incomplete; save or upload it again.") from None
    try:
        image = ImageOps.exif_transpose(image)
    except Exception:  # broken EXIF blocks raise many kinds of errors; the picture itself is fine
        pass
    if image.mode.startswith("I") or image.mode == "F":
        image = _to_8_bit(image)
    image = _to_srgb(image)
    transparent = "A" in image.mode or "a" in image.mode or "transparency" in image.info
    image = image.convert("RGBA" if transparent else "RGB")
    if max(image.size) > longest:
        ratio = longest / max(image.size)
        size = (max(1, round(image.width * ratio)), max(1, round(image.height * ratio)))
        image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    if min(image.size) < SHORTEST:
        raise InputError(
            f"This picture is only {image.width} x {image.height} pixels; use one with {SHORTEST} or more on each side."
        )
    array = np.array(image)
    return opaque(array) if transparent and not alpha else array


def opaque(image: np.ndarray) -> np.ndarray:
    """(H, W, 3) uint8 of a picture (H, W, 3 or 4) uint8, transparency laid on white."""
    if image.shape[2] == 3:
        return np.ascontiguousarray(image)
    opacity = image[..., 3:].astype(np.uint16)
    return ((image[..., :3] * opacity + 255 * (255 - opacity) + 127) // 255).astype(np.uint8)


def longest_side(source) -> int:
    """Pixels on the longer side of a picture as it is given, before `load_image` reduces it; arguments as there."""
    return max(_open(source).size)


@dataclass(frozen=True)
class Frame:
    """A 3:4 box in pixels of the photograph, which it may exceed: columns x0 to x1, rows y0 to y1, ends excluded."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def width(self) -> int:
        """In pixels."""
        return self.x1 - self.x0

    @property
    def height(self) -> int:
        """In pixels."""
        return self.y1 - self.y0

    def overlap(self, photo_hw: tuple[int, int]) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
        """Rows and columns of what lies in a photograph of that (H, W): in the photograph, and in the frame itself."""
        ya, yb = np.clip([self.y0, self.y1], 0, photo_hw[0])
        xa, xb = np.clip([self.x0, self.x1], 0, photo_hw[1])
        return np.s_[ya:yb, xa:xb], np.s_[ya - self.y0 : yb - self.y0, xa - self.x0 : xb - self.x0]


def frame_person(keypoints: np.ndarray, photo_hw: tuple[int, int]) -> Frame:
    """The 3:4 frame around a person as in VITON-HD: neck a third of the way down, hips at about 70 %.

    keypoints: (25, 3) x, y, confidence in pixels of the photograph; photo_hw: its (H, W).
    Where the hips are missing, the trunk's length follows from the shoulders. The frame grows, by 1.4 at most, to take
    in elbows and wrists. Raises InputError when neck and shoulders are missing.
    """
    visible = joints.present(keypoints)
    points = np.asarray(keypoints, np.float64)
    right, left = joints.SHOULDERS
    shoulders = joints.distance(points, right, left)
    if visible[joints.NECK]:
        neck = points[joints.NECK]
    elif visible[right] and visible[left]:
        neck = (points[right] + points[left]) / 2
    else:
        raise InputError("The shoulders are not visible; use a photo that shows the person from head to hips.")
    hips = [points[i] for i in joints.HIPS if visible[i]]
    hip = points[joints.MID_HIP] if visible[joints.MID_HIP] else np.mean(hips, axis=0) if hips else None
    trunk = float(hip[1] - neck[1]) if hip is not None else 0.0
    # Shoulders that are wide for the trunk mean a bent or seated person, or hips that are out of the picture.
    height = max(
        trunk / TRUNK_SHARE,
        shoulders / SHOULDER_SHARE * 4 / 3,
        TRUNK_PER_SHOULDERS * shoulders / TRUNK_SHARE if hip is None else 0.0,
    )
    if height < MIN_FRAME:
        raise InputError(
            "The person is too small or lies down; use a photo in which a standing person fills the picture."
        )
    centre_x = neck[0] if hip is None else (neck[0] + hip[0]) / 2

    arms = points[[i for arm in joints.ARMS.values() for i in arm[1:] if visible[i]]]
    growth = 1.0
    if len(arms):
        margin = 0.07 * height
        ratios = [
            (np.abs(arms[:, 0] - centre_x).max() + margin) / (0.375 * height),
            (neck[1] - arms[:, 1].min() + margin) / (NECK_HEIGHT * height),
            (arms[:, 1].max() - neck[1] + margin) / ((1 - NECK_HEIGHT) * height),
        ]
        growth = float(np.clip(max(ratios), 1.0, MAX_GROWTH))
    limit = 2.0 * max(photo_hw)
    unit = max(SHORTEST // 4, round(min(height * growth, limit) / 4))
    x0 = round(centre_x - 1.5 * unit)
    y0 = round(neck[1] - NECK_HEIGHT * 4 * unit)
    return Frame(x0, y0, x0 + 3 * unit, y0 + 4 * unit)


def _resize(image: np.ndarray, size: tuple[int, int], interpolation: str) -> np.ndarray:
    if image.shape[:2] == tuple(size):
        return image.copy()
    smooth = cv2.INTER_AREA if size[0] < image.shape[0] else cv2.INTER_CUBIC
    flags = {"smooth": smooth, "nearest": cv2.INTER_NEAREST_EXACT, "linear": cv2.INTER_LINEAR}
    return cv2.resize(image, size[::-1], interpolation=flags[interpolation])


def wide_blur(picture: np.ndarray, sigma: float, enough: float) -> np.ndarray:
    """Gaussian blur of (H, W) or (H, W, C), uint8 or float32; the same shape and type.

    sigma, in pixels, is brought below twice `enough` on a smaller copy, which looks the same and is up to a hundred
    times quicker.
    """
    factor = max(1, int(sigma // enough))
    if factor == 1:
        return cv2.GaussianBlur(picture, (0, 0), sigma)
    height, width = picture.shape[:2]
    small = cv2.resize(picture, (max(1, width // factor), max(1, height // factor)), interpolation=cv2.INTER_AREA)
    return cv2.resize(cv2.GaussianBlur(small, (0, 0), sigma / factor), (width, height), interpolation=cv2.INTER_LINEAR)


def crop(
    image: np.ndarray, frame: Frame, size: tuple[int, int], interpolation: str = "smooth", fill=None
) -> np.ndarray:
    """Cut `frame` out of `image` and scale it to `size` = (H, W).

    image: (H0, W0) or (H0, W0, C), uint8 or float32. interpolation: "smooth" (area when shrinking, cubic when growing),
    "nearest" (for label maps), "linear". fill: value beyond the photograph; None repeats its border,
    blurred where it is wide, so that nothing there looks like a body or a garment.
    """
    H0, W0 = image.shape[:2]
    xa, xb = np.clip([frame.x0, frame.x1], 0, W0)
    ya, yb = np.clip([frame.y0, frame.y1], 0, H0)
    if xa >= xb or ya >= yb:
        raise ValueError("The frame lies outside the photograph.")
    border = (ya - frame.y0, frame.y1 - yb, xa - frame.x0, frame.x1 - xb)
    inside = image[ya:yb, xa:xb]
    if any(border):
        mode = cv2.BORDER_REPLICATE if fill is None else cv2.BORDER_CONSTANT
        value = 0 if fill is None else fill
        value = (value,) * 4 if np.isscalar(value) else tuple(value)
        inside = cv2.copyMakeBorder(np.ascontiguousarray(inside), *map(int, border), mode, value=value)
    result = _resize(np.ascontiguousarray(inside), size, interpolation)
    if fill is None and max(border) > 0.02 * frame.width:
        scale_y, scale_x = size[0] / frame.height, size[1] / frame.width
        top, bottom = round(border[0] * scale_y), size[0] - round(border[1] * scale_y)
        left, right = round(border[2] * scale_x), size[1] - round(border[3] * scale_x)
        soft = wide_blur(result, max(1.0, 0.05 * size[1]), 16)
        soft[top:bottom, left:right] = result[top:bottom, left:right]
        result = soft
    return result


def uncrop(
    image: np.ndarray, frame: Frame, photo_hw: tuple[int, int], interpolation: str = "smooth", fill=0
) -> np.ndarray:
    """The way back: scale a picture or map of the frame to the frame's size and lay it on a canvas of the photograph's.

    image: (H, W) or (H, W, C); returns (H0, W0) or (H0, W0, C) of the same type, `fill` outside the frame.
    """
    full = _resize(np.ascontiguousarray(image), (frame.height, frame.width), interpolation)
    canvas = np.empty((*photo_hw, *image.shape[2:]), image.dtype)
    canvas[...] = fill
    outer, inner = frame.overlap(photo_hw)
    canvas[outer] = full[inner]
    return canvas


def paste(photo: np.ndarray, picture: np.ndarray, frame: Frame, region: np.ndarray) -> np.ndarray:
    """Put the picture of a frame back into the photograph.

    photo: (H0, W0, 3) uint8; picture: (H, W, 3) uint8, the frame's content at any size;
    region: (H0, W0) uint8, opacity of the picture: 0 keeps the photograph byte for byte, 255 shows the picture, values
    between blend (a soft seam). Returns (H0, W0, 3) uint8. Outside the frame the photograph stays as well.
    """
    if region.shape != photo.shape[:2] or region.dtype != np.uint8:
        raise ValueError(
            f"The region is an (H, W) uint8 map of the photograph's size, not {region.shape} {region.dtype}."
        )
    result = photo.copy()
    outer, inner = frame.overlap(photo.shape[:2])
    full = _resize(np.ascontiguousarray(picture), (frame.height, frame.width), "smooth")
    new, old, opacity = (part.astype(np.uint16) for part in (full[inner], photo[outer], region[outer][..., None]))
    result[outer] = ((new * opacity + old * (255 - opacity) + 127) // 255).astype(np.uint8)
    return result


def keypoints_to_frame(keypoints: np.ndarray, frame: Frame, size: tuple[int, int]) -> np.ndarray:
    """(25, 3) keypoints in the photograph -> in the frame's picture of `size` = (H, W), in pixels; missing stay 0."""
    scale = np.array([size[1] / frame.width, size[0] / frame.height])
    return _move_points(keypoints, lambda points: (points - (frame.x0, frame.y0)) * scale)


def keypoints_to_photo(keypoints: np.ndarray, frame: Frame, size: tuple[int, int]) -> np.ndarray:
    """(25, 3) keypoints in the frame's picture of `size` = (H, W) -> in the photograph, in pixels; missing stay 0."""
    scale = np.array([frame.width / size[1], frame.height / size[0]])
    return _move_points(keypoints, lambda points: points * scale + (frame.x0, frame.y0))


def _move_points(keypoints: np.ndarray, move: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    keypoints = np.asarray(keypoints)
    places = np.concatenate([move(keypoints[:, :2]), keypoints[:, 2:]], 1)
    return np.where(joints.present(keypoints)[:, None], places, 0).astype(np.float32)


def disc(radius: float) -> np.ndarray:
    """A round structuring element, (2 r + 1, 2 r + 1) uint8, for r = `radius` rounded to whole pixels, at least 1."""
    side = 2 * max(1, round(radius)) + 1
    return cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))


def largest(mask: np.ndarray) -> np.ndarray:
    """The largest piece of a mask (H, W) bool; all of it where it is empty."""
    count, pieces, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    if count <= 1:
        return mask
    return pieces == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))


def from_nearest(values: np.ndarray, source: np.ndarray) -> np.ndarray:
    """A copy of (H, W) or (H, W, C) `values` in which every pixel outside `source` has the value of the
    nearest one inside.

    source: (H, W) bool, True somewhere.
    """
    _, nearest = cv2.distanceTransformWithLabels(
        (~source).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    value = np.zeros((nearest.max() + 1, *values.shape[2:]), values.dtype)
    value[nearest[source]] = values[source]
    return value[nearest]
