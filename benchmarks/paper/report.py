"""A run as a page: tables in the paper's form with its own numbers beside ours, and what is to be concluded."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.paper import published
from benchmarks.paper.datasets import DataSet
from benchmarks.paper.scenarios import SCENARIOS
from coprlake.config import BATCH_BYTES

Row = dict[str, Any]
MODES = {"cold": "cold (new reader, no page in memory)", "fresh": "new reader, warm cache", "warm": "warm reader"}

NOTES = (
    "What to know when reading this: a cold COPR query reads its whole sidecar, which is checked on opening "
    "(docs/decisions/0009-sidecars-are-checked.md); the paper's reader touches a few pages, which is probably why its "
    "ratio to Scan is higher. The warm reader shows what the sketch itself costs. Stores in Python pay some 0.3 ms to "
    "open anything. contains(IP) is the limit that the paper names: 3-grams of digits are in nearly every batch. "
    "COPR is the paper's structure; coprlake is what we ship, with winnowed grams "
    "(docs/decisions/0016-winnowed-grams.md)."
)


def write_raw(rows: list[Row], path: Path) -> None:
    """Every figure on a line of its own."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["data", "store", "scenario", "mode", "metric", "value"])
        writer.writerows(_cells(rows))


def _cells(rows: list[Row]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        names = (row["data"], row["store"])
        if "problem" in row:
            yield (*names, "", "", "problem", row["problem"])
            continue
        for metric in (
            "raw_bytes", "ingest_seconds", "index_seconds", "data_seconds", "data_bytes", "index_bytes",
            "peak_memory_bytes",
        ):  # fmt: skip
            yield (*names, "", "", metric, row[metric])
        for part, bits in row["bits_per_token"].items():
            yield (*names, "", "", f"bits_per_token {part}", bits)
        for scenario, modes in row["timings"].items():
            for mode, timing in modes.items():
                for metric, value in timing.items():
                    yield (*names, scenario, mode, metric, value)


def page(rows: list[Row], data: list[DataSet], machine: Row, size: str, figures: list[Path]) -> str:
    """The whole page as Markdown."""
    parts = [
        f"# The paper's evaluation, run again ({size})",
        "Made by `make paper`; every number is in `raw.csv`. One thread; warm-up outside of what is timed. Numbers of "
        "the paper are from another machine and from Java, so only ratios to Scan compare.",
        _machine(machine),
        _data(data),
        "\n\n".join(f"![{path.stem}]({path.name})" for path in figures),
        _ingest(rows),
        *(_throughput(rows, mode) for mode in MODES),
        _errors(rows),
        _bits(rows),
        _conclusions(rows),
        _settings(rows),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(header: list[str], lines: list[list[str]]) -> str:
    marks = "|" + "---|" * len(header)
    return "\n".join([f"| {' | '.join(header)} |", marks, *(f"| {' | '.join(line)} |" for line in lines)])


def _machine(machine: Row) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['cores']} cores of {machine['processor']} (shared), {machine['memory_gigabytes']} GB, "
        f"{machine['system']}, Python {machine['python']}; {versions}."
    )


def _data(data: list[DataSet]) -> str:
    lines = [
        [one.name, f"{one.lines:,}", f"{one.sources:,}", f"{one.raw_bytes / 1e6:,.0f}", one.origin] for one in data
    ]
    return "## Data (Table 2)\n\n" + _table(["set", "lines", "sources", "MB", "text"], lines)


def _of(rows: list[Row], name: str) -> list[Row]:
    return [row for row in rows if row["data"] == name]


def _names(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["data"] for row in rows))


def _ingest(rows: list[Row]) -> str:
    parts = ["## Ingest and disk (Figures 4 and 5)"]
    header = [
        "store",
        "MB/s",
        "ingest s",
        "index finish s",
        "data finish s",
        "data % of raw",
        "index % of raw",
        "index % of data",
        "peak MB",
    ]
    for name in _names(rows):
        lines = []
        for row in _of(rows, name):
            if "problem" in row:
                lines.append([row["title"], row["problem"], *[""] * 7])
                continue
            seconds = row["ingest_seconds"] + row["index_seconds"] + row["data_seconds"]
            lines.append(
                [
                    row["title"],
                    f"{row['raw_bytes'] / 1e6 / seconds:.1f}",
                    f"{row['ingest_seconds']:.2f}",
                    f"{row['index_seconds']:.2f}",
                    f"{row['data_seconds']:.2f}",
                    f"{100 * row['data_bytes'] / row['raw_bytes']:.2f}",
                    f"{100 * row['index_bytes'] / row['raw_bytes']:.2f}" if row["index_bytes"] else "-",
                    f"{100 * row['index_bytes'] / row['data_bytes']:.1f}" if row["index_bytes"] else "-",
                    f"{row['peak_memory_bytes'] / 1e6:.0f}",
                ]
            )
        parts.append(f"{name}:\n\n" + _table(header, lines))
    return "\n\n".join(parts)


