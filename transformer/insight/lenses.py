"""What the layers know: the logit lens on the decoder, and DecoderLens on the encoder.

Axes: L layers, T target tokens, k listed words.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer.attention import key_mask
from transformer.insight.trace import record
from transformer.model import Transformer
from transformer.options import DEFAULTS, SearchOptions
from transformer.search import TransformerDecoder
from transformer.threads import threads_for
from transformer.translator import Hypothesis, Translation, Translator

MAX_WORDS = 5  # words listed for each step and layer


@dataclass
class LogitLens:
    """What each decoder layer would have said at every step; row 0 is what enters the first layer."""

    tokens: list[str]  # T labels: the token that was chosen at each step, the last one </s>
    top_tokens: list[list[list[str]]]  # (L + 1, T, k) labels, the likeliest first
    top_probabilities: np.ndarray  # (L + 1, T, k) float32 in [0, 1]
    probabilities: np.ndarray  # (L + 1, T) float32 in [0, 1], of the token that was chosen
    ranks: np.ndarray  # (L + 1, T) int64, from 1 = likeliest, of the token that was chosen
    entropies: np.ndarray  # (L + 1, T) float32, nats

    @property
    def settling_row(self) -> np.ndarray:
        """(T,) int64, the first row from which on the chosen token stays the likeliest; L + 1 where it never is."""
        first = np.where(self.ranks == 1, 0, np.arange(1, len(self.ranks) + 1)[:, None])
        return first.max(0)


@torch.inference_mode()
def logit_lens(
    translator: Translator, translation: Translation, hypothesis: int = 0, sentence: int = 0, most: int = MAX_WORDS
) -> LogitLens:
    """The logit lens (nostalgebraist 2020): every decoder layer's output through the model's own output matrix.

    This Transformer is post-norm: each layer ends in a LayerNorm of its own, so what a layer hands on has the scale
    that the output matrix expects, and no final norm has to be borrowed. The last row is the model's own distribution.

    Args:
        translator: the model and its vocabulary.
        translation: what was translated; it is read again in one teacher-forced pass.
        hypothesis: which translation of the sentence, counted from 0.
        sentence: which sentence of the text, counted from 0.
        most: how many of the likeliest words to list, at least 1.

    Raises `ValueError` if there is no such hypothesis or sentence.
    """
    model = translator.model
    trace = record(translator, translation, hypothesis, sentence)
    logprobs = [model.project(state).float().log_softmax(-1) for state in trace.decoder_states]
    labels = trace.pair.labels[:, None]
    tops = [one.topk(min(most, one.shape[-1])) for one in logprobs]
    names = translation.sentences[sentence].stand_ins
    top = [[translator.labels(row, names) for row in best.indices.tolist()] for best in tops]

    def numbers(parts: list[Tensor]) -> np.ndarray:
        return torch.stack(parts).cpu().numpy()

    return LogitLens(
        tokens=translator.output_labels(trace.pair.labels.tolist(), translation.sentences[sentence]),
        top_tokens=top,
        top_probabilities=numbers([best.values.exp() for best in tops]),
        probabilities=numbers([one.gather(-1, labels)[:, 0].exp() for one in logprobs]),
        ranks=numbers([1 + (one > one.gather(-1, labels)).sum(-1) for one in logprobs]),
        entropies=numbers([-(one.exp() * one).sum(-1) for one in logprobs]),
    )


def with_encoder_layers(model: Transformer, count: int) -> Transformer:
    """The same weights with an encoder that ends after `count` layers; 0 leaves embeddings and positions.

    Raises `ValueError` if the encoder has fewer layers.
    """
    if not 0 <= count <= len(model.encoder):
        raise ValueError(f"The encoder has {len(model.encoder)} layers; it cannot end after {count}.")
    shallow = model.twin()
    shallow.encoder = shallow.encoder[:count]
    return shallow


@torch.inference_mode()
def decoder_lens(
    translator: Translator,
    translation: Translation,
    hypothesis: int = 0,
    sentence: int = 0,
    source: str | None = None,
    target: str | None = None,
    options: SearchOptions = DEFAULTS,
) -> list[Hypothesis]:
    """DecoderLens (Langedijk et al. 2023, arXiv 2310.03686): the decoder reads each encoder layer instead of the last.

    The layers below the last are the rows of one batch, so that the search over all of them is a single one.

    Args:
        translator: the model and its vocabulary.
        translation: what was translated.
        hypothesis: which translation of the sentence, counted from 0.
        sentence: which sentence of the text, counted from 0.
        source, target: languages of the translation, by default the model's first pair.
        options: of the search; those of the translation, to compare like with like.

    Returns L + 1 translations of the sentence: from embeddings and positions alone, then from each layer; the last one
        is the translation itself.
    Raises `ValueError` if there is no such hypothesis or sentence, or the model does not have these languages.
    """
    entry, _ = translation.sentence_and_ids(sentence, hypothesis)
    source, target = translator.check_pair(source, target)
    options = translator.search_options(source, target, replace(options, n_best=1, quick=False))
    model, config = translator.model, translator.model.config
    src = torch.tensor([entry.source_ids], device=translator.device)
    read = torch.stack(record(translator, translation, hypothesis, sentence).encoder_states[:-1])
    src = src.expand(len(read), -1)
    rows, most = src.tolist(), translator.longest(entry.source_ids)
    with threads_for(model, len(rows) * options.beam):
        decoder = TransformerDecoder(
            model, src, key_mask(src, config.pad), read, constraint=translator.constraint(rows)
        )
        results = translator.search(decoder, [most] * len(rows), options)
    hypotheses = []
    for count, result in enumerate(results):
        reader = copy.copy(translator)
        reader.model = with_encoder_layers(model, count)  # whose attention says where what was taken out belongs
        hypotheses.append(reader.present(entry, result, source, target).hypotheses[0])
    return [*hypotheses, entry.hypotheses[hypothesis]]
