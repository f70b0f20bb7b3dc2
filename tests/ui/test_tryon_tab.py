import base64
import dataclasses
import io
import json
import shutil
import subprocess
import zipfile

import gradio as gr
import numpy as np
import pytest
from PIL import Image

from ui import messages, theme
from ui.kit.handlers import AT_ONCE
from ui.kit.tour import NO_STOP, card
from ui.services import Services
from ui.tryon import bar, example, inside, steps, tour, variants
from ui.tryon import figures as tryon_figures
from ui.tryon import inputs as tryon
from ui.tryon import settings as form
from ui.tryon import work as tryon_work
from ui.tryon.ahead import Readings
from ui.tryon.session import Session, mark
from ui.tryon.tab import TryOnTab
from vton import contact_sheet, insight, labels
from vton.inputs.photo import Frame
from vton.maps import MAPS
from vton.networks.warping import spline_matrix
from vton.options import ABOUT, PUBLISHED
from vton.pipeline import STAGES, Options, TryOnResult
from vton.warps import WARPS, WarpFigures


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
        rendered=picture(),
        synthesis=picture(),
        result=picture(),
        cloth_mask=mask(),
        warped_mask=mask(),
        misalignment=mask(),
        region=mask(),
        alpha=mask(),
        unchanged=mask(),
        kept=mask(),
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
            np.testing.assert_array_equal(
                np.asarray(Image.open(io.BytesIO(opened.read(f"{name}.png")))), getattr(record, name)
            )
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

    def resume(self, result, stage, on_stage, **options):
        self.asked.append((stage, options))
        changed = dataclasses.replace(result.options, **options)
        return dataclasses.replace(result, options=changed, synthesis=np.full_like(result.synthesis, changed.seed))


def test_a_comparison_runs_only_what_differs_from_the_stage_that_differs(record):
    services, networks = Services(), Resumed()
    services.tryon = lambda key=None: networks
    options = dataclasses.replace(record.options, seed=2, size=(32, 24))
    record = dataclasses.replace(record, options=options, frame=Frame(0, 0, 24, 32))
    compared = [v for v in tryon_work.compare(services, record, "seed") if isinstance(v, tryon_work.Variant)]
    assert networks.asked == [("segmentation", {"seed": seed}) for seed in (0, 1, 3, 4)]
    assert [v.label for v in compared] == [*(f"Seed {seed}" for seed in range(5)), tryon_work.BASELINE]
    np.testing.assert_array_equal(compared[5].picture, record.baseline)
    np.testing.assert_array_equal(compared[2].picture, record.synthesis)
    assert all((compared[seed].picture == seed).all() for seed in (0, 1, 3, 4))
    # All are measured against the first: seed 1 is one grey level away from seed 0 everywhere.
    assert compared[0].against is None and compared[1].against.mean == 1 and compared[1].against.change_share == 0


def test_a_comparison_claims_an_effect_only_where_the_numbers_show_one():
    def variant(label, colour, misaligned=np.nan):
        picture = np.zeros((4, 4, 3), np.uint8)
        found = None if colour is None else insight.Difference(picture[..., 0], 1.0, 0.1, colour, 0.99, misaligned)
        return tryon_work.Variant(label, picture, found, "")

    weak = tryon_work.claim("norm", [variant("ALIAS", None), variant("Instance", 0.4)])
    strong = tryon_work.claim("norm", [variant("ALIAS", None), variant("Instance", 1.0, 8.0)])
    assert "no effect on this pair" in weak and "misaligned" not in weak.split("Here:")[1]
    assert "which can be seen" in strong and "8.0 where the garment is misaligned" in strong


def test_what_is_shown_belongs_to_its_photographs_and_settings(record):
    """The inputs say by name what the result on the page was not made of."""
    with gr.Blocks():
        inputs = tryon.Inputs(Services())
        inputs.build_person(), inputs.build_garment(), inputs.build_settings()
    made = dataclasses.replace(record, options=Options())
    kept = Session(made, photos=(mark("/c/1/p.png"), mark("/c/2/g.png")), key="tryon-lite")
    values = {c: form.component_value(name, getattr(Options(), name)) for name, c in inputs.settings.items()}
    values |= {
        inputs.person: "/c/1/p.png",
        inputs.garment: "/c/2/g.png",
        inputs.model: "tryon-lite",
        inputs.device: "cpu",
    }
    assert inputs.stale(values, kept) == ""
    assert "other photographs" in inputs.stale({**values, inputs.garment: "/c/3/g.png"}, kept)
    assert "Seed" in inputs.stale({**values, inputs.settings["seed"]: 5}, kept)
    assert inputs.stale(values, Session()) == ""
    finished = example.load_example()
    shown = {**values, inputs.person: f"/c/9/{finished.person.name}", inputs.garment: f"/c/8/{finished.garment.name}"}
    assert inputs.stale(shown, Session(example=True)) == "" and inputs.stale(values, Session(example=True))


