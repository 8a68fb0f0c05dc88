"""How a query finds the tables that it names."""

from collections.abc import Callable
from typing import Any, Final, Protocol

import pyarrow as pa

LOGS: Final = "logs"
"""The name of the table that a query runs on."""


class Tables(Protocol):
    """Finds tables by the name after ``fetch``."""

    def schema(self, name: str, fail: Callable[[str], Any]) -> pa.Schema:
        """The columns of a table, with a derived day marked; `fail` gets the problem if the name is invalid."""

    def keys(self, name: str) -> frozenset[str] | None:
        """The attributes that records of the table have; None if they are not all known."""

    def mixed(self, name: str) -> frozenset[str]:
        """The columns, not of text, for which some record of the table has an attribute instead."""
