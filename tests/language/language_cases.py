"""The golden queries: files of cases, each a query and the rows that it gives on every engine."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from coprlake import Table, create_table

FOLDER = Path(__file__).parent / "queries"
NOW = "2026-11-16T12:34:56Z"


@dataclass(frozen=True)
class Case:
    """A query and its rows; `ordered` if their order is a part of it."""

    name: str
    query: str
    rows: tuple[str, ...]
    ordered: bool


def cases() -> Iterator[Case]:
    for file in sorted(FOLDER.glob("*.txt")):
        for piece in file.read_text("utf-8").split("\n== ")[1:]:
            name, _, body = piece.partition("\n")
            query, _, rows = body.partition("\n--\n") if "\n--\n" in body else (body.partition("\n--")[0], "", "")
            lines = tuple(canonical(json.loads(line)) for line in rows.splitlines() if line.strip())
            yield Case(f"{file.stem}: {name}", query, lines, name.endswith("(ordered)"))


def canonical(row: Any) -> str:
    """A row as text that is equal for equal rows, and shows the order of its fields."""
    return json.dumps(plain(row), ensure_ascii=False)


def plain(value: Any) -> Any:
    """Times as ISO texts, durations as nanoseconds, maps as objects."""
    if isinstance(value, datetime):
        text = value.astimezone(UTC).isoformat()
        return text.replace("+00:00", "Z")
    if isinstance(value, timedelta):
        nanoseconds = getattr(value, "value", None)
        return nanoseconds if nanoseconds is not None else value // timedelta(microseconds=1) * 1000
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(part, tuple) for part in value):
            return {key: plain(part) for key, part in sorted(value)}
        return [plain(part) for part in value]
    return value


def rows_of(table: pa.Table) -> list[str]:
    return [canonical(row) for row in table.to_pylist()]


def check(case: Case, table: pa.Table) -> None:
    found, wanted = rows_of(table), list(case.rows)
    if not case.ordered:
        found, wanted = sorted(found), sorted(wanted)
    assert found == wanted, case.query


def _record(number: int, time: str, source: str, level: str | None, content: str, **attributes: str) -> dict[str, Any]:
    zone = attributes.pop("own_zone", None)
    return {
        "timestamp": datetime.fromisoformat(time),
        "source": source,
        "loglevel": level,
        "content": content,
        "attributes": attributes,
        "id": number,
        "zone": zone,
    }


def records() -> Iterable[dict[str, Any]]:
    return [
        _record(1, "2026-11-15T09:00:00Z", "web", "INFO", "created order 1001 for eve", userapp="shop", took="20.5"),
        _record(2, "2026-11-15T10:00:00Z", "web", "WARN", "order 1002 not found", status="404"),
        _record(3, "2026-11-15T11:00:00Z", "db", "ERROR", "connection refused", status="503"),
        _record(4, "2026-11-15T12:00:00Z", "db", "ERROR", "deadlock detected", took="40"),
        _record(5, "2026-11-16T09:00:00Z", "web", "INFO", "login", userapp="admin", status="200"),
        _record(6, "2026-11-16T10:00:00Z", "cache", None, "miss"),
        _record(7, "2026-11-16T11:00:00Z", "web", "INFO", "created order 1007 for bob", userapp="shop"),
        _record(8, "2026-11-16T11:30:00Z", "db", "WARN", "slow query for order 1008", status="500"),
        _record(9, "2026-11-01T00:00:00Z", "web", "ERROR", "border crossed"),
        _record(10, "2026-11-16T14:00:00Z", "cache", "INFO", "hit", zone="eu"),
        _record(11, "2026-11-16T15:00:00Z", "web", "INFO", "hello", own_zone="eu"),
        _record(12, "2020-01-01T00:00:00Z", "db", "INFO", "when was this"),
    ]


def small_table(folder: Path) -> Table:
    """The table that the cases of tables.txt are about, in several segments."""
    table = create_table(folder, schema=pa.schema([("id", pa.int64()), ("zone", pa.string())]), partition_by="day")
    rows = list(records())
    for part in (rows[:5], rows[5:]):
        table.append(part)
    return table