def _throughput(rows: list[Row], mode: str) -> str:
    title = "## Queries a second (Table 3)" if mode == "cold" else ""
    parts = [title, f"### {MODES[mode][0].upper()}{MODES[mode][1:]}"]
    if mode == "cold":
        parts.append(
            "Each cell: queries a second, then times as fast as Scan, then in brackets the paper's ratio where it has "
            "one. An asterisk marks what is within 10 % of the best."
        )
    for name in _names(rows):
        done = [row for row in _of(rows, name) if "timings" in row]
        scan = next((row for row in done if row["store"] == "scan"), None)
        lines = []
        for row in done:
            cells = [row["title"]]
            for scenario in SCENARIOS:
                speed = row["timings"][scenario][mode]["per_second"]
                best = max(other["timings"][scenario][mode]["per_second"] for other in done)
                cell = f"{speed:,.3g}{'*' if speed > 0.9 * best else ''}"
                if scan is not None:
                    cell += f" · {speed / scan['timings'][scenario][mode]['per_second']:,.3g} x"
                ratio = published.speedup(scenario, name, row["store"]) if mode == "cold" else None
                cells.append(cell + (f" ({ratio:,.3g} x)" if ratio is not None else ""))
            lines.append(cells)
        parts.append(f"{name}:\n\n" + _table(["store", *SCENARIOS], lines))
    return "\n\n".join(part for part in parts if part)


def _errors(rows: list[Row]) -> str:
    parts = [
        "## Error rates",
        "Batches that were opened for nothing, as a part of all; mean over the queries of the warm reader.",
    ]
    for name in _names(rows):
        lines = []
        for row in _of(rows, name):
            if "timings" not in row or row["store"] == "scan":
                continue
            timings = row["timings"]
            if (
                not any(timings[scenario]["warm"]["error_rate"] for scenario in SCENARIOS)
                and "clickhouse" in row["store"]
            ):
                continue
            cells = [f"{timings[s]['warm']['error_rate']:.2e} ({timings[s]['warm']['count']:,})" for s in SCENARIOS]
            lines.append([row["title"], *cells])
        parts.append(f"{name} (in brackets the number of queries):\n\n" + _table(["store", *SCENARIOS], lines))
    return "\n\n".join(parts)


def _bits(rows: list[Row]) -> str:
    found = [row for row in rows if row.get("bits_per_token")]
    if not found:
        return ""
    parts = sorted({part for row in found for part in row["bits_per_token"]})
    lines = [
        [row["title"], row["data"], f"{sum(row['bits_per_token'].values()):.1f}"]
        + [f"{row['bits_per_token'].get(part, 0):.2f}" for part in parts]
        for row in found
    ]
    return "## Bits a token, by part\n\n" + _table(
        ["store", "set", "all", *(p.replace("_", " ") for p in parts)], lines
    )


def _settings(rows: list[Row]) -> str:
    known = {row["title"]: row["settings"] for row in rows}
    return "## How each store is set up\n\n" + "\n".join(
        f"* **{title}**: {settings}" for title, settings in known.items()
    )


OWN = ("copr", "coprlake")


def checks(rows: list[Row]) -> list[tuple[str, str, str, bool]]:
    """What was to be reached: the data set, what, the figure, and whether it was."""
    found: list[tuple[str, str, str, bool]] = []
    for name in _names(rows):
        by_store = {row["store"]: row for row in _of(rows, name) if "timings" in row}
        for own in OWN:
            if own in by_store:
                title = by_store[own]["title"]
                every = [*_size_checks(by_store, own), *_error_checks(by_store[own]), *_speed_checks(by_store, own)]
                found += [(name, f"{title}: {what}", figure, reached) for what, figure, reached in every]
    return found


