import dataclasses
import io
import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from ui import tryon, tryon_figures, tryon_work
from ui.services import Services
from vton import labels
from vton.maps import MAPS
from vton.pipeline import STAGES, Options, TryOnResult


@pytest.fixture
def record():
    """A finished result of 32 x 24 pixels out of random maps."""
    random = np.random.default_rng(3)

    def picture():
        return random.integers(0, 256, (32, 24, 3), np.uint8)

    def mask():
        return random.integers(0, 2, (32, 24), np.uint8) * np.uint8(255)

    return TryOnResult(
        options=Options(size=(256, 192), seed=7, fit=False),
        photo=picture(),
        garment_photo=picture(),
        person=picture(),
        pose=picture(),
        cloth=picture(),
        agnostic=picture(),
        warped_cloth=picture(),
        synthesis=picture(),
        result=picture(),
        cloth_mask=mask(),
        warped_mask=mask(),
        misalignment=mask(),
        region=mask(),
        parse=random.integers(0, 20, (32, 24), np.uint8),
        parse_agnostic=random.integers(0, 20, (32, 24), np.uint8),
        segmentation=random.integers(0, 13, (32, 24), np.uint8),
        keypoints=random.random((25, 3), np.float32),
        control_points=random.random((25, 2), np.float32),
        seconds={"photo": 0.125, "parse": 1.5},
        notes=("Two people were found.",),
        weights="tryon-lite",
    )


def test_pictures_are_written_exactly(record, tmp_path):
    paths = tryon_work.write_pictures(record, tmp_path)
    assert list(paths) == ["photo", "garment_photo", *MAPS]
    for name, picture in record.pictures().items():
        np.testing.assert_array_equal(np.asarray(Image.open(paths[name])), picture)
    np.testing.assert_array_equal(np.asarray(Image.open(paths["parse"])), labels.colour(record.parse))


def test_zip_holds_pictures_arrays_and_settings(record, tmp_path):
    paths = tryon_work.write_pictures(record, tmp_path)
    archive = tryon_work.write_zip(paths, record, "tryon-lite", tmp_path / "try-on.zip")
    with zipfile.ZipFile(archive) as opened:
        assert set(opened.namelist()) == {*(f"{name}.png" for name in paths), "arrays.npz", "settings.json"}
        arrays = np.load(io.BytesIO(opened.read("arrays.npz")), allow_pickle=False)
        for name in ("parse", "keypoints", "control_points", "region", "warped_mask", "divided"):
            np.testing.assert_array_equal(arrays[name], getattr(record, name))
        for name in ("photo", "garment_photo", "result"):
            np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(opened.read(f"{name}.png")))), getattr(record, name))
        settings = json.loads(opened.read("settings.json"))
    assert settings["size"] == [256, 192] and settings["seed"] == 7 and settings["fit"] is False
    assert settings["weights"] == settings["model"] == "tryon-lite" and settings["notes"] == ["Two people were found."]
    assert settings["seconds"] == {"photo": 0.125, "parse": 1.5}


def test_summary_names_size_seed_time_and_misalignment(record):
    text = tryon_work.summary(record)
    assert "1.6 s" in text and "256 × 192" in text and "seed 7" in text
    assert f"{100 * record.misaligned_share:.1f} %" in text


class Resumed:
    """Stands for the networks: notes what was asked for and paints the seed."""

    def __init__(self):
        self.asked = []

    def resume(self, result, stage, **options):
        self.asked.append((stage, options))
        changed = dataclasses.replace(result.options, **options)
        return dataclasses.replace(result, options=changed, synthesis=np.full_like(result.synthesis, changed.seed))


def test_a_comparison_runs_only_what_differs_from_the_stage_that_differs(record):
    services, networks = Services(), Resumed()
    services.tryon = lambda key=None: networks
    record = dataclasses.replace(record, options=dataclasses.replace(record.options, seed=2))
    compared = list(tryon_work.compare(services, record, "seed"))
    assert networks.asked == [("segmentation", {"seed": seed}) for seed in (0, 1, 3, 4)]
    assert [label for _, label in compared] == [*(f"Seed {seed}" for seed in range(5)), tryon_work.BASELINE]
    np.testing.assert_array_equal(compared[5][0], record.pasted)
    np.testing.assert_array_equal(compared[2][0], record.synthesis)
    assert all((compared[seed][0] == seed).all() for seed in (0, 1, 3, 4))


