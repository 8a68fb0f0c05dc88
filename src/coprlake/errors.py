"""Every exception that coprlake raises on purpose, on one screen.

A message says what happened, where, what was expected and what was found, and what to do next: lower case, no final
stop.
"""

import unicodedata
from os import PathLike, fspath


class CoprlakeError(Exception):
    """Anything that coprlake refuses or cannot do; catch this to catch them all."""


class UsageError(CoprlakeError, ValueError):
    """An argument is outside what the called function is defined for."""


class QueryError(UsageError):
    """A query that cannot be understood or that its tables have no answer to.

    Attributes:
        problem: what is wrong, in a line.
        text: the query.
        start: the character where it is wrong.
        end: the character behind what is wrong.
    """

    def __init__(self, problem: str, text: str = "", start: int = 0, end: int = 0) -> None:
        self.problem = problem
        self.text = text
        self.start = start
        self.end = end
        super().__init__(problem if not text else f"{problem}\n{_excerpt(text, start, end)}")

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the place when the error crosses a process border."""
        return type(self), (self.problem, self.text, self.start, self.end)


class QueryLimitError(CoprlakeError):
    """A query took more time, memory or rows than it was allowed; what was allowed can be raised."""


class PatternError(UsageError):
    """A pattern of `parse` that cannot be understood.

    Attributes:
        offset: the character of the pattern at which it goes wrong.
    """

    def __init__(self, problem: str, offset: int) -> None:
        self.problem = problem
        self.offset = offset
        super().__init__(f"{problem}, at character {offset + 1} of the pattern")

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the offset when the error crosses a process border."""
        return type(self), (self.problem, self.offset)


class NotFoundError(CoprlakeError, FileNotFoundError):
    """A file, folder or table that was named is not there."""


class StorageError(CoprlakeError, OSError):
    """A file could not be read or written: a full disk, no permission, a lost connection."""


class ConflictError(CoprlakeError):
    """Somebody else changed the same thing first; nothing was written."""


class DoneBeforeError(ConflictError):
    """A step that may be made only once was made before."""


class FormatError(CoprlakeError):
    """A file is not what it was offered as.

    Attributes:
        file: the file's path as the caller gave it, or a word for where the bytes came from.
        section: the part of the file that is wrong, such as ``header`` or ``signatures``.
        expected: what stands there in a sound file.
        found: what stands there in this one.
        advice: what the reader of the message can do.
    """

    def __init__(self, file: str | PathLike[str], *, section: str, expected: str, found: str, advice: str) -> None:
        self.file = fspath(file)
        self.section = section
        self.expected = expected
        self.found = found
        self.advice = advice
        super().__init__(f"{self.file}: {section}: expected {expected}, found {found}; {advice}")

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the keyword arguments when the error crosses a process border (Spark, multiprocessing)."""
        arguments = {"section": self.section, "expected": self.expected, "found": self.found, "advice": self.advice}
        return _rebuild_format_error, (type(self), self.file, arguments)


class CorruptSketchError(FormatError):
    """The bytes of a sketch contradict themselves or their checksums."""


class SketchTooOldError(FormatError):
    """A sketch of a format that this version no longer reads."""


class SketchTooNewError(FormatError):
    """A sketch of a format that only a later version reads."""


class UnreadableSketchError(FormatError):
    """The path cannot be read as a file at all: a directory, a device, no permission."""


class CorruptSidecarError(FormatError):
    """What stands behind the sketch in a sidecar is damaged, or belongs to other data."""


class UnreadableDataError(FormatError):
    """A data file of a table is not there, or is not the Parquet file that the table says."""


class UnreadableTableError(FormatError):
    """A table that this version cannot read or write, such as one with a newer protocol."""


_SHOWN_CHARACTERS = 100


def _excerpt(text: str, start: int, end: int) -> str:
    """The line of a query that is wrong, with marks under the place."""
    start = min(start, len(text))
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    last = len(text) if last < 0 else last
    number, column = text.count("\n", 0, start) + 1, start - first
    if last - first > _SHOWN_CHARACTERS:
        first = max(first, start - _SHOWN_CHARACTERS // 2)
        last = min(last, first + _SHOWN_CHARACTERS)
    shown = text[first:last].replace("\t", " ").replace("\r", " ")
    marks = " " * _cells(shown[: start - first]) + "^" * max(1, _cells(text[start : min(end, last)]))
    return f"  line {number}, column {column + 1}\n  {shown}\n  {marks}"


def _cells(text: str) -> int:
    """How much room a text takes in a terminal."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


def _rebuild_format_error(kind: type[FormatError], file: str, arguments: dict[str, str]) -> FormatError:
    return kind(file, **arguments)
