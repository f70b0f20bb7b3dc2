"""What one visitor of the Translate tab looks at, and how the views below a translation hear of something new."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import gradio as gr
import numpy as np

from transformer.options import DEFAULTS
from transformer.translator import Hypothesis, Sentence
from ui import kit, messages
from ui.kit import QUIETLY, Views, on_queue

STATE_SECONDS = 3600
ON_DEVICE = on_queue("translate")
QUIETLY_ON_DEVICE = {**ON_DEVICE, **QUIETLY}


@dataclass
class CurrentTranslation:
    """What one visitor has on the page: a Translation, and the Attention of the sentence that is looked at."""

    translation: Any = None
    sentence: int = 0
    hypothesis: int = 0
    attention: Any = None
    changes: dict[str, np.ndarray] | None = None  # of the log-probability without each head, if asked for
    model: str | None = None  # key of the model that made the translation, as `services.translator` takes it
    pair: str | None = None  # its languages, for example "en-de"
    beam: int = DEFAULTS.beam  # of the search that made it, for views that search again
    alpha: float = 0.6

    @property
    def entry(self) -> Sentence:
        """The sentence that is looked at."""
        return self.translation.sentences[self.sentence]

    @property
    def output(self) -> Hypothesis:
        """Its translation that is looked at."""
        return self.entry.hypotheses[self.hypothesis]

    def entry_and_ids(self) -> tuple[Sentence, list[int]]:
        """The sentence, and the ids of its translation. Raises ValueError if the model had no part in it."""
        return self.translation.sentence_and_ids(self.sentence, self.hypothesis)

    @property
    def caption(self) -> str:
        """The sentence and its translation, as files name them."""
        return f"{self.entry.source_text} → {self.output.text}"


class Tab(Protocol):
    """What a view may ask of the tab that it is in; `TranslateTab` has it."""

    current: gr.State  # a `CurrentTranslation`
    query: gr.State  # row of the query that was picked last
    views: Views
    source: gr.Textbox
    settings: Any  # the `Settings` of languages, model and search
    attention: Any  # the `AttentionView`, whose controls other views read and set


class View(kit.View):
    """A view below a translation; what it keeps of its own for a sentence stands in a State of its own."""

    tab: Tab
    fields: ClassVar[dict[str, str]] = {}  # of the page's address: "step" (the row of a query) or "part" -> attribute

    @property
    def address(self) -> dict[str, gr.components.Component]:
        """What of the view stands in the page's address: field -> its component."""
        return {field: getattr(self, name) for field, name in self.fields.items()}


def offer(files: gr.File, note: gr.HTML, write: Callable[[Path], list[Path]]) -> Iterator[dict]:
    """What an event's handler yields: `files` with those that `write` puts into a folder, or a sentence."""
    try:
        with tempfile.TemporaryDirectory(prefix="atelier-") as folder:
            # Yielded, not returned: Gradio copies the files into its own cache before this folder goes.
            paths = [str(file) for file in write(Path(folder))]
            yield {files: gr.update(value=paths, visible=True), note: messages.status(f"{len(paths)} files.")}
    except Exception as error:
        yield {files: gr.update(visible=False), note: messages.failure(error)}
