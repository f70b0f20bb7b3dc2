"""The Try on tab as a visitor uses it, with drawn people and garments."""

import io
import json
import urllib.request
import zipfile

import numpy as np
import pytest
from gradio_client import Client, handle_file
from PIL import Image

from training import assets
from ui.tryon import figures as tryon_figures
from ui.tryon import work
from vton import labels
from vton import tryon as command
from vton.maps import MAPS
from vton.pipeline import STAGES
from vton.record import LABEL_MAPS, label_png, read_label_png


def first_example():
    return work.example_pairs()[0]


def open_tab(page, person=None, garment=None, size="256 × 192, quick"):
    """Open the tab with these files in the boxes instead of the example; None leaves the example's,
    "" empties the box.
    """
    page.get_by_role("tab", name="Try on", exact=True).click()
    page.locator("#tryon-button").wait_for()
    for name, file in (("person", person), ("garment", garment)):
        if file is None:
            continue
        page.locator(f"#{name}").get_by_role("button", name="Remove Image").click()
        page.locator(f"#{name} img").wait_for(state="detached")
        if file:
            page.set_input_files(f"#{name} input[type=file]", file)
            page.locator(f"#{name} img").wait_for(state="attached")
    if size:
        choose_size(page, size)


def choose_size(page, size):
    page.click("#size input")
    page.get_by_role("option", name=size, exact=True).click()


def more_settings(page):
    page.locator("#tryon-more").get_by_text("More settings").click()


def open_view(page, name):
    page.locator("#tryon-views").get_by_role("tab", name=name).click()


def shown_record(page):
    """What tells the record on the page from the one before and the next; "" for the example."""
    mark = page.locator("#tryon-summary [data-record]")
    return mark.get_attribute("data-record") if mark.count() else ""


def next_record(page, before, timeout=240_000):
    """Wait until the page shows another record than `before`, with all its maps."""
    script = """before => {
      const mark = document.querySelector('#tryon-summary [data-record]');
      return mark && mark.dataset.record !== before && document.querySelector('#download-zip:not([disabled])');
    }"""
    page.wait_for_function(script, arg=before, timeout=timeout)


def run(page, timeout=240_000):
    before = shown_record(page)
    page.click("#tryon-button")
    next_record(page, before, timeout)


def fetch(page, name):
    """Bytes and file name of the picture that the page shows for a map."""
    address = page.get_attribute(f"#map-{name} img", "src")
    with urllib.request.urlopen(address) as answer:
        return answer.read(), address.rsplit("/", 1)[-1]


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)))


@pytest.mark.quick
def test_two_photos_in_the_result_and_every_map_out(visit, tmp_path):
    page = visit()
    person, garment = first_example()
    open_tab(page, person, garment)
    more_settings(page)
    page.fill("#seed input", "5")
    page.locator("#tryon-stale .note").wait_for()  # the example no longer belongs to the boxes
    run(page)
    assert page.locator("#stages .stage.done").count() == len(STAGES) and not page.locator("#tryon-stale .note").count()
    assert page.locator("#before-after img").count() >= 2
    assert "seed 5" in page.inner_text("#tryon-summary")

    with page.expect_download() as download:
        page.click("#download-zip")
    target = tmp_path / "try-on.zip"
    download.value.save_as(target)
    with zipfile.ZipFile(target) as archive:
        pictures = {name: archive.read(name) for name in archive.namelist() if name.endswith(".png")}
        arrays = np.load(io.BytesIO(archive.read("arrays.npz")), allow_pickle=False)
        settings = json.loads(archive.read("settings.json"))
    assert settings["size"] == [256, 192] and settings["seed"] == 5 and settings["fit"] is True
    assert set(settings["seconds"]) == set(STAGES)

    for name in MAPS:
        page.locator(f"#map-{name}").scroll_into_view_if_needed()
        page.locator(f"#map-{name} img").wait_for()
        data, file = fetch(page, name)
        assert file == f"{name}.png"
        assert data == pictures[f"{name}.png"], f"{name} on the page differs from the zip"
        assert page.get_attribute(f"#map-{name} img", "alt").startswith(MAPS[name].title)
    # Label maps arrive exactly: every colour on the page is the colour of a label.
    for name, array in tryon_figures.LEGENDS.items():
        names, colours = LABEL_MAPS[array]
        np.testing.assert_array_equal(pixels(fetch(page, name)[0]), labels.colour(arrays[array], colours))
        present = {names[label] for label in np.unique(arrays[array])}
        legend = page.inner_text(f"#legend-{name}")
        assert all(name in legend for name in present)
    # Outside the edited region the photograph is untouched.
    photo, result = pixels(pictures["photo.png"]), pixels(pictures["result.png"])
    outside = arrays["region"] == 0
    np.testing.assert_array_equal(result[outside], photo[outside])
    assert (result[~outside] != photo[~outside]).any()


