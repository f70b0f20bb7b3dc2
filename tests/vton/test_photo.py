"""Decoding against a picture made here, every bad input with its sentence, and the frame's way there and back."""

import io
import re
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image, ImageCms

from vton import stages
from vton.inputs import photo
from vton.inputs.photo import Frame, InputError
from vton.options import Options
from vton.result import TryOnResult


def picture(h=96, w=80, seed=0) -> np.ndarray:
    """Smooth colours that survive JPEG, different in every corner, so that orientation shows."""
    corners = np.random.default_rng(seed).integers(20, 235, (3, 3, 3)).astype(np.uint8)
    return np.array(Image.fromarray(corners).resize((w, h), Image.Resampling.BICUBIC))


def encoded(image, form, **options) -> bytes:
    stream = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(stream, form, **options)
    return stream.getvalue()


def png_that_claims(width, height) -> bytes:
    """A small PNG whose header promises an enormous picture."""
    data = bytearray(encoded(picture(), "PNG"))
    data[16:24] = struct.pack(">II", width, height)
    data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
    return bytes(data)


def is_one_sentence(text: str) -> bool:
    return text[0].isupper() and text.endswith(".") and "\n" not in text and not re.search(r"\.\s+[A-Z]", text)


def test_all_sources_give_the_same_picture(tmp_path):
    original = picture()
    (tmp_path / "a.png").write_bytes(encoded(original, "PNG"))
    sources = [
        tmp_path / "a.png",
        str(tmp_path / "a.png"),
        encoded(original, "PNG"),
        Image.fromarray(original),
        original,
    ]
    for source in sources:
        assert (photo.load_image(source) == original).all()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_exif_orientation(orientation, form):
    upright = picture()
    # What the camera stores, so that the viewer, who applies the tag, sees `upright`.
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    loaded = photo.load_image(encoded(np.ascontiguousarray(stored), form, exif=exif, quality=95))
    assert loaded.shape == upright.shape
    assert np.abs(loaded.astype(int) - upright).mean() < 4


def test_colour_modes():
    original = picture()
    image = Image.fromarray(original)
    close = {"CMYK": encoded(image.convert("CMYK"), "JPEG", quality=95), "P": encoded(image.quantize(256), "PNG")}
    for mode, data in close.items():
        loaded = photo.load_image(data)
        assert loaded.shape == original.shape and np.abs(loaded.astype(int) - original).mean() < 8, mode
    grey = np.array(image.convert("L"))
    assert (photo.load_image(encoded(grey, "PNG")) == grey[..., None]).all()
    deep = grey.astype(np.uint16) * 257
    assert np.abs(photo.load_image(encoded(Image.fromarray(deep), "PNG")).astype(int) - grey[..., None]).max() <= 1
    assert (photo.load_image(np.stack([deep] * 3, -1)) == grey[..., None]).all()
    assert photo.load_image(encoded(image.convert("1"), "PNG")).shape == original.shape


def test_transparency_is_laid_on_white_or_kept():
    original = picture()
    alpha = np.zeros(original.shape[:2], np.uint8)
    alpha[:, 40:] = 255
    alpha[:, 20:40] = 128
    rgba = np.dstack([original, alpha])
    flat = photo.load_image(encoded(rgba, "PNG"))
    assert flat.shape == original.shape
    assert (flat[:, :20] == 255).all() and (flat[:, 40:] == original[:, 40:]).all()
    half = (original[:, 20:40].astype(float) * 128 + 255 * 127) / 255
    assert np.abs(flat[:, 20:40] - half).max() <= 1
    assert (photo.load_image(encoded(rgba, "PNG"), alpha=True) == rgba).all()
    assert photo.load_image(encoded(original, "PNG"), alpha=True).shape[2] == 3


def test_srgb_profiles_change_nothing_and_broken_ones_do_no_harm():
    original = picture()
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for bytes_ in (profile, b"no profile at all"):
        assert (photo.load_image(encoded(original, "PNG", icc_profile=bytes_)) == original).all()


def test_large_pictures_are_reduced():
    large = Image.new("L", (9100, 6700), 140)  # 61 megapixels
    loaded = photo.load_image(encoded(large, "JPEG"))
    assert max(loaded.shape) == photo.LONGEST
    assert abs(loaded.shape[1] / loaded.shape[0] - 9100 / 6700) < 0.01
    assert np.abs(loaded.mean((0, 1)) - 140).max() < 3
    assert max(photo.load_image(picture(900, 700), longest=256).shape) == 256


