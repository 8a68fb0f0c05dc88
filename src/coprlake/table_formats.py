"""The file names by which the folder of a Delta, Iceberg or Hudi table is recognized."""

from typing import Final, NamedTuple

DELTA: Final = "Delta"
ICEBERG: Final = "Iceberg"
HUDI: Final = "Hudi"

MARKS: Final = {"_delta_log": DELTA, ".hoodie": HUDI}
"""Folders that only tables of the format have."""

ICEBERG_FOLDER: Final = "metadata"
"""A common folder name: it belongs to an Iceberg table if one of its files does, see `is_iceberg`."""

_ICEBERG_ENDINGS: Final = (".metadata.json", ".metadata.json.gz")


class FoundTable(NamedTuple):
    """A table of some format, and its folder."""

    format: str
    folder: str

    @property
    def noun(self) -> str:
        """The format with its article: ``a Delta table``."""
        return f"{'an' if self.format == ICEBERG else 'a'} {self.format} table"


def is_iceberg(name: str) -> bool:
    """Whether this file in a folder `ICEBERG_FOLDER` makes the folder above an Iceberg table."""
    return name.endswith(_ICEBERG_ENDINGS)
