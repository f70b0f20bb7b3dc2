"""A crowd at the page, a bounded part of `python -m lab.checks.load`, and what counts as a mix-up there."""

import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from lab.checks import load


@pytest.mark.slow
def test_a_crowd_gets_its_own_pictures_and_texts_and_translations_wait_for_no_try_on():
    found = load.measure(visitors=4, try_ons=1, translations=2, seed=3, windows=False)
    failed = [one for one in found["failed"] if not one.startswith("memory")]  # a crowd this small says nothing of that
    assert failed == [] and found["overtaken"] > 0
    assert found["seconds"]["try_on"]["runs"] == 2 and found["seconds"]["translate"]["runs"] >= 4


def test_another_s_number_and_another_s_patch_are_seen():
    assert load.wrong_text("Die Nummer ist 48213.", 48213, [51234]) == ""
    assert load.wrong_text("Die Nummer ist 51234.", 48213, [51234])
    assert load.wrong_text("48213 und 51234", 48213, [51234])
    assert load.wrong_text("Die Nummer.", 48213, [51234])

    def archive(colour):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as opened:
            for name in ("photo", "garment_photo", "result"):
                file = io.BytesIO()
                Image.fromarray(np.full((40, 30, 3), colour, np.uint8)).save(file, "PNG")
                opened.writestr(f"{name}.png", file.getvalue())
        return out.getvalue()

    assert load.wrong_pictures(archive((9, 8, 7)), (9, 8, 7)) == ""
    assert "photo shows [9, 8, 6]" in load.wrong_pictures(archive((9, 8, 6)), (9, 8, 7))


def test_what_a_crowd_must_not_meet_fails_the_report():
    kind = {"kind": "translate", "start": 1.0, "end": 2.0}
    runs = [load.Run("try_on", 0.0, 5.0), load.Run(**kind, places=[(4, 5)]), load.Run(**kind, wrong="lost: x")]
    failed = load.report(runs, [100.0, 300.0, 116.0], ["a"], "ok\nTraceback (most recent call last):", 4)["failed"]
    assert len(failed) == 5 and failed[0] == "a" and "lost: x" in failed[1] and "queue of 5" in failed[2]
    fine = load.report([runs[0], load.Run(**kind)], [100.0, 300.0, 114.0], [], "", 4)
    assert (
        fine["failed"] == []
        and fine["overtaken"] == 1
        and fine["memory_mb"] == {"first": 100, "most": 300, "rest": 114}
    )
    slow = load.report([load.Run("try_on", 0.0, 1.5), load.Run(**kind)], [100.0, 100.0], [], "", 4)
    assert slow["failed"] == ["no translation was answered before a try-on that was asked for earlier"]
