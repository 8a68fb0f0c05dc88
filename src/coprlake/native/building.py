"""Builds the bundle: ``python -m coprlake.native.building``.

Numba compiles each kernel that Python code calls for the types that its annotations name; a small native function
around it takes Python's objects (`wrapping.py`). Several processes share the work: each takes the next kernel that
nobody has begun, and leaves the object in a folder. What cannot be built is left out, and compiled by Numba when it is
called. Objects are kept beside the bundle, so that the next build compiles only what has changed.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
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
    """What a build made: the kernels in the bundle, and those left out with the reason."""

    file: Path
    kernels: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def is_ready() -> bool:
    """Whether the kernels of all modules are in a bundle, as their sources are now."""
    found = [bundle for file in places() if (bundle := read_bundle(file)) is not None]
    if any(bundle.index["package_digest"] == _package_digest() for bundle in found):
        return True
    entries = Sources(PACKAGE_FOLDER).entries
    return all(any(_has(bundle, module, names) for bundle in found) for module, names in entries.items())


def _has(bundle: Bundle, module: str, names: list[str]) -> bool:
    part = bundle.index["modules"].get(module)
    return part is not None and {*names} <= {*part["kernels"], *part["left_out"]} and bundle.is_current(module)


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
    """
    if not is_enabled() or is_ready():
        return None
    file = _writable_place()
    with _locked(file.with_suffix(".lock")):
        if is_ready():
            return None
        if announce is not None:
            announce(5 + _SECONDS_ON_ONE_CORE // _worker_count())
        return build(file)


def build(file: Path, *, for_baseline: bool = False) -> Built:
    """Build a bundle of all kernels that Python code calls, and replace `file`."""
    entries = Sources(PACKAGE_FOLDER).entries
    jobs = [f"{module}:{name}" for module, names in entries.items() for name in names]
    jobs.sort(key=lambda job: -len(_sources_of(_module_of(job))))  # those that take longest first
    built = Built(file)
    kept = file.with_suffix(".objects")
    image = Image(len(SLOTS))
    with tempfile.TemporaryDirectory(prefix="coprlake-kernels-") as name:
        folder = Path(name)
        _bring_objects(kept, folder, jobs, for_baseline)
        _run_workers(folder, [job for job in jobs if not (folder / job).exists()], for_baseline)
        for job in sorted(jobs):
            try:
                image.add((folder / job).read_bytes())
                built.kernels.append(job)
            except (OSError, UnsupportedObjectError) as error:
                reason = folder / f"{job}.error"
                built.left_out[job] = reason.read_text() if reason.exists() else str(error)
        code = image.finish()
        features = _BASELINE_FEATURES if for_baseline else sorted(processor_features())
        write_bundle(file, _index(jobs, image, features), code)
        if not for_baseline:
            _keep_objects(kept, folder, built.kernels)
    return built


def _module_of(job: str) -> str:
    return job.partition(":")[0]


def _index(jobs: list[str], image: Image, features: Sequence[str]) -> dict[str, Any]:
    modules: dict[str, Any] = {}
    for job in jobs:
        module, _, name = job.partition(":")
        part = modules.setdefault(module, {"sources": sorted(_sources_of(module)), "kernels": {}, "left_out": []})
        if job in image.symbols:
            part["kernels"][name] = image.symbols[job]
        else:
            part["left_out"].append(name)
    used = {name for part in modules.values() for name in part["sources"]}
    return {
        "machine": machine(),
        "features": list(features),
        "package": str(PACKAGE_FOLDER),
        "package_digest": _package_digest(),
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


def _bring_objects(kept: Path, folder: Path, jobs: list[str], for_baseline: bool) -> None:
    """Put the objects that are still right into the folder."""
    if for_baseline:
        return
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(kept) as archive:
        there = set(archive.namelist())
        for job in jobs:
            if (key := _object_key(job)) in there:
                (folder / job).write_bytes(archive.read(key))


def _keep_objects(kept: Path, folder: Path, jobs: list[str]) -> None:
    fresh = kept.with_name(f"{kept.name}.{os.getpid()}.tmp")
    try:
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive:
            for job in jobs:
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
    command = [sys.executable, "-m", "coprlake.native.building", "--worker", str(folder)]
    started = [
        subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(min(_worker_count(), len(jobs)))
    ]
    try:
        for process in started:
            process.wait(_WORKER_SECONDS)
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait()


def _work(folder: Path) -> None:
    """Compile kernels until none is left that nobody has begun."""
    from coprlake.native.objects import ObjectWriter

    writer = ObjectWriter(Sources(PACKAGE_FOLDER).written)
    for job in (folder / "jobs").read_text().split():
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


def main(arguments: list[str]) -> None:
    """Build the bundle of this machine, or with ``--baseline`` that of wheels."""
    if arguments[:1] == ["--worker"]:
        _work(Path(arguments[1]))
        return
    built = build(SHIPPED, for_baseline=True) if arguments == ["--baseline"] else build_missing()
    if built is None:
        print("the kernels are ready")
        return
    for kernel, reason in built.left_out.items():
        print(f"left out: {kernel}: {reason}", file=sys.stderr)
    print(f"{len(built.kernels)} kernels are ready in {built.file}")


if __name__ == "__main__":
    main(sys.argv[1:])
