"""``python -m benchmarks.grams``: which grams to index, on the curve of sharpness against bytes.

Each choice of token rules (`benchmarks.gram_choices`) indexes the same batches of 512 KiB; its sketch is sealed with
several numbers of signature bits and asked the same queries. The error rate of a scenario is the paper's: batches left
for nothing over all batches. Nothing is timed, so a run is the same on every machine. A run in which a batch is ruled
out that has a query's text fails.

With ``--samples`` logs drawn from a folder of samples are measured beside the generated ones. ``--plots`` draws the
figures of docs/decisions/0016-winnowed-grams.md, ``--run`` takes a saved run instead of measuring.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.gram_choices import CENSUS, CHOICES, SHIPPED, Choice, ChoiceScanner
from benchmarks.sketch import PARTS
from coprlake.config import BATCH_BYTES, SIGNATURE_BITS, RuleSet
from coprlake.errors import CoprlakeError, UsageError
from coprlake.generator import batches_by_source, generate
from coprlake.sketch.algebra import all_tokens
from coprlake.sketch.immutable import SealedSketch
from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.sealing import encode
from coprlake.tokens.rules import WINDOW_BYTES

BITS: Final = (6, 8, 10)
SHIPPED_ROW: Final = "shipped: the same in format 1.1"
SHOWN_PARTS: Final = {
    "perfect hash": ("perfect_hash",),
    "signatures": ("signatures",),
    "ranks and widths": ("ranks", "rank_widths"),
    "lists and offsets": ("lists", "list_offsets", "header_footer_padding"),
}
_QUERY_BYTES: Final = 4096
_COMMON_WORDS: Final = ("server", "node", "worker", "request", "session", "user", "port", "blk", "task", "service")
Flags = npt.NDArray[np.bool_]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Logs:
    """Batches as what can be found in them: their distinct runs between blanks, lower-cased, a line each."""

    raw_bytes: int
    texts: list[bytes]


@dataclass(frozen=True)
class Query:
    """A search text, lower-case ASCII without blanks, and the batches that have it."""

    text: bytes
    is_term: bool
    matches: Flags


def load_logs(megabytes: float, seed: int, samples: Path | None) -> Logs:
    """Generated logs, or logs drawn from samples."""
    logs = generate(megabytes=megabytes, seed=seed, samples=samples)
    lines = ("\n".join(batch.to_pylist()) for batch in batches_by_source(logs, BATCH_BYTES))
    return Logs(logs.raw_bytes, [b"\n".join(sorted(set(text.encode().lower().split()))) for text in lines])


def search_texts(texts: list[bytes], count: int) -> dict[str, list[str]]:
    """`count` search texts for each scenario, whose name begins with the kind of search; fewer if logs have no more.

    Those with ids, addresses, numbers and hex digits are drawn at random, and so in hardly any line; words, fragments
    of words and of paths are out of the logs. Paths that are shorter than a window are a scenario of their own.
    """
    random = np.random.default_rng(5)

    def letters(alphabet: str, length: int) -> list[str]:
        return ["".join(row) for row in random.choice(list(alphabet), (count, length))]

    def dotted(*ranges: tuple[int, int]) -> list[str]:
        columns = [random.integers(low, high, count).astype(str) for low, high in ranges]
        return [".".join(row) for row in zip(*columns, strict=True)]

    def found(pattern: bytes) -> list[str]:
        known = sorted({match for text in texts[::7] for match in re.findall(pattern, text)})
        return [known[i].decode() for i in random.choice(len(known), min(count, len(known)), replace=False)]

    digits, hex_digits, three = "0123456789", "0123456789abcdef", (100, 1000)
    full_ip = ((10, 11), (100, 255), (1, 255), (100, 255))
    words = found(rb"[0-9a-z]{9,}")
    paths = [path[2:-2] for path in found(rb"(?:/[a-z0-9_.-]+){3,}")]
    pairs = zip(random.choice(_COMMON_WORDS, count), random.integers(10, 100, count), strict=True)
    return {
        "term_id": letters("abcdefghijklmnopqrstuvwxyz", 16),
        "contains_id": letters("abcdefghijklmnopqrstuvwxyz", 16),
        "term_ip": dotted(three, three, three),
        "contains_ip": dotted(three, three, three),
        "contains_number": letters(digits, 11),
        "contains_hex": letters(hex_digits, 12),
        "contains_fragment": [word[1:-1] for word in words],
        "contains_path": [path for path in paths if len(path) >= WINDOW_BYTES],
        "contains_short_path": [path for path in paths if len(path) < WINDOW_BYTES],
        "contains_hex_10": letters(hex_digits, 10),
        "contains_full_ip": dotted(*full_ip),
        "term_full_ip": dotted(*full_ip),
        "term_short_ip": dotted((10, 11), (1, 100), (1, 10), (1, 100)),
        "term_number_8": letters(digits, 8),
        "term_number_11": letters(digits, 11),
        "term_pair": [f"{word}-{number}" for word, number in pairs],
        "term_number_pair": [f"{first}/{second}" for first, second in random.integers(1, 100, (count, 2))],
        "term_word": words,
    }


def query_of(text: bytes, is_term: bool, texts: list[bytes]) -> Query:
    """A query with its answer; a whole term has no letter or digit beside it."""
    matches = np.array([text in batch for batch in texts])
    if is_term:
        pattern = re.compile(rb"(?<![0-9a-z])" + re.escape(text) + rb"(?![0-9a-z])")
        for i in np.flatnonzero(matches):
            matches[i] = pattern.search(texts[i]) is not None
    return Query(text, is_term, matches)


def queries_of(texts: list[bytes], count: int) -> dict[str, list[Query]]:
    """The queries of each scenario that the logs have texts for."""
    return {
        scenario: [query_of(text.encode(), scenario.startswith("term_"), texts) for text in searched]
        for scenario, searched in search_texts(texts, count).items()
        if searched
    }


def index(choice: Choice, logs: Logs) -> MutableSketch:
    """The sketch of all batches."""
    scanner = ChoiceScanner(choice, max(map(len, logs.texts)))
    sketch = MutableSketch(None)
    for posting, text in enumerate(logs.texts):
        sketch.insert(scanner.tokens(text), posting)
    return sketch


def error_rate(choice: Choice, sketch: SealedSketch, queries: list[Query]) -> float:
    """Batches left for nothing over all batches; an error if one is ruled out that has a query's text."""
    scanner = ChoiceScanner(choice, _QUERY_BYTES)
    left_for_nothing = 0
    for query in queries:
        tokens = scanner.required_tokens(query.text, is_term=query.is_term)
        candidates = np.zeros(len(query.matches), bool)
        candidates[sketch.candidates(all_tokens(tokens))] = True
        if (query.matches & ~candidates).any():
            raise CoprlakeError(
                f"{choice.name}: a batch with {query.text!r} is ruled out; expected every one to be left"
            )
        left_for_nothing += int((candidates & ~query.matches).sum())
    return left_for_nothing / sum(len(query.matches) for query in queries)


