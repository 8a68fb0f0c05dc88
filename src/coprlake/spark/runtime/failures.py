"""Errors of Spark jobs in one line; Spark reports them as pages of Java and Python traces."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from coprlake.errors import CoprlakeError, StorageError, UsageError

_OWN = re.compile(r"^(?:coprlake\.errors|coprlake\.spark\.\w+)\.(\w+): (.*)$", re.MULTILINE)
_LAST = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Exit|Interrupt)): (.*)$", re.MULTILINE)
_AROUND = re.compile(r"^\[STREAM_FAILED\] Query .*? terminated with exception: | SQLSTATE: \w+$")
"""What Spark adds around the error of a stream."""

_CALL = re.compile(r"An error occurred while calling \S+$")
"""What Py4J puts before an error that has no Python class."""


class JobError(CoprlakeError):
    """A Spark job failed; nothing was committed."""


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn an error of Spark into one of ours that says what happened in the task."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise explained(error) from error


def explained(error: BaseException) -> CoprlakeError:
    """The error in one line."""
    text = str(error)
    own = _OWN.findall(text)
    if own:
        kind = {"UsageError": UsageError, "StorageError": StorageError}.get(own[-1][0], JobError)
        return kind(own[-1][1])
    python = [found for found in _LAST.findall(text) if found[0] not in ("PythonException", "SparkException")]
    if python:
        return JobError(f"the Spark job failed: {python[-1][0]}: {python[-1][1]}")
    lines = [line.strip(": ") for line in text.splitlines() if line.strip() and not _CALL.match(line)]
    return JobError(f"the Spark job failed: {_AROUND.sub('', lines[0]) if lines else type(error).__name__}")
