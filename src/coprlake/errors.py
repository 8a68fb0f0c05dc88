"""All exceptions that coprlake raises on purpose.

A message says what happened and where, what was expected and what was found, and what to do next. It is in lower case,
without a full stop at the end.
"""

import unicodedata
from os import PathLike, fspath


class CoprlakeError(Exception):
    """The base class of all errors of coprlake."""


class UsageError(CoprlakeError, ValueError):
    """An argument has a value that the called function does not accept."""


class QueryError(UsageError):
    """A query is invalid, or does not fit the tables that it reads.

    Attributes:
        problem: what is wrong, in one line.
        text: the text of the query.
        start: the index of the first wrong character.
        end: the index after the last wrong character.
    """

    def __init__(self, problem: str, text: str = "", start: int = 0, end: int = 0) -> None:
        self.problem = problem
        self.text = text
        self.start = start
        self.end = end
        super().__init__(problem if not text else f"{problem}\n{_excerpt(text, start, end)}")

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the position when the error is sent to another process."""
        return type(self), (self.problem, self.text, self.start, self.end)


class QueryLimitError(CoprlakeError):
    """A query exceeded its limit of time, memory or rows; the limit can be raised."""


class PatternError(UsageError):
    """A pattern of `parse` is invalid.

    Attributes:
        offset: the index of the wrong character in the pattern.
    """

    def __init__(self, problem: str, offset: int) -> None:
        self.problem = problem
        self.offset = offset
        super().__init__(f"{problem}, at character {offset + 1} of the pattern")

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the offset when the error is sent to another process."""
        return type(self), (self.problem, self.offset)


class SearchWarning(UserWarning):
    """A search or a query was run, but probably does not mean what its author wanted, for example because of a typo."""


class NotFoundError(CoprlakeError, FileNotFoundError):
    """A file, folder or table does not exist."""


class NotInstalledError(NotFoundError):
    """An optional package is not installed; the message says what to run."""


class StorageError(CoprlakeError, OSError):
    """A file could not be read or written: a full disk, no permission, a lost connection."""


class ConflictError(CoprlakeError):
    """Another writer changed the same data first; nothing was written."""


class OvertakenError(ConflictError):
    """Another transaction of the same application was committed first; nothing was changed."""


class DoneBeforeError(ConflictError):
    """A step that must happen only once has already been done."""


class FormatError(CoprlakeError):
    """A file does not have the expected format.

    Attributes:
        file: the path of the file as the caller gave it, or where the bytes came from.
        section: the part of the file that is wrong, such as ``header`` or ``signatures``.
        expected: what a sound file has there.
        found: what this file has there.
        advice: what to do about it.
    """

    def __init__(self, file: str | PathLike[str], *, section: str, expected: str, found: str, advice: str) -> None:
        self.file = fspath(file)
        self.section = section
        self.expected = expected
        self.found = found
        self.advice = advice
        super().__init__(f"{self.file}: {section}: expected {expected}, found {found}; {advice}")

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the keyword arguments when the error is sent to another process (Spark, multiprocessing)."""
        arguments = {"section": self.section, "expected": self.expected, "found": self.found, "advice": self.advice}
        return _rebuild_format_error, (type(self), self.file, arguments)


class CorruptSketchError(FormatError):
    """The bytes of a sketch contradict each other or their checksums."""


class SketchTooOldError(FormatError):
    """A sketch has an old format that this version no longer reads."""


class SketchTooNewError(FormatError):
    """A sketch has a new format that only later versions read."""


class UnreadableSketchError(FormatError):
    """The path of a sketch cannot be read as a file: it is a folder or a device, or permission is denied."""


class CorruptSidecarError(FormatError):
    """The part of a sidecar that follows the sketch is damaged, or belongs to another data file."""


class UnreadableDataError(FormatError):
    """A data file of a table is missing, or is not the Parquet file that the log describes."""


class UnreadableTableError(FormatError):
    """This version cannot read or write a table, for example because of its protocol."""


_SHOWN_CHARACTERS = 100


def _excerpt(text: str, start: int, end: int) -> str:
    """Return the line of the query with the error, and marks below it."""
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
    """Return the width of a text in a terminal."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


def _rebuild_format_error(kind: type[FormatError], file: str, arguments: dict[str, str]) -> FormatError:
    return kind(file, **arguments)
