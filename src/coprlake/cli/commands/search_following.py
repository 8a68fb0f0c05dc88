"""``coprlake search --follow``: the last matches, and then new ones as they are committed."""

import select
import sys
import time
from typing import TYPE_CHECKING

from coprlake.cli.options.filters import SearchRequest
from coprlake.cli.options.search_options import Printing
from coprlake.cli.printing.notices import warn
from coprlake.cli.printing.record_layout import chosen_layout, needed_columns
from coprlake.cli.printing.record_writers import new_writer
from coprlake.cli.printing.search_output import destination
from coprlake.errors import UsageError
from coprlake.files import Folder
from coprlake.query.following import PAUSE_SECONDS, Following
from coprlake.storage.log.delta_log import DeltaLog

if TYPE_CHECKING:
    from coprlake.table import Table


def follow(table: "Table", asked: SearchRequest, printing: Printing) -> None:
    """Print matches until somebody interrupts it, or the reader of a pipe is gone.

    Raises:
        UsageError: the table has no log to follow.
    """
    folder = Folder.of(table.uri)
    if not folder.exists("_delta_log"):
        raise UsageError(f"{table.uri}: cannot follow a folder of Parquet files: it has no log of its commits")
    output = "json" if printing.as_json else printing.output
    shown = chosen_layout(table, output, printing.out, printing.columns, has_context=False, is_raw=printing.raw)
    found = asked.search(
        table,
        columns=needed_columns(table, shown.columns, are_originals=shown.are_originals),
        threads=printing.threads,
        strict=printing.strict,
    )
    following = Following(DeltaLog.open(folder), found)
    with destination(None) as out:
        writer = new_writer(table, found.schema, asked, shown, printing, out)
        for batch in following.last(printing.last):
            writer.write(batch)
        while not _is_reader_gone():
            _warn(following)
            time.sleep(PAUSE_SECONDS)
            for batch in following.new():
                writer.write(batch)


def _warn(following: Following) -> None:
    for problem in following.problems:
        warn(problem)
    following.problems.clear()


def _is_reader_gone() -> bool:
    """Whether standard output is a pipe that nobody reads any more, which writing would tell too late."""
    try:
        watch = select.poll()
        watch.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))
    except (AttributeError, OSError, ValueError):  # no poll here, or no file, as in tests
        return False