def test_the_stored_example_is_whole_and_every_photograph_has_its_credit():
    finished = example.load_example()
    assert {"photo", *MAPS} <= set(finished.pictures) and finished.person.is_file() and finished.garment.is_file()
    assert set(finished.facts["settings"]["seconds"]) == set(STAGES)
    for kind in ("people", "garments"):
        assert example.photographs(kind)
        assert all(p.credit and p.shows != p.name.replace("-", " ") for p in example.photographs(kind))
    assert [found for found, _ in example.failures()] == list(example.FAILURES)
    assert all(found.stage in STAGES and found.map in MAPS for found in example.FAILURES)
    assert all(found.title in steps.failures() for found in example.FAILURES)
    with pytest.raises(ValueError, match="no such example"):
        example.photograph("people", "../../models")
    # The pairs that Compare offers exist, the largest share first, and each picture is credited.
    offered = example.misaligned_pairs()
    assert len(offered) == example.MAX_PAIRS and len(example.pairs()["items"]) == len(offered)
    assert [found.share for found in offered] == sorted((found.share for found in offered), reverse=True)
    assert all(item["credit"] for kind in ("people", "garments") for item in example.thumbnails(kind)["items"])


def test_the_strip_marks_done_running_and_failed():
    html = bar.strip(1, {"photo": 0.5, "pose": 0.25})
    assert html.count("<li") == len(STAGES) and html.count("aria-current") == 1
    assert "stage done" in html and "0.50 s" in html and "stage running" in html and "stage waiting" in html
    failed = bar.strip(1, {"photo": 0.5}, "failed")
    assert "stage failed" in failed and "aria-current" not in failed


def test_the_tour_has_ten_stops_in_views_and_maps_that_exist():
    known = tour.facts(Session(example=True))
    found = tour.stops(known)
    leads = [stop.lead for stop in found]
    assert len(found) == 10 and {lead for lead in leads if "card" in lead} <= {f"#card-{name}" for name in MAPS}
    assert f"{100 * known['quality']['misaligned_share']:.1f} %" in found[7].text
    assert tour.facts(Session()) is None and 'data-lead="#card-pose"' in card(found[1], 1, 10)
    assert [lead for lead in leads if "card" not in lead] == ["#figure3", "#tryon-views", "#tryon-views"]


@pytest.mark.parametrize(
    "method, words", [("network", "cut out by the garment reader"), ("worn", "cut out of the"), ("", "cut out. From")]
)
def test_the_tour_says_how_the_garment_was_cut_out(method, words):
    known = {**tour.facts(Session(example=True)), "cut_out_by": method}
    assert words in tour.stops(known)[4].text


def test_arrow_keys_walk_through_the_tour():
    with gr.Blocks():
        guide = TryOnTab(None, Services()).tour
    kept = Session(example=True)
    step = lambda by: gr.EventData(None, {"by": by})  # noqa: E731
    assert guide.key(step(1), 3, kept)[guide.at] == 4 and guide.key(step(-1), 3, kept)[guide.at] == 2
    assert guide.key(step(1), NO_STOP, kept) == gr.skip() == guide.key(step(7), 3, kept)
    assert "press “Try it on” first" in guide.go(None, NO_STOP, Session())[guide.card]


def test_every_network_of_figure_3_opens_what_is_inside_it():
    assert set(inside.OF_NETWORK) == set(steps.FIGURE["networks"])
    assert set(inside.OF_NETWORK.values()) <= set(inside.SUBJECTS)
    with gr.Blocks():
        view = TryOnTab(None, Services()).views[inside.InsideView]
    tabs, subject = view.choose(gr.EventData(None, {"name": "GMM"}))
    assert tabs["selected"] == "inside" and subject == "fit"


def test_figure_3_holds_every_map_and_its_arrows_join_what_is_there(record):
    made = steps.figure(record.pictures())
    names = {node["name"] for node in made["nodes"]} | {network["name"] for network in made["networks"]}
    assert set(MAPS) <= names and {name for arrow in made["arrows"] for name in arrow} <= names
    assert sorted(name for group in steps.GROUPS for name in group.maps) == sorted(MAPS)


