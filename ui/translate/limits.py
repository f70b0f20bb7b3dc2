"""What a model cannot do, by its stored checklist: the kinds of text of which less than 90 % come out right."""

from html import escape

import gradio as gr

from training.assets import list_models, model_dir
from transformer import checklist
from ui.figures import percent
from ui.kit import QUICKLY
from ui.services import Services

MAX_EXAMPLES = 2
UNKNOWN = "What this model gets wrong has not been counted: python -m transformer.evaluate --checklist all does it."


def limits(model: str, pair: str) -> str:
    """HTML for a model, by its key in `ui.services`, and a pair such as "en-de"."""
    rows = checklist.load_summary(model_dir(model)) if model in list_models() else []
    own = [row for row in rows if row["pair"] == pair and row["half"] == "card"]
    if not own:
        return f'<p class="hint">{escape(UNKNOWN)}</p>'
    right, of = sum(row["right"] for row in own), sum(row["of"] for row in own)
    items = "".join(_item(*kind) for kind in checklist.weak_kinds(rows, pair))
    weak = f"<ul>{items}</ul>" if items else ""
    return (
        f"<p>Of {of} short texts of {len(own)} kinds that users often report as mistranslated, {right} come out right "
        f"({percent(right / of)}). {'The kinds that it gets wrong most:' if weak else ''}</p>{weak}"
    )


def _item(kind: str, share: float, wrong: list[list[str]]) -> str:
    examples = "; ".join(f"“{escape(text)}” became “{escape(output)}”" for text, output in wrong[:MAX_EXAMPLES])
    return f"<li><strong>{escape(kind.replace('_', ' '))}</strong>: {percent(share)} right. {examples}.</li>"


class Limits:
    """The fold that shows them for the chosen model and pair."""

    def __init__(self, services: Services) -> None:
        self.services = services
        with gr.Accordion("What it cannot do", open=False, elem_id="limits-fold"):
            self.html = gr.HTML(self.of(None, "en-de"), elem_id="limits")

    def of(self, model: str | None, pair: str) -> str:
        """The HTML for what is chosen; None = the page's own model."""
        return limits(model or self.services.translation_model, pair)

    def wire(self, model: gr.Dropdown, pair: gr.Dropdown) -> None:
        """Follows the two choices."""
        for name, choice in (("model", model), ("pair", pair)):
            choice.change(self.of, [model, pair], self.html, api_name=f"limits_of_{name}", **QUICKLY)
