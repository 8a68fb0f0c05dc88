"""Every exception that coprlake raises on purpose, on one screen.

A message says what happened, where, what was expected and what was found, and what to do next: lower case, no final
stop.
"""

from os import PathLike, fspath


class CoprlakeError(Exception):
    """Anything that coprlake refuses or cannot do; catch this to catch them all."""


class UsageError(CoprlakeError, ValueError):
    """An argument is outside what the called function is defined for."""


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


def _rebuild_format_error(kind: type[FormatError], file: str, arguments: dict[str, str]) -> FormatError:
    return kind(file, **arguments)
