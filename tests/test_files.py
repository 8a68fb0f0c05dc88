"""Folders: files are whole or not there, and errors name the file."""

import os
from pathlib import Path

import pytest
from pyarrow import fs

from coprlake.errors import CoprlakeError, NotFoundError, StorageError, UsageError
from coprlake.files import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder.of(tmp_path / "folder")


def test_paths_and_uris_name_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (str(tmp_path), tmp_path, f"file://{tmp_path}", ".", f"{tmp_path}/"):
        folder = Folder.of(given)
        assert folder.is_local
        assert Path(folder.root) == tmp_path
        assert Path(folder.uri) == tmp_path


def test_a_scheme_without_a_colon_is_a_folder() -> None:
    assert Folder.of("http//").is_local


@pytest.mark.parametrize("uri", ["", "nonsense://a"])
def test_what_is_no_folder_is_refused(uri: str) -> None:
    with pytest.raises(UsageError):
        Folder.of(uri)


def test_a_file_is_written_and_read(folder: Folder) -> None:
    folder.write("a/b/c.bin", [b"one", b"", b"two"])
    assert bytes(folder.data("a/b/c.bin")) == b"onetwo"
    assert folder.open("a/b/c.bin").read() == b"onetwo"
    assert folder.exists("a/b/c.bin")
    assert folder.exists("a/b")
    assert folder.exists()
    entry = folder.entry("a/b/c.bin")
    assert entry is not None
    assert (entry.name, entry.size_bytes) == ("a/b/c.bin", 6)
    assert entry.modified_ns == (Path(folder.root) / "a/b/c.bin").stat().st_mtime_ns
    assert folder.entry("a/b") is None
    assert folder.entry("nothing") is None


def test_an_empty_file(folder: Folder) -> None:
    folder.write("empty", [])
    assert bytes(folder.data("empty")) == b""


def test_a_file_is_replaced_whole(folder: Folder) -> None:
    folder.write("name", [b"old"])
    mapped = folder.data("name")
    folder.write("name", [b"new and longer"])
    assert bytes(mapped) == b"old"
    assert bytes(folder.data("name")) == b"new and longer"


def test_a_write_that_fails_leaves_the_old_file(folder: Folder) -> None:
    folder.write("name", [b"old"])

    def pieces() -> object:
        yield b"new"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        folder.write("name", pieces())  # type: ignore[arg-type]
    assert bytes(folder.data("name")) == b"old"
    assert [entry.name for entry in folder.list()] == ["name"]


def test_a_listing_is_sorted_and_relative(folder: Folder) -> None:
    for name in ("b", "a/2", "a/10", "c=1/x y", "ä/%20"):
        folder.write(name, [b"x"])
    assert [entry.name for entry in folder.list()] == sorted(["b", "a/2", "a/10", "c=1/x y", "ä/%20"])
    assert [entry.name for entry in folder.list("a")] == ["a/10", "a/2"]
    assert folder.list("nothing") == []


def test_removing_is_done_once_or_twice(folder: Folder) -> None:
    folder.write("a", [b"x"])
    folder.remove("a")
    folder.remove("a")
    assert not folder.exists("a")


def test_what_is_not_there_is_not_found(folder: Folder) -> None:
    with pytest.raises(NotFoundError, match="nothing"):
        folder.open("nothing")
    with pytest.raises(NotFoundError, match="nothing"):
        folder.data("nothing")


def test_errors_name_the_file(folder: Folder) -> None:
    folder.write("file", [b"x"])
    with pytest.raises(StorageError, match="file/inside"):
        folder.write("file/inside", [b"x"])
    with pytest.raises(CoprlakeError, match="file"):
        folder.data("file/inside")
    (Path(folder.root) / "directory").mkdir()
    with pytest.raises(StorageError, match="directory"):
        folder.data("directory")
    with pytest.raises(StorageError, match="directory"):
        folder.create("directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_without_permission_is_a_storage_error(folder: Folder) -> None:
    folder.write("file", [b"x"])
    Path(folder.root, "file").chmod(0)
    with pytest.raises(StorageError, match="permission"):
        folder.data("file")


def test_a_folder_that_is_not_local_is_read_and_written(tmp_path: Path) -> None:
    """The same through a file system that knows no maps and no syncs."""
    remote = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    folder = Folder(remote, "table", "mem://table")
    assert not folder.is_local
    folder.write("a/b", [b"one", b"two"])
    assert bytes(folder.data("a/b")) == b"onetwo"
    assert folder.open("a/b").read() == b"onetwo"
    assert [entry.name for entry in folder.list()] == ["a/b"]
    folder.sync("a/b")
    folder.remove("a/b")
    with pytest.raises(NotFoundError):
        folder.data("a/b")


def test_a_path_as_hadoop_writes_it_is_a_folder_of_this_machine(tmp_path: Path) -> None:
    for uri in (f"file:{tmp_path}", f"file://{tmp_path}", str(tmp_path)):
        folder = Folder.of(uri)
        assert folder.is_local
        assert folder.root == str(tmp_path)


def test_a_listing_follows_links_but_not_in_circles(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
        for link in ("a", "b", "c"):
            (tmp_path / name / link).symlink_to(tmp_path)
    (tmp_path / "again").symlink_to(tmp_path / "one")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    names = [entry.name for entry in Folder.of(tmp_path).list()]
    assert {"one/file", "two/file", "again/file"} <= set(names)
    assert not [name for name in names if "pipe" in name or "broken" in name]
    assert len(names) < 100
    assert [entry.name for entry in Folder.of(tmp_path).list("two")][-1] == "two/file"
    assert Folder.of(tmp_path / "nowhere").list() == []