def test_a_warp_is_shown_with_its_own_numbers(record):
    figures = WarpFigures(0.9, 0.975, 0.0025)
    warped = insight.WarpResult(record.cloth, record.cloth_mask, figures, 0.5)
    shown = variants.panel(tryon_work.Variant("5 × 5", record.cloth, None, "", warped))
    assert shown["rows"] == [
        ["Region covered", "97.5 %"],
        ["IoU with the region", "0.900"],
        ["Folded", "0.25 % of the cloth"],
        ["Time", "0.50 s"],
    ]
    assert not shown["difference"] and not shown["line"]
    empty = variants.warp_rows(
        insight.WarpResult(record.cloth, record.cloth_mask, WarpFigures(0, 0, float("nan")), 0.5)
    )
    assert empty[2] == ["Folded", "no cloth"]


def test_what_has_no_flow_says_so(record):
    flowed = dataclasses.replace(record, flow=np.zeros((4, 3, 2), np.float32), control_points=None)
    assert "by the flow" in tryon_figures.caption(flowed, "warped_cloth")
    assert "flow" not in tryon_figures.caption(record, "warped_cloth")
    warps = tryon_work.COMPARISONS[tryon_work.WARPS].variants
    all_of_them = [tryon_work.Variant(label, record.cloth, None, "") for label, *_ in warps]
    assert "no flow warper" not in tryon_work.claim(tryon_work.WARPS, all_of_them)
    assert "no flow warper" in tryon_work.claim(tryon_work.WARPS, all_of_them[:-1])


def test_what_bends_the_cloth_in_the_browser_is_the_record_s_and_what_was_tried_comes_alone(record):
    record = dataclasses.replace(record, frame=Frame(0, 0, 24, 32), options=Options(size=(32, 24)))
    value = tryon_figures.control_points(record)
    region = decoded(value["region"])
    np.testing.assert_array_equal(region > 127, record.segmentation == labels.UPPER)
    np.testing.assert_array_equal(decoded(value["person"]), record.person)
    np.testing.assert_array_equal(decoded(value["cloth"]), np.dstack([record.cloth, record.cloth_mask]))
    np.testing.assert_array_equal(decoded(value["exact"]), tryon_figures.warp_overlay(record))
    tried = tryon_figures.points_overlay(record)
    assert set(tried) == {"fresh", "points", "exact", "note"} and value["fresh"] and not tried["fresh"]
    np.testing.assert_array_equal(decoded(tryon_figures.beside(record)["url"]), record.result)
    assert tryon_figures.beside(dataclasses.replace(record, result=None))["url"] == ""


def decoded(address):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js on the PATH")
@pytest.mark.parametrize("n, columns, rows", [(5, 7, 9), (10, 4, 5)])
def test_the_browser_s_spline_is_that_of_the_networks(n, columns, rows):
    script = (theme.STATIC / "tryon" / "spline.js").read_text(encoding="utf-8")
    asked = f"console.log(JSON.stringify(splineMesh({n}, {columns}, {rows}).map((row) => [...row])))"
    done = subprocess.run(["node", "-e", script + asked], check=True, capture_output=True, text=True)
    np.testing.assert_allclose(json.loads(done.stdout), spline_matrix(n, rows, columns).numpy(), atol=1e-5)


def test_what_a_view_made_of_another_record_goes_when_it_is_drawn_anew(record):
    with gr.Blocks():
        view = TryOnTab(None, Services()).views[inside.InsideView]
    kept = Session(record)
    assert view.show(kept, record) == {view.tab.note: ""} == view.show(kept, None)
    cleared = view.show(Session(dataclasses.replace(record)), record)
    assert cleared[view.result]["value"] is None and cleared[view.of] is None


def test_a_reload_brings_back_what_was_chosen_and_not_tried_on_yet(record, tmp_path, monkeypatch):
    monkeypatch.setattr(tryon, "uploads", lambda: tmp_path / "cache")
    (tmp_path / "cache").mkdir()
    for place in ("cache/p.png", "secret.png"):
        (tmp_path / place).write_bytes(b"")
    with gr.Blocks():
        runner = TryOnTab(None, Services()).runner
    inputs = runner.inputs
    told = {component: component.value for component in inputs.restorable}
    told |= {inputs.person: str(tmp_path / "cache" / "p.png"), inputs.settings["seed"]: 7}
    told |= {inputs.garment: str(tmp_path / "secret.png"), inputs.settings["size"]: "1x1"}

    def again(stale, session):
        return runner.restore_choices(json.dumps({"values": list(told.values()), "stale": stale}), session)

    back = again(True, Session(record))
    assert back[inputs.person].endswith("p.png") and back[inputs.settings["seed"]] == 7
    assert inputs.garment not in back and inputs.settings["size"] not in back  # none of the page's, none of the list
    assert again(False, Session(record)) == gr.skip() and again(False, Session()) == back
    for foreign in ("", "[", "[]", "7", '{"values": 7, "stale": true}', '{"values": ["\\u0000"], "stale": 1}'):
        assert runner.restore_choices(foreign, Session()) == gr.skip()


