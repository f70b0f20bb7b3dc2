"""Saving: the button that every view of the Translate tab has, and the files of a map."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from transformer.insight import interpret
from ui import figures, theme
from ui.heat_map import HeatMap
from ui.kit import Views
from ui.translate import exports
from ui.translate.view import ON_DEVICE, CurrentTranslation, offer
from ui.translate.words import QUERIES, axes, head_title


def save(current: CurrentTranslation, settings: dict[str, Any], folder: Path) -> list[Path]:
    """Write one map into a folder as PNG, SVG, CSV, JSON, npz, and a page that opens without a connection.

    settings: kind, layer and head (from 1, or "mean", "max", "rollout"), without_ends, threshold, stretch, look, model.
    Returns the files. Raises ValueError if nothing is shown.
    """
    if current.attention is None:
        raise ValueError("There is no attention to save yet; translate a sentence first.")
    head = settings["head"] - 1 if isinstance(settings["head"], int) else settings["head"]
    attention, kind, layer = current.attention, settings["kind"], settings["layer"] - 1
    part = interpret.attention_map(attention, kind, layer, head, settings["without_ends"])
    settings = {
        **settings,
        "source": current.entry.source_text,
        "translation": current.output.text,
        "logprob": float(current.output.logprob),
    }
    queries = exports.query_labels(attention, kind, part)
    picture = HeatMap(
        part,
        head_title(kind, layer, head, settings["without_ends"]),
        *axes(kind),
        threshold=settings["threshold"],
        stretch=settings["stretch"],
        sentence=f"{settings['source']} → {settings['translation']}",
        queries=queries,
    )
    links = figures.word_links(
        attention.source_tokens,
        attention.target_tokens,
        interpret.alignment(attention.cross, attention.cross.shape[0] - 1, attention.source_tokens),
    )
    kinds = {name: axes(name) for name in QUERIES}
    contents: dict[str, str | bytes] = {
        "png": picture.png(),
        "svg": picture.svg(),
        "csv": exports.csv_text(part, queries),
        "json": exports.json_text(attention, part, settings),
        "npz": exports.npz(attention, part, settings),
        "html": exports.html(attention, settings, settings["source"], settings["translation"], links, kinds),
    }
    return exports.write(folder / f"attention-{kind}-layer{settings['layer']}-{settings['head']}", contents)


class SaveButton:
    """The button that saves what the open view shows, and the files that it has made; `View.save_with` says of what."""

    def build_button(self) -> None:
        """The button."""
        self.make = theme.component(gr.Button, "save-button")

    def build_files(self) -> None:
        """The place of the files."""
        self.status = gr.HTML(visible=False, elem_id="save-status")
        self.files = theme.component(gr.File, "saved-files", visible=False)

    def wire(self, views: Views) -> None:
        """Connects the button, once all views have said what they save."""

        def act(*values: Any) -> Iterator[dict]:
            for updates in offer(self.files, self.status, lambda folder: views.save(folder, *values)):
                yield {**updates, self.status: gr.update(value=updates[self.status], visible=True)}

        self.make.click(act, views.save_inputs, [self.files, self.status], api_name="save", **ON_DEVICE)
