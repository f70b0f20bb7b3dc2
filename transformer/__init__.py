"""The Transformer of "Attention Is All You Need", from scratch: text in, translation and attention maps out."""

__all__ = ["Attention", "Hypothesis", "Transformer", "TransformerConfig", "Translation", "Translator", "preset"]

_HOMES = {
    "Attention": "translator",
    "Hypothesis": "translator",
    "Translation": "translator",
    "Translator": "translator",
    "Transformer": "model",
    "TransformerConfig": "config",
    "preset": "config",
}


def __getattr__(name: str):  # noqa: ANN202
    # Names are looked up on first use, so that importing one small module does not load torch.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
