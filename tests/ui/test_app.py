"""The operator's options, and what a public Space may do whatever the command line says."""

from types import SimpleNamespace

import pytest

import app
from training.start import PUBLIC, Limits


@pytest.fixture
def started(monkeypatch):
    """`started(words)` runs app.py with them and returns the services it made; nothing is served."""
    for name in ("SPACE_ID", "SYSTEM", app.TRAINING_VARIABLE, app.RELEASED_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("training.memory.keep_memory", lambda: None)
    made = []
    monkeypatch.setattr(
        "ui.page.build", lambda services: made.append(services) or SimpleNamespace(launch=lambda **options: None)
    )

    def run(*words):
        app.main([str(word) for word in words])
        return made[-1]

    return run


def test_a_page_for_this_machine_alone_is_local_and_one_for_others_is_not(started):
    assert started().local and started().training == Limits()
    assert not started("--host", "0.0.0.0").local and not started("--no-local").local
    assert started("--host", "0.0.0.0").training is None  # others may train only where the operator says so
    assert started("--host", "0.0.0.0", "--training", "limited").training == PUBLIC
    assert started("--host", "0.0.0.0", "--local").local
    assert started("--training", "off").training is None and started("--training", "limited").training == PUBLIC


def test_a_public_space_trains_only_by_its_environment_and_reads_no_folders(started, monkeypatch):
    monkeypatch.setenv("SPACE_ID", "somebody/atelier")
    services = started("--local", "--training", "on")
    assert services.training is None and not services.local
    monkeypatch.setenv(app.TRAINING_VARIABLE, "1")
    assert started().training == PUBLIC and all(
        (PUBLIC.at_once, PUBLIC.runs, PUBLIC.steps, PUBLIC.minutes, PUBLIC.megabytes)
    )


def test_released_folders_are_named_by_option_or_environment(started, monkeypatch, tmp_path, capsys):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv(app.RELEASED_VARIABLE, str(tmp_path / "two"))
    services = started("--released", f"paper={tmp_path / 'one'}")
    assert services.releases == {"paper": tmp_path / "one", "two": tmp_path / "two"}
    with pytest.raises(SystemExit):
        started("--released", tmp_path / "three")
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_said_at_once_in_a_sentence(device, monkeypatch, capsys):
    from training import devices

    monkeypatch.setattr(devices, "present_devices", lambda: ["cpu"])
    with pytest.raises(SystemExit):
        app.main(["--device", device])
    assert f"No {device.upper()} device was found; choose the device 'cpu' or 'auto'." in capsys.readouterr().err