@pytest.mark.quick
def test_what_is_typed_while_the_settings_open_stays(visit):
    page = visit()
    open_tab(page, size=None)
    # A busy browser: its next frame comes only after the seed was typed.
    page.evaluate("""() => {
      window.frames_due = [];
      window.frame = window.requestAnimationFrame;
      window.requestAnimationFrame = (call) => window.frames_due.push(call);
    }""")
    more_settings(page)
    page.locator("#seed input").wait_for()
    page.evaluate("() => new Promise((done) => setTimeout(done, 100))")  # Gradio waits for the frame by then
    page.evaluate("""() => {
      const seed = document.querySelector('#seed input');
      seed.value = '11';
      seed.dispatchEvent(new Event('input', { bubbles: true }));
      window.requestAnimationFrame = window.frame;
      for (const call of window.frames_due.splice(0)) call(performance.now());
    }""")
    page.locator("#tryon-stale", has_text="Seed").wait_for()
    assert page.input_value("#seed input") == "11"


def test_alias_against_instance_norm_side_by_side(visit):
    page = visit()
    open_tab(page, *first_example())
    run(page)
    open_view(page, "Compare")
    page.click("#tryon-compare-button")
    pictures = page.locator("#tryon-compared .compare-picture img")
    pictures.nth(2).wait_for(timeout=120_000)
    captions = page.inner_text("#tryon-compared")
    assert "ALIAS normalisation" in captions and "Instance normalisation" in captions and "Baseline" in captions
    page.locator("#tryon-compare-note", has_text="Here:").wait_for()
    assert page.locator("#tryon-compared .compare-difference img").count() == 2 and "SSIM" in captions
    addresses = [pictures.nth(i).get_attribute("src") for i in (0, 1)]
    alias, instance = (pixels(urllib.request.urlopen(address).read()) for address in addresses)
    assert alias.shape == instance.shape == (256, 192, 3) and (alias != instance).any()
    # The warps alone, each with its numbers; then the flow inside the try-on, which has no points to move.
    page.click("#tryon-comparison input")
    page.get_by_role("option", name="The warps alone").click()
    page.click("#tryon-compare-button")
    page.locator("#tryon-compared", has_text="Flow (ClothFlow)").wait_for(timeout=120_000)
    page.locator("#tryon-compare-note", has_text="Orange is what a warp leaves open").wait_for()
    captions = page.inner_text("#tryon-compared")
    assert all(f"{n} × {n}, fitted" in captions for n in (5, 10, 20)) and pictures.count() == 5
    assert captions.count("Region covered") == captions.count("Folded") == captions.count("Time") == 5
    more_settings(page)
    page.click("#warp input")
    page.get_by_role("option", name="Flow (ClothFlow)").click()
    run(page)
    assert "by the flow" in page.inner_text("#facts-warped_cloth") or page.locator("#facts-warped_cloth").is_hidden()
    open_view(page, "Move the warp")  # by the spline, which alone has control points
    page.locator("#control-points .warp-note").wait_for()


