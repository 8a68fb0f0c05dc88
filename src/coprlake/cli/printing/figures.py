"""Sizes, counts and durations as people read them, and as they write them."""

import re
from collections.abc import Iterable, Sequence

import click

from coprlake.cli.printing.harmless import harmless, one_line

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    _UNITS |= {_letter: 1000**_power, f"{_letter}B": 1000**_power, f"{_letter}IB": 1024**_power}

_UNLIMITED = 1 << 20
_LEAST_FOR_SHARE = 1_000_000
"""From this many bytes of raw text on, sizes are also given in percent of it."""


def parse_size(value: str | int) -> int:
    """``500MB`` (1e6), ``1GiB`` (2**30), or a number of bytes: as an option's type."""
    if isinstance(value, int):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
    if match is None or match[2].upper() not in _UNITS:
        raise click.BadParameter(f"{value!r} is not a valid size; expected a number with a unit, such as 500MB or 1GiB")
    size_bytes = round(float(match[1]) * _UNITS[match[2].upper()])
    if size_bytes < 1:
        raise click.BadParameter(f"{value!r} is less than a byte")
    return size_bytes


def size(count: float) -> str:
    """``12.3 MB``: of 1e6 bytes."""
    if abs(count) < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        count /= 1000
        if abs(count) < 999.5 or unit == "PB":
            break
    return f"{count:,.1f} {unit}" if abs(count) < 100 else f"{count:,.0f} {unit}"


def percent(part: float, whole: float) -> str:
    """``1.52 %``; with two digits that mean something."""
    if not whole:
        return "-"
    share = 100 * part / whole
    if 0 < share < 0.005:
        return "< 0.01 %"
    return f"{share:.0f} %" if share >= 100 or share == 0 else f"{share:.1f} %" if share >= 10 else f"{share:.2f} %"


def share_of_raw(count: float, raw_bytes: float) -> str:
    """``2.73 %``; nothing if there is so little raw text that it would mislead: each file has a fixed cost."""
    return percent(count, raw_bytes) if raw_bytes >= _LEAST_FOR_SHARE else ""


def of_raw(count: float, raw_bytes: float) -> str:
    """``  12.3 MB   2.73 % of raw``, or only the size, see `share_of_raw`."""
    share = share_of_raw(count, raw_bytes)
    return f"{size(count):>9}" + (f"  {share:>7} of raw" if share else "")


def amount(count: int, one: str, many: str | None = None) -> str:
    """``1 file``, ``1,234 files``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def seconds(duration: float) -> str:
    """``0.42 ms``, ``12.3 s``, ``3 min 20 s``."""
    if duration < 0.9995:
        return f"{duration * 1000:.2f} ms" if duration < 0.01 else f"{duration * 1000:.0f} ms"
    if duration < 120:
        return f"{duration:.2f} s" if duration < 10 else f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def rate(count: float, duration: float) -> str:
    """``123 MB/s``."""
    return f"{size(count / duration)}/s" if duration > 0 else "-"


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Lines of a name and what it is; further lines of the latter stand under the first."""
    rows = [(one_line(name), harmless(value)) for name, value in rows]
    width = max((len(name) for name, _ in rows), default=0)
    further = "\n" + " " * (width + 2)
    return "\n".join(
        f"{click.style(name.ljust(width), dim=True)}  {further.join(value.splitlines())}".rstrip()
        for name, value in rows
    )


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """A table, as wide as it needs to be so that `grep` and `awk` can read it; columns in `right` are flush right."""
    from rich.console import Console  # loaded when there is a table to print
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for i, name in enumerate(header):
        table.add_column(Text(name), justify="right" if i in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console = Console(width=_UNLIMITED, force_terminal=True, color_system="standard")  # click takes colours out again
    with console.capture() as captured:
        console.print(table)
    return re.sub(r" +((?:\x1b\[0m)?)$", r"\1", captured.get().rstrip("\n"), flags=re.MULTILINE)
