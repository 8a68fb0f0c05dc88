"""Which files are meant: single ones, folders, globs, and standard input."""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from coprlake.errors import NotFoundError, UsageError
from coprlake.intake.sources.table_folders import refuse_listed, refuse_tables_above

STDIN = "-"
STDIN_SOURCE = "<stdin>"
"""The source of records from standard input, which a file is hardly called."""
_STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Pipes that a shell has opened already (``<(zcat a.gz)``): these may be read like a file."""


@dataclass(frozen=True)
class InputFile:
    """One file to read, or a range of its bytes.

    Attributes:
        path: where it is; ``-`` is standard input.
        source: what its records have as their source unless the options say otherwise: the path as it was given, in
            a folder the folder as given and the file's path in it, so that no two files share it.
        size: bytes on disk; None where there is no end to be known.
        modified: when it was written last, in seconds since 1970; None for a stream.
        start: the first byte to read. What is not 0 begins a record of a file that is not compressed.
        end: the byte behind the last one to read; None for all there are.
        format: what was found out about the file beforehand; counts where the options leave it open.
        skip: bytes of its decompressed content to leave out, since they were read before; behind them a record begins.
        prefix: bytes to read instead of them: a mark of the encoding, the first line of a table.
        after: the digest of what was read before (`coprlake.intake.sources.contents`); without it nothing is left out.
        after_size: how many bytes that were; the file has to begin with them when it is read.
        known: the numbers of members of an archive that were read before.
        known_in: which file on disk that archive is (`identity_of`); in another one nothing is known.
        hashed_from: where the part of a file begins for whose hash the reader of this range cares; None for `start`.
    """

    path: str
    source: str
    size: int | None
    modified: float | None
    start: int = 0
    end: int | None = None
    format: str | None = None
    skip: int = 0
    prefix: bytes = b""
    after: bytes = b""
    after_size: int = 0
    known: frozenset[int] = frozenset()
    known_in: tuple[int, ...] = ()
    hashed_from: int | None = None

    @property
    def length(self) -> int | None:
        """Bytes on disk that this input covers; None for a stream."""
        last = self.size if self.end is None else self.end
        return None if last is None else max(0, last - self.start)

    @property
    def is_first(self) -> bool:
        """Whether this is the whole file, or the first range of it that is read."""
        return self.start == 0 or self.hashed_from == 0

    @property
    def name(self) -> str:
        """The path, and which bytes of it are meant if not all."""
        if self.start == 0 and self.end is None:
            return self.path
        return f"{self.path} (from byte {self.start} to {'the end' if self.end is None else self.end})"


@dataclass
class Walk:
    """How folders are looked through, and what was passed over.

    Attributes:
        recursive: also take the files in folders of folders.
        follow_links: also take what symbolic links inside a folder lead to outside of it.
        skipped: paths of pipes, devices and dangling links.
        links: paths of links that lead outside, and were not followed.
    """

    recursive: bool = True
    follow_links: bool = False
    skipped: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def leads_outside(self, path: str, root: str) -> bool:
        """Whether a path lies outside of a folder, of which it is a part by its name; then it is noted."""
        real = os.path.realpath(path)
        if self.follow_links or real == root or real.startswith(root.rstrip("/") + "/"):
            return False
        self.links.append(path)
        return True


def list_inputs(
    inputs: Sequence[str | PathLike[str]], walk: Walk | None = None, *, recursive: bool = True
) -> list[InputFile]:
    """The files that `inputs` name, in their order; those of a folder or glob sorted, each file once.

    Of a folder everything is taken that is a file and not hidden. A link that is named itself is followed; one inside
    of a folder is if it stays inside, or if the walk says so. `recursive` counts where no walk is given. A folder or
    glob that has no files is an error, as a path that is not there, and as one that leads into a table of Delta,
    Iceberg or Hudi; a single file of a table may be named.
    """
    if isinstance(inputs, str | PathLike):
        inputs = [inputs]
    if not inputs:
        raise UsageError("nothing to read; name files, folders or globs, or - for standard input")
    walk = walk or Walk(recursive)
    found: dict[str, InputFile] = {}
    for given in inputs:
        for file in _expand(os.fspath(given), walk):
            found.setdefault(file.path if file.path == STDIN else os.path.abspath(file.path), file)  # noqa: PTH100
    return list(found.values())


def is_one_file(inputs: Sequence[str | PathLike[str]]) -> bool:
    """Whether the inputs are a single file, or standard input, that is named itself."""
    given = [inputs] if isinstance(inputs, str | PathLike) else list(inputs)
    return len(given) == 1 and (
        os.fspath(given[0]) == STDIN or (not Path(given[0]).is_dir() and Path(given[0]).exists())
    )


def _expand(given: str, walk: Walk) -> Iterator[InputFile]:
    if given == STDIN:
        yield InputFile(STDIN, STDIN_SOURCE, None, None)
    elif Path(given).is_dir():
        yield from _of_folder(given, walk)
    elif os.path.lexists(given):
        yield _single(given)
    elif glob.has_magic(given):
        yield from _of_glob(given, walk)
    else:
        raise NotFoundError(_not_there(given))


def _not_there(given: str) -> str:
    parent = Path(given).parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    return f"{given}: no such file or folder ({parent} exists); check the path, or quote a glob"


def _single(given: str) -> InputFile:
    try:
        status = Path(given).stat()
    except FileNotFoundError as error:
        raise NotFoundError(f"{given}: the link points to {Path(given).readlink()}, which is not there") from error
    except OSError as error:
        raise UsageError(f"{given}: cannot be read: {error.strerror}") from error
    if not os.access(given, os.R_OK):
        raise UsageError(f"{given}: no permission to read it")
    if given.startswith(_STREAMS) and not stat.S_ISREG(status.st_mode):
        return InputFile(given, STDIN_SOURCE if given == "/dev/stdin" else given, None, None)
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(
            f"{given}: expected a file or folder, found {_kind(status.st_mode)}; "
            "to read it, redirect it to standard input and name -"
        )
    return InputFile(given, given, status.st_size, status.st_mtime)


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "something else")


def _regular(path: str) -> InputFile | None:
    """The file unless it is none: what stands in a folder without being a file was not asked for by name."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return InputFile(path, path, status.st_size, status.st_mtime) if stat.S_ISREG(status.st_mode) else None


