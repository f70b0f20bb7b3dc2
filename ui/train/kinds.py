"""What can be trained: a network as the Train tab knows it, a setting of its recipe in words, and the kinds that there
are: of text, of trees, of a try-on, and adversarial nets.
"""

import dataclasses
import functools
import json
import os
import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from training import assets
from training.unpack import unpack
from training.weights import from_json
from transformer.parsing.trees import indent_tree
from ui import theme
from ui.services import Services, last
from ui.train.data import (
    BUNDLE,
    LOCAL,
    MAX_BYTES,
    UPLOAD,
    Data,
    check_size_inside,
    survey,
    table_in,
    table_suffix,
    trees_suffix,
)
from ui.train.survey import Survey
from ui.translate.languages import model_for
from ui.translate.parse import parser_key
from vton.registry import ALL_NETWORKS

WORDS = theme.data("train/networks.json")  # of the networks, their settings and presets
COMPARISON_SIZE = (256, 192)


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
            raise ValueError(f"The weights {str(name)[:40]!r} do not fit this preset; choose others from the list.")
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


def _equal(own: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two configurations are the same in a file."""
    return json.loads(json.dumps(own)) == json.loads(json.dumps(other))


def _copy(upload: Path, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(upload, file)


class TextNetwork(Network):
    """A Transformer, which reads and writes text."""

    counts = "word pieces"
    tries_text = True

    def modules(self, fields: dict[str, Any]) -> list[nn.Module]:
        """The Transformer."""
        from transformer.model import Transformer

        return [Transformer(self.recipe(**fields).model_config(fields["vocab_size"]))]


class TranslatorNetwork(TextNetwork):
    """One text into another, learned from a table with two columns."""

    sources = (("A small grammar that comes with the page", BUNDLE), ("My own table: two columns", UPLOAD))
    upload = "Table with two columns of text (TSV or CSV)"
    missing = "a table"
    has_columns = True

    def bundle_fields(self) -> dict[str, Any]:
        """The grammar."""
        return {"data": "grammar", "source": "en", "target": "de", "directions": ""}

    def _data_commands(self, data: Data, run: Path) -> tuple[list[list[str]], dict[str, Any]]:
        if not (data.source and data.target):
            raise ValueError("Choose the column of the source and the column of the target.")
        table = data.place
        if data.kind == UPLOAD:
            table = str(run / "data" / f"table{table_suffix(data.upload or '')}")
        # Two columns are one direction, also where the preset has several of its own.
        return [], {"data": table, "source": data.source, "target": data.target, "directions": ""}

    def _bring(self, data: Data, path: Path, into: Path | None) -> None:
        from transformer.data import read_parallel

        table = path if into else table_in(path)
        if table.suffix == ".gz":
            check_size_inside(table)
        if len(read_parallel(table, data.source, data.target)) < 2:
            raise ValueError(f"{table.name} holds one pair only; training needs at least two.")
        if into:
            _copy(path, into / f"table{table_suffix(path.name)}")

    def survey(self, data: Data) -> Survey | None:
        """What the chosen columns of a table hold. Read once while the file stays as it is."""
        return survey(data)

    def fits(self, preset: str, folder: Path) -> bool:
        """By the sizes of the model alone; the vocabulary is that of the weights."""
        theirs = json.loads((folder / "config.json").read_text()).get("transformer")
        if theirs is None:  # of another kind altogether
            return False
        recipe = self.recipe(**{**self.values(preset), "data": "-"})
        own = recipe.model_config(theirs["vocab_size"]).to_dict()
        of_no_shape = ("dropout", "label_smoothing", "max_length", "neighbourhood")
        return _equal(own, theirs | {field: own[field] for field in of_no_shape})

    def beginning_fields(self, preset: str, name: str, columns: tuple[str, str]) -> dict[str, Any]:
        """Also both directions, where the weights know them, and no more alignment."""
        fields = super().beginning_fields(preset, name, columns)
        if not name:
            return fields
        fields["align"] = 0.0  # its attention is aligned already
        config = json.loads((self.beginnings(preset)[name] / "config.json").read_text())
        if config["language_tokens"]:
            languages = sorted({language for pair in config["pairs"] for language in pair})
            if not set(columns) <= set(languages):
                raise ValueError(
                    f"{name} knows {', '.join(languages)}: name the columns of the table by their languages, not "
                    f"{', '.join(columns)}."
                )
            fields["directions"] = f"{columns[0]}-{columns[1]} {columns[1]}-{columns[0]}"
        return fields

    def compare_texts(self, services: Services, key: str, text: str) -> tuple[str, str]:
        """A shipped model's and the checkpoint's translation, each by beam search in its first fitting pair."""
        own = services.translator(key)
        source, target = own.pairs[0]
        try:
            default = services.translator(model_for(services, f"{source}-{target}", None))
            first = default.translate(text, source, target).text
        except ValueError as error:  # no shipped model may know the run's languages
            first = str(error)
        return first, own.translate(text, source, target).text


class TreeNetwork(TextNetwork):
    """Sentences into trees; its vocabulary is that of its own trees, so it begins with random weights."""

    resume_words = ("--preset", "parse")
    sources = (("My own trees", UPLOAD),)
    upload = "Trees in Penn Treebank brackets (.mrg)"
    missing = "a file of trees"
    data_hint = theme.text("train/trees")

    def _data_commands(self, data: Data, run: Path) -> tuple[list[list[str]], dict[str, Any]]:
        if data.kind == LOCAL:
            return [], {"data": data.place}
        return [], {"data": str(run / "data" / f"train{trees_suffix(data.upload or '')}")}

    def _bring(self, data: Data, path: Path, into: Path | None) -> None:
        from transformer.parsing.recipe import load_splits

        if into and path.suffix == ".gz":
            check_size_inside(path)
        load_splits(path)
        if into:
            _copy(path, into / f"train{trees_suffix(path.name)}")

    def compare_texts(self, services: Services, key: str, text: str) -> tuple[str, str]:
        """The shipped parser's and the checkpoint's tree of the first sentence."""
        trees = [services.parser(one).parse(text)[0].trees[0] for one in (parser_key(services, ""), key)]
        return indent_tree(trees[0]), indent_tree(trees[1])


class TryOnNetwork(Network):
    """One of the networks of `vton.registry`; `vton.prepare` makes a pack of the photographs first."""

    sources: ClassVar[tuple[tuple[str, str], ...]] = (("Draped people", BUNDLE), ("My own photographs (zip)", UPLOAD))
    upload = "Photographs in the VITON-HD layout (zip)"
    missing = "a zip"
    tries_pictures = True

    def _data_commands(self, data: Data, run: Path) -> tuple[list[list[str]], dict[str, Any]]:
        if data.kind == LOCAL and data.place.endswith(".npz"):
            return [], {"pack": data.place}
        photos = str(run / "data" / "set") if data.kind == UPLOAD else data.place
        folder = run / "data" / "prepared"
        command = ["python", "-m", "vton.prepare", photos, "--out", str(folder)]
        return [command], {"pack": str(folder / "pack.npz")}

    def _bring(self, data: Data, path: Path, into: Path | None) -> None:
        from vton.prepare import find_set

        place = into / "set" if into else path
        if into:
            unpack(path, place, most_bytes=MAX_BYTES)
        if place.is_dir():
            find_set(place)

    def _config(self, fields: dict[str, Any]) -> Any:
        return import_module(self.module).network_config(self.recipe(**fields))

    def weights_in(self, model: Path) -> Path:
        """Its folder among those of the other networks."""
        return model / self.key

    def fits(self, preset: str, folder: Path) -> bool:
        """By its configuration; inputs that it does not read yet may be added."""
        config = self._config(self.values(preset))
        theirs = dataclasses.asdict(from_json(type(config), json.loads((folder / "config.json").read_text())))
        own = dataclasses.asdict(config)
        # Weights without these shares or without attributes may begin networks that have them.
        extra = ("composition", "keeps", "attributes")
        theirs |= {field: own[field] for field in extra if not theirs.get(field, True)}
        theirs |= {field: own[field] for field in ("neck",) if field in theirs}  # where it looks, not its shape
        return _equal(own, theirs)

    def modules(self, fields: dict[str, Any]) -> list[nn.Module]:
        """The generator alone."""
        return [ALL_NETWORKS[self.key].network(self._config(fields))]

    def parameters(self, fields: dict[str, Any]) -> int:
        """With the discriminator, which has about the size of its generator, and the average, a second copy."""
        return (1 + bool(fields.get("ema")) + bool(fields.get("gan"))) * self.weights(fields)

    def compare_pictures(self, services: Services, key: str, person: Any, garment: Any) -> list[tuple[Any, str]]:
        """Both ways of the same pair: the map and the result by the default set, then with the checkpoint in it."""
        name, pictures = ALL_NETWORKS[self.key].map, []
        for label, model in (("default", None), ("this checkpoint", key)):
            options = self.options() if model else {}
            result = last(services.stream_tryon(person, garment, model=model, size=COMPARISON_SIZE, **options))
            maps = result.pictures()
            pictures += [(maps[name], f"{name.replace('_', ' ')}: {label}"), (maps["result"], f"result: {label}")]
        return [pictures[i] for i in (0, 2, 1, 3)]

    def options(self) -> dict[str, Any]:
        """Options of a try-on that uses the network."""
        return {}


class FlowNetwork(TryOnNetwork):
    """The flow warper, which is seen beside the spline of the default set."""

    def options(self) -> dict[str, Any]:
        """The warp by the flow."""
        return {"warp": "flow"}


class GarmentNetwork(TryOnNetwork):
    """The garment reader; it learns from garments of draped people, or from a folder of pictures with their table."""

    sources = (("Garments of draped people", BUNDLE),)

    def _data_commands(self, data: Data, run: Path) -> tuple[list[list[str]], dict[str, Any]]:
        return [], {"data": data.place}

    def _bring(self, data: Data, path: Path, into: Path | None) -> None:
        """Its task reads the folder itself."""


class AdversarialNetwork(Network):
    """Generator and discriminator of the paper, which learn together and from random weights."""

    counts = "examples"
    sources = (("Points drawn from a formula", BUNDLE), ("My own handwritten digits", UPLOAD))
    upload = "Handwritten digits (IDX pictures, .gz)"
    missing = "a file of digits"
    elsewhere = "Open the GAN tab: under Digits, every checkpoint of a run on digits stands in the list."

    def _data_commands(self, data: Data, run: Path) -> tuple[list[list[str]], dict[str, Any]]:
        return [], {"data": str(run / "data") if data.kind == UPLOAD else data.place}

    def _bring(self, data: Data, path: Path, into: Path | None) -> None:
        from gan.digits import read_digits, read_idx

        if into:
            read_idx(path)
            _copy(path, into / f"digits-images-idx3-ubyte{'.gz' if path.suffix == '.gz' else ''}")
        else:
            read_digits(path)

    def check_data(self, fields: dict[str, Any]) -> None:
        """The presets on digits need some."""
        if not fields["data"]:
            raise ValueError("This preset learns from digits: upload a file of them, or name a folder.")

    def modules(self, fields: dict[str, Any]) -> list[nn.Module]:
        """Both networks."""
        from gan.networks import Discriminator, Generator

        config = import_module(self.module).network_config(self.recipe(**fields))
        return [Generator(config), Discriminator(config)]
