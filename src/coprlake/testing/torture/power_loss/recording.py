"""Records what a program does to a folder with strace: every name change, every byte, every sync."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from coprlake.testing.torture.power_loss.crash_model import DataChange, Mark, NameChange, Operation, Place, Sync

MARKS: Final = "marks"
"""The name of a file beside a table; each line appended to it, a JSON object, becomes a `Mark`."""

_NAMES: Final = (
    "open openat creat rename renameat renameat2 link linkat unlink unlinkat rmdir mkdir mkdirat symlink symlinkat"
)
_DATA: Final = "write pwrite64 writev pwritev pwritev2 lseek ftruncate truncate fallocate copy_file_range sendfile mmap"
_SYNCS: Final = "fsync fdatasync sync syncfs sync_file_range"
_TASKS: Final = "clone clone3 fork vfork"
_CALL: Final = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?|0x[0-9a-f]+)", re.DOTALL)
_UNFINISHED: Final = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$", re.DOTALL)
_RESUMED: Final = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$", re.DOTALL)
_TEXT: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_DESCRIPTOR: Final = re.compile(r"^(\d+)<")


class UnknownOperationError(Exception):
    """The program did something to the folder that the model does not support."""


def missing_strace() -> str | None:
    """Why nothing can be recorded here; None if it can."""
    if shutil.which("strace") is None:
        return "strace is not installed; `apt-get install strace`, or `make setup` as a user who may"
    tried = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"strace does not work here: {tried.stderr.strip()[:200]}"


def record(command: Sequence[str], root: Path, trace: Path, seconds: float = 120) -> dict[str, list[Operation]]:
    """Run a command and return what it did to each folder directly in `root`.

    Args:
        command: the command.
        root: the folder to watch; it must be empty.
        trace: the file for the output of strace.
        seconds: the time limit for the command.
    """
    calls = ",".join(f"{_NAMES} {_DATA} {_SYNCS} {_TASKS}".split())
    options = [
        "-f",
        "-y",
        "-xx",
        "-s",
        str(1 << 28),
        "--seccomp-bpf",
        "-e",
        "signal=none",
        "-e",
        f"trace=?{calls.replace(',', ',?')}",
    ]
    subprocess.run(["strace", *options, "-o", str(trace), *command], check=True, timeout=seconds)
    with trace.open(encoding="ascii", errors="replace") as lines:
        return parse(lines, root)


def parse(lines: Iterable[str], root: Path) -> dict[str, list[Operation]]:
    """The operations in strace's output, by the folder in `root` that they change."""
    runs: dict[str, _Run] = {}
    calls = list(_calls(lines, root))
    processes = _processes(calls)
    for call in calls:
        call.process = processes.get(call.process, call.process)
        name = call.folder(root)
        if name is not None:
            runs.setdefault(name, _Run(root / name)).add(call)
    return {name: run.operations for name, run in runs.items()}


@dataclass
class _Call:
    """A system call that succeeded."""

    process: int
    name: str
    arguments: str
    result: int
    begun: int
    ended: int
    paths: list[str] = field(default_factory=list)

    def folder(self, root: Path) -> str | None:
        """The folder in `root` that the call refers to."""
        prefix = f"{root}/"
        within = [path for path in self.paths if path.startswith(prefix)]
        return within[0][len(prefix) :].partition("/")[0] if within else None


def _calls(lines: Iterable[str], root: Path) -> Iterator[_Call]:
    """The calls that refer to the root, and those that create threads, in the order in which they ended."""
    sign = _hex(str(root))
    unfinished: dict[str, tuple[int, str]] = {}
    for number, raw in enumerate(lines):
        line, begun = raw.rstrip("\n"), number
        if line.endswith(" <unfinished ...>") and (found := _UNFINISHED.match(line)):
            unfinished[found[1]] = number, found[2]
            continue
        if " resumed>" in line[:60] and (found := _RESUMED.match(line)):
            begun, beginning = unfinished.pop(found[1], (number, ""))
            line = f"{found[1]} {beginning}{found[2]}"
        is_task = any(f" {name}(" in line[:30] for name in ("clone", "clone3", "fork", "vfork"))
        if not is_task and sign not in line and " sync(" not in line[:20]:
            continue
        call = _CALL.match(line)
        if call is None or call[4] == "?" or call[4].startswith("-"):
            continue
        result = int(call[4], 0)
        yield _Call(int(call[1]), call[2], call[3], result, begun, number, list(_paths(call[2], call[3])))


