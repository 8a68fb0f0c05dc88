"""Builds the bundle: ``python -m coprlake.native.building``.

Numba compiles each kernel that Python code calls for the types that its annotations name; a small native function
around it takes Python's objects (`wrapping.py`). Several processes share the work: each takes the next kernel that
nobody has begun, and leaves the object in a folder. What cannot be built is left out, and compiled by Numba when it is
called. Objects are kept beside the bundle, so that the next build compiles only what has changed, and one that was
interrupted goes on where it was.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from coprlake.kernel_sources import PACKAGE_FOLDER, closure, content_digest
from coprlake.native.bundle import (
    SHIPPED,
    Bundle,
    cached_place,
    is_enabled,
    machine,
    own_place,
    places,
    processor_features,
    read_bundle,
    write_bundle,
)
from coprlake.native.entries import Sources
from coprlake.native.interpreter import SLOTS
from coprlake.native.linking import Image, UnsupportedObjectError

SUPPORTED_MACHINE: Final = "linux-x86_64"
BASELINE_CPU: Final = "x86-64-v3"
_BASELINE_FEATURES: Final = (  # as Linux names them
    *("abm", "avx", "avx2", "bmi1", "bmi2", "cx16", "f16c", "fma", "lahf_lm"),
    *("movbe", "popcnt", "sse4_1", "sse4_2", "ssse3", "xsave"),
)
_MOST_WORKERS: Final = 16
_WORKER_SECONDS: Final = 900
_SECONDS_ON_ONE_CORE: Final = 60


@dataclass
class Built:
    """What a build made: the kernels in the bundle, those left out with the reason, and those that are still missing.

    Kernels are missing if what compiled them ended early, for example for lack of memory. The next build tries again.
    """

    file: Path
    kernels: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def is_ready() -> bool:
    """Whether the kernels of all modules are in a bundle, as their sources are now."""
    found = [bundle for file in places() if (bundle := read_bundle(file)) is not None]
    if any(bundle.index["package_digest"] == _package_digest() for bundle in found):
        return True
    return all(any(_has(bundle, module, names) for bundle in found) for module, names in _entries().items())


def _has(bundle: Bundle, module: str, names: list[str]) -> bool:
    part = bundle.index["modules"].get(module)
    return part is not None and {*names} <= {*part["kernels"], *part["left_out"]} and bundle.is_current(module)


@cache
def _entries() -> dict[str, list[str]]:
    """The kernels that are built, by module."""
    return Sources(PACKAGE_FOLDER).entries


@cache
def _package_digest() -> str:
    """Of all sources: if none has changed, no kernel has, and nothing calls another one."""
    total = hashlib.blake2b(digest_size=16)
    for file in sorted(PACKAGE_FOLDER.rglob("*.py")):
        name = file.relative_to(PACKAGE_FOLDER).as_posix()
        total.update(f"{name}\0{content_digest(name)}\0".encode())
    return total.hexdigest()


def build_missing(announce: Callable[[int], None] | None = None) -> Built | None:
    """Build the bundle of this machine unless it is there; only one process at a time does.

    `announce` is told about how many seconds it takes.

    Raises:
        OSError: it cannot be written.
        SubprocessError: no kernel could be compiled.
    """
    if not is_enabled() or machine() != SUPPORTED_MACHINE or is_ready():
        return None
    file = _writable_place()
    if announce is not None:  # also if it is another process that builds it
        announce(5 + _SECONDS_ON_ONE_CORE // _worker_count())
    with _locked(file.with_suffix(".lock")):
        return None if is_ready() else build(file)


def build(file: Path, *, for_baseline: bool = False) -> Built:
    """Build a bundle of all kernels that Python code calls, and replace `file`.

    Raises:
        OSError: it cannot be written.
        SubprocessError: no kernel could be compiled; for the baseline, if one is missing.
    """
    jobs = [f"{module}:{name}" for module, names in _entries().items() for name in names]
    jobs.sort(key=lambda job: -len(_sources_of(_module_of(job))))  # those that take longest first
    with tempfile.TemporaryDirectory(prefix="coprlake-kernels-") as name:
        folder = Path(name)
        kept = None if for_baseline else file.with_suffix(".objects")
        _bring_objects(kept, folder, jobs)
        try:
            _run_workers(folder, [job for job in jobs if not (folder / job).exists()], for_baseline)
        finally:
            _keep_objects(kept, folder, jobs)
        built, image = _linked(folder, jobs, file)
        if built.missing and (for_baseline or not built.kernels):
            raise subprocess.SubprocessError(_last_words(folder) or f"{len(built.missing)} kernels are missing")
        code = image.finish()
        write_bundle(file, _index(built, image, for_baseline), code)
    return built


def _linked(folder: Path, jobs: list[str], file: Path) -> tuple[Built, Image]:
    """An image of the objects in the folder."""
    built, image = Built(file), Image(len(SLOTS))
    for job in sorted(jobs):
        reason = folder / f"{job}.error"
        try:
            image.add((folder / job).read_bytes())
            built.kernels.append(job)
        except UnsupportedObjectError as error:
            built.left_out[job] = str(error)
        except FileNotFoundError:
            if reason.exists():
                built.left_out[job] = reason.read_text()
            else:
                built.missing.append(job)
    return built, image


def _module_of(job: str) -> str:
    return job.partition(":")[0]


def _index(built: Built, image: Image, for_baseline: bool) -> dict[str, Any]:
    modules: dict[str, Any] = {}
    for job in sorted([*built.kernels, *built.left_out]):
        module, _, name = job.partition(":")
        part = modules.setdefault(module, {"sources": sorted(_sources_of(module)), "kernels": {}, "left_out": []})
        if job in image.symbols:
            part["kernels"][name] = image.symbols[job]
        else:
            part["left_out"].append(name)
    used = {name for part in modules.values() for name in part["sources"]}
    return {
        "machine": machine(),
        "features": sorted(_BASELINE_FEATURES if for_baseline else processor_features()),
        "package": "" if for_baseline else str(PACKAGE_FOLDER),
        "package_digest": "" if built.missing else _package_digest(),
        "slots": SLOTS,
        "externals": image.externals,
        "sources": {name: content_digest(name) for name in sorted(used)},
        "modules": modules,
    }


def _sources_of(module: str) -> set[str]:
    """What the objects of a module's kernels are made of: its sources, and those that wrap and link kernels."""
    own = PACKAGE_FOLDER.parent.joinpath(*module.split(".")).with_suffix(".py")
    return closure(str(own)) | closure(str(PACKAGE_FOLDER / "native" / "objects.py"))


