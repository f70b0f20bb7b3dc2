"""The models behind the page: each loaded at first use, once, behind a lock; the last few that were used are kept.

A model is named by a key: a shipped model's name; `run:NAME` or `run:NAME@STEP`, a checkpoint of a run below the page's
runs folder; `released:NAME`, a folder that the operator named at start; on a local page also a folder or somebody's
model on the Hub (`Helsinki-NLP/opus-mt-en-de`).
"""

from __future__ import annotations

import json
import queue
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from training import assets
from training.checkpoint import find_checkpoint, list_checkpoints, step_of
from training.memory import give_back_memory
from training.run import Run, open_run, readable_runs
from training.start import Limits
from transformer.config import ALPHA, read_penalties
from transformer.translate import DEFAULT_MODEL
from ui import opus, serving, shared_gpu
from vton.registry import ALL_NETWORKS, NETWORKS, network_of_task

if TYPE_CHECKING:
    from transformer.parsing.parser import Parser
    from transformer.translator import Translator
    from vton import TryOn
    from vton.result import TryOnResult

OnStage = Callable[[str, int, int], None]  # name, index and number of the stages, before each of them

TRANSLATION_MODEL = DEFAULT_MODEL
TRYON_MODEL = "tryon-lite"
MAX_TRANSLATORS, MAX_TRYONS = 3, 2  # a translator is some 100 MB at most, a try-on with its pose model more
REPORT_SECONDS = 0.25  # between two reports on a run that stays at one stage
READING_STAGES = 4  # photo, pose, parse and garment: what a try-on does while another one computes
DEVICE_LABELS = {"cuda": "CUDA (NVIDIA)", "mps": "MPS (Apple)", "cpu": "CPU"}


Value = TypeVar("Value")


class LRUCache(Generic[Value]):
    """Values made at first use, one at a time; the `size` last used ones are kept. A failed attempt is tried again."""

    def __init__(self, make: Callable[[str], Value], size: int) -> None:
        self._make, self._size = make, size
        self._lock = threading.Lock()
        self._values: OrderedDict[str, Value] = OrderedDict()

    def __call__(self, key: str) -> Value:
        """The value of a key."""
        with self._lock:
            if key not in self._values:
                while len(self._values) >= self._size:  # room first, so that no more than `size` are ever in memory
                    self._values.popitem(last=False)
                self._values[key] = self._make(key)
            self._values.move_to_end(key)
            return self._values[key]


class Cancellation(Exception):
    """Raised inside a run whose visitor has cancelled it or gone away."""


@dataclass(frozen=True)
class Progress:
    """How far a try-on is. stage: index of the stage at work; seconds: time of each stage, the running one's so far."""

    stage: int
    seconds: dict[str, float]


class Turn:
    """What a try-on holds: while it is entered, one of two locks, so that two try-ons never do the same half at once.

    It gives the one lock back before it waits for the other: nobody waits for somebody who waits.
    """

    def __init__(self, reading: threading.Lock, computing: threading.Lock) -> None:
        self._locks, self._lock = (reading, computing), reading

    def __enter__(self) -> Turn:
        self._lock.acquire()
        return self

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def take(self, computing: bool, on_wait: Callable[[], None]) -> None:
        """Holds the lock of the later stages, or that of the reading ones. on_wait: called where others have it."""
        lock = self._locks[computing]
        if lock is not self._lock:
            self._lock.release()
            if not lock.acquire(blocking=False):
                on_wait()
                lock.acquire()
            self._lock = lock


