"""The About tab: which models are loaded, their cards, licences and limits."""

import json
import re
from pathlib import Path

import gradio as gr

from training import assets
from ui import theme
from ui.kit import View

FAILURES = "## Known failures"
CARD = "prose-card notranslate"  # cards stand in English, whatever the page speaks


def parts(card: str) -> tuple[str, str, str]:
    """A card's first paragraph, what the model cannot do, and the rest, all Markdown; a part that it lacks is empty."""
    first, *sections = re.split(r"^(?=## )", card, flags=re.MULTILINE)
    failures = "".join(one for one in sections if one.startswith(FAILURES))
    rest = "".join(one for one in sections if not one.startswith(FAILURES))
    beginning, _, more = re.sub(r"^# .*\n", "", first).strip().partition("\n\n")
    return beginning, failures.removeprefix(FAILURES).strip(), f"{more}\n\n{rest}".strip()


def cards() -> list[tuple[str, str, float]]:
    """Name, card text (Markdown) and size of the weights in MB of every shipped model."""
    entries = []
    for name in assets.list_models():
        folder: Path = assets.model_dir(name)
        card = folder / "CARD.md"
        text = card.read_text(encoding="utf-8") if card.is_file() else "This model has no card."
        megabytes = sum(file.stat().st_size for file in folder.rglob("*.safetensors")) / 1e6
        entries.append((name, text, megabytes))
    return entries


class AboutTab(View):
    """The introduction, and the cards of the models; nothing happens here."""

    name = "about"
    title = "About"

    def build(self) -> None:
        """Makes the components."""
        gr.Markdown(theme.text("about/introduction"), elem_classes="prose-card")
        titles = json.loads(theme.read("about/titles.json"))
        for name, text, megabytes in cards():
            can, cannot, rest = parts(text)
            title = f"{titles[name]} · {name}" if name in titles else name  # a model that was put there has none
            with gr.Accordion(f"{title} · {megabytes:.1f} MB", open=False):
                gr.Markdown(f"### What it can do\n\n{can}", elem_classes=CARD)
                if cannot:
                    gr.Markdown(f"### What it cannot do\n\n{cannot}", elem_classes=CARD)
                if rest:
                    with gr.Accordion("Sizes, data, licence, commands and figures", open=False):
                        gr.Markdown(rest, elem_classes=CARD)