def measure_sealed(
    choice: Choice, sketch: MutableSketch, logs: Logs, queries: dict[str, list[Query]], rules: RuleSet
) -> dict[str, Any]:
    """Size by part and error rates for each number of signature bits; the rules of the paper mean format 1.0."""
    by_bits: dict[str, Any] = {}
    for bits in BITS:
        pieces, report = encode(sketch, signature_bits=bits, rules=rules)
        sealed = SealedSketch(b"".join(pieces))
        by_bits[str(bits)] = {
            "index_percent": 100 * report.file_bytes / logs.raw_bytes,
            "parts_percent": shown_parts(report.bytes_by_part, logs.raw_bytes),
            "error_rate": {name: error_rate(choice, sealed, own) for name, own in queries.items()},
        }
    return {"tokens": sketch.token_count, "bits": by_bits}


def shown_parts(bytes_by_part: dict[str, int], raw_bytes: int) -> dict[str, float]:
    """The sections of a sketch as a person thinks of them, in percent of the raw lines."""
    return {
        name: 100 * sum(bytes_by_part[section] for part in parts for section in PARTS[part]) / raw_bytes
        for name, parts in SHOWN_PARTS.items()
    }


def census(logs: Logs) -> dict[str, int]:
    """How many distinct tokens each of the paper's rules adds to those of the rules before."""
    counts = [index(choice, logs).token_count for choice in CENSUS]
    return {choice.name: int(added) for choice, added in zip(CENSUS, np.diff(counts, prepend=0), strict=True)}


