"""The Save view of the Translate tab: pictures, numbers, and a page of its own, of the map that is looked at."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr

from transformer import interpret
from ui import exports, figures, messages
from ui.attention import KEYS, QUERIES, head_title, layer_choices
from ui.services import Services
from ui.shown import Shown, on_view

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
    picture = (found, title(settings), *axes(kind), settings["threshold"], settings["stretch"])
    links = figures.word_links(
        attention.source_tokens,
        attention.target_tokens,
        interpret.alignment(attention.cross, attention.cross.shape[0] - 1, attention.source_tokens),
    )
    make = {
        "png": lambda: exports.png(*picture),
        "svg": lambda: exports.svg(*picture),
        "csv": lambda: exports.csv_text(found),
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


def layout(tab: SimpleNamespace, services: Services) -> SimpleNamespace:
    """Build the view inside the current gr.Tab and return its components by name."""
    view = SimpleNamespace()
    view.note = gr.Markdown(elem_id="save-note", elem_classes="section")
    view.formats = gr.CheckboxGroup(
        [(label, name) for name, label in FORMATS.items()], value=list(FORMATS), label="Formats", elem_id="save-formats"
    )
    view.make = gr.Button("Make the files", size="sm", elem_id="save-button")
    view.files = gr.File(label="Files", file_count="multiple", interactive=False, visible=False, elem_id="saved-files")
    view.status = gr.HTML(elem_id="save-status")
    return view


def events(tab: SimpleNamespace, services: Services, page: gr.Blocks) -> None:
    """Wire the view built by `layout`, which is tab.save."""
    view, looked_at = tab.save, tab.attention

    def settings(shown, kind, layer, head, ends, threshold, stretch, look):
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
            "model": shown.model or services.translation_model,
        }

    def refresh(shown, *values):
        if shown.attention is None:
            return "There is no attention to save for this sentence.", gr.update(visible=False), ""
        what = title(settings(shown, *values))
        return f"Saves what the Attention view shows: **{what}**.", gr.update(visible=False), ""

    def make(shown, formats, *values):
        try:
            if shown.attention is None:
                raise ValueError("There is no attention to save yet; translate a sentence first.")
            with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
                files = save(shown, settings(shown, *values), formats, Path(folder))
                # Yielded, not returned: Gradio copies the files into its own cache before this folder goes.
                paths = [str(file) for file in files]
                yield gr.update(value=paths, visible=True), messages.status(f"{len(files)} files.")
        except Exception as error:
            yield gr.update(visible=False), messages.alert(messages.sentence(error))

    choice = [looked_at.kind, looked_at.layer, looked_at.head, looked_at.ends]
    choice += [looked_at.threshold, looked_at.stretch, looked_at.look]
    on_view(tab, "save", refresh, [tab.shown, *choice], [view.note, view.files, view.status], "save")
    view.make.click(
        make, [tab.shown, view.formats, *choice], [view.files, view.status], api_name="save", api_visibility="private"
    )
