"""The source files that a compiled kernel depends on.

A kernel contains the kernels that it calls and the constants that it uses, also those of other modules. Numba's cache
checks only the file that defines a kernel, so after an upgrade it would silently run old code. The
digest here covers that file and every module of coprlake that it imports, directly or indirectly: when one of these
files changes, the kernel is compiled again. Changes elsewhere do not matter.
"""

import hashlib
import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent
_PACKAGE: Final[Traversable] = _FOLDER if _FOLDER.is_dir() else files("coprlake")  # or it is in an archive
_IMPORT: Final = re.compile(rb"^\s*(?:from|import)\s+coprlake((?:\.\w+)*)", re.MULTILINE)


@cache
def digest_of(file: str) -> str:
    """A digest that changes with any source that the kernels in `file` depend on.

    Raises:
        OSError: the sources cannot be read.
    """
    total = hashlib.blake2b(digest_size=16)
    for name in sorted(closure(file)):
        total.update(name.encode() + b"\0" + _source(name)[0])
    return total.hexdigest()


def closure(file: str) -> set[str]:
    """The file, and the files of all modules of coprlake that it imports, directly or indirectly.

    Names are relative to the package; for a file outside it, the path.
    """
    found: set[str] = set()
    path = Path(file)
    waiting = [path.relative_to(_FOLDER).as_posix() if path.is_relative_to(_FOLDER) else file]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _source(name)[1]
    return found


@cache
def _source(name: str) -> tuple[bytes, list[str]]:
    """The digest of a file, and the files that it imports."""
    file = Path(name) if Path(name).is_absolute() else _PACKAGE.joinpath(*name.split("/"))
    content = file.read_bytes()
    modules = {below.decode().strip(".") for below in _IMPORT.findall(content)}
    names = [found for below in sorted(modules) for found in _files_of(below.replace(".", "/"))]
    return hashlib.blake2b(content, digest_size=16).digest(), names


def _files_of(below: str) -> list[str]:
    """The file of a module; for a package all its files, because an import of it may mean any of them."""
    if below and _PACKAGE.joinpath(f"{below}.py").is_file():
        return [f"{below}.py"]
    folder = _PACKAGE.joinpath(below) if below else _PACKAGE
    inside = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    return [f"{below}/{name}".strip("/") for name in inside if name.endswith(".py")]