def _of_folder(folder: str, walk: Walk) -> Iterator[InputFile]:
    files: list[InputFile] = []
    linked: set[str] = set()
    refuse_tables_above(folder, [folder])
    root, links_before = os.path.realpath(folder), len(walk.links)
    seen = {root}
    for parent, folders, names in os.walk(folder, followlinks=walk.follow_links):
        refuse_listed(folder, parent, folders, names)
        folders[:] = sorted(name for name in folders if walk.recursive and not name.startswith("."))
        folders[:] = [name for name in folders if _is_entered(os.path.join(parent, name), root, walk, seen)]  # noqa: PTH118
        paths = [os.path.join(parent, name) for name in sorted(names) if not name.startswith(".")]  # noqa: PTH118
        for path in paths:
            file = _regular(path)
            if file is None:
                walk.skipped.append(path)
            elif not (os.path.islink(path) and walk.leads_outside(path, root)):  # noqa: PTH114
                files.append(file)
            if walk.follow_links:
                linked.add(os.path.dirname(os.path.realpath(path)))  # noqa: PTH120
    refuse_tables_above(folder, sorted(linked))
    if not files:
        hint = "" if walk.recursive else "; its folders are not searched without the recursive option"
        if len(walk.links) > links_before:
            hint = "; links that lead outside of it are not followed unless asked for (--follow-links)"
        raise NotFoundError(f"{folder}: the folder has no files to read (hidden ones do not count){hint}")
    yield from sorted(files, key=lambda file: file.path)


def _is_entered(path: str, root: str, walk: Walk, seen: set[str]) -> bool:
    """Whether to look into a folder; where links are followed each folder is looked into once, so that loops end."""
    if not walk.follow_links:  # then `os.walk` enters no link
        return not (os.path.islink(path) and walk.leads_outside(path, root))  # noqa: PTH114
    real = os.path.realpath(path)
    if real in seen:
        return False
    seen.add(real)
    return True


def _of_glob(pattern: str, walk: Walk) -> Iterator[InputFile]:
    inner_root = os.path.realpath(_glob_root(pattern))
    count = 0
    matching = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (relative patterns stay relative)
    paths = [path for path in matching if not walk.leads_outside(path, inner_root)]
    refuse_tables_above(pattern, dict.fromkeys(os.path.dirname(path) for path in paths))  # noqa: PTH120
    for path in paths:
        inside = [path]
        if Path(path).is_dir():
            if "**" in pattern or not walk.recursive:
                continue  # ``**`` names each file already
            inside = [file.path for file in _of_folder(path, walk)] if os.listdir(path) else []  # noqa: PTH208
        for file in filter(None, map(_regular, inside)):
            count += 1
            yield file
    if not count:
        raise NotFoundError(f"{pattern}: no file matches; the pattern is relative to {Path.cwd()}")


def _glob_root(pattern: str) -> str:
    """The longest part of the pattern in front that is no pattern."""
    root = Path(pattern)
    while glob.has_magic(str(root)):
        root = root.parent
    return str(root)
