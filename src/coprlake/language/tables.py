"""What a query has to know of the tables that it names."""

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa


class Tables(Protocol):
    """Finds tables by what stands behind ``fetch``."""

    def schema(self, name: str, fail: Callable[[str], Any]) -> pa.Schema:
        """The columns of a table; `fail` is told what is wrong with the name."""