def test_a_changed_box_takes_an_old_error_back_and_nothing_else():
    with gr.Blocks():
        runner = TryOnTab(None, Services()).runner
    values = dict.fromkeys(runner.inputs.components)
    values |= {runner.inputs.readings: Readings(), runner.session: Session()}
    assert runner.note_change({**values, runner.bar.status: messages.alert("No person.")})[runner.bar.status] == ""
    assert runner.bar.status not in runner.note_change(
        {**values, runner.bar.status: messages.status("Working on: warp")}
    )


def test_the_choice_of_the_warp_follows_the_networks(monkeypatch):
    services = Services()
    with gr.Blocks():
        boxes = tryon.Inputs(services)
        for there, words in ((True, ABOUT["warp"].info), (False, tryon.WITHOUT_FLOW)):
            monkeypatch.setattr(services, "has_flow", lambda key=None, there=there: there)
            assert boxes.check_warp("any")["info"] == words


def test_a_comparison_without_a_result_says_what_to_do():
    with pytest.raises(ValueError, match="Try it on"):
        list(tryon_work.compare(Services(), None, "norm"))


def test_every_comparison_names_options_that_exist_and_their_first_stage():
    options = {field.name for field in dataclasses.fields(Options)}
    for name, comparison in tryon_work.COMPARISONS.items():
        assert len(comparison.variants) >= 2
        if name == tryon_work.WARPS:
            assert [warp for _, warp in comparison.variants] == [*WARPS, "flow"]
        else:
            assert all(set(changed) <= options for _, changed in comparison.variants)
    without = [label for label, _ in tryon_work.COMPARISONS["additions"].variants]
    assert any("warp" in label and "fit" not in label for label in without)  # the flow is an addition
    assert tryon_work.first_stage(PUBLISHED) == "segmentation" and tryon_work.first_stage(["detail"]) == "composite"


def test_the_last_update_of_a_run_changes_nothing_so_that_its_repetition_takes_nothing_back():
    import gradio as gr

    ended = []

    @bar.with_quiet_end
    def handler(word):
        try:
            yield {"status": "working"}
            yield {"box": gr.update(value=word, visible=True), "picture": None}
        finally:
            ended.append(True)

    assert list(handler("done")) == [
        {"status": "working"},
        {"box": gr.update(value="done", visible=True), "picture": None},
        gr.skip(),
    ]
    cancelled = handler("done")
    next(cancelled)
    cancelled.close()
    assert len(ended) == 2  # a cancelled run is told so


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
    # Gradio makes a component anew for a visitor at every update; a file that is no picture still comes through.
    file.write_text("no picture")
    again = type(component)(**component.constructor_args)
    assert open(again.preprocess(component.postprocess(str(file))), "rb").read() == b"no picture"


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


def test_a_translation_never_shares_a_queue_with_a_try_on():
    from ui import page

    built = page.build(Services())
    queues = {fn.api_name: fn.concurrency_id for fn in built.fns.values() if fn.fn is not None}
    ours = "try_on try_on_stage try_on_page correct move_warp several publish gan_tryon_judge run_compare_pictures"
    texts = "translate attend ablate lens trace parse translate_page attend_page run_compare"
    wanted = {"try-on": ours, "translate": texts, "gan": "gan_step gan_sample gan_digits_draw"}
    assert {name: queues[name] for names in wanted.values() for name in names.split()} == {
        name: queue for queue, names in wanted.items() for name in names.split()
    }
    assert not set(queues.values()) & {"device"}
    # The least bound of its events is the queue's: one that names none would let no second try-on in.
    assert {fn.concurrency_limit for fn in built.fns.values() if fn.concurrency_id == "try-on"} == {AT_ONCE["try-on"]}


def test_maps_are_those_of_a_result_in_its_order(record):
    assert list(MAPS) == list(record.pictures())
    assert all(shown.stage in STAGES for shown in MAPS.values())


