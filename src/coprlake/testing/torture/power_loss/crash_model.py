"""What a power loss may leave of a folder: a small model of a file system that loses more than any real one.

A recording is a list of operations. Each is *pending* until a sync covers it, and each operation that is pending when
the power fails is kept or lost independently:

* A name change (create, link, rename, remove, make a folder) is durable once its folder is synced after it. Until then
  it is there or not. A rename within a folder is atomic; one between folders is two changes, a new name and the removal
  of the old one.
* Bytes are durable once the file is synced after they were written. Until then all, none or some are there: the
  start, the start with zeros up to the full size, or all but a hole of zeros.

Syncing a file does not make its name durable, and syncing a name does not make its bytes durable.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

NEVER: Final = 1 << 60
Place: TypeAlias = tuple[int, str]
"""The node number of a folder, and a name in it."""


@dataclass(frozen=True)
class NameChange:
    """A name appears, disappears or moves; `node` is what it refers to."""

    text: str
    node: int
    gone: Place | None = None
    new: Place | None = None
    is_folder: bool = False

    @property
    def folder(self) -> int:
        """The folder that changes."""
        place = self.gone or self.new
        assert place is not None
        return place[0]


@dataclass(frozen=True)
class DataChange:
    """Bytes are written to a file, or it is truncated to `size` if that is given."""

    text: str
    node: int
    offset: int = 0
    data: bytes = b""
    size: int | None = None


@dataclass(frozen=True)
class Sync:
    """A file or folder is synced; only operations before number `started` are certainly covered."""

    text: str
    node: int
    started: int


@dataclass(frozen=True)
class Mark:
    """A statement of the recorded program; `begin` makes everything before it durable."""

    said: Mapping[str, Any]


Operation: TypeAlias = NameChange | DataChange | Sync | Mark


@dataclass(frozen=True)
class Loss:
    """What is left of the pending bytes of a file.

    Attributes:
        kind: ``none``, ``part``, ``zeros`` (a part, and zeros up to the size) or ``hole`` (all but a hole of zeros).
        start: the number of pending bytes that are there; for a hole, its start.
        end: the end of a hole.
    """

    kind: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class Crash:
    """A moment, and what is lost then.

    Attributes:
        length: the number of operations before it.
        names: the numbers of the name changes that are lost.
        data: the files that lose pending bytes.
    """

    length: int
    names: frozenset[int] = frozenset()
    data: tuple[tuple[int, Loss], ...] = ()

    def alone(self) -> Iterator["Crash"]:
        """Each loss alone, with everything else kept."""
        for name in sorted(self.names):
            yield Crash(self.length, frozenset({name}))
        for loss in self.data:
            yield Crash(self.length, data=(loss,))

    def without(self, other: "Crash") -> "Crash":
        """The same moment, without the losses of the other crash."""
        return Crash(self.length, self.names - other.names, tuple(loss for loss in self.data if loss not in other.data))


Tree: TypeAlias = dict[str, bytes | None]
"""Contents by path; None for a folder."""


@dataclass
class Disk:
    """A recorded run, and all that may be left of it.

    Attributes:
        operations: in the order in which they happened; node 0 is the watched folder.
        durable_at: the length of the run from which on each operation is durable.
    """

    operations: Sequence[Operation]
    durable_at: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.durable_at = [NEVER] * len(self.operations)
        for number, operation in enumerate(self.operations):
            if isinstance(operation, Mark) and operation.said.get("begin"):
                self._make_durable(number, [*range(number)])
            elif isinstance(operation, Sync):
                self._make_durable(number, [n for n in range(operation.started) if self._is_of(n, operation.node)])

    def _is_of(self, number: int, node: int) -> bool:
        operation = self.operations[number]
        if isinstance(operation, NameChange):
            return operation.folder == node
        return isinstance(operation, DataChange) and operation.node == node

    def _make_durable(self, number: int, earlier: Sequence[int]) -> None:
        for each in earlier:
            self.durable_at[each] = min(self.durable_at[each], number + 1)

    @property
    def first(self) -> int:
        """The shortest run of interest: up to the last mark with `begin`."""
        begins = [n for n, each in enumerate(self.operations) if isinstance(each, Mark) and each.said.get("begin")]
        return max(begins, default=-1) + 1

    @property
    def marks(self) -> list[int]:
        """The moments of interest right after a mark."""
        numbers = range(max(self.first - 1, 0), len(self.operations))
        return [number + 1 for number in numbers if isinstance(self.operations[number], Mark)]

    def said(self, length: int) -> Mapping[str, Any]:
        """The last mark before this moment."""
        marks = [each.said for each in self.operations[:length] if isinstance(each, Mark)]
        return marks[-1] if marks else {}

    def without(self, number: int) -> "Disk":
        """The same run with one sync disabled."""
        changed = list(self.operations)
        sync = changed[number]
        assert isinstance(sync, Sync)
        changed[number] = replace(sync, started=0)
        return Disk(changed)

    def pending(self, length: int) -> tuple[list[int], dict[int, int]]:
        """The name changes that may be lost, and the files with the number of bytes that may be lost."""
        names: list[int] = []
        data: dict[int, int] = {}
        for number in range(length):
            operation = self.operations[number]
            if length < self.durable_at[number]:
                if isinstance(operation, NameChange):
                    names.append(number)
                elif isinstance(operation, DataChange):
                    data[operation.node] = data.get(operation.node, 0) + len(operation.data)
        return names, data

    def tree(self, crash: Crash) -> Tree:
        """The folder after a crash."""
        entries: dict[int, dict[str, int]] = {0: {}}
        losses = dict(crash.data)
        written: dict[int, bytearray] = {}
        passed: dict[int, int] = {}  # pending bytes of each file so far
        for number in range(crash.length):
            operation = self.operations[number]
            if isinstance(operation, NameChange):
                if operation.is_folder:
                    entries.setdefault(operation.node, {})
                if number not in crash.names:
                    _rename(entries, operation)
            elif isinstance(operation, DataChange):
                content = written.setdefault(operation.node, bytearray())
                loss = losses.get(operation.node)
                if loss is None or crash.length >= self.durable_at[number]:
                    _write(content, operation, operation.data)
                elif loss.kind != "none":
                    done = passed.get(operation.node, 0)
                    _write(content, operation, _remainder(operation.data, done, loss))
                    passed[operation.node] = done + len(operation.data)
        tree: Tree = {}
        _walk(entries, written, 0, "", tree)
        return tree

    def describe(self, crash: Crash) -> str:
        """The crash in words."""
        lost = [f"not: {text_of(self.operations[number])}" for number in sorted(crash.names)]
        for node, loss in crash.data:
            path = next(each.text for each in self.operations if isinstance(each, DataChange) and each.node == node)
            span = f" at {loss.start}" + (f" to {loss.end}" if loss.end else "")
            lost.append(f"{loss.kind}{'' if loss.kind == 'none' else span} of the bytes: {path}")
        last = text_of(self.operations[crash.length - 1]) if crash.length else "nothing"
        return f"after {crash.length} operations (the last: {last}); lost: {'; '.join(lost) or 'nothing'}"


def text_of(operation: Operation) -> str:
    """The operation in words."""
    return f"mark {dict(operation.said)}"[:120] if isinstance(operation, Mark) else operation.text


def _rename(entries: dict[int, dict[str, int]], change: NameChange) -> None:
    if change.gone is not None:
        folder = entries.setdefault(change.gone[0], {})
        if folder.get(change.gone[1]) == change.node:
            del folder[change.gone[1]]
    if change.new is not None:
        entries.setdefault(change.new[0], {})[change.new[1]] = change.node


def _write(content: bytearray, change: DataChange, data: bytes) -> None:
    if change.size is not None:
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
    elif data:
        content.extend(bytes(max(0, change.offset - len(content))))
        content[change.offset : change.offset + len(data)] = data


def _remainder(data: bytes, done: int, loss: Loss) -> bytes:
    """What is left of some pending bytes of a file, of which `done` came before."""
    if loss.kind == "hole":
        start, end = (min(max(place - done, 0), len(data)) for place in (loss.start, loss.end))
        return data[:start] + bytes(end - start) + data[end:]
    kept = data[: max(0, loss.start - done)]
    return kept + bytes(len(data) - len(kept)) if loss.kind == "zeros" else kept


def _walk(entries: dict[int, dict[str, int]], written: dict[int, bytearray], node: int, path: str, tree: Tree) -> None:
    for name, child in sorted(entries[node].items()):
        own = f"{path}/{name}" if path else name
        if child in entries:
            tree[own] = None
            _walk(entries, written, child, own, tree)
        else:
            tree[own] = bytes(written.get(child, b""))


def crashes(disk: Disk, length: int, chance: random.Random, mixtures: int = 4) -> list[Crash]:
    """The crashes of one moment that are worth checking: each loss alone, all but one, suffixes, random mixtures."""
    names, data = disk.pending(length)
    worst = everything_lost(disk, length)
    found = [Crash(length), worst, Crash(length, data=worst.data)]
    found += [Crash(length, frozenset({name})) for name in names]
    found += [Crash(length, frozenset(names) - {name}) for name in names]
    found += [Crash(length, frozenset(names[place:])) for place in range(len(names))]
    for node, size in data.items():
        found += [Crash(length, frozenset(), ((node, loss),)) for loss in losses(size, chance)]
    for _ in range(mixtures if len(names) + len(data) > 1 else 0):
        lost = frozenset(name for name in names if chance.random() < 0.5)
        hurt = {node: chance.choice(losses(size, chance)) for node, size in data.items() if chance.random() < 0.5}
        found.append(Crash(length, lost, tuple(hurt.items())))
    return list(dict.fromkeys(found))


def everything_lost(disk: Disk, length: int) -> Crash:
    """The crash that loses everything that may be lost."""
    names, data = disk.pending(length)
    return Crash(length, frozenset(names), tuple((node, Loss("none")) for node in data))


def losses(size: int, chance: random.Random) -> list[Loss]:
    """The possible losses of `size` pending bytes."""
    if size < 2:
        return [Loss("none")]
    cut, other = chance.randrange(1, size), chance.randrange(1, size)
    hole = sorted((cut - 1, other))
    return [
        Loss("none"),
        Loss("part", cut),
        Loss("zeros", other),
        Loss("zeros", 0),
        Loss("hole", hole[0], max(hole[1], hole[0] + 1)),
    ]
