"""The result of a query as a table that fits the terminal.

What is too wide is folded; if there are more columns than fit, each record is written as lines of a name and a value.
"""

from collections.abc import Sequence
from typing import IO, Final

import pyarrow as pa

from coprlake.cli.printing.cells import is_number, texts
from coprlake.cli.printing.harmless import harmless
from coprlake.cli.printing.row_values import is_printed_as_text
from coprlake.cli.printing.search_output import LEVEL_COLORS, painted
from coprlake.records import LOGLEVEL, SOURCE

GAP: Final = "  "
_NARROWEST: Final = 14
"""A column that has to be narrower than this is no longer read with pleasure."""
_MOST_LINES: Final = 6


def width_of(text: str) -> int:
    """How many places a terminal needs for it."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text with spaces up to the width."""
    space = " " * max(0, width - width_of(text))
    return space + text if right else text + space


def folded(text: str, width: int, most_lines: int = _MOST_LINES) -> list[str]:
    """The text in lines of this width, cut at spaces and commas where there are some.

    Too many lines end with an ellipsis.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        while width_of(line) > width and len(lines) <= most_lines:
            end = _fitting(line, width)
            gap = max(line.rfind(" ", width // 2, end + 1), line.rfind(",", width // 2, end))
            end = gap + 1 if gap > 0 else end
            lines.append(line[:end].rstrip(" "))
            line = line[end:]
        lines.append(line)
        if len(lines) > most_lines:
            last = lines[most_lines - 1]
            return [*lines[: most_lines - 1], last[: _fitting(last, width - 1)] + "…"]
    return lines


def _fitting(line: str, width: int) -> int:
    """So many characters of it fit; at least one."""
    if line.isascii():
        return max(1, min(len(line), width))
    end = min(len(line), width)
    while end > 1 and width_of(line[:end]) > width:
        end -= 1
    return max(1, end)


class GridWriter:
    """Columns side by side, as wide as the first batch needs.

    Args:
        out: where to.
        schema: of the result.
        width: of the terminal; None if there is none, and nothing has to be folded.
        is_colored: whether to use colours.
    """

    def __init__(self, out: IO[bytes], schema: pa.Schema, *, width: int | None, is_colored: bool) -> None:
        self._out = out
        self._names = [harmless(name).replace("\n", " ") for name in schema.names]
        self._right = [is_number(kind) for kind in schema.types]
        self._can_fold = [is_printed_as_text(kind) or pa.types.is_nested(kind) for kind in schema.types]
        self._width = width
        self._is_colored = is_colored
        self._widths: list[int] | None = None
        self._is_upright = False
        self._count = 0
        self.is_cut = False
        """Whether something was too long to be shown as a whole."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some."""
        columns = [[harmless(text) for text in texts(column)] for column in batch.columns]
        lines: list[str] = []
        if self._widths is None:
            self._settle(columns)
            if not self._is_upright:
                header = self._row([[name] for name in self._names], ["1"] * len(self._names))
                lines += [line.rstrip() if not self._is_colored else line for line in header]
        for row in zip(*columns, strict=True):
            self._count += 1
            lines += self._upright(row) if self._is_upright else self._side_by_side(row)
        self._out.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
        self._out.flush()

    def _settle(self, columns: list[list[str]]) -> None:
        """Find the widths that fit, or that none do."""
        natural = [
            max([width_of(name), *(width_of(line) for text in column for line in text.split("\n"))])
            for name, column in zip(self._names, columns, strict=True)
        ]
        self._widths = natural
        if self._width is None:
            return
        room = self._width - len(GAP) * (len(natural) - 1)
        if sum(natural) <= room:
            return
        allotted = _allotted(natural, room, self._can_fold)
        is_narrow = any(has < min(wants, _NARROWEST) for has, wants in zip(allotted, natural, strict=True))
        self._is_upright = is_narrow or sum(allotted) > room
        self._widths = allotted

    def _side_by_side(self, row: Sequence[str]) -> list[str]:
        assert self._widths is not None
        if self._width is None:
            cells = [[text.replace("\n", " ")] for text in row]
            self._widths = [max(w, width_of(c[0])) for w, c in zip(self._widths, cells, strict=True)]
        else:
            cells = [folded(text, width) for text, width in zip(row, self._widths, strict=True)]
            self.is_cut |= any(len(lines) == _MOST_LINES and lines[-1].endswith("…") for lines in cells)
        return self._row(cells, [self._code(name, text) for name, text in zip(self._names, row, strict=True)])

    def _row(self, cells: Sequence[Sequence[str]], codes: Sequence[str]) -> list[str]:
        assert self._widths is not None
        lines = []
        last = len(cells) - 1
        for number in range(max(map(len, cells), default=0)):
            parts = []
            for i, (found, width, right) in enumerate(zip(cells, self._widths, self._right, strict=True)):
                text = found[number] if number < len(found) else ""
                space = " " * max(0, width - width_of(text))
                shown = self._paint(text, codes[i])
                parts.append(space + shown if right else shown if i == last else shown + space)
            lines.append(GAP.join(parts).rstrip(" "))
        return lines

    def _upright(self, row: Sequence[str]) -> list[str]:
        """A record as lines of a name and a value; names without a value are left out."""
        width = max(map(width_of, self._names))
        room = max(20, (self._width or 100) - width - len(GAP))
        lines = [self._paint(f"── {self._count:,} ".ljust(min(40, self._width or 40), "─"), "2")]
        for name, text in zip(self._names, row, strict=True):
            if not text:
                continue
            first, *more = folded(text, room)
            self.is_cut |= bool(more) and len(more) + 1 == _MOST_LINES and more[-1].endswith("…")
            lines.append(self._paint(padded(name, width), "1") + GAP + self._paint(first, self._code(name, text)))
            lines += [" " * (width + len(GAP)) + line for line in more]
        return lines

    def _code(self, name: str, text: str) -> str:
        if name == LOGLEVEL:
            return LEVEL_COLORS.get(text.upper(), "35")
        return {SOURCE: "36", "timestamp": "2"}.get(name, "0")

    def _paint(self, text: str, code: str) -> str:
        return painted(text, code) if self._is_colored and code != "0" else text

    def close(self) -> None:
        """Nothing is left to do."""


def _allotted(natural: Sequence[int], room: int, can_fold: Sequence[bool]) -> list[int]:
    """Numbers, times and narrow texts get what they want, and the wide ones share what is left."""
    allotted = list(natural)
    left = room - sum(width for width, folds in zip(natural, can_fold, strict=True) if not folds)
    wide = sorted((i for i, folds in enumerate(can_fold) if folds), key=lambda i: natural[i])
    for place, i in enumerate(wide):
        share = max(0, left // (len(wide) - place))
        allotted[i] = min(natural[i], share)
        left -= allotted[i]
    return allotted