Check = tuple[str, str, bool]


def _size_checks(by_store: dict[str, Row], own: str) -> Iterator[Check]:
    """The index, and how fast it is made."""
    row = by_store[own]
    share = 100 * row["index_bytes"] / row["raw_bytes"]
    yield "index at most 3 % of raw", f"{share:.2f} %", share <= 3
    for store, part, words in (("lucene-line", 0.1, "a tenth"), ("lucene-batch", 0.5, "half")):
        if store in by_store:
            ratio = row["index_bytes"] / by_store[store]["index_bytes"]
            yield f"index at most {words} of that of {by_store[store]['title']}", f"{ratio:.3f}", ratio <= part
            ratio = _seconds(by_store[store]) / _seconds(row)
            yield f"ingest at least 2 x as fast as {by_store[store]['title']}", f"{ratio:.1f} x", ratio >= 2


def _error_checks(row: Row) -> Iterator[Check]:
    """Terms that are not there; no error in so many batches means at most 3 in so many, with 95 %."""
    for scenario in ("term(ID)", "term(IP)"):
        timing = row["timings"][scenario]["warm"]
        rate = timing["error_rate"]
        asked = timing["count"] * max(1, row["raw_bytes"] // BATCH_BYTES)
        shown = rate <= 1e-6 and 3 / asked <= 1e-6
        yield f"error rate of {scenario} at most 1e-6", f"{rate:.1e} of about {asked:,} batches asked", shown


def _speed_checks(by_store: dict[str, Row], own: str) -> Iterator[Check]:
    """Queries a second with a cold reader."""

    def speed(store: str, scenario: str) -> float:
        return float(by_store[store]["timings"][scenario]["cold"]["per_second"])

    others = [store for store in by_store if store not in OWN]
    fastest = max([*others, own], key=lambda store: speed(store, "term(ID)"))
    yield "term(ID) faster than all others", by_store[fastest]["title"], fastest == own
    for store in ("lucene-line", "lucene-batch"):
        if store in by_store:
            ratio = speed(own, "contains(ID)") / speed(store, "contains(ID)")
            yield f"contains(ID) at least 50 x {by_store[store]['title']}", f"{ratio:,.0f} x", ratio >= 50
    ratio = speed(own, "term(extracted)") / max(speed(store, "term(extracted)") for store in [*others, own])
    yield "term(extracted) within 10 % of the best", f"{100 * ratio:.0f} %", ratio >= 0.9
    if own == "coprlake" and "scan" in by_store:
        ratio = speed(own, "contains(IP)") / speed("scan", "contains(IP)")
        yield "contains(IP) at least 50 x Scan", f"{ratio:,.0f} x", ratio >= 50


def _seconds(row: Row) -> float:
    return float(row["ingest_seconds"] + row["index_seconds"] + row["data_seconds"])


def _conclusions(rows: list[Row]) -> str:
    lines = [[name, what, figure, "yes" if reached else "**no**"] for name, what, figure, reached in checks(rows)]
    text = ["## Conclusions", _table(["set", "to be reached", "found", "reached"], lines), "Where they lose (cold):"]
    for name in _names(rows):
        done = [row for row in _of(rows, name) if "timings" in row]
        for row in done:
            if row["store"] in OWN:
                text += _losses(name, row, [other for other in done if other["store"] not in OWN])
    return "\n\n".join(text[:3]) + "\n\n" + "\n".join(text[3:]) + f"\n\n{NOTES}"


def _losses(name: str, row: Row, others: list[Row]) -> Iterator[str]:
    """The three stores that are faster by more than a tenth, for each scenario."""
    for scenario in SCENARIOS:
        own = row["timings"][scenario]["cold"]["per_second"]
        better = [r for r in others if r["timings"][scenario]["cold"]["per_second"] > 1.1 * own]
        better.sort(key=lambda r: -r["timings"][scenario]["cold"]["per_second"])
        for other in better[:3]:
            ratio = other["timings"][scenario]["cold"]["per_second"] / own
            share = 100 * other["index_bytes"] / other["raw_bytes"]
            yield (
                f"* {name}, {scenario}: {other['title']} is {ratio:.3g} x as fast as {row['title']}, "
                f"with an index of {share:.1f} % of raw."
            )
