"""The README's table of figures, made from a run: ``python -m benchmarks.figures RUN.json``."""

import json
import sys
from pathlib import Path
from typing import Any


def sketch_table(run: dict[str, Any]) -> str:
    """What a newcomer wants to know of a run of `benchmarks.sketch`, as Markdown."""
    parts = ", ".join(
        f"{name.replace('_', ' ')} {bits:.1f}" for name, bits in run["bits_per_token"].items() if name != "total"
    )
    rows = {
        "size of the sketch": f"{run['overhead_percent']:.2f} % of raw",
        "bits a token": f"{run['bits_per_token']['total']:.1f} ({parts})",
        "index (tokenize + insert)": f"{run['index_to_zstd3_ratio']:.2f} x the time of zstd level 3",
        "seal": f"{run['seal_to_index_ratio']:.2f} x the time of indexing",
        "memory of the mutable sketch": (
            f"{run['peak_sketch_memory_bytes'] / 2**20:.1f} MiB of {run['memory_limit_bytes'] / 2**20:.0f} allowed, "
            f"{run['spill_count']} spills"
        ),
        "absent tokens looked up": f"{run['absent_probes_per_second'] / 1e6:.1f} million a second in a batch",
        "one token through the Python API": f"{run['single_probe_microseconds']:.1f} us",
        "absent tokens taken for present": (
            f"{100 * run['error_rate']:.3f} % (theory: {100 * run['error_rate_in_theory']:.3f} %)"
        ),
    }
    return "\n".join(["| what | figure |", "|---|---|", *(f"| {name} | {figure} |" for name, figure in rows.items())])


SCENARIOS = {
    "term_id": "term(ID): 16 random letters",
    "contains_id": "contains(ID)",
    "term_ip": "term(IP): three groups of three digits",
    "contains_ip": "contains(IP)",
    "term_extracted": "term(extracted): a long word of the logs",
}


def store_table(run: dict[str, Any]) -> str:
    """What a newcomer wants to know of a run of `benchmarks.store`, as Markdown."""
    rows = {
        "ingest: read, parse, index, compress, write, commit": (
            f"{run['ingest_over_zstd3']:.1f} x the time of zstd level 3 on the same batches "
            f"({run['raw_bytes'] / 1e6 / run['ingest_seconds']:.0f} MB/s), "
            f"{run['peak_memory_bytes'] / 1e6:.0f} MB of memory"
        ),
        "data files": (
            f"{run['data_percent']:.1f} % of raw, {run['data_over_zstd3']:.2f} x bare zstd "
            f"(the content alone {run['content_over_zstd3']:.2f})"
        ),
        "sidecars": f"{run['index_percent']:.2f} % of raw",
        "open a segment, not yet in memory": (
            f"{run['open_microseconds']:.0f} us until its sketch is checked and can be asked"
        ),
        "search for an absent term, warm, through the Python API": f"{run['absent_microseconds']:.0f} us",
        "scan of the whole table": f"{run['scan_gigabytes_per_second']:.2f} GB/s of raw text on one core",
    }
    lines = ["| what | figure |", "|---|---|", *(f"| {name} | {figure} |" for name, figure in rows.items())]
    lines += ["", "| search | queries a second | times as fast as the scan | batches opened for nothing |"]
    lines.append("|---|---|---|---|")
    for scenario, name in SCENARIOS.items():
        both = run["queries"][scenario]
        lines.append(
            f"| {name} | {both['coprlake']['queries_per_second']:,.0f} | {both['speedup_over_scan']:,.1f} | "
            f"{100 * both['coprlake']['error_rate']:.2f} % |"
        )
    return "\n".join(lines)


def pipeline_table(run: dict[str, Any]) -> str:
    """What somebody with a cluster wants to know of a run of `benchmarks.pipeline`, as Markdown."""
    larger = run["larger"]
    size = run["raw_bytes"] / 1e6

    def searched(name: str) -> str:
        return f"{run[name]:.2f} s; {larger['copies']} times as much data: {larger[name]:.2f} s"

    rows = {
        "start of a session, with workers": f"{run['session_start_seconds']:.1f} s",
        "ingest in-process, one core": f"{run['library_seconds']:.1f} s ({size / run['library_seconds']:.0f} MB/s)",
        "ingest on Spark, `local[1]`": (
            f"{run['spark_local1_seconds']:.1f} s ({run['local1_over_library']:.2f} x in-process)"
        ),
        "ingest on Spark, `local[2]`": (
            f"{run['spark_local2_seconds']:.1f} s ({run['local2_speedup']:.2f} x as fast as `local[1]`)"
        ),
        "needle by `coprlake.spark.search`": f"{searched('needle_query_seconds')}; {larger['needle_tasks']} task",
        "needle by the data source, `query` option": searched("data_source_query_seconds"),
        "scan by `coprlake.spark.search`, without sketches": (
            f"{searched('full_scan_query_seconds')}; {larger['scan_tasks']} tasks"
        ),
        "Spark's Parquet scan with the same filter": searched("spark_parquet_scan_seconds"),
        f"stream of {run['stream_megabytes_per_second']:.0f} MB/s for {run['stream_seconds']:.0f} s": (
            f"{run['stream_records_per_second']:,.0f} records/s, found {run['stream_latency_seconds']:.1f} s later "
            f"({run['stream_latency_first_half_seconds']:.1f} s in the first half, "
            f"{run['stream_latency_second_half_seconds']:.1f} s in the second)"
        ),
    }
    return "\n".join(["| what | figure |", "|---|---|", *(f"| {name} | {figure} |" for name, figure in rows.items())])