def _hex(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(text))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _path(text: str) -> str:
    return os.path.normpath(os.fsdecode(_bytes(text)))


_ANNOTATED: Final = re.compile(r"(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2})+)>(\(deleted\))?")


def _paths(name: str, arguments: str) -> Iterator[str]:
    """The paths of a call: that of its descriptor, or its path arguments, made absolute."""
    if name in _DATA.split() or name in _SYNCS.split():
        if name == "truncate":
            yield _path(_TEXT.findall(arguments)[0][0])
        for found in _ANNOTATED.findall(arguments):
            yield _path(found[0])
        return
    rest, base = arguments, ""
    while rest:
        if found := _ANNOTATED.match(rest):
            base = _path(found[1])
        elif found := _TEXT.match(rest):
            yield os.path.normpath(os.path.join(base, os.fsdecode(_bytes(found[1]))))  # noqa: PTH118
        rest = rest.partition(", ")[2]


def _processes(calls: Sequence[_Call]) -> dict[int, int]:
    """The process of each thread; threads of a process share descriptors."""
    parents = {call.result: call.process for call in calls if "CLONE_FILES" in call.arguments}
    found = {}
    for thread in parents:
        process = thread
        while process in parents:
            process = parents[process]
        found[thread] = process
    return found


@dataclass
class _Open:
    """An open file."""

    node: int
    offset: int = 0
    appends: bool = False


