"""Which sources a compiled kernel is made of.

A kernel contains the kernels that it calls and the constants that it uses, also those of other modules. Numba's cache
looks only at the file in which a kernel is written, so after an upgrade it would run old code without a word. The
digest here covers that file and everything of coprlake that it imports, directly or through others: whatever changes in
any of these files, the kernel is compiled again. Changes elsewhere do not matter.
"""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parent
_IMPORT: Final = re.compile(rb"^\s*(?:from|import)\s+coprlake((?:\.\w+)*)", re.MULTILINE)


@cache
def digest_of(file: str) -> str:
    """A text that changes when one of the sources changes that the kernels in `file` are made of.

    Raises:
        OSError: the sources cannot be read, because they are in an archive, say.
    """
    total = hashlib.blake2b(digest_size=16)
    for path in sorted(_closure(Path(file))):
        total.update(path.as_posix().removeprefix(_ROOT.as_posix()).encode() + b"\0" + _source(path)[0])
    return total.hexdigest()


def _closure(file: Path) -> set[Path]:
    """The file, and those of all modules of coprlake that it imports directly or through others."""
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _source(path)[1]
    return found


@cache
def _source(path: Path) -> tuple[bytes, list[Path]]:
    """The digest of a file, and the files that it imports."""
    content = path.read_bytes()
    modules = {below.decode() for below in _IMPORT.findall(content)}
    files = [file for below in sorted(modules) for file in _files_of(below)]
    return hashlib.blake2b(content, digest_size=16).digest(), files


def _files_of(below: str) -> list[Path]:
    """The file of a module; of a package all that are in it, since an import of it may mean any of them."""
    path = _ROOT.joinpath(*below.strip(".").split("."))
    file = path.with_suffix(".py")
    return [file] if below and file.is_file() else list(path.glob("*.py"))