def test_a_comparison_without_a_result_says_what_to_do():
    with pytest.raises(ValueError, match="run the try-on again"):
        list(tryon_work.compare(Services(), None, "norm"))


def test_every_comparison_names_a_stage_and_options_that_exist():
    options = {field.name for field in dataclasses.fields(Options)}
    for comparison in tryon_work.COMPARISONS.values():
        assert comparison.stage in STAGES and len(comparison.variants) >= 2
        assert all(set(changed) <= options for _, changed in comparison.variants)


@pytest.mark.parametrize(
    "person, garment, size, seed, words",
    [
        (None, None, "256x192", 0, "person and a photo of a garment"),
        (None, "g.png", "256x192", 0, "photo of a person"),
        ("p.png", None, "256x192", 0, "photo of a garment"),
        ("p.png", "g.png", "300x300", 0, "256x192, 512x384, 1024x768"),
        ("p.png", "g.png", "256x192", None, "whole number"),
        ("p.png", "g.png", "256x192", -1, "whole number"),
        ("p.png", "g.png", "256x192", 2**31, "whole number"),
        ("p.png", "g.png", "256x192", 0.5, "whole number"),
    ],
)
def test_what_is_missing_or_out_of_range_is_said(person, garment, size, seed, words):
    with pytest.raises(ValueError, match=words):
        tryon_work.check_inputs(person, garment, size, seed)


def test_options_are_height_first():
    assert tryon_work.check_inputs("p.png", "g.png", "1024x768", 5) == {"size": (1024, 768), "seed": 5}


def test_an_upload_reaches_the_library_as_the_visitor_s_own_file(tmp_path):
    """A label map sent through the page and back keeps every index and every byte."""
    indices = np.random.default_rng(0).integers(0, 20, (40, 30)).astype(np.uint8)
    picture = Image.fromarray(indices, "P")
    picture.putpalette(labels.LIP_COLOURS.ravel().tolist())
    file = tmp_path / "parse.png"
    picture.save(file)

    component = tryon.photograph(label="Photo")
    sent = component.postprocess(str(file))
    received = component.preprocess(sent)
    assert open(received, "rb").read() == file.read_bytes()
    np.testing.assert_array_equal(np.asarray(Image.open(received)), indices)


def test_every_picture_component_of_the_page_keeps_png():
    import gradio as gr

    from ui import page

    built = page.build(Services())
    pictures = [block for block in built.blocks.values() if isinstance(block, (gr.Image, gr.ImageSlider, gr.Gallery))]
    assert len(pictures) >= 2 + len(MAPS)
    assert all(block.format == "png" for block in pictures)
    # Every map can be read aloud.
    assert all(block.alt_text for block in pictures if isinstance(block, gr.Image))


def test_uploads_and_results_are_deleted_when_the_page_says_so():
    from ui import page

    built = page.build(Services())
    # Looked after every ten minutes; the page promises an hour.
    assert built.delete_cache == (600, 3600)
    texts = " ".join(str(getattr(block, "value", "")) for block in built.blocks.values())
    assert "deleted from this machine after an hour" in texts
    assert page.launch_options()["run_history"] is False and page.launch_options()["max_file_size"]


def test_every_event_has_a_name_and_only_clean_ones_are_public():
    from ui import page

    built = page.build(Services())
    events = [fn for fn in built.fns.values() if fn.fn is not None]
    named = {fn.api_name for fn in events if fn.api_visibility == "public"}
    assert {"try_on", "try_on_stage"} <= named
    devices = [fn for fn in events if fn.api_name in ("try_on", "try_on_stage", "try_on_page", "correct", "move_warp", "compare", "several")]
    assert len(devices) == 7 and all(fn.concurrency_id == "device" for fn in devices)


def test_maps_are_those_of_a_result_in_its_order(record):
    assert list(MAPS) == list(record.pictures())
    assert all(shown.stage in STAGES for shown in MAPS.values())