BAD = {
    "truncated JPEG": lambda: encoded(np.random.default_rng(0).integers(0, 255, (200, 200, 3), np.uint8), "JPEG")[
        :4000
    ],
    "truncated PNG": lambda: encoded(picture(), "PNG")[:300],
    "no picture": lambda: b"once upon a time " * 40,
    "only a header": lambda: b"\x89PNG\r\n\x1a\n",
    "empty": lambda: b"",
    "nothing": lambda: None,
    "missing file": lambda: "no-such-file.png",
    "tiny": lambda: encoded(picture(40, 200), "PNG"),
    "61 megapixels of PNG": lambda: encoded(Image.new("1", (7900, 7800)), "PNG"),
    "decompression bomb": lambda: png_that_claims(50000, 40000),
    "float array": lambda: np.zeros((100, 100, 3)),
    "two channels": lambda: np.zeros((100, 100, 2), np.uint8),
    "empty array": lambda: np.zeros((0, 100, 3), np.uint8),
    "postscript": lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 99 99\nshowpage\n",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_pictures_get_one_sentence(name):
    with pytest.raises(InputError) as caught:
        photo.load_image(BAD[name]())
    assert is_one_sentence(str(caught.value))
    assert "/" not in str(caught.value)  # no path of the server


def keypoints_of(neck, hip, half_shoulder, **others) -> np.ndarray:
    k = np.zeros((25, 3), np.float32)
    k[1] = (*neck, 1)
    k[2], k[5] = (neck[0] - half_shoulder, neck[1], 1), (neck[0] + half_shoulder, neck[1], 1)
    if hip is not None:
        k[8], k[9], k[12] = (*hip, 1), (hip[0] - 20, hip[1], 1), (hip[0] + 20, hip[1], 1)
    for joint, place in others.items():
        k[int(joint[1:])] = (*place, 1)
    return k


def test_frame_has_the_data_sets_proportions():
    frame = photo.frame_person(keypoints_of((300, 200), (304, 420), 60), (800, 600))
    assert frame.width * 4 == frame.height * 3
    assert abs((200 - frame.y0) / frame.height - 1 / 3) < 0.01
    assert abs((420 - frame.y0) / frame.height - 0.70) < 0.01
    assert abs((frame.x0 + frame.x1) / 2 - 302) < 2


def test_frame_grows_for_arms_and_does_without_hips():
    plain = photo.frame_person(keypoints_of((300, 300), (300, 520), 60), (900, 600))
    wide = photo.frame_person(keypoints_of((300, 300), (300, 520), 60, k3=(20, 300), k6=(580, 300)), (900, 600))
    assert wide.height > plain.height and wide.x0 <= 20 and wide.x1 >= 580
    assert wide.height <= plain.height * photo.MAX_GROWTH + 4
    without = photo.frame_person(keypoints_of((300, 300), None, 76), (900, 600))
    assert 0.8 < without.height / plain.height < 1.25


def test_frame_refuses_what_it_cannot_frame():
    for keypoints in (np.zeros((25, 3)), keypoints_of((300, 300), (300, 305), 2)):
        with pytest.raises(InputError) as caught:
            photo.frame_person(keypoints, (600, 600))
        assert is_one_sentence(str(caught.value))


@pytest.mark.parametrize("frame", [Frame(10, 4, 70, 84), Frame(-30, -20, 60, 100), Frame(50, 40, 140, 160)])
def test_crop_and_uncrop_at_the_frames_size_are_inverse(frame):
    original = picture()
    before = original.copy()
    cut = photo.crop(original, frame, (frame.height, frame.width))
    assert cut.shape == (frame.height, frame.width, 3)
    back = photo.uncrop(cut, frame, original.shape[:2], fill=7)
    inside = np.zeros(original.shape[:2], bool)
    inside[max(0, frame.y0) : frame.y1, max(0, frame.x0) : frame.x1] = True
    assert (back[inside] == original[inside]).all() and (back[~inside] == 7).all()
    assert (original == before).all()


def test_crop_fills_beyond_the_photo():
    original = picture()
    frame = Frame(-30, -40, 60, 80)
    assert (photo.crop(original, frame, (120, 90), fill=9)[:40] == 9).all()
    repeated = photo.crop(original, frame, (120, 90))
    assert (repeated[40:, 30:] == original[:80, :60]).all()
    assert np.abs(repeated[0, 30:].astype(int) - original[0, :60]).mean() < 25  # the border's colours, blurred
    narrow = photo.crop(original, Frame(-1, -1, 74, 96), (97, 75))
    assert (narrow[0, 1:] == original[0, :74]).all()
    with pytest.raises(ValueError):
        photo.crop(original, Frame(500, 500, 530, 540), (40, 30))


def test_nearest_makes_no_new_labels():
    labels = np.random.default_rng(0).choice([0, 5, 19], (96, 80)).astype(np.uint8)
    frame = Frame(-6, 0, 66, 96)
    small = photo.crop(labels, frame, (40, 30), "nearest", 0)
    assert set(np.unique(small)) <= {0, 5, 19}
    assert set(np.unique(photo.uncrop(small, frame, (96, 80), "nearest"))) <= {0, 5, 19}


def test_paste_leaves_the_rest_byte_for_byte():
    rng = np.random.default_rng(1)
    original = rng.integers(0, 256, (130, 90, 3), np.uint8)
    frame = Frame(-9, 6, 81, 126)
    painted = rng.integers(0, 256, (64, 48, 3), np.uint8)
    region = np.zeros((130, 90), np.uint8)
    region[30:60, 20:50] = 255
    region[60:64, 20:50] = 128
    before = original.copy()
    result = photo.paste(original, painted, frame, region)
    assert (result[region == 0] == original[region == 0]).all()
    full = photo.uncrop(painted, frame, (130, 90))
    assert (result[region == 255] == full[region == 255]).all()
    half = (full.astype(float) * 128 + original.astype(float) * 127) / 255
    assert np.abs(result - half)[region == 128].max() <= 1
    assert (original == before).all()
    # Beyond the frame there is nothing to paste, whatever the region says.
    everything = photo.paste(original, painted, frame, np.full((130, 90), 255, np.uint8))
    assert (everything[:6] == original[:6]).all() and (everything[:, 81:] == original[:, 81:]).all()


def test_keypoints_travel_with_the_picture():
    rng = np.random.default_rng(2)
    keypoints = np.concatenate([rng.uniform(20, 80, (25, 2)), np.ones((25, 1))], 1).astype(np.float32)
    keypoints[7] = 0
    frame = Frame(-10, -5, 80, 115)
    there = photo.keypoints_to_frame(keypoints, frame, (240, 180))
    assert np.allclose(there[0, :2], (keypoints[0, :2] + (10, 5)) * 2, atol=1e-4)
    assert np.allclose(photo.keypoints_to_photo(there, frame, (240, 180)), keypoints, atol=1e-4)
    assert (there[7] == 0).all()


def test_a_wide_blur_on_a_smaller_copy_is_the_wide_blur():
    rng = np.random.default_rng(0)
    for picture in (
        rng.integers(0, 256, (300, 210, 3)).astype(np.uint8),
        rng.random((200, 310)).astype(np.float32) * 255,
    ):
        exact = cv2.GaussianBlur(picture, (0, 0), 24).astype(float)
        quick = photo.wide_blur(picture, 24, 8)
        assert quick.dtype == picture.dtype and quick.shape == picture.shape
        assert 0 < np.abs(quick - exact).max() < 4
        np.testing.assert_array_equal(photo.wide_blur(picture, 5, 8), cv2.GaussianBlur(picture, (0, 0), 5))


def test_a_panorama_is_reduced_with_a_note_that_says_so():
    wide = np.random.default_rng(0).integers(0, 255, (600, 9000, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(wide).save(file, "JPEG", quality=50)
    for source in (wide, file.getvalue()):
        made = stages.decode(None, TryOnResult(Options(), (source, wide[:, :600])))
        assert made["photo"].shape[1] == photo.LONGEST
        assert made["notes"] == (stages.REDUCTION_NOTE.format(9000, photo.LONGEST),)
    assert "notes" not in stages.decode(None, TryOnResult(Options(), (wide[:, :4096], wide[:, :600])))


@pytest.mark.parametrize("name", ["phone.heic", "turned.heic"])
def test_heic_is_named_in_the_refusal(name):
    """Its decoder ended the process on damaged files; a visitor is told what the file is and what to do."""
    file = Path(__file__).parent / name
    for source in (file, file.read_bytes()):
        with pytest.raises(InputError, match="HEIC picture.*JPEG"):
            photo.load_image(source)
