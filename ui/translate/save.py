"""The Save view of the Translate tab: pictures, numbers, and a page of its own, of the map that is looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from transformer.insight import interpret
from ui import figures
from ui.services import Services
from ui.translate import exports
from ui.translate.attention import KEYS, QUERIES, head_title, layer_choices
from ui.translate.shown import Shown, Tab, View, offer

FORMATS = {
    "png": "PNG, the map as a picture",
    "svg": "SVG, the map as a drawing with its numbers",
    "csv": "CSV, the map's numbers",
    "json": "JSON, all layers and heads with tokens and settings",
    "npz": "npz, the same for NumPy",
    "html": "HTML, one page that opens without a connection",
}


def axes(kind: str) -> list[str]:
    """Names of the two axes of a kind of attention."""
    return [f"queries: {QUERIES[kind]}", f"keys: {KEYS[kind]}"]


def title(settings: dict[str, Any]) -> str:
    """What the saved map is called."""
    head = settings["head"] - 1 if isinstance(settings["head"], int) else settings["head"]
    name = head_title(settings["kind"], settings["layer"] - 1, head)
    return name + (", without start and end" if settings["without_ends"] else "")


def save(shown: Shown, settings: dict[str, Any], formats: list[str], folder: Path) -> list[Path]:
    """Write the chosen formats of one map into a folder and return the files.

    settings: kind, layer and head (from 1, or "mean", "max", "rollout"), without_ends, threshold, stretch, look, model.
    Raises ValueError if nothing is shown or nothing is chosen.
    """
    if shown.attention is None:
        raise ValueError("There is no attention to save yet; translate a sentence first.")
    if not formats:
        raise ValueError("Choose at least one format.")
    head = settings["head"] - 1 if isinstance(settings["head"], int) else settings["head"]
    attention, kind, layer = shown.attention, settings["kind"], settings["layer"] - 1
    found = interpret.attention_map(attention, kind, layer, head, settings["without_ends"])
    sentence = shown.translation.sentences[shown.sentence]
    settings = {
        **settings,
        "source": sentence.source_text,
        "translation": sentence.hypotheses[shown.hypothesis].text,
        "logprob": float(sentence.hypotheses[shown.hypothesis].logprob),
    }
    row_axis, column_axis = axes(kind)
    picture: dict[str, Any] = {
        "shown": found,
        "title": title(settings),
        "row_axis": row_axis,
        "column_axis": column_axis,
        "threshold": settings["threshold"],
        "stretch": settings["stretch"],
        "sentence": f"{settings['source']} → {settings['translation']}",
    }
    queries = exports.named_queries(attention, kind, found)
    links = figures.word_links(
        attention.source_tokens,
        attention.target_tokens,
        interpret.alignment(attention.cross, attention.cross.shape[0] - 1, attention.source_tokens),
    )
    make: dict[str, Callable[[], str | bytes]] = {
        "png": lambda: exports.png(**picture),
        "svg": lambda: exports.svg(**picture, queries=queries),
        "csv": lambda: exports.csv_text(found, queries),
        "json": lambda: exports.json_text(attention, found, settings),
        "npz": lambda: exports.npz(attention, found, settings),
        "html": lambda: exports.html(
            attention,
            settings,
            settings["source"],
            settings["translation"],
            links,
            {name: axes(name) for name in QUERIES},
        ),
    }
    files = []
    for name in FORMATS:
        if name in formats:
            content = make[name]()
            file = folder / f"attention-{kind}-layer{settings['layer']}-{settings['head']}.{name}"
            file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
            files.append(file)
    return files


class SaveView(View):
    """Files of the map that is looked at under “Who looks at whom”."""

    name = "save"

    def __init__(self, tab: Tab, services: Services) -> None:
        super().__init__(tab, services)
        self.note = gr.Markdown(elem_id="save-note", elem_classes="section")
        choices = [(label, name) for name, label in FORMATS.items()]
        self.formats = gr.CheckboxGroup(choices, value=list(FORMATS), label="Formats", elem_id="save-formats")
        self.make = gr.Button("Make the files", size="sm", elem_id="save-button")
        self.files = gr.File(
            label="Files", file_count="multiple", interactive=False, visible=False, elem_id="saved-files"
        )
        self.status = gr.HTML(elem_id="save-status")

    def wire(self) -> None:
        """Connect the components with the handlers below."""
        seen = self.tab.attention
        choice = [seen.kind, seen.layer, seen.head, seen.ends, seen.threshold, seen.stretch, seen.look]
        self.on_open(self.refresh, [self.tab.shown, *choice], [self.note, self.files, self.status])
        self.make.click(
            self.make_files,
            [self.tab.shown, self.formats, *choice],
            [self.files, self.status],
            api_name="save",
            api_visibility="private",
        )

    def settings(self, shown, kind, layer, head, ends, threshold, stretch, look) -> dict[str, Any]:
        """What is looked at, as the files tell it: layers and heads from 1."""
        heads = shown.attention.cross.shape[1]
        layer = layer_choices(kind, layer, shown.attention)[1]  # it may be of another model
        head = min(head, heads - 1) if isinstance(head, int) else head
        return {
            "kind": kind,
            "layer": layer + 1,
            "head": head + 1 if isinstance(head, int) else head,
            "without_ends": bool(ends),
            "threshold": float(threshold),
            "stretch": bool(stretch),
            "look": look,
            "model": shown.model or self.services.translation_model,
        }

    def refresh(self, shown, *choice):
        """Which map would be saved."""
        if shown.attention is None:
            note = "There is no attention to save for this sentence."
        else:
            note = f"Saves the map under “Who looks at whom”: **{title(self.settings(shown, *choice))}**."
        return {self.note: note, self.files: gr.update(visible=False), self.status: ""}

    def make_files(self, shown, formats, *choice):
        """Write the chosen formats and offer them."""

        def write(folder: Path) -> list[Path]:
            if shown.attention is None:
                raise ValueError("There is no attention to save yet; translate a sentence first.")
            return save(shown, self.settings(shown, *choice), formats, folder)

        yield from offer(self.files, self.status, write)
