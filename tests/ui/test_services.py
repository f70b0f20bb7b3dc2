import dataclasses
import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from lab.tryon.synthetic import draw_pair
from training import assets, fit
from training.run import Run
from transformer.train import TranslationRecipe, TranslationTask
from ui.services import READING_STAGES, LRUCache, Progress, Services, last
from vton.pipeline import STAGES
from vton.recipes.matching import MatchingRecipe, MatchingTask


def test_a_value_is_made_once_for_many_threads():
    made = []

    def make(key):
        time.sleep(0.02)
        made.append(key)
        return object()

    kept, got = LRUCache(make, 2), []
    threads = [threading.Thread(target=lambda: got.append(kept("a"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["a"] and len(got) == 8 and len(set(map(id, got))) == 1


def test_a_failure_is_tried_again_and_only_the_last_used_values_are_kept():
    made = []

    def make(key):
        made.append(key)
        if made == ["a"]:
            raise ValueError("not yet")
        return key

    kept = LRUCache(make, 2)
    with pytest.raises(ValueError, match="not yet"):
        kept("a")
    assert [kept(key) for key in "abacab"] == list("abacab")
    assert made == ["a", "a", "b", "c", "b"]  # c pushed b out, the longest unused


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with a run of a Transformer (steps 2 and 4) and one of the matching module (step 1)."""
    folder = tmp_path_factory.mktemp("runs")
    table = tmp_path_factory.mktemp("data") / "pairs.tsv"
    words = ["red", "blue", "old", "new"]
    rows = [f"a {a} {b} hat\tein {a} {b} hut" for a in words for b in words]
    table.write_text("en\tde\n" + "\n".join(rows) + "\n")
    recipe = TranslationRecipe(
        size="mini", data=str(table), vocab_size=40, tokens=512, steps=4, save_every=2, evaluate_every=0, threads=1
    )
    fit(TranslationTask(recipe), recipe, folder / "words", quiet=True)
    recipe = MatchingRecipe(width=24, batch=1, steps=1, evaluate_every=0, threads=1)
    fit(MatchingTask(recipe), recipe, folder / "warp", quiet=True)
    return folder


def test_checkpoints_are_offered_beside_the_shipped_models(runs):
    services = Services(runs=runs)
    translators, tryons = dict(services.translators()), dict(services.tryons())
    assert services.translators()[0][1] == services.translation_model
    assert translators["run words, step 4"] == "run:words@4" and translators["run words, step 2"] == "run:words@2"
    assert tryons["run warp, matching module, step 1"] == "run:warp@1" and len(tryons) == 2
    assert set(translators.values()).isdisjoint(tryons.values())


def test_a_checkpoint_translates_without_a_restart(runs):
    services = Services(runs=runs)
    newest = services.translator("run:words")
    assert newest is services.translator("run:words@4") is not services.translator("run:words@2")
    assert services.pairs("run:words") == [("en", "de")]
    assert isinstance(newest.translate("a red new hat").text, str)
    trained = Run(runs / "words").checkpoints / "step-00000004"
    from training.checkpoint import module_state

    expected = module_state(trained)["embedding.weight"].half().float()
    torch.testing.assert_close(newest.model.embedding.weight.detach(), expected)


def test_a_checkpoint_of_one_network_replaces_it_in_the_shipped_set(runs):
    tryon = Services(runs=runs).tryon("run:warp")
    from vton.pipeline import load_network

    shipped = load_network("matching", assets.model_dir("tryon-lite") / "matching")
    assert not torch.equal(tryon.matching.regression.linear.weight, shipped.regression.linear.weight)
    parser = load_network("parser", assets.model_dir("tryon-lite") / "parser")
    assert all(torch.equal(a, b) for a, b in zip(tryon.parser.state_dict().values(), parser.state_dict().values()))
    assert tryon.name == "tryon-lite with the matching module of warp, step 1"


@pytest.mark.parametrize(
    "key, message",
    [
        ("run:../words", "no run"),
        ("run:/etc", "no run"),
        ("run:words@3", "no checkpoint of update 3; it has 2, 4"),
        ("run:", "choose one from the list"),
        ("released:../x", "choose one from the list"),
        ("/etc/passwd", "choose one from the list"),
        ("Helsinki-NLP/opus-mt-cs-en", "choose one from the list"),
        ("Helsinki-NLP/opus-mt-en-de", "not on this machine yet; choose it under Model"),
        ("run:warp", "not a Transformer"),
    ],
)
def test_unknown_and_unsafe_keys_are_one_sentence(runs, key, message):
    with pytest.raises(ValueError, match=message):
        Services(runs=runs).translator(key)


def test_folders_are_read_only_where_the_page_is_local(runs, tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(assets.model_dir("multi30k-en-de"), folder)
    assert Services(runs=runs, local=True).pairs(str(folder)) == [("en", "de")]
    with pytest.raises(ValueError, match="choose one from the list"):
        Services(runs=runs).pairs(str(folder))
    with pytest.raises((ValueError, FileNotFoundError), match="no shipped model"):
        Services(runs=runs, local=True).pairs("nothing")


def test_a_released_folder_is_offered_by_name_and_its_lack_is_one_sentence(tmp_path):
    services = Services(runs=tmp_path, releases={"paper": tmp_path})
    assert ("paper (released VITON-HD weights)", "released:paper") in services.tryons()
    with pytest.raises(FileNotFoundError, match="no seg_final.pth"):
        services.tryon("released:paper")


def test_whether_networks_have_a_flow_is_told_without_loading_them(tmp_path):
    models = {name: tmp_path / name for name in ("plain", "whole")}
    for folder in models.values():
        shutil.copytree(assets.model_dir("tryon-lite") / "parser", folder / "parser")
    (models["whole"] / "flow").mkdir()
    for name, task in (("bending", "FlowTask"), ("painting", "AliasTask")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "recipe.json").write_text(json.dumps({"task": task}))
    found = {}
    for name, folder in models.items():
        services = Services(tryon_model=str(folder), runs=tmp_path / "runs", releases={"paper": tmp_path})
        found[name] = [
            services.has_flow(key) for key in (None, "cpu|", "released:paper", "run:painting@2", "run:bending@2")
        ]
        assert not services.has_flow("run:nothing@1") and not services.has_flow("unknown")
    assert found == {"plain": [False] * 4 + [True], "whole": [True] * 5}


def test_a_damaged_run_is_left_out_of_the_lists(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "recipe.json").write_text("{")
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "recipe.json").write_text(json.dumps({"task": "TranslationTask"}))
    services = Services(runs=tmp_path)
    assert all(not key.startswith("run:") for _, key in services.translators())
    with pytest.raises(ValueError, match="no checkpoint yet"):
        services.translator("run:early")


class Stages:
    """A run of two stages whose second waits for `go`."""

    def __init__(self):
        self.go, self.ended, self.reached = threading.Event(), threading.Event(), []

    def run(self, person, garment, on_stage, **options):
        try:
            for index, name in enumerate(("first", "second")):
                on_stage(name, index, 2)
                self.reached.append(name)
                if name == "first":
                    assert self.go.wait(10)
            return options
        finally:
            self.ended.set()


def services_with(stages):
    services = Services()
    services.tryon = lambda key=None: stages
    return services


def test_stream_reports_stages_in_order_and_ends_with_the_result():
    stages = Stages()
    stages.go.set()
    *reports, result = services_with(stages).stream_tryon("person", "garment", seed=3)
    assert result == {"seed": 3}
    indices = [report.stage for report in reports if isinstance(report, Progress)]
    assert indices == sorted(indices) and {0, 1} <= set(indices)
    assert all(seconds >= 0 for report in reports for seconds in report.seconds.values())


def test_closing_the_stream_stops_the_run_before_its_next_stage():
    stages = Stages()
    stream = services_with(stages).stream_tryon("person", "garment")
    while next(stream).stage != 0:
        pass
    stream.close()
    stages.go.set()
    assert stages.ended.wait(10)
    assert stages.reached == ["first"]


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Halves:
    """A run of all stages that says when it begins one, and waits for leave before its first late one."""

    def __init__(self):
        self.begun, self.leave = [], threading.Event()

    def run(self, person, garment, on_stage, **options):
        for index, name in enumerate(STAGES):
            on_stage(name, index, len(STAGES))
            self.begun.append((person, name))
            if name == "agnostic" and person == "first":
                assert self.leave.wait(10)
        return person


def test_the_reading_stages_end_with_the_garment():
    assert STAGES[:READING_STAGES] == ("photo", "pose", "parse", "garment")


def test_a_second_run_reads_while_the_first_one_computes_and_computes_after_it():
    stages = Halves()
    services = services_with(stages)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: list(services.stream_tryon("first", None))[-1])
        wait_for(lambda: ("first", "agnostic") in stages.begun)
        second = pool.submit(lambda: list(services.stream_tryon("second", None))[-1])
        wait_for(lambda: ("second", "garment") in stages.begun)
        time.sleep(0.1)
        assert ("second", "agnostic") not in stages.begun
        stages.leave.set()
        assert (first.result(10), second.result(10)) == ("first", "second")
    assert stages.begun.index(("first", STAGES[-1])) < stages.begun.index(("second", "agnostic"))
    assert not services.reading.locked() and not services.computing.locked()


@pytest.mark.slow
def test_two_runs_at_once_give_the_records_of_one_after_the_other():
    services = Services(device="cpu")
    pairs = [(draw_pair(n, size=(640, 480)).person, draw_pair(n + 13, size=(640, 480)).cloth) for n in (1, 4)]

    def run(pair):
        return last(services.stream_tryon(*pair, size=(256, 192)))

    alone = [run(pair) for pair in pairs]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(run, pairs))
    for expected, found in zip(alone, together):
        for field in dataclasses.fields(expected):
            if isinstance(value := getattr(expected, field.name), np.ndarray):
                np.testing.assert_array_equal(value, getattr(found, field.name), err_msg=field.name)
        assert expected.notes == found.notes


def test_an_error_of_the_run_reaches_the_caller():
    class Broken:
        def run(self, *args, **options):
            raise ValueError("No person was found.")

    with pytest.raises(ValueError, match="No person"):
        list(services_with(Broken()).stream_tryon("person", "garment"))


def test_a_try_on_runs_on_the_device_that_was_chosen_among_those_there_are(monkeypatch):
    from training import devices

    monkeypatch.setattr(devices, "present_devices", lambda: ["mps", "cpu"])
    services = Services()
    assert [name for _, name in services.devices()] == ["mps", "cpu"]
    key = services.key_on("tryon-lite", "cpu")
    assert services.place_of(key) == ("cpu", "tryon-lite")
    assert services.tryon(key).device.type == "cpu" and services.tryon(key) is services.tryon(
        services.key_on(None, "cpu")
    )
    for usual in ("mps", None, ""):
        assert services.key_on("tryon-lite", usual) == "tryon-lite" and services.place_of("tryon-lite") == (
            "mps",
            "tryon-lite",
        )
    assert services.key_on(None, "mps") is None
    with pytest.raises(ValueError, match="no device 'cuda' on this page"):
        services.tryon(services.key_on("tryon-lite", "cuda"))
    assert [name for _, name in Services(device="cpu").devices()] == ["cpu"]  # the operator's word
    with pytest.raises(ValueError, match="no device 'mps' on this page"):
        Services(device="cpu").tryon("mps|tryon-lite")
    with pytest.raises(ValueError, match="no model '../secrets'"):
        services.tryon("cpu|../secrets")
