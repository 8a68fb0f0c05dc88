"""The bundle: machine code of the kernels in one file, which a process loads without Numba.

A bundle is used if its digest is right, this processor has every feature that it needs, and the interpreter and NumPy
lay out their objects as it expects. Of each module it is used only if the contents of all sources that the
module's kernels are made of are those it was built from. These are compared by content on every start, which takes
about a millisecond: a changed source never runs old code. What does not fit is ignored without a word, and Numba
compiles instead.

The layout of the file: magic, sizes of index and code, a digest of both, the index as JSON, the code in whole pages.
"""

import hashlib
import json
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from coprlake.kernel_sources import PACKAGE_FOLDER, content_digest
from coprlake.private_files import private_folder, read_private, replace_file

SWITCH: Final = "COPRLAKE_KERNEL_BUNDLE"
"""The environment variable that, set to 0, leaves kernels to Numba."""
SHIPPED: Final = PACKAGE_FOLDER / "native" / "shipped.bundle"
"""What a wheel brings, for a common baseline of processors."""

_MAGIC: Final = b"COPRKRN1"
_HEADER: Final = struct.Struct("<8sQQ32s")


@dataclass(frozen=True)
class Bundle:
    """A bundle that is sound and made for machines like this one."""

    index: dict[str, Any]
    code: bytes

    def entry_offset(self, module: str, name: str) -> int | None:
        """Where the function of a kernel begins, or None if the bundle does not have this version of it."""
        part = self.index["modules"].get(module)
        if part is None or name not in part["kernels"] or not self.is_current(module):
            return None
        return int(part["kernels"][name])

    @cache  # noqa: B019  # bundles live as long as the process
    def is_current(self, module: str) -> bool:
        """Whether all sources of a module's kernels are those that the bundle was built from."""
        sources = self.index["sources"]
        try:
            return all(content_digest(name) == sources[name] for name in self.index["modules"][module]["sources"])
        except OSError:
            return False

    __hash__ = object.__hash__


def write_bundle(file: Path, index: dict[str, Any], code: bytes) -> None:
    """Replace the file atomically; its folder is created."""
    described = json.dumps(index, separators=(",", ":")).encode()
    digest = hashlib.blake2b(described + code, digest_size=32).digest()
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, _HEADER.pack(_MAGIC, len(described), len(code), digest) + described + code)


def trusted_bytes(file: Path) -> bytes:
    """The content of a file that code is loaded from. In the package it is as safe as the sources beside it.

    Raises:
        OSError: it cannot be read, or somebody else may have written it.
    """
    return file.read_bytes() if file.is_relative_to(PACKAGE_FOLDER) else read_private(file)


def read_bundle(file: Path) -> Bundle | None:
    """The bundle in a file, or None if it is missing, damaged, made for other machines, or not trusted."""
    try:
        content = trusted_bytes(file)
        magic, index_bytes, code_bytes, digest = _HEADER.unpack_from(content)
    except (OSError, struct.error):
        return None
    body = memoryview(content)[_HEADER.size :]
    if magic != _MAGIC or len(body) != index_bytes + code_bytes:
        return None
    if hashlib.blake2b(body, digest_size=32).digest() != digest:
        return None
    index = json.loads(bytes(body[:index_bytes]))
    runs_here = index["machine"] == machine() and set(index["features"]) <= processor_features()
    return Bundle(index, bytes(body[index_bytes:])) if runs_here else None


def machine() -> str:
    """The platform that code is made for."""
    return f"{sys.platform}-{os.uname().machine}" if hasattr(os, "uname") else sys.platform


@cache
def processor_features() -> frozenset[str]:
    """What this processor can do, as Linux names it; empty where that is not known."""
    try:
        with Path("/proc/cpuinfo").open("rb", buffering=0) as file:
            lines = file.read(1 << 14).decode(errors="replace").splitlines()  # the first processor's
    except OSError:
        return frozenset()
    found = [line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))]
    return frozenset(found[0]) if found else frozenset()


def is_enabled() -> bool:
    """Whether kernels may come from a bundle in this process."""
    return (
        os.environ.get(SWITCH, "1") != "0"
        and os.environ.get("NUMBA_BOUNDSCHECK", "0") in ("", "0")
        and PACKAGE_FOLDER.is_dir()
    )


def places() -> Iterator[Path]:
    """Where a bundle for this machine may be: beside the sources, as a wheel brought it, and in the user's cache."""
    yield own_place()
    yield SHIPPED
    with suppress(OSError):  # there is no such cache
        yield cached_place()


def own_place() -> Path:
    """Where a bundle is built if the package's folder can be written to."""
    return PACKAGE_FOLDER / "__pycache__" / f"kernels-{_tag()}.bundle"


def cached_place() -> Path:
    """Where it is built otherwise.

    Raises:
        OSError: the user's cache is nowhere.
    """
    return private_folder() / f"kernels-{_tag(str(PACKAGE_FOLDER))}.bundle"


def _tag(*parts: str) -> str:
    known = [machine(), *sorted(processor_features()), *parts]
    return hashlib.blake2b("\0".join(known).encode(), digest_size=6).hexdigest()
