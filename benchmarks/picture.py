"""The README's picture, made from a run of `benchmarks.paper`: ``python -m benchmarks.picture RUN.jsonl > FILE.svg``.

Two bars for each store: what its index costs, and how fast it finds a part of an address. Plain SVG, readable on a
light and on a dark background, so that the same file serves README and site.
"""

import json
import math
import sys
from html import escape
from pathlib import Path
from typing import Any, Final

TITLES: Final = {
    "coprlake": "coprlake",
    "Bloom filters": "Bloom filters",
    "Lucene, a document a line": "Lucene",
    "tantivy, words": "tantivy",
    "ClickHouse, text index of words": "ClickHouse, words",
    "ClickHouse, text index of 3-grams": "ClickHouse, 3-grams",
    "SQLite FTS5, trigrams": "SQLite, trigrams",
}
"""The stores shown: their titles in a run, and their names in the picture."""

SCENARIO: Final = "contains(IP)"
_WIDTH, _ROW, _TOP, _NAMES, _BAR, _GAP = 860, 30, 66, 170, 270, 80
_OURS, _THEIRS, _TEXT = "#0d9488", "#94a3b8", "#64748b"


def picture(rows: list[dict[str, Any]]) -> str:
    """The SVG of a run."""
    data = rows[0]["data"]
    own = {row["title"]: row for row in rows if row["data"] == data and "timings" in row}
    scan = _rate(own["Scan"])
    shown = [(name, _index(own[title]), _rate(own[title]) / scan) for title, name in TITLES.items()]
    height = _TOP + _ROW * len(shown) + 34
    most_index, most_speed = max(index for _, index, _ in shown), max(speed for *_, speed in shown)
    second = _NAMES + _BAR + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="13" role="img">',
        f"<title>Size of the index, and speed of {escape(SCENARIO)}, of {len(shown)} stores</title>",
        _text(_NAMES, 24, "size of the index", weight="bold"),
        _text(_NAMES, 44, "% of the raw logs; less is better"),
        _text(second, 24, "finding a part of an IP address", weight="bold"),
        _text(second, 44, "times as fast as scanning; more is better, log scale"),
    ]
    for number, (name, index, speed) in enumerate(shown):
        y = _TOP + _ROW * number
        color = _OURS if name == "coprlake" else _THEIRS
        weight = "bold" if name == "coprlake" else "normal"
        long = _BAR * max(0.0, math.log(max(speed, 1))) / math.log(most_speed)
        parts += [
            _text(_NAMES - 12, y + 14, name, weight=weight, anchor="end"),
            _bar(_NAMES, y, _BAR * index / most_index, color),
            _text(_NAMES + _BAR * index / most_index + 8, y + 14, f"{index:.1f} %", weight=weight),
            _bar(second, y, long, color),
            _text(
                second + max(long, 2) + 8, y + 14, f"{speed:,.0f} x" if speed >= 10 else f"{speed:.1f} x", weight=weight
            ),
        ]
    size = own["Scan"]["raw_bytes"] / 1e6
    parts.append(
        _text(_NAMES, height - 8, f"{size:.0f} MB of generated logs, one core, cold; benchmarks/runs", size=11)
    )
    return "\n".join([*parts, "</svg>", ""])


def _index(row: dict[str, Any]) -> float:
    return 100 * row["index_bytes"] / row["raw_bytes"]


def _rate(row: dict[str, Any]) -> float:
    return row["timings"][SCENARIO]["cold"]["per_second"]


def _bar(x: float, y: float, width: float, color: str) -> str:
    return f'<rect x="{x:.0f}" y="{y}" width="{max(width, 2):.1f}" height="18" rx="3" fill="{color}"/>'


def _text(x: float, y: float, text: str, *, weight: str = "normal", anchor: str = "start", size: int = 13) -> str:
    return (
        f'<text x="{x:.0f}" y="{y}" fill="{_TEXT}" font-weight="{weight}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text().splitlines()
    sys.stdout.write(picture([json.loads(line) for line in lines]))
