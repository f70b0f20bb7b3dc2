"""The kinds of networks that can be trained: of text, of trees, of a try-on, and adversarial nets."""

import dataclasses
import json
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

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
from ui.train.network import Network
from ui.train.survey import Survey
from ui.translate.languages import model_for
from ui.translate.parse import parser_key
from vton.registry import ALL_NETWORKS

COMPARISON_SIZE = (256, 192)


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
