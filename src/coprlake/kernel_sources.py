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

PACKAGE_FOLDER: Final = Path(__file__).parent
"""In an archive, it is not a folder that can be read."""
_PACKAGE: Final[Traversable] = PACKAGE_FOLDER if PACKAGE_FOLDER.is_dir() else files("coprlake")
_NOT_COMPILED: Final = frozenset({"kernel_sources.py", "native/building.py", "native/bundle.py", "native/loading.py"})
"""What every kernel imports, but only finds and loads compiled code."""
_IMPORT: Final = re.compile(rb"^\s*(?:from|import)\s+coprlake((?:\.\w+)*)", re.MULTILINE)


@cache
def digest_of(file: str) -> str:
    """A digest that changes with any source that the kernels in `file` depend on.

    Raises:
        OSError: the sources cannot be read.
    """
    total = hashlib.blake2b(digest_size=16)
    for name in sorted(closure(file)):
        total.update(name.encode() + b"\0" + bytes.fromhex(content_digest(name)))
    return total.hexdigest()


def closure(file: str) -> set[str]:
    """The file, and the files of all modules of coprlake that it imports, directly or indirectly.

    Names are relative to the package; for a file outside it, the path.
    """
    found: set[str] = set()
    path = Path(file)
    waiting = [path.relative_to(PACKAGE_FOLDER).as_posix() if path.is_relative_to(PACKAGE_FOLDER) else file]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in _NOT_COMPILED:
            found.add(name)
            waiting += _imported_files(name)
    return found


@cache
def content_digest(name: str) -> str:
    """The digest of one file, named as in `closure`."""
    return hashlib.blake2b(_content(name), digest_size=16).hexdigest()


@cache
def _imported_files(name: str) -> list[str]:
    modules = {below.decode().strip(".") for below in _IMPORT.findall(_content(name))}
    return [found for below in sorted(modules) for found in _files_of(below.replace(".", "/"))]


def _content(name: str) -> bytes:
    return (Path(name) if Path(name).is_absolute() else _PACKAGE.joinpath(*name.split("/"))).read_bytes()


def _files_of(below: str) -> list[str]:
    """The file of a module; for a package all its files, because an import of it may mean any of them."""
    if below and _PACKAGE.joinpath(f"{below}.py").is_file():
        return [f"{below}.py"]
    folder = _PACKAGE.joinpath(below) if below else _PACKAGE
    inside = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    return [f"{below}/{name}".strip("/") for name in inside if name.endswith(".py")]
