"""The spelling of SQL for Spark."""

import re

from sqlglot import exp
from sqlglot.dialects.spark import Spark

_SAFE = re.compile(r"[A-Za-z0-9 _.,:;/<>=!@#%&*()+|~^?\[\]{}-]*")


class SparkGenerator(Spark.Generator):  # type: ignore[misc, valid-type]
    """Renders a tree as Spark reads it."""

    def trycast_sql(self, expression: exp.TryCast) -> str:
        """Keep the cast as it is: Spark has it."""
        return f"TRY_CAST({self.sql(expression, 'this')} AS {self.sql(expression, 'to')})"

    def literal_sql(self, expression: exp.Literal) -> str:
        """Every sign that could mean something to anybody is spelled by its number; ``${`` too means something."""
        if not expression.is_string:
            return super().literal_sql(expression)
        return "'" + "".join(map(_spelled, str(expression.this))) + "'"


def _spelled(sign: str) -> str:
    if _SAFE.fullmatch(sign):
        return sign
    number = ord(sign)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
