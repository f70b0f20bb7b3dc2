"""Zips that were made to do harm, and honest ones."""

import io
import stat
import struct
import zipfile

import pytest

from training.unpack import unpack


def make(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def refused(tmp_path, file, sentence, **limits):
    with pytest.raises(ValueError, match=sentence) as caught:
        unpack(file, tmp_path / "out" / "data", **limits)
    assert "\n" not in str(caught.value) and file.name in str(caught.value)
    assert not (tmp_path / "out" / "data").exists()
    assert [f.name for f in tmp_path.rglob("*") if f.is_file()] == [file.name]


def test_an_honest_zip(tmp_path):
    file = make(tmp_path / "a.zip", {"set/image/1.jpg": b"\xff" * 999, "set/train.txt": "1\n", "empty/": ""})
    assert unpack(file, tmp_path / "out") == 2
    assert (tmp_path / "out/set/image/1.jpg").read_bytes() == b"\xff" * 999
    with pytest.raises(ValueError, match="not empty"):
        unpack(file, tmp_path / "out")
    assert (tmp_path / "out/set/train.txt").read_text() == "1\n"


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/etc/evil.txt", "a/../../evil.txt", "C:/evil.txt", "..\\evil.txt", "a\\..\\b"]
)
def test_paths_that_lead_out(tmp_path, name):
    refused(tmp_path, make(tmp_path / "bad.zip", {"good.txt": "good", name: "evil"}), "leads out of its folder")


def test_links_bombs_and_crowds(tmp_path):
    file = tmp_path / "link.zip"
    with zipfile.ZipFile(file, "w") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    refused(tmp_path, file, "the link 'link'")
    file.unlink()
    refused(tmp_path, make(tmp_path / "bomb.zip", {"zeros": bytes(50 * 2**20)}), "grows .* times when unpacked")
    (tmp_path / "bomb.zip").unlink()
    refused(
        tmp_path,
        make(tmp_path / "many.zip", {f"{i}.txt": "x" for i in range(30)}),
        "30 files; at most 20",
        most_files=20,
    )
    (tmp_path / "many.zip").unlink()
    refused(
        tmp_path,
        make(tmp_path / "large.zip", {f"{i}.txt": "x" * 900 for i in range(30)}),
        "would unpack to",
        most_bytes=9000,
    )


def test_a_header_that_lies_about_the_size(tmp_path):
    """The directory says 10 bytes; what comes out is counted."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", b"ab" * 500_000)
    raw = bytearray(buffer.getvalue())
    for signature, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        at = raw.index(signature) + offset
        assert struct.unpack_from("<I", raw, at)[0] == 1_000_000
        struct.pack_into("<I", raw, at, 10)
    (tmp_path / "lie.zip").write_bytes(raw)
    refused(tmp_path, tmp_path / "lie.zip", "larger than the zip says|damaged")


def test_what_is_no_zip(tmp_path):
    file = tmp_path / "x.zip"
    for content in (b"", b"hello", make(tmp_path / "y.zip", {"a": "b" * 5000}).read_bytes()[:60]):
        (tmp_path / "y.zip").unlink(missing_ok=True)
        file.write_bytes(content)
        refused(tmp_path, file, "not a zip file")
    file.unlink()
    data = bytearray(make(tmp_path / "z.zip", {"a.txt": bytes(range(256)) * 20}).read_bytes())
    data[45] ^= 0xFF
    (tmp_path / "z.zip").write_bytes(data)
    refused(tmp_path, tmp_path / "z.zip", "damaged")
    (tmp_path / "z.zip").unlink()
    refused(tmp_path, make(tmp_path / "empty.zip", {}), "empty zip")


def test_an_entry_without_a_name_is_one_sentence(tmp_path):
    refused(tmp_path, make(tmp_path / "bad.zip", {"good.txt": "good", ".": "evil"}), "leads out of its folder")


def test_what_the_library_raises_becomes_a_sentence_and_nothing_is_left(tmp_path, monkeypatch):
    file = make(tmp_path / "a.zip", {"a.txt": "a"})
    for error in (IndexError("index"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "?"), RuntimeError("password")):

        def fail(*args, error=error):
            raise error

        monkeypatch.setattr("training.unpack._write", fail)
        refused(tmp_path, file, "is not a zip file, or is damaged")
