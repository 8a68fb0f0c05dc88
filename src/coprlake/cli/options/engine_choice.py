"""Which engine is faster: this process, which starts at once, or Spark, which reads on several cores."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coprlake.cli.printing.figures import amount, size
from coprlake.errors import NotInstalledError, UsageError
from coprlake.extras import HOW_TO_INSTALL_SPARK, is_installed, require_spark

if TYPE_CHECKING:
    from coprlake.intake.sources.inputs import InputFile

SPARK_START_SECONDS: Final = 8.0
"""From the start of a session to its first record: 7 to 9 s on two cores."""

BYTES_A_SECOND: Final = 50e6
"""Raw text that one core ingests in a second."""

FILE_SECONDS: Final = 0.001
"""The cost of one more file; an estimate."""

CORE_EFFICIENCY: Final = 0.9
"""How much of a core counts when Spark uses all of them: two were 1.84 times as fast as one (docs/spark.md)."""

_FACTORS: Final = {
    suffix: factor
    for factor, suffixes in {
        8: (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".tgz", ".tbz2", ".txz", ".7z"),
        4: (".parquet",),
        1: (".csv", ".tsv", ".tar"),
    }.items()
    for suffix in suffixes
}
"""How much more text than bytes on disk such files have, by experience. One task reads each of them as a whole."""

_LINUX_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True)
class Work:
    """An amount of work, as far as it can be estimated without opening a file.

    Attributes:
        raw_bytes: the raw text to process.
        file_count: the number of files.
        whole_bytes: the raw text of the largest file that cannot be split among tasks.
        is_exact: whether `raw_bytes` is known rather than estimated.
    """

    raw_bytes: int
    file_count: int = 1
    whole_bytes: int = 0
    is_exact: bool = True

    @classmethod
    def of_files(cls, files: "Iterable[InputFile]") -> "Work":
        """Estimate the work of reading files, by their names and sizes."""
        total, count, largest, is_exact = 0, 0, 0, True
        for file in files:
            name = file.path.lower()
            factor = next((factor for suffix, factor in _FACTORS.items() if name.endswith(suffix)), None)
            raw_bytes = (file.length or 0) * (factor or 1)
            total += raw_bytes
            count += 1
            largest = max(largest, raw_bytes if factor else 0)
            is_exact = is_exact and factor in (None, 1)
        return cls(total, count, largest, is_exact)

    @property
    def seconds(self) -> float:
        """The time that one core needs."""
        return self.raw_bytes / BYTES_A_SECOND + self.file_count * FILE_SECONDS

    def seconds_on_spark(self, cores: int) -> float:
        """The time that Spark needs on the cores of this machine, with its start."""
        busy = 1.0 if cores < 2 else cores * CORE_EFFICIENCY
        return SPARK_START_SECONDS + max(self.seconds / busy, self.whole_bytes / BYTES_A_SECOND)

    def __str__(self) -> str:
        return f"{'' if self.is_exact else 'about '}{size(self.raw_bytes)}"


@dataclass(frozen=True)
class Choice:
    """A choice of engine.

    Attributes:
        is_spark: whether Spark does the work.
        reason: why, as a clause to follow "in this process" or "on Spark".
    """

    is_spark: bool
    reason: str


def choose(
    work: Work, cores: int, *, local_only: Sequence[str], asked: str | None, obstacle: Callable[[], str | None]
) -> Choice:
    """Choose the faster engine among those that can do it.

    Args:
        work: how much there is to do.
        cores: those of this machine.
        local_only: options and inputs that Spark does not support.
        asked: the option or variable that asks for Spark.
        obstacle: returns why Spark cannot start here, or None if it can; called only if Spark would be faster.
    """
    if local_only:
        return Choice(False, f"because Spark does not support {local_only[0]}")
    if asked is not None:
        return Choice(True, f"because of {asked}")
    here, there = work.seconds, work.seconds_on_spark(cores)
    if here <= there:
        reason = "which is faster than starting Spark" if here <= SPARK_START_SECONDS * 2 else _too_narrow(work, cores)
        more = "--engine spark uses Spark" if is_installed("pyspark") else f"to use Spark, {HOW_TO_INSTALL_SPARK}"
        return Choice(False, f"{reason}; {more}")
    missing = obstacle()
    if missing is not None:
        return Choice(False, f"because {missing}")
    return Choice(True, f"which is faster on {amount(cores, 'core')}; --engine local uses this process")


def _too_narrow(work: Work, cores: int) -> str:
    if cores < 2:
        return "because Spark is not faster on one core"
    if work.whole_bytes > work.raw_bytes / 2:
        return "because most of it is one file that cannot be split"
    return "which is faster than starting Spark"


def core_count() -> int:
    """The cores that this process may use, within the limit of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = _LINUX_QUOTA.read_text().split()
        if quota != "max":
            cores = min(cores, max(1, round(int(quota) / int(period))))
    return cores


def spark_obstacle() -> str | None:
    """Why Spark cannot start on this machine; None if it can."""
    from coprlake.spark.runtime.java import java_executable

    try:
        require_spark()
        java_executable()
    except NotInstalledError as error:
        return str(error)
    except UsageError as error:
        return str(error).partition(";")[0]
    return None
