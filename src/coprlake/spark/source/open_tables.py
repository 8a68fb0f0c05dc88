"""Tables that stay open between the questions of one process: a warm search asks the log only whether it has grown."""

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from coprlake.config import RULES, RuleSet
from coprlake.files import Folder
from coprlake.records import DAY
from coprlake.table import Table, create_table, open_table, table_exists

_LIMIT = 16
_lock = threading.Lock()
_open: OrderedDict[tuple[str, tuple[int, int]], Table] = OrderedDict()


def opened(table: str | os.PathLike[str] | Table) -> Table:
    """The table at a path; the one that is open already if there is one."""
    if isinstance(table, Table):
        return table
    key = (os.fspath(table), _identity(table))
    with _lock:
        found = _open.pop(key, None)
    if found is None:
        found = open_table(table)
    with _lock:
        _open[key] = found
        while len(_open) > _LIMIT:
            _open.popitem(last=False)
    return found


def _identity(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Tells a table from one that is made anew in the same place; zeros where nobody can tell.

    The number of a file alone does not: it is given again as soon as it is free.
    """
    folder = Folder.of(path)
    for name in (f"{0:020}.json", "_last_checkpoint") if folder.is_local else ():  # old logs lost their first commit
        try:
            first = Path(folder.path("_delta_log"), name).stat()
            return first.st_ino, first.st_mtime_ns
        except OSError:
            continue
    return 0, 0


def opened_or_created(
    path: str | os.PathLike[str],
    schema: pa.Schema | None = None,
    partition_by: Sequence[str] = (DAY,),
    grams: Sequence[str] = (),
    rules: RuleSet | str = RULES,
) -> Table:
    """The table at a path, made with these columns if it is not there."""
    if table_exists(path):
        return open_table(path)
    return create_table(path, schema=schema, partition_by=list(partition_by), grams=grams, rules=rules, exist_ok=True)