# Objects of earlier builds


def _object_key(job: str) -> str:
    total = hashlib.blake2b(job.encode(), digest_size=16)
    for name in sorted(_sources_of(_module_of(job))):
        total.update(f"\0{name}\0{content_digest(name)}".encode())
    return total.hexdigest()


def _bring_objects(kept: Path | None, folder: Path, jobs: list[str]) -> None:
    """Put the objects that are still right into the folder."""
    if kept is None:
        return
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(kept) as archive:
        there = set(archive.namelist())
        for job in jobs:
            if (key := _object_key(job)) in there:
                (folder / job).write_bytes(archive.read(key))


def _keep_objects(kept: Path | None, folder: Path, jobs: list[str]) -> None:
    """Keep the objects that there are; if that fails, the next build takes longer."""
    if kept is None:
        return
    fresh = kept.with_name(f"{kept.name}.{os.getpid()}.tmp")
    with suppress(OSError):
        try:
            with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive:
                for job in jobs:
                    if (folder / job).exists():
                        archive.writestr(_object_key(job), (folder / job).read_bytes())
            fresh.replace(kept)
        finally:
            fresh.unlink(missing_ok=True)


def _writable_place() -> Path:
    own = own_place()
    with suppress(OSError):
        own.parent.mkdir(exist_ok=True)
        own.with_suffix(".lock").touch()
        return own
    place = cached_place()
    place.parent.mkdir(parents=True, exist_ok=True)
    for other in place.parent.glob("kernels-*.bundle"):
        bundle = read_bundle(other)
        if bundle is not None and not Path(bundle.index["package"]).is_dir():  # of an installation that is gone
            for file in (other, other.with_suffix(".objects"), other.with_suffix(".lock")):
                file.unlink(missing_ok=True)
    return place


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold a lock between processes. Where there are none, several build at the same time, which does no harm."""
    with file.open("a") as lock:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# Workers


def _worker_count() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST_WORKERS)


def _run_workers(folder: Path, jobs: list[str], for_baseline: bool) -> None:
    (folder / "jobs").write_text("\n".join(jobs))
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0", "NUMBA_BOUNDSCHECK": "0"}
    environment["PYTHONPATH"] = os.pathsep.join([str(PACKAGE_FOLDER.parent), os.environ.get("PYTHONPATH", "")])
    if for_baseline:
        environment |= {"NUMBA_CPU_NAME": BASELINE_CPU, "NUMBA_CPU_FEATURES": ""}
    command = [sys.executable, "-P", "-m", "coprlake.native.building", "--worker", str(folder), str(os.getpid())]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(min(_worker_count(), len(jobs))):
            with (folder / f"{number}.log").open("wb") as log:  # a session of its own: Ctrl-C ends it through us
                started.append(
                    subprocess.Popen(
                        command,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
        for process in started:
            process.wait(_WORKER_SECONDS)
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait()


def _last_words(folder: Path) -> str:
    """What a worker printed last."""
    printed = [line for log in sorted(folder.glob("*.log")) for line in log.read_text(errors="replace").splitlines()]
    return printed[-1] if printed else ""


def _work(folder: Path, builder: int) -> None:
    """Compile kernels until none is left that nobody has begun, or the process that waits for them is gone."""
    from coprlake.native.objects import ObjectWriter

    writer = ObjectWriter(Sources(PACKAGE_FOLDER).written)
    for job in (folder / "jobs").read_text().split():
        if os.getppid() != builder:
            return
        try:
            (folder / f"{job}.begun").touch(exist_ok=False)
        except FileExistsError:
            continue
        module, _, name = job.partition(":")
        try:
            made = writer.object_of(getattr(import_module(module), name), job)
        except Exception as error:  # whatever Numba or LLVM says: this kernel is left out
            (folder / f"{job}.error").write_text(f"{type(error).__name__}: {error}")
        else:
            fresh = folder / f"{job}.part"
            fresh.write_bytes(made)
            fresh.replace(folder / job)


def main(arguments: list[str]) -> int:
    """Build the bundle of this machine, or with ``--baseline`` that of wheels."""
    if arguments[:1] == ["--worker"]:
        _work(Path(arguments[1]), int(arguments[2]))
        return 0
    if machine() != SUPPORTED_MACHINE:
        print(f"no kernels are built ahead on {machine()}: Numba compiles each on its first call")
        return int("--baseline" in arguments)
    try:
        built = build(SHIPPED, for_baseline=True) if arguments == ["--baseline"] else build_missing()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"the kernels could not be built: {error}", file=sys.stderr)
        return 1
    if built is None:
        print("the kernels are ready")
        return 0
    for kernel, reason in built.left_out.items():
        print(f"left out: {kernel}: {reason}", file=sys.stderr)
    print(f"{len(built.kernels)} kernels are ready in {built.file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
