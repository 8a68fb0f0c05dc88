"""The exports of a pattern: names, types and their Arrow types."""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

_SCALARS: Final = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "ip": pa.string(),
    "timestamp": pa.int64(),
    "json": pa.string(),
    "map": pa.map_(pa.string(), pa.string()),
}


@dataclass(frozen=True)
class ExportType:
    """The type of an export.

    Attributes:
        kind: string, long, double, boolean, ip (text as written, IPv6 in lower case), timestamp (microseconds since
            1970, UTC), json (the text of a value), map (of strings), array or record.
        of: the type of the elements of an array.
        fields: the names and types of the fields of a record.
    """

    kind: str
    of: "ExportType | None" = None
    fields: tuple[tuple[str, "ExportType"], ...] = ()

    def arrow(self) -> pa.DataType:
        """The Arrow type of the values."""
        if self.of is not None:
            return pa.list_(self.of.arrow())
        if self.kind == "record":
            return pa.struct([(name, field.arrow()) for name, field in self.fields])
        return _SCALARS[self.kind]

    def __str__(self) -> str:
        if self.of is not None:
            return f"array of {self.of}"
        if self.kind == "record":
            return "record of " + ", ".join(f"{name} {field}" for name, field in self.fields)
        return self.kind


STRING: Final = ExportType("string")
LONG: Final = ExportType("long")
DOUBLE: Final = ExportType("double")
BOOLEAN: Final = ExportType("boolean")
IP: Final = ExportType("ip")
TIMESTAMP: Final = ExportType("timestamp")
JSON: Final = ExportType("json")
MAP: Final = ExportType("map")


@dataclass(frozen=True)
class Export:
    """One value that a pattern exports."""

    name: str
    type: ExportType
