"""Folders with whatever people have in them: text goes in, the rest is passed over and named."""

import bz2
import gzip
import io
import lzma
import os
import random
import socket
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coprlake.errors import UsageError
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.reading import Intake
from coprlake.intake.sources.binaries import why_binary
from coprlake.intake.sources.inputs import InputFile, list_inputs
from coprlake.intake.sources.splitting import plan_splits

LINE = "2026-11-16T03:55:00Z INFO {}\n"


def read(*inputs: Any, **options: Any) -> tuple[list[tuple[str, str]], IntakeReport]:
    """The sources and contents of all records, and the report."""
    with Intake(inputs, ReadOptions(**options)) as intake:
        rows = [(row["source"], row["content"]) for batch in intake for row in batch.to_pylist()]
    return rows, intake.report


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(**members: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def test_a_folder_of_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("in")
    folder.mkdir()
    (folder / "good.log").write_text(LINE.format("good"))
    (folder / "good.xz").write_bytes(lzma.compress(LINE.format("packed").encode()))
    (folder / "empty.log").touch()
    (folder / "picture").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (folder / "program").write_bytes(Path("/bin/sh").read_bytes())
    (folder / "noise").write_bytes(random.Random(1).randbytes(400))
    (folder / "noise.gz").write_bytes(gzip.compress(bytes(range(256))))
    (folder / "wide.log").write_text(LINE.format("wide ä"), "utf-16")
    (folder / "west.log").write_bytes(LINE.format("grüße").encode("latin-1"))
    (folder / "report.docx").write_bytes(zipped(**{"[Content_Types].xml": b"<x/>", "word.xml": b"<y/>"}))
    (folder / "logs.zip").write_bytes(zipped(**{"a/one.log": LINE.format("zip").encode(), "b.bin": b"\0\1"}))
    (folder / ".hidden").write_text("hidden\n")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
        rows, report = read("in")
    assert rows == [
        ("in/good.log", LINE.format("good")[:-1]),
        ("in/good.xz", LINE.format("packed")[:-1]),
        ("in/logs.zip/a/one.log", LINE.format("zip")[:-1]),
        ("in/west.log", LINE.format("gr��e")[:-1]),
        ("in/wide.log", LINE.format("wide ä")[:-1]),
    ]
    assert report.binary == 6
    assert report.unreadable == 0
    told = "\n".join(report.warnings)
    for name in ("picture", "program", "noise", "noise.gz", "report.docx", "logs.zip/b.bin", "fifo", "socket", "loop"):
        assert f"in/{name}: passed over" in told, name


def test_an_unreadable_file_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(LINE.format(name))
    plain = Path.open

    def refusing(self: Path, *arguments: Any, **more: Any) -> Any:
        if self.name == "a.log":
            raise PermissionError(13, "Permission denied", str(self))
        return plain(self, *arguments, **more)

    monkeypatch.setattr(Path, "open", refusing)
    rows, report = read(tmp_path)
    assert [content for _, content in rows] == [LINE.format("b.log")[:-1]]
    assert report.unreadable == 1


def test_a_single_binary_file_is_refused_unless_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "core"
    file.write_bytes(b"text\0more\n")
    with pytest.raises(UsageError, match=r"core: this is binary, not text; --text reads it"):
        read(file)
    assert read(file, text=True)[0] == [(str(file), "text\0more")]
    with pytest.raises(UsageError, match="binary"):
        list(Intake(["-"], stdin=io.BytesIO(b"\0\0\0")))
    (tmp_path / "a.log").write_text("a\n")
    assert len(read(file, tmp_path / "a.log")[0]) == 1, "one of several is passed over"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_encodings_with_zero_bytes_are_text_if_they_are_named(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.log").write_bytes(LINE.format("wide").encode(encoding))
    assert read(tmp_path, encoding=encoding)[0][0][1].endswith("INFO wide")
    if encoding != "utf-32":
        assert "--encoding" in read(tmp_path)[1].warnings[0]


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=300))
def test_text_is_never_binary(text: str) -> None:
    magics = ("GIF8", "%PDF-", "MZ", "7z", "Rar!", "OggS", "ID3", "wOF", "Obj", "ORC", "ARROW1", "SQLite")
    assert text.startswith(magics) or why_binary(text.encode(), ReadOptions()) is None


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(200, 5000))
def test_random_bytes_are_binary(seed: int, size: int) -> None:
    assert why_binary(random.Random(seed).randbytes(size), ReadOptions()) is not None


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".tar": bytes,
    ".tar.gz": gzip.compress,
    ".tgz": gzip.compress,
    ".tar.bz2": bz2.compress,
    ".tar.xz": lzma.compress,
    ".tar.zst": zstd,
    ".zip": bytes,
}


