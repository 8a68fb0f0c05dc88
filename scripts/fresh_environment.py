"""Builds source archive and wheel from this checkout, and tries them in an empty environment, as a user would.

Used by the test of the installation and by ``python -m benchmarks.first_contact``. Nothing here reads the packages of
the environment that runs it.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
CONSTRAINTS: Final = ROOT / "constraints.txt"
PATIENCE_SECONDS: Final = 900.0
_SOURCES: Final = (
    *("src", "scripts/wheel_backend.py"),
    *("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "constraints.txt"),
)
_LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.nbi", "*.nbc", "*.pyc", "*.bundle")
_INSTALL: Final = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2")
_BACKEND: Final = "import sys; sys.path.insert(0, 'scripts'); import wheel_backend as b\n"
_BUILD: Final = _BACKEND + "print(getattr(b, 'build_' + sys.argv[1])(sys.argv[2]))"
_NEEDED: Final = _BACKEND + "print(*b.get_requires_for_build_wheel())"


class Environment:
    """A virtual environment with nothing in it, and commands that see nothing but it: no checkout, and no Java."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        _run([sys.executable, "-m", "venv", str(folder)], folder.parent, plain_environment())

    @property
    def packages(self) -> Path:
        """The folder with the installed packages."""
        [found] = (self.folder / "lib").glob("python*/site-packages")
        return found

    def install(self, *what: str) -> None:
        """Install packages, in the tested versions."""
        self.python(*_INSTALL, "-c", str(CONSTRAINTS), *what)

    def python(self, *arguments: str, cwd: Path | None = None, variables: dict[str, str] | None = None) -> str:
        """What Python prints in this environment; an exit code other than 0 is an error."""
        return self.run("python", *arguments, cwd=cwd, variables=variables)

    def run(
        self, program: str, *arguments: str, cwd: Path | None = None, variables: dict[str, str] | None = None
    ) -> str:
        """What an installed program prints; an exit code other than 0 is an error."""
        command = [str(self.folder / "bin" / program), *arguments]
        return _run(command, cwd or self.folder, {**self.variables, **(variables or {})})

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of a user who has only this."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return plain_environment() | {"PATH": str(self.folder / "bin"), "HOME": str(home)}

    def disk_bytes(self) -> dict[str, int]:
        """The disk space that each installed package takes, by the name of its folder; in blocks, as `du` counts."""
        found: dict[str, int] = {}
        for path in self.packages.rglob("*"):
            if path.is_file() and not path.is_symlink():
                name = path.relative_to(self.packages).parts[0]
                found[name] = found.get(name, 0) + path.stat().st_blocks * 512
        return found


def plain_environment() -> dict[str, str]:
    """The variables of this process, without those that would lead back to the checkout or change what is measured."""
    unwanted = ("PYTHON", "COPRLAKE", "JAVA", "SPARK", "VIRTUAL_ENV", "NUMBA", "COVERAGE")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
    if "PIP_CACHE_DIR" not in kept:  # the home of an environment is its own, the cache of pip everybody's
        kept["PIP_CACHE_DIR"] = str(Path(kept.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pip")
    config = Path.home() / ".config" / "pip" / "pip.conf"
    if "PIP_CONFIG_FILE" not in kept and config.exists():
        kept["PIP_CONFIG_FILE"] = str(config)
    return kept


def build(scratch: Path) -> tuple[Path, Path]:
    """Build the source archive of this checkout, and from that archive, unpacked, the wheel; return both."""
    tools = Environment(scratch / "tools")
    tools.install(*tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"])
    tools.install(*tools.python("-c", _NEEDED, cwd=copied_sources(scratch / "asked")).splitlines()[-1].split())
    archive = build_one(tools, "sdist", copied_sources(scratch / "sources"), scratch / "built")
    with tarfile.open(archive) as tar:
        tar.extractall(scratch / "unpacked", filter="data")
    [unpacked] = (scratch / "unpacked").iterdir()
    return archive, build_one(tools, "wheel", unpacked, scratch / "built")


def build_one(tools: Environment, kind: str, tree: Path, out: Path, variables: dict[str, str] | None = None) -> Path:
    """Build a ``wheel`` or an ``sdist`` of a tree of sources with the tools of an environment."""
    out.mkdir(parents=True, exist_ok=True)
    name = tools.python("-c", _BUILD, kind, str(out), cwd=tree, variables=variables).splitlines()[-1]
    return out / name


def copied_sources(folder: Path) -> Path:
    """Copy what the package is built of, without anything that was compiled."""
    folder.mkdir()
    for name in _SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=_LEFT_OUT)
        elif (ROOT / name).exists():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def _run(command: Sequence[str], cwd: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout
