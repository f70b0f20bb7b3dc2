"""Word pieces in words: what a reader sees instead of the vocabulary's marks, and what a query does."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from transformer.insight import interpret
from transformer.insight.intervene import Decoding
from transformer.text.languages import language_name
from transformer.tokenizer import is_language_token
from transformer.translator import Attention, Translator

QUERIES = {"cross": "the word being chosen", "encoder": "the text", "decoder": "the word being chosen"}
KEYS = {"cross": "the text", "encoder": "the text", "decoder": "the translation so far"}
WITHOUT_ENDS = ", without start and end"
NAMES = {"<s>": "(start)", "</s>": "(end)", "<pad>": "(padding)"}


def number_choices(count: int) -> list[tuple[str, int]]:
    """Choices of layers or heads: read from 1, counted from 0."""
    return [(str(n + 1), n) for n in range(count)]


def place_choices(names: Iterable[str]) -> list[tuple[str, int]]:
    """Choices of tokens or queries, numbered, because a token may come twice: read from 1, counted from 0."""
    return [(f"{n + 1} · {name}", n) for n, name in enumerate(names)]


def plain(token: str) -> str:
    """A word piece without the vocabulary's mark: a piece that goes on with a word begins with a hyphen."""
    if token in NAMES:
        return NAMES[token]
    if is_language_token(token):
        return f"(to {language_name(token.strip('<>')[1:])})"
    if token.startswith("▁"):
        return token[1:] or "␣"
    return f"‑{token}" if token[:1].isalnum() else token


def tokens_html(tokens: Sequence[str], more: str = "") -> str:
    """HTML of some word pieces, one behind the other, and what stands after them."""
    return f'<span translate="no">{" ".join(f"<code>{escape(plain(token))}</code>" for token in tokens)}{more}</span>'


def query_names(attention: Attention, kind: str) -> list[str]:
    """What each query of a kind of attention does: "after Tier, choosing über", in the encoder "reading animal"."""
    rows, _ = interpret.labels(attention, kind)
    if kind == "encoder":
        return [f"reading {plain(row)}" for row in rows]
    return [f"after {plain(read)}, choosing {plain(row)}" for read, row in zip(attention.decoder_tokens, rows)]


def axes(kind: str) -> tuple[str, str]:
    """Names of the two axes of a kind of attention."""
    return f"queries: {QUERIES[kind]}", f"keys: {KEYS[kind]}"


def head_title(kind: str, layer: int, head: int | str, without_ends: bool = False) -> str:
    """What a map is called, for example "Cross attention, layer 4, mean over heads"."""
    names = {
        "mean": "mean over heads",
        "max": "largest over heads",
        "rollout": "through the rollout of the encoder" if kind == "cross" else "rollout of the layers up to it",
    }
    name = f"head {head + 1}" if isinstance(head, int) else names.get(head, "")
    return f"{kind.capitalize()} attention, layer {layer + 1}, {name}" + WITHOUT_ENDS * without_ends


def alternatives(translator: Translator, decoding: Decoding, step: int) -> list[dict[str, Any]]:
    """The likeliest tokens of one step for the page: token, text, probability and whether it is the chosen one."""
    forbidden_ids = translator.forbidden_ids()
    options = [(token, probability) for token, probability in decoding.top[step] if token not in forbidden_ids]
    texts = translator.labels([token for token, _ in options], decoding.stand_ins)
    return [
        {"token": token, "text": plain(text), "probability": probability, "chosen": token == decoding.labels[step]}
        for (token, probability), text in zip(options, texts)
    ]
