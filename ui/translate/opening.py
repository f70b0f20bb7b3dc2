"""The sentence that the page opens with, translated and kept with its maps, so that nothing is computed for it.

`python -m ui.translate.opening` writes it anew, which is due whenever the weights of the default model change.
"""

import base64
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from transformer.insight.interpret import KINDS
from transformer.translate import DEFAULT_MODEL
from transformer.translator import Attention, Hypothesis, Sentence, Translation
from ui import theme
from ui.services import Services
from ui.translate.view import CurrentTranslation
from ui.translate.visit import Visit
from ui.translate.work import translate_text

TEXT = "The animal didn't cross the street because it was too tired."
PAIR = "en-de"
EXAMPLES = (
    TEXT,
    "I am a student.",
    "Can you help me?",
    "Two young girls are playing soccer in the park.",
    "A woman in a red dress is reading a book on a bench.",
)
FILE = theme.STATIC / "translate" / "opening.json"
RUN_ONLY = ("trace", "encoding", "segment", "masked")  # of a Sentence: what only the run that made it needs


def record(services: Services) -> dict[str, Any]:
    """The translation of `TEXT` by the page's default model and its attention, as JSON values."""
    translation = translate_text(services, TEXT, PAIR, 4, 0.6, 4)
    attention = services.translator().attend(translation)
    for sentence in translation.sentences:
        sentence.encoding = None  # it holds a weak reference, which cannot be copied
    values = asdict(translation)
    for sentence in values["sentences"]:
        for name in RUN_ONLY:
            sentence.pop(name)
    values.pop("trace")
    weights = {kind: _encode(getattr(attention, kind)) for kind in KINDS}
    tokens = {name: getattr(attention, name) for name in ("source_tokens", "target_tokens", "decoder_tokens")}
    return {
        "model": services.translation_model,
        "pair": PAIR,
        "translation": values,
        "attention": {**weights, **tokens},
    }


def load(services: Services) -> CurrentTranslation | None:
    """What is kept, as if it had just been translated; None if the page's default model is another one."""
    value = json.loads(FILE.read_text(encoding="utf-8"))
    if value["model"] != services.translation_model:
        return None
    translation = value["translation"]
    translation["hypotheses"] = [Hypothesis(**one) for one in translation["hypotheses"]]
    translation["sentences"] = [
        Sentence(**{**one, "hypotheses": [Hypothesis(**h) for h in one["hypotheses"]], "trace": None})
        for one in translation["sentences"]
    ]
    attention = {**value["attention"], **{kind: _decode(value["attention"][kind]) for kind in KINDS}}
    return CurrentTranslation(
        Translation(**translation, trace=None), attention=Attention(**attention), pair=value["pair"]
    )


def is_opening(visit: Visit) -> bool:
    """True if a visit asks for nothing else than what is kept."""
    return visit.text in ("", TEXT) and visit.pair in (None, PAIR) and visit.model in (None, DEFAULT_MODEL)


def _encode(weights: np.ndarray) -> dict[str, Any]:
    return {"shape": weights.shape, "float32": base64.b64encode(weights.astype("<f4").tobytes()).decode("ascii")}


def _decode(value: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(value["float32"]), "<f4").reshape(value["shape"]).copy()


def main() -> None:
    """Make the file again with the default model."""
    FILE.write_text(json.dumps(record(Services(device="cpu")), ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{FILE}: {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
