"""What the Translate tab offers to programs: `/translate`, `/attend` and `/ablate`."""

from typing import Any

import gradio as gr

from transformer.insight import interpret
from transformer.insight.contributions import contributions
from transformer.insight.lenses import decoder_lens, logit_lens
from transformer.options import DEFAULTS, SearchOptions
from ui import endpoints
from ui.services import Services
from ui.translate.languages import model_for
from ui.translate.work import sampling_options, translate_text


class Api:
    """The endpoints, on top of the page's services."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def publish(self) -> None:
        """Add the endpoints to the current Blocks."""
        gr.api(self.translate, api_name="translate", concurrency_id="translate")
        gr.api(self.attend, api_name="attend", concurrency_id="translate")
        gr.api(self.lens, api_name="lens", concurrency_id="translate")
        gr.api(self.ablate, api_name="ablate", concurrency_id="translate")

    @endpoints.endpoint
    def translate(
        self,
        text: str,
        pair: str = "en-de",
        beam: int = DEFAULTS.beam,
        alpha: float = -1.0,
        n_best: int = 1,
        model: str = "",
        search: str = "beam",
        temperature: float = 1.0,
        top_k: int = 0,
        seed: int = 0,
        quick: bool = False,
    ) -> dict[str, Any]:
        """Translate a text with the page's Transformer.

        Args:
            text: the text; line breaks are kept
            pair: source and target language, for example en-de
            beam: beam size, 1 is greedy search
            alpha: length penalty, 0 to 2; below 0 the one that suits the model in these languages
            n_best: hypotheses to return for each sentence, at most the beam size; those that read the same come once
            model: a model of the page's list, by its key; empty for one that has these languages
            search: beam, read back (the beam ranked by the way back, too), greedy or sampling (n_best random draws)
            temperature: of sampling, above 0
            top_k: sampling draws among so many likeliest word pieces; 0 among all
            seed: of sampling
            quick: multiply in 8 bits, where the server's processor is made for it

        Returns:
            text: the translation; sentences: for every sentence its tokens and its hypotheses with scores; back is the
                log-probability of the source given a hypothesis that was read back, else null
        """
        key = model_for(self.services, pair, model)
        how = search, sampling_options(temperature, top_k, seed), quick
        translation = translate_text(self.services, text, pair, beam, alpha, n_best, key, *how)
        return {
            "text": translation.text,
            "sentences": [
                {
                    "source": sentence.source_text,
                    "hypotheses": [
                        {
                            "text": h.text,
                            "tokens": list(h.tokens),
                            "score": float(h.score),
                            "logprob": float(h.logprob),
                            "back": h.back,
                        }
                        for h in sentence.hypotheses
                    ],
                }
                for sentence in translation.sentences
            ],
        }

    @endpoints.endpoint
    def attend(
        self,
        text: str,
        pair: str = "en-de",
        kind: str = "cross",
        layer: int = 1,
        head: int = 0,
        beam: int = DEFAULTS.beam,
        without_ends: bool = False,
        model: str = "",
    ) -> dict[str, Any]:
        """Translate one sentence and return one of its attention maps.

        Args:
            text: one sentence; of a longer text the first is taken
            pair: source and target language, for example en-de
            kind: cross, encoder or decoder
            layer: layer, from 1
            head: head, from 1; 0 is the mean over heads, -1 the largest over heads, -2 the rollout over layers
            beam: beam size, 1 is greedy search
            without_ends: leave out start and end of the sentence; rows are normalised again
            model: a model of the page's list, by its key; empty for one that has these languages

        Returns:
            translation: the text; rows: query tokens; columns: key tokens; weights: one list of weights a row, each
            row sums to 1 (not so for the largest over heads)
        """
        key = model_for(self.services, pair, model)
        translation = translate_text(self.services, text, pair, beam, None, 1, key)
        weights = self.services.translator(key).attend(translation)
        combinations: dict[int, int | str] = {0: interpret.MEAN, -1: interpret.MAX, -2: interpret.ROLLOUT}
        which = combinations.get(int(head), int(head) - 1)
        part = interpret.attention_map(weights, kind, int(layer) - 1, which, without_ends)
        return {
            "translation": translation.sentences[0].hypotheses[0].text,
            "rows": part.rows,
            "columns": part.columns,
            "weights": part.weights.tolist(),
        }

    @endpoints.endpoint
    def ablate(self, text: str, pair: str = "en-de", beam: int = DEFAULTS.beam, model: str = "") -> dict[str, Any]:
        """Translate one sentence and tell what switching off each single head changes.

        Args:
            text: one sentence; of a longer text the first is taken
            pair: source and target language, for example en-de
            beam: beam size, 1 is greedy search
            model: a model of the page's list, by its key; empty for one that has these languages

        Returns:
            translation: the text; logprob: its log-probability; encoder, decoder, cross: the change of the
            log-probability without each head, a list of heads for each layer
        """
        key = model_for(self.services, pair, model)
        translation = translate_text(self.services, text, pair, beam, None, 1, key)
        logprob, changes = interpret.ablation(self.services.translator(key), translation)
        best = translation.sentences[0].hypotheses[0].text
        return {"translation": best, "logprob": logprob, **{kind: changes[kind].tolist() for kind in interpret.KINDS}}

    @endpoints.endpoint
    def lens(
        self, text: str, pair: str = "en-de", kind: str = "logit", beam: int = DEFAULTS.beam, model: str = ""
    ) -> dict[str, Any]:
        """Translate one sentence and tell what the layers of the model know of it.

        Args:
            text: one sentence; of a longer text the first is taken
            pair: source and target language, for example en-de
            kind: logit (what each decoder layer would say), encoder (what each encoder layer knows), contributions
            beam: beam size, 1 is greedy search
            model: a model of the page's list, by its key; empty for one that has these languages

        Returns:
            translation: the text; tokens: of the translation; logit: layers with the likeliest word, its probability
            and the rank of the chosen one at every step; encoder: translations; contributions: how much of each token
            comes from the source and from the prefix, rows together sum to 1
        """
        key = model_for(self.services, pair, model)
        translation = translate_text(self.services, text, pair, beam, None, 1, key)
        return lens_answer(self.services.translator(key), translation, pair, kind, int(beam))


def lens_answer(translator: Any, translation: Any, pair: str, kind: str, beam: int) -> dict[str, Any]:
    """What `/lens` answers. Raises ValueError for a kind that does not exist."""
    sentence = translation.sentences[0]
    answer: dict[str, Any] = {"translation": sentence.hypotheses[0].text}
    if kind == "logit":
        lens = logit_lens(translator, translation)
        words = [[step[0] for step in layer] for layer in lens.top_tokens]
        shares = lens.top_probabilities[..., 0].tolist()
        return {**answer, "tokens": lens.tokens, "words": words, "probabilities": shares, "ranks": lens.ranks.tolist()}
    if kind == "encoder":
        source, _, target = pair.partition("-")
        read = decoder_lens(translator, translation, 0, 0, source, target, SearchOptions(beam))
        return {**answer, "encoder": [one.text for one in read]}
    if kind == "contributions":
        parts = contributions(translator, translation)
        shares = {"source": parts.source.tolist(), "prefix": parts.prefix.tolist()}
        return {**answer, "tokens": parts.tokens, "source_tokens": parts.source_tokens, **shares}
    raise ValueError(f"There is no lens {kind!r}; choose logit, encoder or contributions.")
