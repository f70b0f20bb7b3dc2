"""What can be trained: a network as the Train tab knows it, and a setting of its recipe in words."""

import dataclasses
import functools
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from training import assets
from ui import theme
from ui.services import Services
from ui.train.data import BUNDLE, LOCAL, UPLOAD, Data
from ui.train.survey import Survey

WORDS = theme.data("train/networks.json")  # of the networks, their settings and presets


@dataclass(frozen=True)
class Setting:
    """A recipe's field in words.

    Attributes:
        field: its name in the program.
        label: what a visitor reads.
        paper: its value in the paper, "" where the paper has no such thing.
        about: further remarks.
        unset: the number by which the program means "as the size has it"; the box is empty then.
    """

    field: str
    label: str
    paper: str = ""
    about: str = ""
    unset: float | None = None


@dataclass(frozen=True)
class Network(ABC):
    """A network that can be trained. Each kind says where its data come from, how large it is, and how it is tried.

    Attributes:
        key: its name in the registry, and in `WORDS`.
        command: the module that trains it, and its arguments.
        module, recipe_class, task: where its recipe is.
        title, does: its name, and what it learns, in a few words.
        first: the preset for a first try.
        seconds: preset -> processor seconds a step on one core of a 2-core server with the bundled data, where somebody
            has measured them; `--threads 1 --time 5` of a recipe's command prints them.
        settings: those that matter.
    """

    key: str
    command: str
    module: str
    recipe_class: str
    task: str
    title: str
    does: str
    first: str
    seconds: dict[str, float] = field(hash=False)
    settings: tuple[Setting, ...]

    counts: ClassVar[str] = "pictures"  # what a speed is counted in
    resume_words: ClassVar[tuple[str, ...]] = ()  # what the command needs to find the recipe of a run that goes on
    sources: ClassVar[tuple[tuple[str, str], ...]]  # (label, key) of where its data may come from
    upload: ClassVar[str]  # what a visitor may bring
    missing: ClassVar[str]  # the same in a sentence that asks for it
    data_hint: ClassVar[str] = ""  # where such data can be had by whoever has none; a sentence
    has_columns: ClassVar[bool] = False  # its data are a table, of which two columns are chosen
    elsewhere: ClassVar[str] = ""  # where else on the page a checkpoint is tried; a sentence

    @property
    def words(self) -> list[str]:
        """Of its command line."""
        return ["python", "-m", *self.command.split()]

    @property
    def recipe(self) -> type:
        """The recipe's dataclass."""
        return getattr(import_module(self.module), self.recipe_class)

    @property
    def presets(self) -> dict[str, dict[str, Any]]:
        """Preset -> the fields in which it differs from the dataclass."""
        return import_module(self.module).PRESETS

    def values(self, preset: str) -> dict[str, Any]:
        """Every field of a preset with its value."""
        return {**{f.name: f.default for f in dataclasses.fields(self.recipe)}, **self.presets[preset]}

    # -- data --------------------------------------------------------------------------------------------------------

    def data_choices(self, local: bool) -> list[tuple[str, str]]:
        """Where its data may come from, as (label, key). local: visitors may name folders."""
        return [*self.sources, *([("A folder or file on this machine", LOCAL)] if local else [])]

    def data_commands(self, data: Data, run: Path) -> tuple[list[list[str]], dict[str, Any]]:
        """The commands that have to run before the training, and the recipe's fields that name its data.

        Nothing is copied yet: the paths are those that `bring` will make. Raises ValueError for what is missing.
        """
        if data.kind == BUNDLE:
            return [], self.bundle_fields()
        if data.kind == UPLOAD and not data.upload:
            raise ValueError(f"Upload {self.missing} first.")
        if data.kind == LOCAL and not data.place:
            raise ValueError("Write the path of a folder or file on this machine.")
        return self._data_commands(data, run)

    def bundle_fields(self) -> dict[str, Any]:
        """The fields that name the data which come with the page, where they are not the recipe's defaults."""
        return {}

    @abstractmethod
    def _data_commands(self, data: Data, run: Path) -> tuple[list[list[str]], dict[str, Any]]:
        """As `data_commands`, for data that a visitor brings."""

    def bring(self, data: Data, run: Path) -> None:
        """Checks the data, and puts an upload where the command looks for it.

        Raises ValueError or FileNotFoundError with one sentence.
        """
        if data.kind == BUNDLE:
            return
        if data.kind == UPLOAD and not data.upload:
            raise ValueError("Upload a file first.")
        path = Path(data.upload or "") if data.kind == UPLOAD else data.path
        if data.kind == LOCAL and not path.exists():
            raise FileNotFoundError(f"There is no folder or file {data.place!r} on this machine.")
        self._bring(data, path, run / "data" if data.kind == UPLOAD else None)

    @abstractmethod
    def _bring(self, data: Data, path: Path, into: Path | None) -> None:
        """Checks `path`, and copies it `into` the run's folder, if it is an upload; errors as in `bring`."""

    def survey(self, data: Data) -> Survey | None:
        """What the chosen table holds; None where there is none. Raises ValueError or FileNotFoundError."""
        return None

    def check_data(self, fields: dict[str, Any]) -> None:  # noqa: B027 (most recipes bring data of their own)
        """Raises ValueError where a preset has no data of its own and none were brought."""

    # -- weights -----------------------------------------------------------------------------------------------------

    def beginnings(self, preset: str) -> dict[str, Path]:
        """Shipped weights of the very shape that a preset trains: name -> their folder."""
        return _beginnings(self, preset)

    def fits(self, preset: str, folder: Path) -> bool:
        """Whether the shipped weights in a folder have the shape that a preset trains."""
        return False

    def weights_in(self, model: Path) -> Path:
        """The folder of a shipped model that would hold this network's weights."""
        return model

    def beginning_fields(self, preset: str, name: str, columns: tuple[str, str]) -> dict[str, Any]:
        """The recipe's fields that begin with the shipped weights `name`; none for "", which are random weights.

        Args:
            preset: of this network.
            name: of `beginnings`.
            columns: source and target of the text. A model whose source begins with a token of the target language
                goes on learning both ways.

        Raises:
            ValueError: for weights that do not fit, or that do not know these languages.
        """
        if not name:
            return {}
        weights = self.beginnings(preset)
        if name not in weights:
            raise ValueError(f"The weights {str(name)[:40]!r} do not fit this preset; choose others of the list.")
        inside = weights[name].is_relative_to(Path.cwd())
        return {"initial": os.path.relpath(weights[name]) if inside else str(weights[name])}

    @abstractmethod
    def modules(self, fields: dict[str, Any]) -> list[nn.Module]:
        """The networks that a run with these fields trains. Raises ValueError for sizes that make no network."""

    def weights(self, fields: dict[str, Any]) -> int:
        """How many weights they have; they are built without memory for them."""
        with torch.device("meta"):
            return sum(p.numel() for module in self.modules(fields) for p in module.parameters())

    def parameters(self, fields: dict[str, Any]) -> int:
        """Numbers in a checkpoint of such a run."""
        return self.weights(fields)

    # -- a checkpoint ------------------------------------------------------------------------------------------------

    def export(self, run: Path, folder: Path, step: int) -> None:
        """Writes the model folder of a checkpoint of a run's folder."""
        import_module(f"{self.command.partition('.')[0]}.export").export(run, folder, step)

    tries_text: ClassVar[bool] = False  # a checkpoint is tried with `compare_texts`
    tries_pictures: ClassVar[bool] = False  # or with `compare_pictures`

    def compare_texts(self, services: Services, key: str, text: str) -> tuple[str, str]:
        """What the shipped model makes of a text, and what the checkpoint of that key does."""
        raise NotImplementedError

    def compare_pictures(self, services: Services, key: str, person: Any, garment: Any) -> list[tuple[Any, str]]:
        """The map that shows the network's work, and the result, by the default set and with the checkpoint in it."""
        raise NotImplementedError


@functools.cache
def _beginnings(network: Network, preset: str) -> dict[str, Path]:
    folders = {name: network.weights_in(assets.model_dir(name)) for name in assets.list_models()}
    there = {name: folder for name, folder in folders.items() if (folder / "model.safetensors").is_file()}
    return {name: folder for name, folder in there.items() if network.fits(preset, folder)}
