"""What the Translate tab asks of the library: translations, tables of hypotheses, which words belong together."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from transformer.insight import interpret
from transformer.insight.intervene import Continuation
from transformer.options import Sampling, SearchOptions
from ui import figures, serving
from ui.services import Services
from ui.translate.view import CurrentTranslation

READ_BACK = "read back"
SEARCHES = [
    ("Beam search", "beam"),
    ("Beam search, read back", READ_BACK),
    ("Greedy", "greedy"),
    ("Sampling", "sampling"),
]
MAX_CHARACTERS = 5000
MAX_HYPOTHESES = 20  # at once: memory grows with them
MAX_SENTENCES = 12  # sentences whose words are all shown with their partners; of a longer text it is the chosen one's


def sampling_options(temperature: float, top_k: float | None, seed: float | None) -> Sampling:
    """How a sampling draws, from what the page's fields hold; an empty one counts as 0."""
    return Sampling(float(temperature), int(top_k or 0), int(seed or 0))


def check_size(text: str, beam: int, n_best: int = 1) -> None:
    """Raises ValueError with one sentence for an empty text and for more than this page does at once."""
    if not text or not text.strip():
        raise ValueError("There is nothing to translate yet; enter a sentence.")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"The text has {len(text):,} characters and this page takes {MAX_CHARACTERS:,} at once; shorten it."
        )
    for what, number in (("beam", beam), ("number of translations", n_best)):
        if not 1 <= int(number) <= MAX_HYPOTHESES:
            raise ValueError(f"The {what} has to be from 1 to {MAX_HYPOTHESES}, but is {number}.")


def translate_text(services: Services, text: str, pair: str, *how: Any, **options: Any) -> Any:
    """Translate a text of the page; arguments as of `translate_in_parts`. Returns a Translation."""
    *_, whole = translate_in_parts(services, text, pair, *how, **options)
    return whole


def translate_in_parts(
    services: Services,
    text: str,
    pair: str,
    beam: int,
    alpha: float | None,
    n_best: int,
    model: str | None = None,
    search: str = "beam",
    draws: Sampling | None = None,
    quick: bool = False,
) -> Iterator[Any]:
    """Translate a text of the page, a long one part after part. pair: "en-de".

    alpha: length penalty; None or below 0 = the model's own. model: a key of `services.translator`; search: "beam",
    "read back" (a beam ranked by the way back, too), "greedy" (a beam of one) or "sampling" (n_best draws, as `draws`
    says); quick: as in `Translator.translate`.

    Yields a Translation with at most `n_best` hypotheses of the text up to each part; the last is that of all of it.
    Raises ValueError for an empty text, one that is too long for the page, and whatever the translator refuses.
    """
    check_size(text, beam, n_best)
    if search not in [key for _, key in SEARCHES]:
        raise ValueError(f"There is no search {search!r}; choose beam, read back, greedy or sampling.")
    beam, n_best = (1 if search == "greedy" else int(beam)), int(n_best)
    sampling = (draws or Sampling()) if search == "sampling" else None
    source, _, target = str(pair).partition("-")
    began = time.perf_counter()
    options = SearchOptions(
        beam=beam,
        alpha=None if alpha is None or alpha < 0 else float(alpha),
        n_best=n_best if sampling else min(n_best, beam),
        sampling=sampling,
        quick=bool(quick),
        read_back=search == READ_BACK,
    )
    for translation in services.translator(model or None).translate_parts(text, source, target, options):
        yield translation
    serving.log_run("translation", {pair: time.perf_counter() - began}, tokens=len(translation.tokens))


def hypothesis_rows(sentence: Any) -> list[list[Any]]:
    """The n-best table: rank, text, score (log-probability over the length penalty), log-probability, tokens, and the
    log-probability of the way back where it was read back.
    """
    return [
        [
            rank,
            hypothesis.text,
            round(float(hypothesis.score), 3),
            round(float(hypothesis.logprob), 3),
            len(hypothesis.tokens),
            None if hypothesis.back is None else round(float(hypothesis.back), 3),
        ]
        for rank, hypothesis in enumerate(sentence.hypotheses, start=1)
    ]


def word_partners(services: Services, current: CurrentTranslation) -> list[dict]:
    """The words of every sentence of the text with their partners, by the last layer's cross-attention, for the page.

    Sentences that were copied without the model have none. shown.attention is that of the chosen sentence, or None.
    """
    sentences, links = current.translation.sentences, []
    for number in range(len(sentences)) if len(sentences) <= MAX_SENTENCES else [current.sentence]:
        attention = current.attention
        if number != current.sentence:
            is_copy = not sentences[number].ids
            attention = (
                None if is_copy else services.translator(current.model).attend(current.translation, sentence=number)
            )
        if attention is not None:
            last = attention.cross.shape[0] - 1
            columns = interpret.alignment(attention.cross, last, attention.source_tokens)
            links.append(figures.word_links(attention.source_tokens, attention.target_tokens, columns))
    return links


def whole_text(current: CurrentTranslation) -> str:
    """The translated text with the chosen translation of the sentence that is looked at."""
    text, place = current.translation.text, 0
    for number, sentence in enumerate(current.translation.sentences):
        best = sentence.hypotheses[0].text
        place = max(text.find(best, place), place)
        if number == current.sentence:
            return text[:place] + current.output.text + text[place + len(best) :]
        place += len(best)
    return text


def first_pieces(tokens: Sequence[str]) -> list[int]:
    """For every word of a translation the number of its first piece; tokens with </s>, as in an Attention."""
    places = figures.merge_words(tokens)[1]
    firsts = [places.index(word) for word in sorted(set(places))]
    return firsts[:-1]


def with_continuation(current: CurrentTranslation, continuation: Continuation) -> CurrentTranslation:
    """A copy in which what a search made of a beginning is one more translation of the sentence, and the chosen one."""
    sentence = current.entry
    ids = continuation.candidates[0].ids
    if ids in sentence.ids:
        return replace(current, hypothesis=sentence.ids.index(ids))
    longer = replace(sentence, ids=[*sentence.ids, ids], hypotheses=[*sentence.hypotheses, continuation.hypotheses[0]])
    sentences = list(current.translation.sentences)
    sentences[current.sentence] = longer
    translation = replace(current.translation, sentences=sentences)
    return replace(current, translation=translation, hypothesis=len(sentence.ids))
