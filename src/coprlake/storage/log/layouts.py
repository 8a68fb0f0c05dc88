"""Changes of a table's layout: the line of a commit that names other partition columns, and what has to fit to it."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from deltalake import DeltaTable

from coprlake.errors import ConflictError
from coprlake.files import Folder
from coprlake.records import DAY
from coprlake.storage.log.actions import NewFile


class NewLayout(NamedTuple):
    """The partition columns that a table gets.

    Attributes:
        partition_by: their names; `day` becomes a column of the table if it is not one.
        dropped: columns that the table loses.
    """

    partition_by: tuple[str, ...]
    dropped: frozenset[str] = frozenset()


def metadata_of(table: DeltaTable) -> dict[str, Any]:
    """What the log says about the table as a whole, as in the line of a commit."""
    metadata = table.metadata()
    return {
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": metadata.partition_columns,
        "createdTime": metadata.created_time,
        "configuration": metadata.configuration,
    }


def layout_line(table: DeltaTable, layout: NewLayout) -> dict[str, Any]:
    """The line of a commit that changes the layout; all else about the table stays as it is."""
    known = metadata_of(table)
    schema = json.loads(known["schemaString"])
    schema["fields"] = [field for field in schema["fields"] if field["name"] not in layout.dropped]
    if DAY in layout.partition_by and DAY not in [field["name"] for field in schema["fields"]]:
        schema["fields"].append({"name": DAY, "type": "date", "nullable": True, "metadata": {}})
    own = {"schemaString": json.dumps(schema), "partitionColumns": list(layout.partition_by)}
    return {"metaData": known | own}


def check_layout(folder: Folder, add: Sequence[NewFile], partition_by: Sequence[str], layout: NewLayout | None) -> None:
    """Refuse files that were written for other partition columns than the table has, or gets with a new layout.

    Raises:
        ConflictError: somebody else has changed the layout in the meantime.
    """
    partition_by = partition_by if layout is None else layout.partition_by
    wanted = set(partition_by)
    if any(set(file.partition) != wanted for file in add):
        columns = ", ".join(partition_by) or "nothing"
        raise ConflictError(
            f"{folder.uri}: the table was changed while this was written, and is partitioned by {columns} now; nothing "
            "was committed, try again"
        )
