"""VITON-HD: high-resolution virtual try-on, stage by stage.

from vton import TryOn
result = TryOn.from_pretrained("tryon-lite").run("person.jpg", "garment.jpg")
result.pictures()["result"]          # (H0, W0, 3) uint8
"""

__all__ = ["InputError", "STAGES", "TryOn", "TryOnResult"]


def __getattr__(name):  # importing the package alone stays cheap
    if name in ("TryOn", "TryOnResult", "STAGES"):
        from vton import pipeline

        return getattr(pipeline, name)
    if name == "InputError":
        from vton.inputs.photo import InputError

        return InputError
    raise AttributeError(f"module 'vton' has no attribute '{name}'")
