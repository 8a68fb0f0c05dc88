"""What a build must understand to read a table, or to write to it.

A table may say so in two properties of its Delta log, each a list of names separated by commas. A build that does not
know one of the names refuses, with a message that says what to do; it never answers from files that it would read
wrongly. Tables without the properties need nothing besides what build 0.1.0 understood. The formats of sidecars and
sketches have versions of their own: a sidecar that is too new is left aside, and its data file is scanned.

A change of the formats that older builds would misread adds a name here, and gives it to the tables that need it.
"""

from collections.abc import Mapping
from typing import Final

from coprlake.errors import UnreadableTableError

READER_PROPERTY: Final = "coprlake.readerFeatures"
WRITER_PROPERTY: Final = "coprlake.writerFeatures"

READER_FEATURES: Final[frozenset[str]] = frozenset()
"""What this build understands when it reads."""

WRITER_FEATURES: Final[frozenset[str]] = READER_FEATURES
"""What this build observes when it writes; whoever writes also reads."""

OF_NEW_TABLES: Final[Mapping[str, str]] = {}
"""The properties of tables that this build makes."""


def check_readable(uri: str, configuration: Mapping[str, str]) -> None:
    """Raise if a search of the table could be wrong.

    Raises:
        UnreadableTableError: the table needs a newer build.
    """
    _check(uri, configuration, READER_PROPERTY, READER_FEATURES, "read")


def check_writable(uri: str, configuration: Mapping[str, str]) -> None:
    """Raise if a change of the table could break it for others.

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
