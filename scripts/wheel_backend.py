"""Builds the wheel with the kernels in it, so that nothing is compiled after it is installed.

The build backend of this project: setuptools, and after it one step. The wheel that setuptools made is unpacked, its
kernels are compiled for a common baseline of processors (`coprlake.native.building`), and the bundle is added.
Source archives and editable installations do without. So does a wheel where no bundle can be built: the log says
why, and the first command of such an installation builds one for its machine.
"""

import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import build_editable as build_editable
from setuptools.build_meta import build_sdist as build_sdist
from setuptools.build_meta import get_requires_for_build_editable as get_requires_for_build_editable
from setuptools.build_meta import get_requires_for_build_sdist as get_requires_for_build_sdist
from setuptools.build_meta import prepare_metadata_for_build_editable as prepare_metadata_for_build_editable
from setuptools.build_meta import prepare_metadata_for_build_wheel as prepare_metadata_for_build_wheel

_NEEDED = {"lazy_loader", "numba", "numpy", "platformdirs", "pyarrow"}
"""What the modules with kernels import, and what compiles them."""
_BUNDLE = "coprlake/native/shipped.bundle"
_PLATFORMS = ("manylinux_2_17_x86_64", "musllinux_1_1_x86_64")
"""The code finds the few functions of a C library that it calls by name, and serves all versions of Python."""
_PATIENCE_SECONDS = 1800


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What has to be installed before `build_wheel` is called."""
    needed: list[str] = build_meta.get_requires_for_build_wheel(config_settings)
    if _obstacle() is None:
        project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
        needed += [each for each in project["dependencies"] if re.split(r"[^\w-]", each)[0] in _NEEDED]
    return needed


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build the wheel, with a bundle if that is possible, and return its name."""
    plain = Path(wheel_directory, build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))
    try:
        return _with_bundle(plain).name
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        _say(f"this wheel has no compiled kernels, so the first command after installing it compiles them: {error}")
        return plain.name


def _obstacle() -> str | None:
    """Why no bundle can be built here."""
    if os.environ.get("COPRLAKE_KERNEL_BUNDLE") == "0":
        return "COPRLAKE_KERNEL_BUNDLE is 0"
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return f"not on {sys.platform} {platform.machine()}"
    return None if sys.implementation.name == "cpython" else f"not with {sys.implementation.name}"


def _with_bundle(plain: Path) -> Path:
    """Replace a wheel by one that has a bundle."""
    if obstacle := _obstacle():
        raise RuntimeError(obstacle)
    with tempfile.TemporaryDirectory(prefix="coprlake-wheel-") as name:
        folder = Path(name)
        with zipfile.ZipFile(plain) as archive:
            archive.extractall(folder)
        _say("compiling kernels, which takes about a minute")
        _compile(folder)
        full = plain.with_name(plain.name.replace("-none-any.whl", f"-none-{'.'.join(_PLATFORMS)}.whl"))
        _add(plain, full, (folder / _BUNDLE).read_bytes())
    plain.unlink()
    return full


def _compile(folder: Path) -> None:
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-P", "-m", "coprlake.native.building", "--baseline"],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        raise RuntimeError((done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1])


def _add(plain: Path, full: Path, bundle: bytes) -> None:
    """Write a wheel again, with the bundle, and with the tags and the list of files that follow from it."""
    fresh = full.with_suffix(".part")
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as new:
        members = old.infolist()
        record = next(member for member in members if member.filename.endswith(".dist-info/RECORD"))
        lines = []
        for member in [*members, zipfile.ZipInfo(_BUNDLE, record.date_time)]:
            if member is record:
                continue
            if member.filename == _BUNDLE:
                member.external_attr, member.compress_type = record.external_attr, zipfile.ZIP_DEFLATED
                content = bundle
            else:
                content = old.read(member)
            if member.filename.endswith(".dist-info/WHEEL"):
                content = _tagged(content.decode()).encode()
            new.writestr(member, content)
            lines.append(f"{member.filename},sha256={_digest(content)},{len(content)}\n")
        new.writestr(record, "".join([*lines, f"{record.filename},,\n"]))
    fresh.replace(full)


def _tagged(text: str) -> str:
    """The description of a wheel, for these platforms only."""
    kept = [line for line in text.splitlines() if line and not line.startswith(("Tag:", "Root-Is-Purelib:"))]
    return "\n".join([*kept, "Root-Is-Purelib: false", *(f"Tag: py3-none-{each}" for each in _PLATFORMS), "", ""])


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def _say(text: str) -> None:
    print(f"coprlake: {text}", file=sys.stderr, flush=True)
