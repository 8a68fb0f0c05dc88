"""Panics of delta-rs: Rust's last resort, which Python sees as an exception that hardly anybody catches."""

from collections.abc import Iterator
from contextlib import contextmanager

from coprlake.errors import UnreadableTableError


@contextmanager
def panics_refused(uri: str) -> Iterator[None]:
    """Make an error of a panic: the log or a checkpoint of the table holds what its reader never expected."""
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
            expected="a log by Delta's protocol",
            found=f"one that its reader fails on ({str(error).partition(chr(10))[0]})",
            advice="run `coprlake verify`, and bring damaged files in that folder back from a copy",
        ) from error
