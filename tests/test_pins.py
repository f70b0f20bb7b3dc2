"""No bound admits and this environment holds no release with a known hole that is not accepted."""

from packaging.requirements import Requirement

from lab.checks import pins


def test_bounds_and_environment_are_free_of_the_known_holes():
    versions = pins.releases()
    assert {"gradio", "pillow", "torch"} <= set(versions)
    assert pins.findings(versions, pins.requirements()) == []
    assert pins.main() == 0


def test_an_old_release_and_an_open_bound_are_found():
    found = pins.findings({"pillow": "12.2.0"}, {})
    assert len(found) == 3 and all("pillow 12.2.0 has CVE-2026-5" in line for line in found)
    for open_bound in ("pillow", "pillow<13", "pillow>=12.2,<13", "pillow==12.2.0"):
        found = pins.findings({}, {"pillow": Requirement(open_bound)})
        assert any(line.startswith("pillow") and "CVE-2026-59200" in line for line in found)
    assert pins.findings({"pillow": "12.3.0"}, {"pillow": Requirement("pillow>=12.3")}) == []


def test_what_is_accepted_is_known_and_has_a_reason():
    accepted = {hole.advisory: hole for hole in pins.HOLES if hole.excuse}
    assert set(accepted) == {"CVE-2026-24747", "CVE-2026-0994"}
    assert all(len(hole.excuse.split()) > 5 for hole in accepted.values())
