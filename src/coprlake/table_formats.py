"""By which names the folder of a table is known: those of Delta, Iceberg and Hudi."""

from typing import Final, NamedTuple

DELTA: Final = "Delta"
ICEBERG: Final = "Iceberg"
HUDI: Final = "Hudi"

MARKS: Final = {"_delta_log": DELTA, ".hoodie": HUDI}
"""Folders that only a table of the format has."""

ICEBERG_FOLDER: Final = "metadata"
"""A folder that may be anybody's: it is Iceberg's if a file in it is, see `is_iceberg`."""

_ICEBERG_ENDINGS: Final = (".metadata.json", ".metadata.json.gz")


class Found(NamedTuple):
    """A table of some format, and its folder."""

    format: str
    folder: str

    @property
    def noun(self) -> str:
        """The format with its article: ``a Delta table``."""
        return f"{'an' if self.format == ICEBERG else 'a'} {self.format} table"


def is_iceberg(name: str) -> bool:
    """Whether a file in a folder `ICEBERG_FOLDER` makes the folder above a table."""
    return name.endswith(_ICEBERG_ENDINGS)
