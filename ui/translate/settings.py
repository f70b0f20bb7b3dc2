"""Model, languages and search: what the visitor chooses before a translation."""

from typing import Any

import gradio as gr

from ui import theme
from ui.kit import QUICKLY
from ui.kit.dropdown import ChangingDropdown
from ui.services import Services
from ui.translate.languages import model_for, pair_choices
from ui.translate.work import READ_BACK, SEARCHES

LIKELIEST = 40  # pieces that sampling draws among at first; among all 8,000 it soon draws nonsense


class Settings:
    """The components of the settings, which `TranslateTab` places and wires."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def languages(self) -> None:
        """The pair of languages and what turns it round."""
        self.pair = theme.component(ChangingDropdown, "pair")
        self.swap = theme.component(gr.Button, "swap-languages")

    def model_and_search(self) -> None:
        """The model, and how it searches for a translation."""
        services = self.services
        with gr.Row():
            self.model = theme.component(
                gr.Dropdown,
                "translation-model",
                services.translators(),
                value=services.translation_model,
                info="Shipped with this page, a run of the Train tab, or OPUS-MT, downloaded once"
                + ("; or type a folder or a name like Helsinki-NLP/opus-mt-en-de." if services.local else "."),
                allow_custom_value=services.local,
            )
            self.search = theme.component(gr.Radio, "search", SEARCHES)
        with gr.Row(visible=True) as self.beam_row:
            self.beam = theme.component(gr.Slider, "beam")
            self.alpha = theme.component(gr.Slider, "alpha")
        with gr.Row(visible=False) as self.sampling_row:
            self._sampling()
        self.n_best = theme.component(gr.Slider, "count")
        self.quick = theme.component(gr.Checkbox, "quick")

    def _sampling(self) -> None:
        self.temperature = theme.component(gr.Slider, "temperature")
        self.top_k = theme.component(gr.Number, "top-k", LIKELIEST)
        self.seed = theme.component(gr.Number, "sampling-seed")

    @property
    def values(self) -> list:
        """The components whose values `translate_text` takes, in the order of its arguments."""
        search = [self.beam, self.alpha, self.n_best, self.model, self.search]
        return [self.pair, *search, self.temperature, self.top_k, self.seed, self.quick]

    def wire(self) -> None:
        """The events that concern nothing but the settings."""
        # A training may have written a checkpoint since the page was opened.
        self.model.focus(self.offer_checkpoints, None, self.model, api_name="checkpoints", **QUICKLY)
        rows = [self.beam_row, self.sampling_row, self.n_best]
        self.search.input(self.choose_search, self.search, rows, api_name="search", **QUICKLY)

    def offer_checkpoints(self):
        """The models that are there now."""
        return gr.update(choices=self.services.translators())

    def choose_search(self, search):
        """The settings of this way to search."""
        info = "How many to draw." if search == "sampling" else "At most as many as the beam is wide."
        return {
            self.beam_row: gr.update(visible=search in ("beam", READ_BACK)),
            self.sampling_row: gr.update(visible=search == "sampling"),
            self.n_best: gr.update(visible=search != "greedy", info=info),
        }

    def offer_pairs(self, model: str | None, favourite: str | None) -> dict:
        """The model's language pairs first, then those of others; the wanted pair is chosen if the model has it, and
        the length penalty that suits it.

        Raises ValueError with one sentence if there is no such model.
        """
        own = [key for _, key in pair_choices(self.services, model)]
        choices = pair_choices(self.services, model, others=True)
        pair = favourite if favourite in own else own[0]
        return {
            self.pair: gr.update(choices=choices, value=pair),
            self.alpha: self.services.length_penalty(model, pair),
        }

    def take_pair(self, pair: str, model: str | None) -> dict:
        """Choose a pair, the model that has it if the chosen one has not, and the length penalty that suits both.

        Raises ValueError if no model has it.
        """
        other = model_for(self.services, pair, model)
        updates = {self.pair: pair, self.alpha: self.services.length_penalty(other, pair)}
        return updates if other == (model or None) else {**updates, self.model: other}


def search_in_words(services: Services, model: str | None, search: str, *numbers: Any) -> str:
    """Which model and which search ran, in words. numbers: beam, alpha, temperature, top_k, seed and quick."""
    beam, alpha, temperature, top_k, seed, quick = numbers
    wide = f"beam search, {int(beam)} wide, length penalty {float(alpha):g}"
    how = {
        "beam": wide,
        READ_BACK: f"{wide}, read back",
        "greedy": "greedy search",
        "sampling": f"drawn at temperature {float(temperature):g}"
        + (f" among the {int(top_k)} likeliest" if top_k else " among all pieces")
        + f", seed {int(seed or 0)}",
    }[search]
    name = model or services.translation_model
    labels = {key: label for label, key in services.translators()}
    bits = " · in 8 bits" if quick and services.translator(model or None).int8_available() else ""
    return f"{labels.get(name, name)} · {how}{bits}"