def test_the_page_opens_with_an_example_and_thumbnails_fill_the_boxes(visit):
    page = visit(width=1440, height=900)
    open_tab(page, size=None)
    # Person, garment and result side by side above the fold, and the button with them.
    boxes = [page.locator(f"#{name}").bounding_box() for name in ("person", "garment", "before-after", "tryon-button")]
    assert all(box["y"] + box["height"] <= 900 for box in boxes)
    assert boxes[0]["x"] < boxes[1]["x"] < boxes[2]["x"] and abs(boxes[0]["y"] - boxes[2]["y"]) < 4
    assert page.locator("#before-after img").count() >= 2 and "Example" in page.inner_text("#tryon-summary")
    page.locator("#figure3 [data-name=segmentation]").click()
    page.locator("#card-segmentation.found").wait_for()
    # Progress stays in view.
    assert 0 <= page.locator("#tryon-bar").bounding_box()["y"] < 900
    # The border moves by keyboard.
    handle = page.locator("#before-after [role=slider]")
    handle.focus()
    before = int(handle.get_attribute("aria-valuenow"))
    page.keyboard.press("PageUp")
    page.wait_for_function(
        "before => document.querySelector('#before-after [role=slider]').ariaValueNow > before + 10", arg=before
    )
    page.locator("#example-garments button").first.click()
    page.locator("#tryon-stale", has_text="other photographs").wait_for()
    # What stands in the box is credited, and what was read of it stands beside its choice.
    page.locator("#example-garments .thumbnail-credit", has_text="CC0").wait_for()
    page.wait_for_function("/\\d %/.test(document.querySelector('#sleeves').innerText)")
    page.locator("#example-people button").first.click()
    page.wait_for_function("!document.querySelector('#person img').src.includes('man-white-tee-office')")


def test_a_reload_brings_the_last_result_back(visit, tmp_path):
    page = visit()
    open_tab(page, *first_example())
    run(page)
    first, _ = saved(everything(page, tmp_path))
    page.reload()
    page.get_by_role("tab", name="Try on", exact=True).click()
    next_record(page, "")
    again, _ = saved(everything(page, tmp_path))
    np.testing.assert_array_equal(again["result"], first["result"])
    page.wait_for_function("document.querySelector('#size input').value.startsWith('256')")
    # Without sleeves, from the garment on; the published system beside it; and back.
    before = shown_record(page)
    page.click("#sleeves input")
    page.get_by_role("option", name="None", exact=True).click()
    next_record(page, before)
    assert "Run again: segmentation" in page.inner_text("#tryon-summary")
    page.locator("#as-published input").check()
    page.locator("#before-after", has_text="As published").wait_for(timeout=240_000)  # a run, as those above
    assert page.locator("#as-published input").is_checked()  # no other run has begun beside it


def test_earlier_pictures_stay_in_the_browser_until_they_are_forgotten(visit):
    page = visit()
    open_tab(page, *first_example())
    run(page)
    earlier = page.locator("#earlier .thumbnail-button")
    earlier.wait_for()

    def stored(change=""):
        """What the browser holds, after a script has changed it, and the page opened anew."""
        page.evaluate(f"sessionStorage.setItem('atelier-pictures', {change})" if change else "0")
        page.reload()
        page.get_by_role("tab", name="Try on", exact=True).click()
        page.locator("#tryon-status", has_text="Your last result is back.").wait_for()

    stored()
    before = shown_record(page)
    earlier.click()
    assert page.locator("#earlier .earlier-picture").evaluate("image => image.naturalHeight") > 200
    next_record(page, before)  # its maps as well, while they are kept
    page.locator("#tryon-status", has_text="Your earlier try-on is back").wait_for()

    # Text is shown as text; broken entries are passed over; of a record that is gone the picture is left.
    stored("""((list) => JSON.stringify([
      null,
      { id: '<b>' },
      { ...list[0], id: '0123456789abcdef', settings: '<img src=x onerror=alert(1)>', path: '/gone' },
    ]))(JSON.parse(sessionStorage.getItem('atelier-pictures')))""")
    page.locator("#earlier .thumbnail-button[title*=onerror]").click()
    page.locator("#tryon-status", has_text="Only the small picture is left").wait_for()
    assert page.inner_text("#earlier figcaption") == "<img src=x onerror=alert(1)>"

    page.get_by_label("Keep them in this browser").check()
    assert page.evaluate("[localStorage, sessionStorage].map((one) => 'atelier-pictures' in one)") == [True, False]
    page.get_by_role("button", name="Forget them").click()
    page.locator("#earlier").wait_for(state="hidden")
    assert page.evaluate("localStorage.getItem('atelier-pictures')") == "[]"


