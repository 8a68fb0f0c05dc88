"""Panics of delta-rs, which Python sees as an exception that ``except Exception`` does not catch."""

from collections.abc import Iterator
from contextlib import contextmanager

from coprlake.errors import UnreadableTableError


@contextmanager
def panics_refused(uri: str) -> Iterator[None]:
    """Turn a panic into an error: the table's log or a checkpoint has something that delta-rs does not expect."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # its module cannot be imported
            raise
        raise UnreadableTableError(
            uri,
            section="_delta_log",
            expected="a log that follows Delta's protocol",
            found=f"one that delta-rs fails on ({str(error).partition(chr(10))[0]})",
            advice="run `coprlake verify`, and restore damaged files in that folder from a copy",
        ) from error
