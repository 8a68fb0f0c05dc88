"""Draws results with characters: a sparkline for each time series, a bar for each number."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from coprlake.cli.printing.cells import duration, is_number, nanoseconds, number, texts
from coprlake.cli.printing.grids import GAP, padded, width_of
from coprlake.cli.printing.harmless import harmless
from coprlake.cli.printing.search_output import painted

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_PARTS: Final = " ▏▎▍▌▋▊▉"
_TIMEFRAME: Final = "timeframe"
_INTERVAL: Final = "interval"
_WIDEST_KEY: Final = 40
_SHORTEST: Final = 8
_MOST_KEYS: Final = 2


def is_series(schema: pa.Schema) -> bool:
    """Whether a result has the columns of `makeTimeseries`: timeframe, interval, and arrays of numbers."""
    names = schema.names
    return (
        _TIMEFRAME in names
        and _INTERVAL in names
        and pa.types.is_struct(schema.field(_TIMEFRAME).type)
        and pa.types.is_duration(schema.field(_INTERVAL).type)
        and bool(_arrays(schema))
    )


def _arrays(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if pa.types.is_list(field.type) and is_number(field.type.value_type)]


def are_bars(schema: pa.Schema) -> bool:
    """Whether a result can be drawn as bars: one or two keys, then a number."""
    kinds = schema.types
    return (
        2 <= len(kinds) <= _MOST_KEYS + 1
        and is_number(kinds[-1])
        and not any(pa.types.is_nested(kind) for kind in kinds[:-1])
    )


def sparkline(values: Sequence[float | None], width: int) -> str:
    """Draw one character per value, whose height shows the value; a space for null.

    Where there are more values than room, a sign is the highest of several. The lowest sign is zero, or the lowest
    value if that is below.
    """
    share = _share(len(values), width)
    if share > 1:
        parts = [values[i : i + share] for i in range(0, len(values), share)]
        values = [max((value for value in part if value is not None), default=None) for part in parts]
    known = [value for value in values if value is not None]
    lowest, highest = min([0, *known]), max([0, *known])
    step = (highest - lowest) / (len(_LEVELS) - 1) or 1
    return "".join(" " if value is None else _LEVELS[round((value - lowest) / step)] for value in values)


def _share(count: int, width: int) -> int:
    """Return how many values share a character."""
    return max(1, -(-count // width))


def bar(value: float, highest: float, width: int) -> str:
    """Draw a bar, exact to an eighth of a character."""
    if highest <= 0 or value <= 0:
        return ""
    eighths = max(1, round(8 * width * value / highest))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_PARTS[rest] if rest else "")


class _Lines:
    """Columns that are aligned once all rows are known."""

    def __init__(self, is_colored: bool) -> None:
        self._is_colored = is_colored
        self._columns: list[tuple[str, list[str], bool, str]] = []

    def add(self, name: str, cells: list[str], *, right: bool = False, code: str = "0") -> None:
        self._columns.append((name, cells, right, code))

    @property
    def width(self) -> int:
        return sum(max(map(width_of, [name, *cells])) + len(GAP) for name, cells, _, _ in self._columns)

    def text(self) -> list[str]:
        widths = [max(map(width_of, [name, *cells])) for name, cells, _, _ in self._columns]
        lines = []
        header = [padded(name, w, right=r) for (name, _, r, _), w in zip(self._columns, widths, strict=True)]
        lines.append(self.paint(GAP.join(header).rstrip(), "1"))
        for row in zip(*(cells for _, cells, _, _ in self._columns), strict=True):
            parts = []
            for text, w, (_, _, right, code) in zip(row, widths, self._columns, strict=True):
                space = " " * (w - width_of(text))
                shown = self.paint(text, code)
                parts.append(space + shown if right else shown + space)
            lines.append(GAP.join(parts).rstrip())
        return lines

    def paint(self, text: str, code: str) -> str:
        return painted(text, code) if self._is_colored and code != "0" and text else text


def _key(text: str) -> str:
    """Format a value that labels a line."""
    text = harmless(text).replace("\n", " ") or "null"
    return text if len(text) <= _WIDEST_KEY else text[: _WIDEST_KEY - 1] + "…"


def series_lines(table: pa.Table, width: int, *, is_colored: bool = False) -> list[str]:
    """Draw a line for each series: its key, its sparkline, its minimum and maximum."""
    lines: list[str] = []
    table = table.combine_chunks()
    frames = table.column(_TIMEFRAME).to_pylist()
    intervals = nanoseconds(table.column(_INTERVAL)).to_pylist()
    spans = [
        (frame and frame["start"], frame and frame["end"], interval)
        for frame, interval in zip(frames, intervals, strict=True)
    ]
    for span in dict.fromkeys(spans):
        rows = [i for i, other in enumerate(spans) if other == span]
        if lines:
            lines.append("")
        part = table.take(pa.array(rows, pa.int64()))
        lines += [*_series_of(part, width, is_colored, _range(*span))]
    return lines


def _range(start: datetime | None, end: datetime | None, interval: int | None) -> str:
    shown = " to ".join("?" if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in (start, end))
    return f"{shown}, every {duration(interval)}"


def _series_of(table: pa.Table, width: int, is_colored: bool, span: str) -> list[str]:
    """Draw the series that share a time range."""
    names = _arrays(table.schema)
    keys = [name for name in table.column_names if name not in (*names, _TIMEFRAME, _INTERVAL)]
    made = _Lines(is_colored)
    for key in keys:
        shown = [_key(text) for text in _texts(table.column(key))]
        made.add(harmless(key), [text for text in shown for _ in names])
    is_one = len(names) == 1
    if not is_one:
        made.add("", [harmless(name) for _ in range(table.num_rows) for name in names], code="2")
    arrays = {name: nanoseconds(table.column(name)).to_pylist() for name in names}
    values: list[list[Any]] = [arrays[name][row] or [] for row in range(table.num_rows) for name in names]
    show = [_shower(_element_type(table.schema.field(name).type)) for name in names] * table.num_rows
    ends = {
        name: [
            write(pick(known)) if (known := [v for v in one if v is not None]) else ""
            for one, write in zip(values, show, strict=True)
        ]
        for name, pick in (("min", min), ("max", max))
    }
    figures = sum(max(map(len, [name, *cells])) + len(GAP) for name, cells in ends.items())
    room = max(_SHORTEST, width - made.width - figures)
    longest = max(map(len, values), default=0)
    made.add(harmless(names[0]) if is_one else "", [sparkline(each, room) for each in values], code="36")
    for name, cells in ends.items():
        made.add(name, cells, right=True)
    share = _share(longest, room)
    merged = f", each character the highest of {share}" if share > 1 else ""
    return [made.paint(f"{span}, {longest:,} values{merged}", "2"), *made.text()]


def _texts(column: pa.ChunkedArray) -> list[str]:
    return [text for chunk in column.chunks for text in texts(chunk)]


def _element_type(kind: pa.DataType) -> pa.DataType:
    assert pa.types.is_list(kind), kind
    return kind.value_type


def _shower(kind: pa.DataType) -> Callable[[Any], str]:
    return duration if pa.types.is_duration(kind) else number


def bar_lines(table: pa.Table, width: int, *, is_colored: bool = False) -> list[str]:
    """Draw a line for each row: its keys, its number and a bar."""
    *keys, last = table.column_names
    made = _Lines(is_colored)
    for key in keys:
        made.add(harmless(key), [_key(text) for text in _texts(table.column(key))])
    made.add(harmless(last), _texts(table.column(last)), right=True)
    numbers = [value or 0 for value in nanoseconds(table.column(last)).to_pylist()]
    highest = max(numbers, default=0)
    room = max(_SHORTEST, width - made.width)
    made.add("", [bar(value, highest, room) for value in numbers], code="36")
    return made.text()
