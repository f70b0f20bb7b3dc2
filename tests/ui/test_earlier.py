"""A visitor's earlier results: what the browser gets to remember, and what is taken from what it has stored."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from ui import theme
from ui.gradio_private import uploads
from ui.tryon import earlier
from ui.tryon.runner import zip_in_cache
from vton.pipeline import Options, TryOnResult

PICTURE = "data:image/webp;base64,UklGRg=="
WHOLE = {
    "id": "0123456789abcdef",
    "picture": PICTURE,
    "person": PICTURE,
    "garment": PICTURE,
    "settings": "512 × 384, seed 0",
    "path": "/tmp/gradio/abc/try-on.zip",
}


@pytest.fixture
def result():
    """A finished result of noise, which no format makes small."""
    random = np.random.default_rng(0)

    def noise(*shape):
        return random.integers(0, 256, shape, np.uint8)

    options = Options(size=(512, 384), seed=7, norm="instance", mirror=False)
    return TryOnResult(
        options=options, photo=noise(900, 700, 3), garment_photo=noise(640, 480, 4), result=noise(900, 700, 3)
    )


def stored(text):
    """What `static/tryon/stored_pictures.js` takes of a stored text."""
    script = (theme.STATIC / "tryon/stored_pictures.js").read_text(encoding="utf-8")
    script += f"\nconsole.log(JSON.stringify(storedPictures({json.dumps(text)})));"
    return json.loads(subprocess.run(["node", "-"], input=script, capture_output=True, text=True, check=True).stdout)


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


@needs_node
def test_a_result_is_remembered_small_and_in_words(result):
    entry = earlier.entry(result)
    assert entry["settings"].startswith("512 × 384, seed 7, ") and entry["settings"].endswith(": off")
    assert earlier.settings_line(Options(size=(256, 192))) == "256 × 192, seed 0"
    assert len(entry["picture"]) <= earlier.MOST_OF_A_PICTURE
    assert max(len(entry[name]) for name in ("person", "garment")) <= earlier.MOST_OF_A_THUMBNAIL
    assert stored(json.dumps([entry])) == [{**entry, "path": ""}]
    again = TryOnResult(options=Options(), photo=result.photo, garment_photo=result.photo, result=result.photo)
    assert earlier.entry(again)["id"] != entry["id"] == earlier.entry(result)["id"]
    assert earlier.entry(TryOnResult(options=Options(), photo=result.photo)) is None


@needs_node
@pytest.mark.parametrize(
    "text",
    [
        None,
        5,
        "",
        "no JSON",
        "null",
        "7",
        '{"id": 1}',
        "[" * 100_000,
        json.dumps([None, 1, "x", [], {}]),
        json.dumps([WHOLE])[:-2],
        json.dumps([{**WHOLE, "settings": "x" * 1_000_000}]),
        *(
            json.dumps([{**WHOLE, name: value}])
            for name, value in (
                ("id", "<img src=x onerror=alert(1)>"),
                ("id", None),
                ("picture", "javascript:alert(1)"),
                ("picture", "https://elsewhere.example/x.webp"),
                ("picture", "data:image/svg+xml;base64,UklGRg=="),
                ("picture", PICTURE + '" onerror="alert(1)'),
                ("picture", "data:image/webp;base64," + "A" * 60_000),
                ("person", ["data:image/webp;base64,UklGRg=="]),
                ("garment", None),
                ("settings", {"toString": "x"}),
                ("settings", "x" * 301),
            )
        ),
    ],
)
def test_what_is_broken_or_hostile_in_the_browser_s_store_is_ignored(text):
    assert stored(text) == []


@needs_node
def test_whole_entries_are_taken_at_most_twelve_each_once_and_nothing_besides():
    entries = [{**WHOLE, "id": f"{number:016x}", "more": "x"} for number in range(20)]
    taken = stored(json.dumps([entries[0], {"id": "broken"}, *entries]))
    assert taken == [{name: entry[name] for name in WHOLE} for entry in entries[:12]]
    assert stored(json.dumps([{**WHOLE, "path": 5}])) == [{**WHOLE, "path": ""}]


def test_only_a_try_on_in_the_page_s_own_cache_is_opened(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "cache"))
    mine, other = uploads() / "a" / "try-on.zip", tmp_path / "try-on.zip"
    mine.parent.mkdir(parents=True)
    for path in (mine, other, mine.with_name("record.zip")):
        path.write_bytes(b"x")
    assert zip_in_cache(str(mine)) == mine.resolve()
    elsewhere = [str(other), str(mine.parent / "../../../try-on.zip"), str(mine.with_name("record.zip"))]
    for address in (
        *elsewhere,
        "",
        None,
        5,
        {},
        "a\0b",
        "/x" * 5000,
        str(mine.parent),
        str(uploads() / "b/try-on.zip"),
    ):
        assert zip_in_cache(address) is None
