"""Figures 4 to 7 of the paper, from a run."""

from pathlib import Path
from typing import Any

Row = dict[str, Any]

PARTS = ("#4878a8", "#e49444", "#85b6b2")
OWN = "#d1605e"


def draw(rows: list[Row], folder: Path) -> list[Path]:
    """Draw all figures as PNG; the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    done = [row for row in rows if "timings" in row]
    return [
        _stacked(
            done,
            folder / "figure-4-ingest.png",
            "Figure 4: time to ingest, seconds per 100 MB (lower is better)",
            {"ingest": "ingest_seconds", "index finish": "index_seconds", "data finish": "data_seconds"},
            lambda row, key: 1e8 * row[key] / row["raw_bytes"],
        ),
        _stacked(
            done,
            folder / "figure-5-disk.png",
            "Figure 5: disk usage, % of the raw lines (lower is better)",
            {"data": "data_bytes", "index": "index_bytes"},
            lambda row, key: 100 * row[key] / row["raw_bytes"],
        ),
        _throughput(done, folder / "figure-6-contains-id.png", "Figure 6", "contains(ID)"),
        _throughput(done, folder / "figure-7-term-ip.png", "Figure 7", "term(IP)"),
    ]


def _sets(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["data"] for row in rows))


def _stacked(rows: list[Row], path: Path, title: str, parts: dict[str, str], value: Any) -> Path:
    import matplotlib.pyplot as plt

    sets = _sets(rows)
    figure, axes = plt.subplots(
        1, len(sets), figsize=(5.6 * len(sets), 0.42 * len(rows) / len(sets) + 1.6), squeeze=False
    )
    for axis, name in zip(axes[0], sets, strict=True):
        own = [row for row in rows if row["data"] == name][::-1]
        left = [0.0] * len(own)
        for (label, key), colour in zip(parts.items(), PARTS, strict=False):
            widths = [value(row, key) for row in own]
            axis.barh([row["title"] for row in own], widths, left=left, label=label, color=colour)
            left = [before + width for before, width in zip(left, widths, strict=True)]
        for place, total in enumerate(left):
            axis.text(total, place, f" {total:.3g}", va="center", fontsize=8)
        axis.set_xlim(0, 1.15 * max(left))
        _dress(axis, name)
        axis.legend(fontsize=8, frameon=False, loc="lower right")
    return _saved(figure, path, title)


def _throughput(rows: list[Row], path: Path, number: str, scenario: str) -> Path:
    import matplotlib.pyplot as plt

    sets = _sets(rows)
    figure, axes = plt.subplots(
        1, len(sets), figsize=(5.6 * len(sets), 0.42 * len(rows) / len(sets) + 1.6), squeeze=False
    )
    for axis, name in zip(axes[0], sets, strict=True):
        own = [row for row in rows if row["data"] == name][::-1]
        speeds = [row["timings"][scenario]["cold"]["per_second"] for row in own]
        colours = [OWN if row["store"].startswith("copr") else PARTS[0] for row in own]
        axis.barh([row["title"] for row in own], speeds, color=colours)
        axis.set_xscale("log")
        for place, speed in enumerate(speeds):
            axis.text(speed, place, f" {speed:,.3g}", va="center", fontsize=8)
        axis.set_xlim(min(speeds) / 2, 8 * max(speeds))
        _dress(axis, name)
    return _saved(figure, path, f"{number}: {scenario} queries a second, cold (higher is better)")


def _dress(axis: Any, title: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _saved(figure: Any, path: Path, title: str) -> Path:
    import matplotlib.pyplot as plt

    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path