@pytest.mark.parametrize("name", ["parse", "segmentation", "misalignment"])
def test_a_map_goes_to_the_canvas_and_back_unchanged(record, name):
    """What travels are the labels, a byte a pixel; unpainted, they come back as they went."""
    value = tryon_figures.painting(record, name)
    back = tryon_figures.painted(name, value["labels"], value["width"], value["height"])
    np.testing.assert_array_equal(back, getattr(record, name))
    assert len(value["names"]) == len(value["palette"]) and value["paint"] and value["base"].startswith("data:image/png;base64,")


def test_what_comes_back_from_a_canvas_is_checked(record):
    value = tryon_figures.painting(record, "segmentation")
    for text, width, height in (("", 24, 32), ("%%%", 24, 32), (value["labels"], 25, 32), (value["labels"], None, 32)):
        with pytest.raises(ValueError, match="paint again"):
            tryon_figures.painted("segmentation", text, width, height)
    with pytest.raises(ValueError, match="do not exist"):
        tryon_figures.painted("misalignment", value["labels"], 24, 32)
    with pytest.raises(ValueError):
        tryon_figures.painted("soul", value["labels"], 24, 32)


def test_the_garment_can_be_painted_where_none_was_found():
    photo = np.full((300, 200, 3), 250, np.uint8)
    record = TryOnResult(Options(), garment_photo=photo, parse=np.zeros((512, 384), np.uint8), seconds={"photo": 0, "pose": 0, "parse": 0})
    assert tryon_figures.can_be_painted(record) == ["parse", "painted_mask"]
    value = tryon_figures.painting(record, "painted_mask")
    mask = tryon_figures.painted("painted_mask", value["labels"], value["width"], value["height"])
    assert mask.shape == (300, 200) and not mask.any()
    assert tryon_figures.can_be_painted(None) == []


def test_facts_under_a_map_name_stage_shape_time_and_correction(record):
    record = dataclasses.replace(record, corrected=("parse",), resumed_from="agnostic", seconds={"parse": 1.5, "agnostic": 0.25})
    facts = tryon_figures.caption(record, "parse")
    assert "32 × 24" in facts and "1.50 s" in facts and "corrected" in facts
    again = tryon_figures.rerun(record)
    assert "agnostic 0.25 s" in again and "Kept as they were: photo, pose, parse, garment" in again and "parse 1" not in again
    assert "%" in tryon_figures.caption(record, "misalignment")


def test_sleeves_by_rule_need_a_prediction(record):
    assert tryon_work.sleeves(record, "short").shape == record.segmentation.shape
    with pytest.raises(ValueError, match="run the try-on again"):
        tryon_work.sleeves(dataclasses.replace(record, segmentation=None), "short")


def test_symbols_become_html():
    assert tryon_figures.symbol("W(c_m, θ)") == "W(c<sub>m</sub>, θ)"
    assert tryon_figures.symbol("Ŝ_div") == "Ŝ<sub>div</sub>" and tryon_figures.symbol("a<b") == "a&lt;b"


def test_quality_is_escaped_and_marks_what_is_weak(record):
    html = tryon_figures.quality(dataclasses.replace(record, weights="<b>mine</b>"), "cpu", "for teaching")
    assert "&lt;b&gt;mine" in html and "seed" in html.lower() and "for teaching" in html and 'class="weak"' in html


def test_several_garments_repeat_nothing_of_the_person(record, tmp_path):
    class Networks:
        asked = []

        def redress(self, result, file):
            self.asked.append(file)
            if "bad" in file:
                raise ValueError("Use another picture.")
            return dataclasses.replace(result, seconds=dict.fromkeys(STAGES, 0.0))

    from vton.photo import Frame

    record = dataclasses.replace(record, frame=Frame(0, 0, 24, 32), seconds=dict.fromkeys(STAGES, 0.0))
    services = Services()
    services.tryon = lambda key=None: Networks()
    files = [str(tmp_path / "a.png"), str(tmp_path / "bad.png")]
    rows = list(tryon_work.several(services, record, files, "garments"))
    assert Networks.asked == files
    assert rows[0][1] is not None and rows[1][1] is None and rows[1][0].error == "Use another picture."
    assert tryon_work.sheet([row for row, _ in rows]).ndim == 3
    for wrong in ([], files * 4):
        with pytest.raises(ValueError, match="pictures"):
            list(tryon_work.several(services, record, wrong, "garments"))
    with pytest.raises(ValueError, match="run the try-on again"):
        list(tryon_work.several(services, None, files, "garments"))