def measure(logs: Logs, query_count: int, say: Say) -> dict[str, Any]:
    """All figures of some logs."""
    say("queries")
    queries = queries_of(logs.texts, query_count)
    choices: dict[str, Any] = {}
    for choice in CHOICES:
        say(choice.name)
        sketch = index(choice, logs)
        choices[choice.name] = measure_sealed(choice, sketch, logs, queries, RuleSet.PAPER)
        if choice is SHIPPED:
            choices[SHIPPED_ROW] = measure_sealed(choice, sketch, logs, queries, RuleSet.WINNOWED)
    return {
        "raw_bytes": logs.raw_bytes,
        "batches": len(logs.texts),
        "queries": {name: len(own) for name, own in queries.items()},
        "tokens_by_paper_rule": census(logs),
        "choices": choices,
    }


def table(run: dict[str, Any]) -> str:
    """The run as Markdown: for each of the logs the sizes, the error rates and the share of each rule of the paper."""
    return "\n\n".join(
        "\n".join(
            [
                f"**{name}**: {own['raw_bytes'] / 1e6:.1f} MB, {own['batches']} batches",
                "",
                *_size_table(own),
                "",
                *_error_table(own, list(own["queries"])[:7]),
                "",
                *_error_table(own, list(own["queries"])[7:]),
                "",
                *_census_table(own),
            ]
        )
        for name, own in run["logs"].items()
    )


def _lines(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]


def _size_table(own: dict[str, Any]) -> list[str]:
    head = ["choice", "tokens, thousands", *(f"index, % of raw: {bits} bits" for bits in BITS)]
    rows = [
        [name, f"{row['tokens'] / 1e3:,.0f}", *(f"{row['bits'][str(bits)]['index_percent']:.2f}" for bits in BITS)]
        for name, row in own["choices"].items()
    ]
    return _lines(head, rows)


def _error_table(own: dict[str, Any], scenarios: list[str]) -> list[str]:
    """Percent of batches left for nothing, with the bits that are shipped; for the paper also with more."""
    shown = [("paper", bits) for bits in BITS if bits != SIGNATURE_BITS]
    shown += [(name, SIGNATURE_BITS) for name in own["choices"]]
    rows = []
    for name, bits in shown:
        rates = own["choices"][name]["bits"][str(bits)]["error_rate"]
        rows.append([f"{name}, {bits} bits", *(f"{100 * rates[scenario]:.3f}" for scenario in scenarios)])
    return _lines(["batches left for nothing, %", *scenarios], rows)


def _census_table(own: dict[str, Any]) -> list[str]:
    counts = own["tokens_by_paper_rule"]
    rows = [[name, f"{n / 1e3:,.0f}", f"{100 * n / sum(counts.values()):.0f}"] for name, n in counts.items()]
    return _lines(["tokens of the paper's rules", "thousands", "%"], rows)


JOINING: Final = {
    "joining the paper's tokens": [choice.name for choice in CHOICES[5:9]],
    "joining, grams with three digits only": [choice.name for choice in CHOICES[1:5]],
}
REPLACING: Final = {
    chr(ord("a") + i): name for i, name in enumerate([*(choice.name for choice in CHOICES[9:]), SHIPPED_ROW])
}
"""Letters that stand for choices in the figures."""
COLOURS: Final = ("#4878a8", "#85b6b2", "#d1605e", "#e49444")
INK: Final = "#333333"
_LEAST_NUMBERED: Final = 0.16
"""Percent of raw: a narrower part of a bar has no room for its number."""
PANELS: Final = {
    "contains_ip": "contains of ddd.ddd.ddd",
    "contains_number": "contains of 11 digits",
    "contains_hex": "contains of 12 hex digits",
}


