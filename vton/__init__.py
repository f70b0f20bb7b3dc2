"""VITON-HD: high-resolution virtual try-on, stage by stage.

from vton import TryOn
result = TryOn.from_pretrained("tryon-lite").run("person.jpg", "garment.jpg")
result.pictures()["result"]          # (H0, W0, 3) uint8
"""

from training import lazy_names

__all__ = ["InputError", "STAGES", "TryOn", "TryOnResult"]
__getattr__ = lazy_names(
    __name__, TryOn="pipeline", TryOnResult="pipeline", STAGES="pipeline", InputError="inputs.photo"
)