class Services:
    """What the tabs ask for translations and try-ons.

    translation_model, tryon_model: the defaults, each the name of a shipped model or a folder; device: "auto", "cpu",
    "cuda" or "mps"; runs: folder of the training runs; local: the page serves its operator alone, so visitors may name
    folders and models of the Hub; releases: name -> folder with the released VITON-HD checkpoints; training: what
    visitors may start, None = nothing.
    """

    def __init__(
        self,
        translation_model: str = TRANSLATION_MODEL,
        tryon_model: str = TRYON_MODEL,
        device: str = "auto",
        runs: Path | str = "runs",
        local: bool = False,
        releases: Mapping[str, Path] | None = None,
        training: Limits | None = Limits(),
    ) -> None:
        self.translation_model, self.tryon_model = translation_model, tryon_model
        self.device, self.runs, self.local = device, Path(runs), local
        self.releases, self.training = dict(releases or {}), training
        self._translators = LRUCache(self._load_translator, MAX_TRANSLATORS)
        self._tryons = LRUCache(self._load_tryon, MAX_TRYONS)
        # One try-on reads its photographs while another one computes its picture. A cancelled run ends at its next
        # stage, a moment after its place in the queue is free again.
        self.reading, self.computing = threading.Lock(), threading.Lock()

    def limits(self) -> Limits:
        """How visitors may train. Raises ValueError where no training can be started from this page."""
        if self.training is None:
            raise ValueError("Training cannot be started from this page.")
        return self.training

    # -- what there is -------------------------------------------------------------------------------------------

    def translators(self) -> list[tuple[str, str]]:
        """(label, key) of every translation model: the default one first, shipped ones, runs' checkpoints, OPUS-MT."""
        models = [(_name(self.translation_model), self.translation_model)]
        models += [(name, name) for name in _models_with("tokenizer.model") if name != self.translation_model]
        models += self._checkpoints(lambda task: "" if task in ("TranslationTask", "ParseTask") else None)
        return models + [
            (label, name) for name, label in opus.available_models().items() if name != self.translation_model
        ]

    def tryons(self) -> list[tuple[str, str]]:
        """(label, key) of every set of try-on networks; a run stands for the default set with its one network in it."""
        models = [(_name(self.tryon_model), self.tryon_model)]
        models += [(name, name) for name in _models_with("parser/config.json") if name != self.tryon_model]
        models += [(f"{name} (released VITON-HD weights)", f"released:{name}") for name in self.releases]
        return models + self._checkpoints(_word_of_network)

    def _checkpoints(self, kind: Callable[[str], str | None]) -> list[tuple[str, str]]:
        """(label, key) of the checkpoints, newest run and newest step first, whose task `kind` gives a word for."""
        checkpoints = []
        for run, recipe in readable_runs(self.runs):
            name, word = run.folder.name, kind(recipe["task"])
            if word is None:
                continue
            steps = [step_of(folder) for folder in list_checkpoints(run.checkpoints)]
            what = f"run {name}, {word}" if word else f"run {name}"
            checkpoints += [(f"{what}, step {step:,}", f"run:{name}@{step}") for step in reversed(steps)]
        return checkpoints

    # -- getting one ---------------------------------------------------------------------------------------------

    def fetch_translator(self, key: str | None) -> Iterator[str]:
        """Gets a model of the list onto this machine; yields a line about its progress while it is under way.

        Raises ValueError with one sentence if it cannot be had.
        """
        if key in opus.MODELS and not opus.is_here(key):
            for megabytes in opus.fetch(key):
                yield f"Downloading {opus.label(key)}: {megabytes:.0f} of about {opus.MEGABYTES} MB, once …"

    def translator(self, key: str | None = None) -> Translator:
        """The Translator of a key, the default one without. Raises ValueError with one sentence for an unknown key."""
        return self._translators(self._resolve(key, self.translation_model, _models_with("tokenizer.model")))

    def parser(self, key: str) -> Parser:
        """The Parser of a key. Raises ValueError with one sentence where it is a translator's."""
        from transformer.parsing.parser import Parser

        model = self.translator(key)
        if not isinstance(model, Parser):
            raise ValueError(f"{model.name} translates and writes no trees; choose a parser.")
        return model

    def tryon(self, key: str | None = None) -> TryOn:
        """The TryOn of a key (see `key_on`), None = the default. Raises ValueError with one sentence for another."""
        device, networks = self.place_of(key)
        if device not in [name for _, name in self.devices()]:
            raise ValueError(f"There is no device {device[:80]!r} on this page; choose one from the list.")
        return self._tryons(f"{device}|{self._resolve(networks, self.tryon_model, _models_with('parser/config.json'))}")

    def devices(self) -> list[tuple[str, str]]:
        """(label, name) of the devices for try-ons, the usual one first; one alone where the operator named it."""
        from training.devices import choose_device, present_devices

        usual = choose_device(self.device).type
        names = [usual] if self.device != "auto" else [usual, *(name for name in present_devices() if name != usual)]
        return [(DEVICE_LABELS[name], name) for name in names]

    def key_on(self, networks: str | None, device: str | None) -> str | None:
        """The key of some networks on a device of `devices`; the usual device needs no mention."""
        return f"{device}|{networks or self.tryon_model}" if device and device != self.devices()[0][1] else networks

    def place_of(self, key: str | None) -> tuple[str, str | None]:
        """The device and the networks of a key that `key_on` made."""
        device, mark, networks = (key or "").partition("|")
        return (device, networks) if mark else (self.devices()[0][1], key)

    def pairs(self, key: str | None = None) -> list[tuple[str, str]]:
        """The language pairs of a translation model, source first; those of a shipped one and of OPUS-MT unloaded."""
        key = key or self.translation_model
        if key in opus.MODELS:
            return [opus.MODELS[key]]
        own = model_pairs().get(key)
        return own or [(source, target) for source, target in self.translator(key).pairs]

    def length_penalty(self, key: str | None, pair: str) -> float:
        """The length penalty that suits a translation model in "de-en"; of a shipped one and of OPUS-MT unloaded."""
        key = key or self.translation_model
        if key in opus.MODELS:
            return ALPHA
        if key in model_pairs():
            return read_penalties(model_header(key)).get(pair, ALPHA)
        source, _, target = pair.partition("-")
        return self.translator(key).length_penalty(source, target)

    def _resolve(self, key: str | None, default: str, own: list[str]) -> str:
        """The full form of a key, with the step of a checkpoint; only keys that this page offers come back."""
        if key is None or key in (default, *own):
            return key or default
        kind, _, rest = str(key).partition(":")
        if kind == "run" and rest:
            name, at, step = rest.rpartition("@")
            if not at or not step.isdigit():
                name, step = rest, ""
            checkpoint = find_checkpoint(open_run(self.runs, name).checkpoints, int(step) if step else None)
            return f"run:{name}@{step_of(checkpoint)}"
        if kind == "released" and rest in self.releases:
            return key
        if key in opus.MODELS:
            if not opus.is_here(key):
                raise ValueError(
                    f"{opus.label(key)} is not on this machine yet; choose it under Model and search, which fetches it."
                )
            return key
        if self.local and kind not in ("run", "released"):
            return str(key)
        raise ValueError(f"There is no model {str(key)[:80]!r} on this page; choose one from the list.")

    def _load_translator(self, key: str) -> Translator:
        from transformer.export import export
        from transformer.parsing.parser import from_pretrained

        if not key.startswith("run:"):
            return from_pretrained(key, device=self.device)
        with tempfile.TemporaryDirectory(prefix="atelier-") as temporary:
            name, _, step = key.removeprefix("run:").rpartition("@")
            folder = Path(temporary) / f"{name}-step-{step}"
            export(self.runs / name, folder, int(step))
            return from_pretrained(folder, device=self.device)

    def _load_tryon(self, place: str) -> TryOn:
        from training.devices import choose_device
        from vton import TryOn
        from vton.export import export
        from vton.networks.checkpoints import load_released
        from vton.pipeline import has_flow, load_network, network_folder

        device, _, key = place.partition("|")
        kind, _, rest = key.partition(":")
        stages = {"synthesis": shared_gpu.synthesise} if shared_gpu.is_shared_space() else {}
        if kind not in ("run", "released"):
            return TryOn.from_pretrained(key, device, stages)
        # The networks that the run or the release does not bring are those of the default set.
        base = self._folder(self.tryon_model)
        if kind == "released":
            new, name = load_released(self.releases[rest]), rest
        else:
            name, _, step = rest.rpartition("@")
            network = network_of_task(Run(self.runs / name).recipe().get("task"))
            if network is None:
                raise ValueError(f"The run {name!r} trains none of the try-on networks; choose another one.")
            with tempfile.TemporaryDirectory(prefix="atelier-") as temporary:
                folder = Path(temporary) / network
                export(self.runs / name, folder, int(step))
                new = {network: load_network(network, folder)}
            name = f"{base.name} with {ALL_NETWORKS[network].what} of {name}, step {step}"
        networks = [new[kind] if kind in new else load_network(kind, network_folder(base, kind)) for kind in NETWORKS]
        flow = new.get("flow") or (load_network("flow", base / "flow") if has_flow(base) else None)
        return TryOn(*networks, name=name, device=choose_device(device), flow=flow, stages=stages)

    @staticmethod
    def _folder(name_or_folder: str) -> Path:
        """Where a set of networks lies."""
        folder = Path(name_or_folder)
        return folder if (folder / "parser").is_dir() else assets.model_dir(name_or_folder)

    def has_flow(self, key: str | None = None) -> bool:
        """Whether the networks of a key (see `key_on`) can warp by a flow; does not load them."""
        from vton.pipeline import has_flow

        key = self.place_of(key)[1] or self.tryon_model
        kind, _, rest = key.partition(":")
        try:
            if kind == "run":
                network = network_of_task(open_run(self.runs, rest.rpartition("@")[0] or rest).recipe().get("task"))
                return network == "flow" or has_flow(self._folder(self.tryon_model))
            return has_flow(self._folder(self.tryon_model if kind == "released" else key))
        except (ValueError, OSError):
            return False

    def stream_tryon(
        self, person: Any, garment: Any, model: str | None = None, **options: Any
    ) -> Iterator[Progress | TryOnResult]:
        """A whole try-on as `stream_on_tryon` runs it. options: those of `TryOn.run` except on_stage."""
        return self.stream_on_tryon(
            lambda tryon, on_stage: tryon.run(person, garment, on_stage=on_stage, **options), model
        )

    def on_tryon(self, call: Callable[[TryOn, OnStage], Value], model: str | None = None) -> Value:
        """As `stream_on_tryon`, its value alone."""
        return last(self.stream_on_tryon(call, model))

    def stream_on_tryon(
        self, call: Callable[[TryOn, OnStage], Value], model: str | None = None
    ) -> Iterator[Progress | Value]:
        """Run `call(tryon, on_stage)` beside the caller. Yields Progress at every stage and some times a second, and
        its value at last.

        Closing the iterator cancels the run: it stops before its next stage. Errors of the run are raised here.
        model: key of the networks, None = the default ones.
        """
        reports: queue.Queue = queue.Queue()
        stop = threading.Event()

        # PyTorch's MPS backend takes no two threads at once.
        turn = Turn(self.computing if self.place_of(model)[0] == "mps" else self.reading, self.computing)

        def on_stage(name: str, index: int, total: int) -> None:
            # No stage's time goes on while this one waits.
            turn.take(index >= READING_STAGES, lambda: reports.put(("stage", ("", index - 1))))
            if stop.is_set():
                raise Cancellation
            reports.put(("stage", (name, index)))

        def work() -> None:
            try:
                with turn:
                    if stop.is_set():
                        return
                    result = call(self.tryon(model), on_stage)
                reports.put(("result", result))
            except BaseException as error:  # handed to the caller's thread, also a Cancelled that nobody reads
                reports.put(("error", error))
            finally:
                give_back_memory()

        threading.Thread(target=work, name="try-on", daemon=True).start()
        seconds: dict[str, float] = {}
        name, index, since = "", -1, time.perf_counter()
        try:
            while True:
                try:
                    kind, value = reports.get(timeout=REPORT_SECONDS)
                except queue.Empty:
                    kind, value = "waiting", None
                now = time.perf_counter()
                if name:
                    seconds[name] = now - since
                if kind == "error":
                    raise value
                if kind == "result":
                    serving.log_run("try-on", seconds)
                    yield value
                    return
                if kind == "stage":
                    (name, index), since = value, now
                yield Progress(index, dict(seconds))
        finally:
            stop.set()


def last(reports: Iterator[Progress | Value]) -> Value:
    """The value that a stream of `Services` ends with."""
    *_, value = reports
    assert not isinstance(value, Progress)
    return value


def _models_with(file: str) -> list[str]:
    """Names of the shipped models that have this file."""
    return [name for name in assets.list_models() if (assets.model_dir(name) / file).is_file()]


def model_header(name: str) -> dict[str, Any]:
    """What config.json says of a shipped model."""
    return json.loads((assets.model_dir(name) / "config.json").read_text())


def model_pairs() -> dict[str, list[tuple[str, str]]]:
    """The language pairs (source, target) of every shipped translation model, read from its config alone."""
    return {name: [tuple(pair) for pair in model_header(name)["pairs"]] for name in _models_with("tokenizer.model")}


def _word_of_network(task: str) -> str | None:
    """What a task trains, for one of the networks of a try-on."""
    key = network_of_task(task)
    return ALL_NETWORKS[key].what.removeprefix("the ") if key else None


def _name(name_or_folder: str) -> str:
    """What a visitor reads of a model that the operator may have named by its folder."""
    return name_or_folder if "/" in name_or_folder and not Path(name_or_folder).is_dir() else Path(name_or_folder).name