def draw(run: dict[str, Any], folder: Path) -> list[Path]:
    """Draw the figures of the decision as PNG; the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    curves = [_draw_curves(name, own, folder / f"sharpness-{name}.png") for name, own in run["logs"].items()]
    return [*curves, _draw_parts(run, folder / "parts.png")]


def _draw_curves(name: str, own: dict[str, Any], path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(PANELS), figsize=(13, 5.2), sharey=True)
    for axis, (scenario, title) in zip(axes, PANELS.items(), strict=True):
        _draw_panel(axis, own, scenario)
        _dress(axis, title, "index, % of raw")
    axes[0].set_ylabel("batches left for nothing, % (dotted: none)", fontsize=9)
    key = [f"{letter}: {choice}" for letter, choice in REPLACING.items()]
    figure.text(0.5, 0.1, "    ".join(key[:5]), ha="center", fontsize=8, color=COLOURS[2])
    figure.text(0.5, 0.065, "    ".join(key[5:]), ha="center", fontsize=8, color=COLOURS[2])
    title = f"Sharpness against bytes: {name} logs, {SIGNATURE_BITS} signature bits (paper: 6, 8, 10)"
    return _saved(figure, axes[0], path, title, below=0.13)


def _draw_panel(axis: Any, own: dict[str, Any], scenario: str) -> None:
    """One scenario: a curve for the paper's bits and each family of grams that join, and the steps of what replaces."""
    none = 100 / (own["queries"][scenario] * own["batches"]) / 2  # where a rate of 0 is drawn

    def points(rows: list[tuple[str, int]]) -> list[tuple[float, float]]:
        found = [own["choices"][choice]["bits"][str(bits)] for choice, bits in rows]
        return [(row["index_percent"], max(100 * row["error_rate"][scenario], none)) for row in found]

    curves = {"the paper's rules": [("paper", bits) for bits in BITS]}
    curves |= {family: [(choice, SIGNATURE_BITS) for choice in names] for family, names in JOINING.items()}
    for (family, rows), colour, above in zip(curves.items(), (INK, *COLOURS), (True, False, True), strict=False):
        labels = [str(bits) if choice == "paper" else choice.split()[1].rstrip(",") for choice, bits in rows]
        axis.plot(*zip(*points(rows), strict=True), marker="o", markersize=4, color=colour, label=family)
        for label, point in zip(labels, points(rows), strict=True):
            offset, side = ((3, 4), "left") if above else ((-3, -10), "right")
            axis.annotate(label, point, offset, textcoords="offset points", ha=side, fontsize=8, color=colour)
    steps = points([(choice, SIGNATURE_BITS) for choice in REPLACING.values()])
    axis.plot(*zip(*steps, strict=True), "o", markersize=4, color=COLOURS[2], label="replacing rules 4 and 5")
    axis.axhline(none, color="#bbbbbb", linewidth=0.8, linestyle=":")
    axis.set_yscale("log")
    axis.set_ylim(none / 2, 300)
    _draw_letters(axis, dict(zip(REPLACING, steps, strict=True)))


def _draw_letters(axis: Any, points: dict[str, tuple[float, float]]) -> None:
    """Letters in a column left of all points, none over another, with a line from each to its point.

    The first has two lengths of grams and so an index that is far larger: its letter stands beside it.
    """
    (first, far), *others = points.items()
    axis.annotate(first, far, (3, 4), textcoords="offset points", fontsize=8, color=COLOURS[2])
    left = axis.get_xlim()[0]
    axis.set_xlim(left=left - 0.15)
    others.sort(key=lambda item: item[1][::-1])
    low, high = np.log(axis.get_ylim())
    places = _spread(np.log([y for _, (_, y) in others]), 0.05 * (high - low))
    line = {"arrowstyle": "-", "color": COLOURS[2], "linewidth": 0.5}
    for (letter, point), place in zip(others, np.exp(places), strict=True):
        axis.annotate(
            letter, point, (left, place), ha="right", va="center", fontsize=8, color=COLOURS[2], arrowprops=line
        )


