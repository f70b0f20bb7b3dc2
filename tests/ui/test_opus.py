"""OPUS-MT in the list of models: what is offered, and a download's progress."""

import threading

import pytest
from huggingface_hub import constants

from transformer import marian
from ui import opus
from ui.services import Services

NAME = "Helsinki-NLP/opus-mt-en-de"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the Hub's models."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(opus, "SECONDS", 0.02)
    return tmp_path


def put(cache, *names):
    """A snapshot with these files, as the Hub's client leaves it."""
    folder = cache / "models--Helsinki-NLP--opus-mt-en-de" / "snapshots" / "0123"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"x")


def test_what_is_offered_says_what_it_costs(cache, monkeypatch):
    assert (
        opus.available_models()[NAME] == "OPUS-MT en-de, downloads about 300 MB" and len(opus.available_models()) == 4
    )
    put(cache, *marian.FILES)
    assert not opus.is_here(NAME)  # its weights are still to come
    put(cache, marian.WEIGHTS[1])
    assert opus.is_here(NAME) and opus.available_models()[NAME] == "OPUS-MT en-de, on this machine"
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert list(opus.available_models()) == [NAME]


def test_a_download_tells_how_far_it_is(cache, monkeypatch):
    seen = threading.Event()

    def download(name):
        blobs = cache / "models--Helsinki-NLP--opus-mt-en-de" / "blobs"
        blobs.mkdir(parents=True)
        (blobs / "one.incomplete").write_bytes(bytes(2_000_000))
        assert seen.wait(20)
        put(cache, *marian.FILES, *marian.WEIGHTS)

    monkeypatch.setattr(marian, "download", download)
    lines = []
    for line in Services().fetch_translator(NAME):
        lines.append(line)
        if "2 of about 300 MB" in line:
            seen.set()
    assert seen.is_set() and lines[-1].startswith("Downloading OPUS-MT en-de: ")
    assert list(Services().fetch_translator(NAME)) == []  # it is kept
    assert list(Services().fetch_translator("everyday")) == []


def test_without_a_connection_it_is_one_sentence(cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *args, **options: 1 / 0)
    with pytest.raises(ValueError, match="could not be fetched; check the name and the connection"):
        list(Services().fetch_translator(NAME))


def test_its_languages_are_known_before_it_is_there(cache):
    services = Services()
    assert services.pairs(NAME) == [("en", "de")]
    assert (("OPUS-MT fr-en, downloads about 300 MB", "Helsinki-NLP/opus-mt-fr-en")) in services.translators()
