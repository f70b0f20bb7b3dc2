"""A file is whole or as it was."""

import os

import pytest

from training.files import write_atomic


def test_text_and_bytes_arrive_and_nothing_is_left_beside_them(tmp_path):
    file = tmp_path / "new" / "a.json"
    write_atomic(file, "größer\n")
    assert file.read_bytes() == "größer\n".encode()
    write_atomic(file, b"\x00\xff")
    assert file.read_bytes() == b"\x00\xff" and os.listdir(file.parent) == ["a.json"]


def test_a_refusing_disk_leaves_the_old_content(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    write_atomic(file, "old")

    def full(path, content):
        with open(path, "wb") as half:
            half.write(content[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(file, "new")
    assert file.read_text() == "old" and os.listdir(tmp_path) == ["a.json"]
