"""What a query has to know of the tables that it names."""

from collections.abc import Callable
from typing import Any, Final, Protocol

import pyarrow as pa

LOGS: Final = "logs"
"""The name of the table that a query is asked of."""


class Tables(Protocol):
    """Finds tables by what stands behind ``fetch``."""

    def schema(self, name: str, fail: Callable[[str], Any]) -> pa.Schema:
        """The columns of a table, a derived day marked so; `fail` is told what is wrong with the name."""