@pytest.mark.parametrize("name", ["parse", "segmentation", "misalignment"])
def test_a_map_goes_to_the_canvas_and_back_unchanged(record, name):
    """What travels are the labels, a byte a pixel; unpainted, they come back as they went."""
    value = tryon_figures.painting(record, name)
    back = tryon_figures.map_from_canvas(name, value["labels"], value["width"], value["height"])
    np.testing.assert_array_equal(back, getattr(record, name))
    assert (
        len(value["names"]) == len(value["palette"])
        and value["paint"]
        and value["base"].startswith("data:image/png;base64,")
    )


def test_what_comes_back_from_a_canvas_is_checked(record):
    value = tryon_figures.painting(record, "segmentation")
    for text, width, height in (("", 24, 32), ("%%%", 24, 32), (value["labels"], 25, 32), (value["labels"], None, 32)):
        with pytest.raises(ValueError, match="paint again"):
            tryon_figures.map_from_canvas("segmentation", text, width, height)
    with pytest.raises(ValueError, match="do not exist"):
        tryon_figures.map_from_canvas("misalignment", value["labels"], 24, 32)
    with pytest.raises(ValueError):
        tryon_figures.map_from_canvas("soul", value["labels"], 24, 32)


def test_the_garment_can_be_painted_where_none_was_found():
    photo = np.full((300, 200, 3), 250, np.uint8)
    record = TryOnResult(
        Options(),
        garment_photo=photo,
        parse=np.zeros((512, 384), np.uint8),
        seconds={"photo": 0, "pose": 0, "parse": 0},
    )
    assert tryon_figures.paintable_maps(record) == ["parse", "painted_mask"]
    value = tryon_figures.painting(record, "painted_mask")
    mask = tryon_figures.map_from_canvas("painted_mask", value["labels"], value["width"], value["height"])
    assert mask.shape == (300, 200) and not mask.any()
    assert tryon_figures.paintable_maps(None) == []


def test_facts_under_a_map_name_stage_shape_time_and_correction(record):
    record = dataclasses.replace(
        record, corrected=("parse",), resumed_from="agnostic", seconds={"parse": 1.5, "agnostic": 0.25}
    )
    facts = tryon_figures.caption(record, "parse")
    assert "32 × 24" in facts and "1.50 s" in facts and "corrected" in facts
    again = tryon_figures.rerun(record)
    assert (
        "agnostic 0.25 s" in again
        and "Kept as they were: photo, pose, parse, garment" in again
        and "parse 1" not in again
    )
    assert "%" in tryon_figures.caption(record, "misalignment")


def test_symbols_become_html():
    assert tryon_figures.symbol("W(c_m, θ)") == "W(c<sub>m</sub>, θ)"
    assert tryon_figures.symbol("Ŝ_div") == "Ŝ<sub>div</sub>" and tryon_figures.symbol("a<b") == "a&lt;b"


def test_quality_is_escaped_and_marks_what_is_weak(record):
    html = tryon_figures.quality(dataclasses.replace(record, weights="<b>mine</b>"), "cpu", "for teaching")
    assert "&lt;b&gt;mine" in html and "seed" in html.lower() and "for teaching" in html and 'class="weak"' in html


def test_several_garments_repeat_nothing_of_the_person(record, tmp_path):
    class Networks:
        asked = []

        def change_garment(self, result, file, on_stage):
            self.asked.append(file)
            if "bad" in file:
                raise ValueError("Use another picture.")
            return dataclasses.replace(result, seconds=dict.fromkeys(STAGES, 0.0))

    record = dataclasses.replace(record, frame=Frame(0, 0, 24, 32), seconds=dict.fromkeys(STAGES, 0.0))
    services = Services()
    services.tryon = lambda key=None: Networks()
    files = [str(tmp_path / "a.png"), str(tmp_path / "bad.png")]
    rows = [made for made in tryon_work.several(services, record, files, "garments") if isinstance(made, tuple)]
    assert Networks.asked == files
    assert rows[0][1] is not None and rows[1][1] is None and rows[1][0].error == "Use another picture."
    assert contact_sheet.draw([row for row, _ in rows], ("pasted",)).ndim == 3
    for wrong in ([], files * 4):
        with pytest.raises(ValueError, match="pictures"):
            list(tryon_work.several(services, record, wrong, "garments"))
    with pytest.raises(ValueError, match="Try it on"):
        list(tryon_work.several(services, None, files, "garments"))