class _Run:
    """Turns calls into operations on nodes, and tracks the folder as the program sees it."""

    def __init__(self, root: Path) -> None:
        self.operations: list[Operation] = []
        self._root = root
        self._nodes = {"": 0}  # by path below the root
        self._folders = {0}
        self._next = 1
        self._open: dict[tuple[int, int], _Open] = {}
        self._ends: list[int] = []  # the line at which each operation ended
        self._marks = ""

    def add(self, call: _Call) -> None:
        """Add the next call."""
        kind = call.name
        if kind in ("open", "openat", "creat"):
            self._add_open(call)
        elif kind.startswith("mkdir"):
            self._create(self._name(call.paths[0]), call, is_folder=True)
        elif kind.startswith("rename"):
            if "RENAME_EXCHANGE" in call.arguments:
                raise UnknownOperationError(kind)
            self._rename(self._name(call.paths[0]), self._name(call.paths[1]), call)
        elif kind.startswith("link"):
            old, new = map(self._name, call.paths[:2])
            self._nodes[new] = node = self._nodes[old]
            self._append(NameChange(f"link {new}", node, None, self._place(new)), call)
        elif kind.startswith("unlink") or kind == "rmdir":
            old = self._name(call.paths[0])
            node = self._nodes.pop(old)
            self._append(NameChange(f"remove {old}", node, self._place(old), is_folder=node in self._folders), call)
        elif kind in ("fsync", "fdatasync"):
            self._add_sync(call)
        elif kind == "lseek":
            if opened := self._opened(call):
                opened.offset = call.result
        elif kind in ("write", "writev", "pwrite64", "pwritev", "pwritev2", "ftruncate"):
            self._add_data(call)
        elif kind == "mmap":
            if "MAP_SHARED" in call.arguments and "PROT_WRITE" in call.arguments:
                raise UnknownOperationError(f"{call.paths[0]} is written through a mapping")
        elif kind not in _TASKS.split() and kind != "sync_file_range":  # which promises nothing about names
            raise UnknownOperationError(f"{kind} {call.paths}")

    def _append(self, operation: Operation, call: _Call) -> None:
        self.operations.append(operation)
        self._ends.append(call.ended)

    def _name(self, path: str) -> str:
        if path != str(self._root) and not path.startswith(f"{self._root}/"):
            raise UnknownOperationError(f"{path} is outside of {self._root}")
        return path[len(str(self._root)) + 1 :]

    def _place(self, name: str) -> Place:
        parent, _, last = name.rpartition("/")
        return self._nodes[parent], last

    def _create(self, name: str, call: _Call, *, is_folder: bool = False) -> int:
        if name == "":
            return 0  # the root itself is taken for granted
        node = self._nodes[name] = self._next
        self._next += 1
        if is_folder:
            self._folders.add(node)
        change = NameChange(f"{'mkdir' if is_folder else 'create'} {name}", node, None, self._place(name), is_folder)
        if name != MARKS:
            self._append(change, call)
        return node

    def _add_open(self, call: _Call) -> None:
        name = self._name(call.paths[0])
        node = self._nodes.get(name)
        if "O_TMPFILE" in call.arguments:
            raise UnknownOperationError("a file without a name")
        if "O_CREAT" in call.arguments or call.name == "creat":
            if node is None:
                node = self._create(name, call)
            elif "O_TRUNC" in call.arguments or call.name == "creat":
                self._append(DataChange(f"cut {name}", node, size=0), call)
        elif node is not None and "O_TRUNC" in call.arguments:
            self._append(DataChange(f"cut {name}", node, size=0), call)
        if node is not None:
            self._open[call.process, call.result] = _Open(node, 0, "O_APPEND" in call.arguments)

    def _opened(self, call: _Call) -> _Open | None:
        found = _DESCRIPTOR.match(call.arguments)
        return self._open.get((call.process, int(found[1]))) if found else None

    def _rename(self, old: str, new: str, call: _Call) -> None:
        node = self._nodes[old]
        gone, target = self._place(old), self._place(new)
        moved = [path for path in self._nodes if path == old or path.startswith(f"{old}/")]
        for path in moved:
            self._nodes[new + path[len(old) :]] = self._nodes.pop(path)
        is_folder = node in self._folders
        if gone[0] == target[0]:
            self._append(NameChange(f"rename {old} to {new}", node, gone, target, is_folder), call)
        else:  # each folder is synced separately
            self._append(NameChange(f"rename {old} to {new}", node, None, target, is_folder), call)
            self._append(NameChange(f"remove {old}, which was renamed", node, gone, None, is_folder), call)

    def _add_sync(self, call: _Call) -> None:
        opened = self._opened(call)
        if opened is None:
            raise UnknownOperationError(f"a sync of {call.paths}, which was opened unseen")
        started = sum(end < call.begun for end in self._ends)
        name = self._name(call.paths[0])
        self._append(Sync(f"sync {name or '.'}", opened.node, started), call)

    def _add_data(self, call: _Call) -> None:
        opened = self._opened(call)
        if opened is None:
            raise UnknownOperationError(f"a write to {call.paths}, which was opened unseen")
        name = self._name(call.paths[0])
        numbers = [int(number) for number in re.findall(r", (\d+)", call.arguments)]
        if call.name == "ftruncate":
            self._append(DataChange(f"cut {name}", opened.node, size=numbers[-1]), call)
            return
        texts = _TEXT.findall(call.arguments)
        if any(cut for _, cut in texts):
            raise UnknownOperationError(f"a write to {name} that strace has cut short")
        data = b"".join(_bytes(text) for text, _ in texts)[: call.result]
        if name == MARKS:
            self._mark(data, call)
            return
        if call.name.startswith("pwrite"):
            offset = numbers[-1] if call.name != "pwritev2" else numbers[-2]
        else:
            offset = self._size(opened.node) if opened.appends else opened.offset
            opened.offset = offset + len(data)
        self._append_data(DataChange(f"write {name}", opened.node, offset, data), call)

    def _append_data(self, change: DataChange, call: _Call) -> None:
        """Add a write; merge it into the last operation if it continues where that ended."""
        last = self.operations[-1] if self.operations else None
        if (
            isinstance(last, DataChange)
            and last.size is None
            and last.node == change.node
            and last.offset + len(last.data) == change.offset
        ):
            self.operations[-1] = DataChange(last.text, last.node, last.offset, last.data + change.data)
            self._ends[-1] = call.ended
        else:
            self._append(change, call)

    def _size(self, node: int) -> int:
        size = 0
        for each in self.operations:
            if isinstance(each, DataChange) and each.node == node:
                size = each.size if each.size is not None else max(size, each.offset + len(each.data))
        return size

    def _mark(self, data: bytes, call: _Call) -> None:
        self._marks += data.decode()
        while "\n" in self._marks:
            line, _, self._marks = self._marks.partition("\n")
            self._append(Mark(json.loads(line)), call)
