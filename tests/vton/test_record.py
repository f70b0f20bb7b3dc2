"""A record goes into a zip and comes back as it was."""

import io
import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from training.assets import examples_dir
from vton import InputError, TryOn, labels, record
from vton.maps import MAPS


@pytest.fixture(scope="module")
def tryon(device):
    return TryOn.from_pretrained("tryon-lite", device)


@pytest.fixture(scope="module")
def result(tryon):
    folder = examples_dir()
    return tryon.run(
        folder / "person-1.png", folder / "garment-letters.png", size=(256, 192), seed=4, noise=False, warp="spline"
    )


@pytest.fixture(scope="module")
def saved(result):
    buffer = io.BytesIO()
    record.save(result, buffer, model="tryon-lite")
    return buffer.getvalue()


def changed(saved, arrays=None, pictures=None, **settings):
    """The zip with some arrays, pictures and settings replaced."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved)) as old, zipfile.ZipFile(buffer, "w") as new:
        held = dict(np.load(io.BytesIO(old.read("arrays.npz"))))
        packed = io.BytesIO()
        np.savez(packed, **{**held, **(arrays or {})})
        new.writestr("arrays.npz", packed.getvalue())
        for name in record.AS_PNG:
            new.writestr(f"{name}.png", (pictures or {}).get(name) or old.read(f"{name}.png"))
        new.writestr("settings.json", json.dumps({**json.loads(old.read("settings.json")), **settings}))
    return buffer.getvalue()


def test_what_comes_back_is_what_went_in(result, saved):
    back = record.load(saved)
    assert back.options == result.options and back.frame == result.frame and back.weights == result.weights
    for name, value in record.arrays(result).items():
        np.testing.assert_array_equal(record.arrays(back)[name], value, err_msg=name)
    assert set(back.seconds) == set(result.seconds) and back.notes == result.notes


def test_a_restored_record_goes_on_like_the_first_one(tryon, result, saved):
    edited = result.segmentation.copy()
    edited[100:140, 80:110] = 3
    one, other = (tryon.correct(r, "segmentation", edited) for r in (result, record.load(saved)))
    np.testing.assert_array_equal(one.result, other.result)


def test_settings_and_the_two_photos_make_the_same_picture_again(tryon, result, saved):
    known = record.read_settings(saved)
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        assert set(archive.namelist()) == {
            "photo.png",
            "garment_photo.png",
            *(f"{n}.png" for n in MAPS),
            "arrays.npz",
            "settings.json",
        }
        person, garment = archive.read("photo.png"), archive.read("garment_photo.png")
        assert record.read_settings(archive.read("settings.json")) == known
    again = tryon.run(person, garment, known["options"])
    np.testing.assert_array_equal(again.result, result.result)
    assert known["model"] == "tryon-lite" and known["seed"] == 4 and known["noise"] is False


def test_a_record_that_stopped_early_comes_back_too(tryon, result):
    partial = tryon.resume(result, "warp", until="misalignment")
    buffer = io.BytesIO()
    record.save(partial, buffer)
    back = record.load(buffer.getvalue())
    assert back.synthesis is None and back.result is None
    np.testing.assert_array_equal(tryon.resume(back, "synthesis").result, result.result)


@pytest.mark.parametrize(
    "make",
    [
        lambda saved: b"",
        lambda saved: b"not a zip",
        lambda saved: b"[1, 2]",
        lambda saved: b'{"size": [256, 192], "seed": "0"}',
        lambda saved: saved[: len(saved) // 2],
        lambda saved: changed(saved, size=[512, 384]),
        lambda saved: changed(saved, {"parse": np.full((256, 192), 99, np.uint8)}),
        lambda saved: changed(saved, pictures={"result": record.png(np.zeros((70, 70, 3), np.uint8))}),
        lambda saved: changed(saved, pictures={"photo": b"no picture"}),
        lambda saved: changed(saved, {"control_points": np.full((25, 2), np.inf, np.float32)}),
        lambda saved: changed(saved, {"flow": np.full((16, 12, 2), np.nan, np.float32)}),
        lambda saved: changed(saved, {"flow": np.zeros((16, 12, 3), np.float32)}),
        lambda saved: changed(saved, frame=[0, 0, 10**9, 10**9]),
        lambda saved: changed(saved, seconds={"photo": 1.0, "warp": 1.0}),
        lambda saved: changed(saved, notes=7),
    ],
)
def test_a_foreign_or_damaged_file_gets_one_sentence(saved, make):
    with pytest.raises(InputError, match=r"^[^\n]+\.$"):
        record.load(make(saved))


def test_a_bomb_is_not_unpacked(saved, monkeypatch):
    monkeypatch.setattr(record, "MAX_ARRAYS", 1000)
    with pytest.raises(InputError, match="more than a try-on"):
        record.load(saved)


def test_nothing_is_unpickled(saved):
    with pytest.raises(InputError):
        record.load(changed(saved, {"parse": np.array([{"a": 1}], object)}))


@pytest.mark.parametrize("name", record.LABEL_MAPS)
def test_a_label_map_as_png_keeps_every_label(result, name):
    names, palette = record.LABEL_MAPS[name]
    truth = record.arrays(result)[name]
    data = record.label_png(truth, palette)
    np.testing.assert_array_equal(record.read_label_png(data, palette, truth.shape), truth)
    # Also after an editor has turned it into plain colours.
    buffer = io.BytesIO()
    Image.open(io.BytesIO(data)).convert("RGB").save(buffer, "PNG")
    np.testing.assert_array_equal(record.read_label_png(buffer.getvalue(), palette, truth.shape), truth)
    assert len(names) == len(palette) == len(np.unique(palette, axis=0))


def test_a_label_png_of_the_wrong_kind_is_refused(result):
    palette, shape = labels.LIP_COLOURS, result.parse.shape
    smooth = np.array(Image.fromarray(labels.colour(result.parse)).resize((96, 128)).resize((192, 256)))
    jpeg = io.BytesIO()
    Image.fromarray(smooth).save(jpeg, "JPEG")
    for data, words in (
        (record.png(smooth), "none of the labels"),
        (record.label_png(result.parse[:-1], palette), "192 x 256 pixels"),
        (record.png(np.full(shape, 20, np.uint8)), "label 20"),
        (jpeg.getvalue(), "PNG"),
    ):
        with pytest.raises(InputError, match=words):
            record.read_label_png(data, palette, shape)