def drag(page, selector, start, end):
    """Press, move and release, in shares of the element's box."""
    element = page.locator(selector).first
    element.scroll_into_view_if_needed()
    element.hover(trial=True)  # waits until it stands still
    box = element.bounding_box()
    page.mouse.move(box["x"] + start[0] * box["width"], box["y"] + start[1] * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + end[0] * box["width"], box["y"] + end[1] * box["height"], steps=5)
    page.mouse.up()


def download(page, selector, target):
    with page.expect_download() as arriving:
        page.click(selector)
    arriving.value.save_as(target)
    return target.read_bytes()


def saved(data):
    """Arrays and settings of a saved try-on."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        arrays = dict(np.load(io.BytesIO(archive.read("arrays.npz")), allow_pickle=False))
        arrays |= {name: pixels(archive.read(f"{name}.png")) for name in ("photo", "garment_photo", "result")}
        return arrays, json.loads(archive.read("settings.json"))


def everything(page, folder):
    """The zip of the result that the page shows."""
    return download(page, "#download-zip", folder / "try-on.zip")


def test_maps_first_then_the_result_and_a_map_from_another_program(visit, tmp_path):
    page = visit()
    open_tab(page, *first_example())
    more_settings(page)
    page.get_by_label("Maps first").check()
    page.click("#tryon-button")
    page.locator("#tryon-go-on").wait_for(timeout=240_000)
    assert page.locator("#before-after img").count() == 0 and page.locator("#stages .stage.done").count() == 8
    page.get_by_label("Maps first").uncheck()
    before = shown_record(page)
    page.click("#tryon-go-on")
    next_record(page, before)
    assert "Run again: synthesis" in page.inner_text("#tryon-summary")
    assert not page.locator("#tryon-undo").is_visible()
    first, _ = saved(everything(page, tmp_path))

    # The file for another program holds the labels; unchanged, it comes back unchanged, and so does the result.
    open_view(page, "Correct a map")
    page.locator("#painter canvas").wait_for()
    page.locator("#tryon-elsewhere").get_by_text("Correct it in another program").click()
    data = download(page, "#paint-out", tmp_path / "segmentation.png")
    palette = LABEL_MAPS["segmentation"][1]
    np.testing.assert_array_equal(read_label_png(data, palette, (256, 192)), first["segmentation"])
    page.set_input_files("input[data-testid='Upload the corrected map-upload-button']", tmp_path / "segmentation.png")
    page.locator("#tryon-undo").wait_for(timeout=120_000)
    same, settings = saved(everything(page, tmp_path))
    for name in ("segmentation", "warped_cloth", "result"):
        np.testing.assert_array_equal(same[name], first[name])
    assert settings["corrected"] == ["segmentation"] and settings["resumed_from"] == "warp"


def test_a_brush_stroke_changes_what_it_covers_and_the_run_goes_on(visit, tmp_path):
    page = visit()
    open_tab(page, *first_example())
    run(page)
    first, _ = saved(everything(page, tmp_path))
    open_view(page, "Correct a map")
    page.locator("#painter .class-chip", has_text="bottom").click()
    assert page.locator("#painter .apply").is_disabled()
    drag(page, "#painter canvas", (0.4, 0.5), (0.6, 0.55))
    page.locator("#painter .undo:enabled").click()
    assert page.locator("#painter .apply").is_disabled()
    page.locator("#painter .redo:enabled").click()
    page.locator("#painter .apply:enabled").click()
    page.locator("#tryon-undo").wait_for(timeout=120_000)
    painted, _ = saved(everything(page, tmp_path))
    changed = painted["segmentation"] != first["segmentation"]
    assert 20 < changed.sum() < 6000 and set(painted["segmentation"][changed]) == {labels.SEGMENTATION.index("bottom")}
    assert (painted["result"] != first["result"]).any()
    for name in ("parse", "cloth", "agnostic", "keypoints"):
        np.testing.assert_array_equal(painted[name], first[name])

    # Back to what was before.
    page.click("#tryon-undo")
    page.locator("#tryon-undo").wait_for(state="hidden")
    back, _ = saved(everything(page, tmp_path))
    np.testing.assert_array_equal(back["result"], first["result"])


def test_a_control_point_is_dragged_and_what_was_saved_opens_again(visit, tmp_path):
    page = visit()
    open_tab(page, *first_example())
    run(page)
    by_flow, _ = saved(everything(page, tmp_path))
    open_view(page, "Move the warp")  # the spline stands in for the flow
    note = page.locator("#control-points .warp-note")
    note.wait_for()

    def move(index):
        before = note.inner_text()
        drag(page, f"#control-points .warp-point[data-index='{index}']", (0.5, 0.5), (3, 2))
        # The preview says how much stays open.
        page.wait_for_function(
            "before => document.querySelector('#control-points .warp-note').textContent !== before", arg=before
        )
        record = shown_record(page)
        page.locator("#control-points .apply:enabled").click()
        next_record(page, record)
        page.locator("#tryon-summary", has_text="Run again: misalignment").wait_for()

    move(12)
    first, settings = saved(everything(page, tmp_path))
    assert "flow" in by_flow and "flow" not in first and settings["warp"] == "spline"
    move(7)
    data = everything(page, tmp_path)
    moved, settings = saved(data)
    assert settings["corrected"] == ["control_points"]
    distance = np.abs(moved["control_points"] - first["control_points"]).max(1)
    assert (distance > 0.01).sum() == 1 and (distance > 1e-5).sum() == 1
    np.testing.assert_array_equal(moved["segmentation"], first["segmentation"])

    # For another visitor, too, with photos, maps, settings and corrections.
    other = visit()
    open_tab(other, size=None)
    more_settings(other)
    (tmp_path / "moved.zip").write_bytes(data)
    other.set_input_files("#saved input[type=file]", tmp_path / "moved.zip")
    next_record(other, "")
    again, _ = saved(everything(other, tmp_path))
    for name in moved:
        np.testing.assert_array_equal(again[name], moved[name])
    assert other.locator("#person img").count() == 1 and other.locator("#garment img").count() == 1
    assert "256" in other.input_value("#size input")


def test_settings_alone_bring_the_options_back(visit, tmp_path):
    given = {
        "size": [1024, 768],
        "seed": 7,
        "fit": False,
        "norm": "instance",
        "noise": True,
        "detail": True,
        "grid": 10,
        "weights": "other",
    }
    (tmp_path / "settings.json").write_text(json.dumps(given))
    (tmp_path / "other.json").write_text('{"a": 1}')
    page = visit()
    open_tab(page, size=None)
    more_settings(page)
    page.set_input_files("#saved input[type=file]", tmp_path / "settings.json")
    page.locator("#tryon-status", has_text="add the same two photos").wait_for()
    assert "other" in page.inner_text("#tryon-status")  # networks that this page does not have are named
    assert page.input_value("#seed input") == "7" and "1024" in page.input_value("#size input")
    assert page.input_value("#grid input").startswith("10") and not page.is_checked("#fit input")
    page.locator("#saved").get_by_role("button", name="Clear").first.click()
    page.set_input_files("#saved input[type=file]", tmp_path / "other.json")
    page.locator("#tryon-status [role=alert]", has_text="not a file that a try-on has saved").wait_for()


def test_classes_light_up_and_several_garments_are_tried(visit, tmp_path):
    page = visit()
    open_tab(page, *first_example())
    run(page)
    open_view(page, "Look closer")
    page.locator("#look-view canvas").wait_for()

    def painted():
        return page.evaluate("document.querySelector('#look-view canvas').toDataURL()")

    plain = painted()
    page.locator("#look-view .class-chip", has_text="upper").hover()
    assert page.locator("#look-view .class-chip.lit").count() == 1 and painted() != plain
    page.click("#look-map input")
    page.get_by_role("option", name="Pose", exact=True).click()
    page.wait_for_function("!document.querySelector('#look-view .class-chip')")

    open_view(page, "Several at once")
    broken = tmp_path / "broken.png"
    no_image(broken)
    garments = sorted(str(path) for path in assets.examples_dir().glob("garment*.png"))
    page.set_input_files("#several-files input[type=file]", [garments[1], garments[2], str(broken)])
    page.locator("#several-files", has_text="broken").wait_for()
    page.click("#several-button")
    page.locator("#several-sheet").wait_for(timeout=120_000)
    assert page.locator("#several-shown .grid-wrap img, #several-shown .thumbnail-item img").count() >= 2
    assert "not a picture" in page.inner_text("#several-note")
    assert pixels(download(page, "#several-sheet", tmp_path / "grid.png")).shape[0] > 700


def test_a_garment_that_cannot_be_found_is_painted_by_hand(visit, tmp_path):
    picture = np.full((320, 240, 3), 250, np.uint8)
    Image.fromarray(picture).save(tmp_path / "white.png")
    page = visit()
    open_tab(page, first_example()[0], str(tmp_path / "white.png"))
    page.locator("#garment-check [role=alert]").wait_for()  # said before anything runs
    page.click("#tryon-button")
    page.locator("#tryon-status [role=alert]").wait_for(timeout=120_000)
    open_view(page, "Correct a map")
    page.get_by_label("Garment cut-out").check()
    page.locator("#painter .class-chip", has_text="garment").wait_for()
    page.locator("#painter .fill").click()
    drag(page, "#painter canvas", (0.5, 0.5), (0.5, 0.5))
    before = shown_record(page)
    page.locator("#painter .apply:enabled").click()
    next_record(page, before)
    assert page.locator("#before-after img").count() >= 2


def test_the_api_and_the_command_line_give_the_same_maps(site, tmp_path):
    person, garment = first_example()
    client = Client(site, verbose=False)
    files, record = client.predict(handle_file(person), handle_file(garment), "256x192", 5, True, api_name="/try_on")
    assert [file.rsplit("/", 1)[-1] for file in files] == [*(f"{name}.png" for name in MAPS), "try-on.zip"]
    assert record["seed"] == 5 and record["size"] == [256, 192] and record["quality"]["facing"] == "front"

    # Up to a stage, then on from there with a map: the same as all at once where the map is the same.
    until, _ = client.predict(
        handle_file(person),
        handle_file(garment),
        None,
        "",
        None,
        "misalignment",
        "256x192",
        5,
        True,
        api_name="/try_on_stage",
    )
    made = [f"{name}.png" for name in MAPS if MAPS[name].stage not in ("synthesis", "composite")]
    assert [file.rsplit("/", 1)[-1] for file in until] == [*made, "try-on.zip"]
    with zipfile.ZipFile(until[-1]) as archive:
        segmentation = np.load(io.BytesIO(archive.read("arrays.npz")))["segmentation"]
    edited = tmp_path / "edited.png"
    edited.write_bytes(label_png(segmentation, LABEL_MAPS["segmentation"][1]))
    staged, after = client.predict(
        None,
        None,
        handle_file(until[-1]),
        "segmentation",
        handle_file(str(edited)),
        "composite",
        api_name="/try_on_stage",
    )
    assert after["corrected"] == ["segmentation"] and after["resumed_from"] == "warp"

    # The command line, at once and in two steps.
    assert command.main([person, garment, "--out", str(tmp_path / "a"), "--size", "256x192", "--seed", "5"]) == 0
    assert (
        command.main(
            [
                person,
                garment,
                "--out",
                str(tmp_path / "b"),
                "--size",
                "256x192",
                "--seed",
                "5",
                "--until",
                "misalignment",
            ]
        )
        == 0
    )
    zipped = str(tmp_path / "b" / "try-on.zip")
    assert command.main(["--record", zipped, "--edit", f"segmentation={edited}", "--out", str(tmp_path / "c")]) == 0
    for index, name in enumerate(MAPS):
        one = pixels(open(files[index], "rb").read())
        np.testing.assert_array_equal(pixels(open(staged[index], "rb").read()), one, err_msg=f"{name}, /try_on_stage")
        for folder in ("a", "c"):
            np.testing.assert_array_equal(
                pixels((tmp_path / folder / f"{name}.png").read_bytes()), one, err_msg=f"{name}, {folder}"
            )


@pytest.mark.parametrize(
    "given, words",
    [
        ((), "a photo of a person and a photo of a garment"),
        (("garment",), "photo of a person"),
        (("person",), "photo of a garment"),
    ],
)
def test_a_missing_picture_is_named(visit, given, words):
    page = visit()
    person, garment = first_example()
    open_tab(page, person if "person" in given else "", garment if "garment" in given else "")
    page.click("#tryon-button")
    alert = page.locator("#tryon-status [role=alert]")
    alert.wait_for()
    assert words in alert.inner_text()
    for name in given:
        assert page.locator(f"#{name} img").count() == 1


def no_image(path):
    path.write_text("This is not a picture at all. " * 20)


def truncated(path):
    buffer = io.BytesIO()
    Image.open(first_example()[0]).convert("RGB").save(buffer, "JPEG")
    path.write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])


def landscape(path):
    random = np.random.default_rng(0)
    sky = np.linspace((90, 140, 220), (200, 220, 240), 200)[:, None].repeat(400, 1)
    hills = np.full((100, 400, 3), (60, 110, 50)) + random.normal(0, 6, (100, 400, 3))
    Image.fromarray(np.concatenate([sky, hills]).clip(0, 255).astype(np.uint8)).save(path)


def enormous(path):
    Image.new("RGB", (10_000, 6_000), (120, 130, 140)).save(path, "JPEG", quality=40)


@pytest.mark.parametrize(
    "make, file",
    [(no_image, "holiday.png"), (truncated, "half.jpg"), (landscape, "hills.png"), (enormous, "60 megapixels.jpg")],
)
def test_a_photo_that_cannot_be_used_gets_one_sentence_and_the_inputs_stay(visit, tmp_path, make, file):
    path = tmp_path / file
    make(path)
    page = visit()
    _, garment = first_example()
    open_tab(page, str(path), garment)
    more_settings(page)
    page.fill("#seed input", "11")
    page.click("#tryon-button")
    alert = page.locator("#tryon-status [role=alert]")
    alert.wait_for(timeout=180_000)
    sentence = alert.inner_text()
    assert sentence.endswith(".") and "\n" not in sentence and "went wrong" not in sentence, sentence
    assert shown_record(page) == ""
    assert page.locator("#person img").count() == 1 and page.locator("#garment img").count() == 1
    assert page.input_value("#seed input") == "11"
    assert page.is_enabled("#tryon-button")


# Presses Cancel as soon as a stage is seen running, and remembers what the status line says from then on. A test that
# pressed it from outside could come after the last stage that has anything to say.
CANCEL_AT_ONCE = """() => {
  window.linesAfterCancel = [];
  let pressed = false;
  new MutationObserver(() => {
    if (pressed) window.linesAfterCancel.push(document.querySelector('#tryon-status').textContent);
    const cancel = document.querySelector('#cancel-button');
    if (!pressed && cancel && document.querySelector('#stages .stage.running')) {
      pressed = true;
      cancel.click();
    }
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def test_cancel_stops_the_run_and_keeps_the_inputs(visit):
    page = visit()
    open_tab(page, *first_example(), size="1024 × 768, slow")
    page.click("#tryon-button")
    page.locator("#stages .stage.running").wait_for(timeout=120_000)
    page.click("#cancel-button")
    page.locator("#tryon-status", has_text="Cancelled").wait_for()
    assert page.locator("#person img").count() == 1
    assert page.is_enabled("#tryon-button")
    # The cancelled run does not come back, and a new one works at once, however soon it was cancelled.
    choose_size(page, "256 × 192, quick")
    run(page)
    page.evaluate(CANCEL_AT_ONCE)
    page.click("#tryon-button")
    page.locator("#tryon-status", has_text="Cancelled").wait_for()
    run(page)
    page.wait_for_function("document.querySelectorAll('#stages .stage.done').length === 10", timeout=120_000)


def test_progress_that_comes_after_cancel_does_not_lock_the_page(visit):
    """A busy server goes on with a run for a while: what it still sends must not leave "Try on" disabled."""
    page = visit()
    open_tab(page, *first_example(), size="1024 × 768, slow")
    held = []
    page.route("**/cancel", lambda route: held.append(route))  # noqa: PLW0108  Playwright marks what it is given
    page.evaluate(CANCEL_AT_ONCE)
    page.click("#tryon-button")
    page.wait_for_function("(window.linesAfterCancel || []).some(line => line.includes('Working on'))")
    for route in held:
        route.continue_()
    page.locator("#tryon-status", has_text="Cancelled").wait_for()
    assert "Cancelled" in page.inner_text("#tryon-status")
    assert page.is_enabled("#tryon-button") and not page.is_visible("#cancel-button")
    assert page.locator("#stages .stage.running").count() == 0


def test_two_visitors_never_see_each_other_s_pictures(visit):
    one, two = visit(), visit()
    pairs = work.example_pairs()
    assert len(pairs) > 1
    open_tab(one, *pairs[0])
    open_tab(two, *pairs[1])
    one.click("#tryon-button")
    two.click("#tryon-button")
    for page in (one, two):
        next_record(page, "")
        page.locator("#map-result").scroll_into_view_if_needed()
        page.locator("#map-result img").wait_for()
    results = [pixels(fetch(page, "result")[0]) for page in (one, two)]
    for result, (person, _) in zip(results, pairs, strict=False):
        photo = np.asarray(Image.open(person).convert("RGB"))
        assert result.shape == photo.shape
        # The corners belong to the background of each one's own photo.
        np.testing.assert_array_equal(result[0, 0], photo[0, 0])
    assert results[0].shape != results[1].shape or (results[0] != results[1]).any()


@pytest.mark.parametrize("dark", [False, True])
def test_fits_a_phone(visit, dark):
    page = visit(width=390, height=800, dark=dark)
    open_tab(page, *first_example())
    run(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.quick
def test_about_shows_every_card(visit):
    page = visit()
    page.get_by_role("tab", name="About").click()
    for name in assets.list_models():
        card = page.get_by_role("button", name=name)
        card.click()
    assert "not for" in page.inner_text("main") and "commercial" in page.inner_text("main")