def _spread(wanted: npt.NDArray[np.float64], least_gap: float) -> npt.NDArray[np.float64]:
    """Places near those wanted, which ascend, with gaps between them; the lowest is no lower than wanted."""
    places = wanted.copy()
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + least_gap)
    return np.maximum(places - np.mean(places - wanted), wanted[0] + least_gap * np.arange(len(places)))


def _draw_parts(run: dict[str, Any], path: Path) -> Path:
    import matplotlib.pyplot as plt

    bars = {"paper, 10 bits": ("paper", 10), "paper, 8 bits": ("paper", 8), "shipped, 6 bits": (SHIPPED_ROW, 6)}
    figure, axes = plt.subplots(1, len(run["logs"]), figsize=(5.6 * len(run["logs"]), 2.6), squeeze=False)
    for axis, (name, own) in zip(axes[0], run["logs"].items(), strict=True):
        left = np.zeros(len(bars))
        for part, colour in zip(SHOWN_PARTS, COLOURS, strict=True):
            rows = [own["choices"][choice]["bits"][str(bits)]["parts_percent"] for choice, bits in bars.values()]
            widths = np.array([row[part] for row in rows])
            axis.barh(list(bars), widths, left=left, label=part, color=colour)
            for place, width in enumerate(widths):
                if width > _LEAST_NUMBERED:
                    axis.text(left[place] + width / 2, place, f"{width:.2f}", ha="center", va="center", fontsize=7)
            left += widths
        for place, total in enumerate(left):
            axis.text(total, place, f" {total:.2f}", va="center", fontsize=8)
        axis.set_xlim(0, 1.12 * left.max())
        axis.invert_yaxis()
        _dress(axis, f"{name} logs", "% of raw")
    return _saved(figure, axes[0][0], path, "Where the bytes of the index go", below=0.08)


def _dress(axis: Any, title: str, unit: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(unit, fontsize=9)
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _saved(figure: Any, axis: Any, path: Path, title: str, below: float) -> Path:
    """Give the figure one legend `below` all panels, and write it."""
    import matplotlib.pyplot as plt

    handles, labels = axis.get_legend_handles_labels()
    figure.suptitle(title, fontsize=11)
    figure.tight_layout(rect=(0, below, 1, 1))
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), fontsize=8, frameon=False)
    figure.savefig(path, dpi=90)
    plt.close(figure)
    return path


def measure_all(options: argparse.Namespace, say: Say) -> dict[str, Any]:
    """A run: generated logs and, if there are samples, logs drawn from these."""
    for name, least in (("megabytes", 1e-3), ("queries", 1), ("seed", 0)):
        if not getattr(options, name) >= least:
            raise UsageError(f"--{name} must be at least {least}, found {getattr(options, name)}")
    sources = {"generated": None} | ({options.samples.resolve().name: options.samples} if options.samples else {})
    measured = {}
    for name, samples in sources.items():
        say(f"logs: {name}")
        measured[name] = measure(load_logs(options.megabytes, options.seed, samples), options.queries, say)
    return {"megabytes": options.megabytes, "seed": options.seed, "queries": options.queries, "logs": measured}


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.grams", description="Which grams to index: sharpness against bytes."
    )
    parser.add_argument("--megabytes", type=float, default=64, help="size of the logs (default: 64)")
    parser.add_argument("--samples", type=Path, help="folder of real log samples to draw lines from, too")
    parser.add_argument("--queries", type=int, default=150, help="of each scenario (default: 150)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other logs")
    parser.add_argument("--run", type=Path, help="a saved run to show and draw instead of measuring")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="where to draw figures (needs matplotlib)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON instead of tables")
    options = parser.parse_args(arguments)
    try:
        if options.run:
            run = json.loads(options.run.read_text())
        else:
            run = measure_all(options, lambda text: print(text, file=sys.stderr))
        if options.plots:
            draw(run, options.plots)
    except (CoprlakeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(run, indent=1) if options.json else table(run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
