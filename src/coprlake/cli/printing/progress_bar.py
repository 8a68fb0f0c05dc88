"""A progress bar on stderr, if that is a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.progress import Progress

    from coprlake.spark.jobs.task_progress import Done, JobProgress

Advance = Callable[[int], None]


@contextlib.contextmanager
def progress_bar(what: str, total_bytes: int | None) -> Iterator[Advance]:
    """Show a progress bar; call the function that is returned with each number of bytes done.

    Args:
        what: the label of the bar, such as ``indexing``.
        total_bytes: the size of the whole job; None if it is not known.
    """
    if not sys.stderr.isatty() or total_bytes == 0:
        yield lambda count: None
        return
    with _bar() as bar:
        task = bar.add_task(what, total=total_bytes)
        yield lambda count: bar.advance(task, count)


@contextlib.contextmanager
def job_bar(what: str, total_bytes: int | None) -> "Iterator[JobProgress | None]":
    """Show a progress bar for a Spark job; call the function that is returned, if any, with its progress."""
    if not sys.stderr.isatty() or total_bytes == 0:
        yield None
        return
    with _bar() as bar:
        task = bar.add_task(what, total=total_bytes)

        def progress(done: "Done") -> None:
            rows = f", {done.rows:,} records" if done.rows else ""
            completed = done.bytes if total_bytes is None else min(done.bytes, total_bytes)
            bar.update(task, completed=completed, description=f"{what}{rows}")

        yield progress


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    context = click.get_current_context(silent=True)
    no_color = context is not None and context.color is False
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, no_color=no_color),
        transient=True,
    )
