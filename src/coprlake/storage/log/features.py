"""The features that a build must support to read a table, or to write to it.

A table may list them in two properties of its Delta log, as names separated by commas. A build that does not know one
of the names raises an error that says what to do; it never answers from files that it would misread. Tables without
the properties need only what build 0.1.0 supports. The formats of sidecars and sketches have their own versions: a
sidecar that is too new is ignored, and its data file is scanned.

A format change that older builds would misread adds a name here, and to the properties of tables that need it.
"""

from collections.abc import Mapping
from typing import Final

from coprlake.errors import UnreadableTableError

READER_PROPERTY: Final = "coprlake.readerFeatures"
WRITER_PROPERTY: Final = "coprlake.writerFeatures"

READER_FEATURES: Final[frozenset[str]] = frozenset()
"""The features that this build can read."""

WRITER_FEATURES: Final[frozenset[str]] = READER_FEATURES
"""The features that this build can write; a writer also reads."""

OF_NEW_TABLES: Final[Mapping[str, str]] = {}
"""The properties of tables that this build creates."""


def check_readable(uri: str, configuration: Mapping[str, str]) -> None:
    """Raise if this build could search the table wrongly.

    Raises:
        UnreadableTableError: the table needs a newer build.
    """
    _check(uri, configuration, READER_PROPERTY, READER_FEATURES, "read")


def check_writable(uri: str, configuration: Mapping[str, str]) -> None:
    """Raise if a change by this build could break the table for others.

    Raises:
        UnreadableTableError: the table needs a newer build.
    """
    check_readable(uri, configuration)
    _check(uri, configuration, WRITER_PROPERTY, WRITER_FEATURES, "write to")


def _check(uri: str, configuration: Mapping[str, str], name: str, known: frozenset[str], verb: str) -> None:
    needed = {feature.strip() for feature in configuration.get(name, "").split(",")} - {""}
    unknown = sorted(needed - known)
    if unknown:
        raise UnreadableTableError(
            uri,
            section=name,
            expected=f"only features that this build can {verb}" + (f": {', '.join(sorted(known))}" if known else ""),
            found=", ".join(unknown),
            advice="upgrade coprlake; any other engine reads the data files as before",
        )
