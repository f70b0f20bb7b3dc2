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
from ui import tryon
from vton import labels


def first_example():
    return tryon.example_pairs()[0]


def open_tab(page, person=None, garment=None, size="256 × 192, quick"):
    page.get_by_role("tab", name="Try on").click()
    page.locator("#tryon-button").wait_for()
    for name, file in (("person", person), ("garment", garment)):
        if file is not None:
            page.set_input_files(f"#{name} input[type=file]", file)
            page.locator(f"#{name} img").wait_for(state="attached")
    if size:
        page.click("#size input")
        page.get_by_role("option", name=size, exact=True).click()


def run(page, timeout=240_000):
    page.click("#tryon-button")
    page.locator("#tryon-results").wait_for(timeout=timeout)


def fetch(page, name):
    """Bytes and file name of the picture that the page shows for a map."""
    address = page.get_attribute(f"#map-{name} img", "src")
    with urllib.request.urlopen(address) as answer:
        return answer.read(), address.rsplit("/", 1)[-1]


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)))


def test_two_photos_in_the_result_and_every_map_out(visit, tmp_path):
    page = visit()
    person, garment = first_example()
    open_tab(page, person, garment)
    page.fill("#seed input", "5")
    run(page)
    assert page.locator("#stages .stage.done").count() == len(tryon.STAGES)
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
    assert set(settings["seconds"]) == set(tryon.STAGES)

    for name in tryon.MAPS:
        page.locator(f"#map-{name}").scroll_into_view_if_needed()
        page.locator(f"#map-{name} img").wait_for()
        data, file = fetch(page, name)
        assert file == f"{name}.png"
        assert data == pictures[f"{name}.png"], f"{name} on the page differs from the zip"
        assert page.get_attribute(f"#map-{name} img", "alt").startswith(tryon.MAPS[name].title)
    # Label maps arrive exactly: every colour on the page is the colour of a label.
    for name, (array, names, colours) in tryon.LEGENDS.items():
        np.testing.assert_array_equal(pixels(fetch(page, name)[0]), labels.colour(arrays[array], colours))
        present = {names[label] for label in np.unique(arrays[array])}
        legend = page.inner_text(f"#legend-{name}")
        assert all(name in legend for name in present)
    # Outside the edited region the photograph is untouched.
    photo, result = pixels(pictures["photo.png"]), pixels(pictures["result.png"])
    outside = arrays["region"] == 0
    np.testing.assert_array_equal(result[outside], photo[outside])
    assert (result[~outside] != photo[~outside]).any()


def test_alias_against_instance_norm_side_by_side(visit):
    page = visit()
    open_tab(page, *first_example())
    run(page)
    page.locator("#compare").get_by_text("Compare", exact=True).first.click()
    page.click("#compare-button")
    page.locator("#compared img").nth(1).wait_for(timeout=120_000)
    captions = page.inner_text("#compared")
    assert "ALIAS normalisation" in captions and "Instance normalisation" in captions
    addresses = [page.locator("#compared img").nth(i).get_attribute("src") for i in (0, 1)]
    alias, instance = (pixels(urllib.request.urlopen(address).read()) for address in addresses)
    assert alias.shape == instance.shape == (256, 192, 3) and (alias != instance).any()


def test_an_example_fills_both_pictures(visit):
    page = visit()
    open_tab(page, size=None)
    page.locator("#tryon-examples tbody tr").first.click()
    page.locator("#person img").wait_for()
    page.locator("#garment img").wait_for()


def test_the_api_gives_the_same_maps(site):
    person, garment = first_example()
    files, record = Client(site, verbose=False).predict(
        handle_file(person), handle_file(garment), "256x192", 5, True, api_name="/try_on"
    )
    assert [file.rsplit("/", 1)[-1] for file in files] == [*(f"{name}.png" for name in tryon.MAPS), "try-on.zip"]
    assert record["seed"] == 5 and record["size"] == [256, 192]


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
    open_tab(page, person if "person" in given else None, garment if "garment" in given else None)
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
    page.fill("#seed input", "11")
    page.click("#tryon-button")
    alert = page.locator("#tryon-status [role=alert]")
    alert.wait_for(timeout=180_000)
    sentence = alert.inner_text()
    assert sentence.endswith(".") and "\n" not in sentence and "went wrong" not in sentence, sentence
    assert page.locator("#tryon-results").count() == 0
    assert page.locator("#person img").count() == 1 and page.locator("#garment img").count() == 1
    assert page.input_value("#seed input") == "11"
    assert page.is_enabled("#tryon-button")


def test_cancel_stops_the_run_and_keeps_the_inputs(visit):
    page = visit()
    open_tab(page, *first_example(), size="1024 × 768, slow")
    page.click("#tryon-button")
    page.locator("#stages .stage.running").wait_for(timeout=120_000)
    page.click("#cancel-button")
    page.locator("#tryon-status", has_text="Cancelled").wait_for()
    assert page.locator("#person img").count() == 1
    assert page.is_enabled("#tryon-button")
    # The cancelled run does not come back and a new one works.
    page.click("#size input")
    page.get_by_role("option", name="256 × 192, quick", exact=True).click()
    run(page)


def test_two_visitors_never_see_each_other_s_pictures(visit):
    one, two = visit(), visit()
    pairs = tryon.example_pairs()
    assert len(pairs) > 1
    open_tab(one, *pairs[0])
    open_tab(two, *pairs[1])
    one.click("#tryon-button")
    two.click("#tryon-button")
    for page in (one, two):
        page.locator("#tryon-results").wait_for(timeout=300_000)
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


def test_about_shows_every_card(visit):
    page = visit()
    page.get_by_role("tab", name="About").click()
    for name in assets.list_models():
        card = page.get_by_role("button", name=name)
        card.click()
    assert "not for" in page.inner_text("main") and "commercial" in page.inner_text("main")
