"""OPUS-MT (Tiedemann and Thottingal 2020), one model of the Hub for each direction: which there are, and fetching one.

They are larger than what is shipped and were trained on far more text; `transformer.marian` reads them.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

from transformer import marian

MODELS = {
    f"Helsinki-NLP/opus-mt-{source}-{target}": (source, target)
    for source, target in (("en", "de"), ("de", "en"), ("en", "fr"), ("fr", "en"))
}
MEGABYTES = 300  # of a model, about
SECONDS = 0.5  # between two reports of a download


def _in_cache(name: str) -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}"


def is_here(name: str) -> bool:
    """True if all files of the model are in this machine's cache."""
    return any(
        all((folder / file).is_file() for file in marian.FILES)
        and any((folder / file).is_file() for file in marian.WEIGHTS)
        for folder in (_in_cache(name) / "snapshots").glob("*")
    )


def available_models() -> dict[str, str]:
    """Name -> what a list of models says of it: those that are here, and those that may be fetched."""
    from huggingface_hub import constants

    labels = {}
    for name in MODELS:
        if is_here(name):
            labels[name] = f"{label(name)}, on this machine"
        elif not constants.HF_HUB_OFFLINE:
            labels[name] = f"{label(name)}, downloads about {MEGABYTES} MB"
    return labels


def label(name: str) -> str:
    """What a model is called on the page: OPUS-MT and its direction."""
    return f"OPUS-MT {'-'.join(MODELS[name])}"


def fetch(name: str) -> Iterator[float]:
    """Downloads a model into this machine's cache; yields the megabytes so far.

    Raises `ValueError` with one sentence if there is no connection. A download that is left alone goes on.
    """
    errors: list[ValueError] = []

    def work() -> None:
        try:
            marian.download(name)
        except ValueError as error:
            errors.append(error)

    worker = threading.Thread(target=work, name=f"fetch {name}", daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(SECONDS)
        yield _megabytes(_in_cache(name) / "blobs")
    if errors:
        raise errors[0]


def _megabytes(folder: Path) -> float:
    total = 0
    for file in folder.glob("*"):
        try:
            total += file.stat().st_size
        except OSError:  # renamed as it became whole
            continue
    return total / 1e6