@pytest.mark.parametrize("ending", PACKERS)
def test_archives_are_read_member_by_member(tmp_path: Path, ending: str) -> None:
    text = LINE.format("inside").encode()
    made = {
        "deep/app.log": text * 3,
        "deep/app.log.1.gz": gzip.compress(text),
        "data.ndjson": b'{"message": "json", "status": 500}\n',
        "../../evil.log": text,
        "/root.log": text,
        "picture.gif": b"GIF89a" + bytes(50),
        "empty.log": b"",
        "inner.zip": zipped(**{"a.log": text}),
    }
    archive = tmp_path / f"logs{ending}"
    archive.write_bytes(PACKERS[ending](zipped(**made) if ending == ".zip" else tarred(**made)))
    rows, report = read(archive)
    sources = [source.removeprefix(f"{archive}/") for source, _ in rows]
    names = ["deep/app.log"] * 3 + ["deep/app.log.1.gz", "data.ndjson", "%2E%2E/%2E%2E/evil.log", "root.log"]
    assert sources == names
    assert report.binary == 2
    assert (report.files, report.unreadable) == (8, 0)
    assert report.bytes_read == archive.stat().st_size
    groups = plan_splits(list_inputs([archive]), ReadOptions(), 100)
    assert [file.path for group in groups for file in group] == [str(archive)], "an archive is never cut"


def test_links_and_devices_in_an_archive_are_passed_over(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
            info = tarfile.TarInfo(f"odd{kind!r}")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(link, "/etc/passwd")
    assert read(tmp_path)[0] == []


def test_encrypted_members_are_refused_by_name(tmp_path: Path) -> None:
    data = bytearray(zipped(**{"secret.log": b"secret\n", "open.log": b"open\n"}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(mark) + place] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    rows, report = read(tmp_path)
    assert [content for _, content in rows] == ["open"]
    assert report.unreadable == 1
    assert report.warnings[0].endswith("a.zip/secret.log: is encrypted, and was not read")


def test_bombs_and_broken_archives_end_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coprlake.intake.sources.archives.EXPANSION_FREE_BYTES", 1 << 20)
    (tmp_path / "bomb.zip").write_bytes(zipped(**{f"{i}.log": b"again and again\n" * 50_000 for i in range(8)}))
    whole = tarred(**{"a.log": b"first\n", "b.log": b"second\n" * 500})
    (tmp_path / "cut.tar").write_bytes(whole[: 512 + 512 + 512 + 700])
    (tmp_path / "cut.zip").write_bytes(zipped(**{"a.log": b"x\n"})[:-10])
    rows, report = read(tmp_path, max_expansion=2)
    assert 50_000 < len(rows) < 100_000
    assert report.unreadable >= 3
    told = "\n".join(report.warnings)
    assert "which looks like a bomb" in told
    assert "cut.zip: the archive is broken" in told
    assert "cut.tar" in told
    assert "first" in {content for _, content in rows}


def test_a_large_binary_is_not_cut_into_ranges(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"a line\n" * 100 + b"\0" + b"a line\n" * 5000)
    files = list_inputs([tmp_path])
    groups = plan_splits(files, ReadOptions(), 1000)
    assert [[InputFile(**vars(file)) for file in group] for group in groups] == [files]