def paper_table(rows: list[dict[str, Any]]) -> str:
    """Stores side by side, from a run of `benchmarks.paper`: what it costs, and queries a second as times of Scan's."""
    scenarios = ("term(ID)", "contains(ID)", "term(IP)", "contains(IP)", "term(extracted)")
    name = rows[0]["data"]
    own = [row for row in rows if row["data"] == name and "timings" in row]
    scan = next(row for row in own if row["store"] == "scan")
    lines = [
        f"| {name}, {scan['raw_bytes'] / 1e6:.0f} MB | ingest MB/s | data % of raw | index % of raw "
        f"| {' | '.join(scenarios)} |",
        "|" + "---|" * (4 + len(scenarios)),
    ]
    for row in own:
        seconds = row["ingest_seconds"] + row["index_seconds"] + row["data_seconds"]
        speeds = [
            row["timings"][scenario]["cold"]["per_second"] / scan["timings"][scenario]["cold"]["per_second"]
            for scenario in scenarios
        ]
        index = f"{100 * row['index_bytes'] / row['raw_bytes']:.1f}" if row["index_bytes"] else "-"
        cells = [
            f"**{row['title']}**" if row["store"].startswith("copr") else row["title"],
            f"{row['raw_bytes'] / 1e6 / seconds:.0f}",
            f"{100 * row['data_bytes'] / row['raw_bytes']:.1f}",
            index,
            *(f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}" for speed in speeds),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def query_table(run: dict[str, Any]) -> str:
    """What a newcomer wants to know of a run of `benchmarks.queries`, as Markdown."""
    needle, count, compiled = run["selective"], run["counting"], run["compiling"]
    rows = {
        "a pipeline of filter, parse, fields and sort for a needle": (
            f"{1e3 * needle['query_seconds']:.0f} ms; the bare search {1e3 * needle['search_seconds']:.1f} ms; "
            f"{needle['batches_opened']} of {needle['batches']} batches opened"
        ),
        "a count by level over everything": (
            f"{1e3 * count['query_seconds']:.0f} ms, {count['query_over_duckdb']:.2f} x DuckDB's own SELECT on the "
            f"same files; {count['gigabytes_per_second_and_core']:.1f} GB of raw text a second and core"
        ),
        "to parse and compile a query": (
            f"{compiled['median_milliseconds']:.1f} ms, at most {compiled['most_milliseconds']:.1f} ms"
        ),
    }
    return "\n".join(["| what | figure |", "|---|---|", *(f"| {name} | {figure} |" for name, figure in rows.items())])


SUBSTRINGS = {
    "term_id": "term(ID): 16 random letters",
    "contains_id": "contains(ID)",
    "term_ip": "term(IP): three groups of three digits",
    "contains_ip": "contains(IP)",
    "contains_number": "contains(number): 11 random digits",
    "contains_hex": "contains(hex): 12 random hex digits",
    "contains_fragment": "contains(fragment): a long word of the logs without its ends",
}


def substrings_table(run: dict[str, Any]) -> str:
    """What rule set 2 changes for searches, size and ingest, from a run of `benchmarks.substrings`, as Markdown."""
    paper, default = run["paper"], run["default"]
    lines = [
        "| search | times as fast as the scan: paper | ours | batches opened for nothing: paper | ours |",
        "|---|---|---|---|---|",
    ]
    for scenario, name in SUBSTRINGS.items():
        speeds = [way["speedup_over_scan"][scenario] for way in (paper, default)]
        rates = [100 * way["error_rate"][scenario] for way in (paper, default)]
        cells = [*(f"{speed:,.1f}" for speed in speeds), *(f"{rate:.3f} %" for rate in rates)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    costs = {
        "index_percent": ("sidecars, % of raw", ".2f"),
        "ingest_seconds": ("ingest, seconds", ".2f"),
        "seal_seconds": ("of which sealing the sketch", ".3f"),
    }
    lines += ["", "| cost | paper | ours | ours / paper |", "|---|---|---|---|"]
    for key, (name, form) in costs.items():
        lines.append(f"| {name} | {paper[key]:{form}} | {default[key]:{form}} | {run['ratios'][key]:.2f} |")
    return "\n".join(lines)


def load(path: Path) -> Any:
    """A run as it was written."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return json.loads(path.read_text())


def main() -> int:
    """Print the table of the run that is named."""
    run = load(Path(sys.argv[1]))
    if isinstance(run, list) or "selective" in run:
        print(paper_table(run) if isinstance(run, list) else query_table(run))
        return 0
    if "default" in run:
        print(substrings_table(run))
        return 0
    kind = store_table if "queries" in run else pipeline_table if "library_seconds" in run else sketch_table
    print(kind(run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
