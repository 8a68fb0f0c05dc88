"""Runs with one sync left out, to prove that the harness would notice a missing sync."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coprlake.testing.torture.power_loss.crash_model import Crash, DataChange, Disk, Loss, NameChange, Sync, text_of


@dataclass(frozen=True)
class Omission:
    """A run without one of its syncs.

    Attributes:
        disk: the run.
        text: the sync.
        is_needed: whether something that it covered may now be lost after an acknowledgement; if not, another sync
            covers it in time.
        covered: the operations that it made durable.
        crashes: the crashes that only the omission makes possible.
    """

    disk: Disk
    text: str
    is_needed: bool
    covered: list[str]
    crashes: list[Crash]


def omissions(disk: Disk) -> Iterator[Omission]:
    """The run without each of its syncs, one at a time.

    Crashes are placed right after an acknowledgement, and right before another sync covers for the missing one.
    """
    end, marks = len(disk.operations), set(disk.marks)
    for number in range(disk.first, end):
        sync = disk.operations[number]
        if not isinstance(sync, Sync):
            continue
        weaker = disk.without(number)
        changed = [n for n in range(number) if weaker.durable_at[n] > disk.durable_at[n]]
        ends = {min(weaker.durable_at[n] - 1, end) for n in changed}
        found: list[Crash] = []
        is_needed = False
        for length in sorted(each for each in marks | ends if each > number):
            own = [n for n in changed if disk.durable_at[n] <= length < weaker.durable_at[n]]
            is_needed = is_needed or (length in marks and bool(own))
            found += _losing(disk, length, own)
        yield Omission(weaker, sync.text, is_needed, [text_of(disk.operations[n]) for n in changed], found)


def _losing(disk: Disk, length: int, numbers: Sequence[int]) -> list[Crash]:
    """Crashes that lose these operations, together or alone."""
    names = frozenset(n for n in numbers if isinstance(disk.operations[n], NameChange))
    nodes = {each.node for n in numbers if isinstance(each := disk.operations[n], DataChange)}
    found = [Crash(length, names)] if names else []
    found += [Crash(length, data=((node, loss),)) for node in nodes for loss in (Loss("none"), Loss("zeros"))]
    return found + [Crash(length, frozenset({name})) for name in names if len(names) > 1]
