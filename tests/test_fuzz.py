"""Hostile input, a bounded part of `python -m lab.checks.fuzz`: an answer or one sentence, nothing else."""

import pytest

from lab.checks import fuzz


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "attempts"),
    [("images", 400), ("archives", 200), ("weights", 200), ("texts", 120), ("settings", 200)],
)
def test_hostile_input_is_answered_or_refused_in_one_sentence(target, attempts):
    report = fuzz.run(target, attempts, seed=7)
    assert report["tried"] == attempts and report["findings"] == []
    assert 0 < report["refused"] < attempts  # some of it is still whole


@pytest.mark.slow
@pytest.mark.parametrize(("target", "attempts"), [("api", 40), ("addresses", 80)])
def test_hostile_requests_are_answered_or_refused_and_leave_the_server_as_it_was(target, attempts):
    report = fuzz.run(target, attempts, seed=7)
    assert report["tried"] == attempts and report["findings"] == []
    assert 0 < report["refused"] < attempts


def test_a_finding_is_told_with_its_seed(monkeypatch):
    def attack(rng, folder):
        raise KeyError("x") if rng.random() < 2 else None

    monkeypatch.setitem(fuzz.TARGETS, "images", (lambda: attack, 1))
    report = fuzz.run("images", 3, seed=5)
    assert [one["seed"] for one in report["findings"]] == [5, 6, 7] and "KeyError" in report["findings"][0]["found"]


def test_a_file_beside_the_given_folder_is_a_finding(monkeypatch):
    monkeypatch.setitem(fuzz.TARGETS, "images", (lambda: lambda rng, folder: (folder.parent / "out").touch(), 1))
    assert fuzz.run("images", 1, seed=1)["findings"][0]["found"] == "a file outside its folder"


@pytest.mark.parametrize(
    ("target", "seed"),
    [
        ("archives", 1388),  # an entry named "."
        ("weights", 1229),  # a special token with the id -1
        ("weights", 2746),
        ("settings", 54901),  # members that are encrypted
        ("settings", 74429),
        ("settings", 57293),  # one that ends too soon
    ],
)
def test_what_other_seeds_once_found_stays_found(target, seed):
    report = fuzz.run(target, 1, seed)
    assert report["refused"] == 1 and report["findings"] == []


@pytest.mark.parametrize("seed", [1504, 1569])  # AVIF files whose decoder has errors of its own
def test_what_a_mutated_picture_once_found_stays_found(seed):
    report = fuzz.run("images", 1, seed)
    assert report["refused"] == 1 and report["findings"] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [98261810])  # a length penalty of 1e308 asked from /trace
def test_what_a_mutated_request_once_found_stays_found(seed):
    report = fuzz.run("api", 1, seed)
    assert report["refused"] == 1 and report["findings"] == []
