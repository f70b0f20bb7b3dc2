"""The Transformer of "Attention Is All You Need", from scratch: text in, translation and attention maps out."""

from training import lazy_names

__all__ = ["Attention", "Hypothesis", "Transformer", "TransformerConfig", "Translation", "Translator", "preset"]
__getattr__ = lazy_names(
    __name__,
    **dict.fromkeys(("Attention", "Hypothesis", "Translation", "Translator"), "translator"),
    Transformer="model",
    **dict.fromkeys(("TransformerConfig", "preset"), "config"),
)
