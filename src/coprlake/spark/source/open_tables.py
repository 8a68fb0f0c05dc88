"""Keeps tables open between the searches of a process: a warm search only checks whether the log has grown."""

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from coprlake.config import RULES, RuleSet
from coprlake.files import Folder
from coprlake.table import Table, create_table, open_table, table_exists

_LIMIT = 16
_lock = threading.Lock()
_open: OrderedDict[tuple[str, tuple[int, int]], Table] = OrderedDict()


def opened(table: str | os.PathLike[str] | Table) -> Table:
    """The table at a path, from the cache if it is open already."""
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
    """Tells a table from one that was recreated in the same place; zeros if that is not known.

    An inode number alone does not: it is reused as soon as it is free.
    """
    folder = Folder.of(path)
    for name in (f"{0:020}.json", "_last_checkpoint") if folder.is_local else ():  # old logs lack their first commit
        try:
            first = Path(folder.path("_delta_log"), name).stat()
            return first.st_ino, first.st_mtime_ns
        except OSError:
            continue
    return 0, 0


def opened_or_created(
    path: str | os.PathLike[str],
    schema: pa.Schema | None = None,
    partition_by: Sequence[str] = (),
    grams: Sequence[str] = (),
    rules: RuleSet | str = RULES,
) -> Table:
    """The table at a path, created with these columns if it does not exist."""
    if table_exists(path):
        return open_table(path)
    return create_table(path, schema=schema, partition_by=list(partition_by), grams=grams, rules=rules, exist_ok=True)
