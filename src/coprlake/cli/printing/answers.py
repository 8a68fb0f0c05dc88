"""Writes the result of a query: a table or chart for people; JSON, CSV or Parquet for programs."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import click
import pyarrow as pa

from coprlake.cli.printing import charts
from coprlake.cli.printing.cells import for_lines, for_programs
from coprlake.cli.printing.grids import GridWriter
from coprlake.cli.printing.harmless import harmless_json
from coprlake.cli.printing.notices import is_colored, note, warn
from coprlake.cli.printing.record_layout import output_for
from coprlake.cli.printing.row_values import plain_values
from coprlake.cli.printing.search_output import CsvWriter, LinesWriter, ParquetWriter, destination

if TYPE_CHECKING:
    from coprlake.query.querying import Query

ROWS_ON_A_TERMINAL = 1000


@dataclass(frozen=True)
class Form:
    """How the result of a query is written.

    Attributes:
        output: ``table``, ``lines``, ``json``, ``csv`` or ``parquet``.
        out: a file; None or ``-`` for standard output.
        chart: whether to draw a chart; None to draw time series on a terminal.
    """

    output: str
    out: str | None = None
    chart: bool | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the output goes to a terminal."""
        return is_on_terminal(self.out)

    @property
    def is_for_people(self) -> bool:
        """Whether it is a table on a terminal."""
        return self.output == "table" and self.is_terminal


def is_on_terminal(out: str | None) -> bool:
    """Whether output to this file goes to a terminal."""
    return out in (None, "-") and sys.stdout.isatty()


def chosen_form(output: str | None, out: str | None, chart: bool | None) -> Form:
    """Choose the format and the chart if the command line does not."""
    is_terminal = is_on_terminal(out)
    if output is None:
        by_suffix = output_for(out)
        output = "table" if is_terminal or chart else by_suffix
    if output == "parquet" and is_terminal:
        raise click.UsageError("a terminal cannot show Parquet; name a file with --out, or redirect the output")
    if chart and output != "table":
        raise click.UsageError(f"--chart and -o {output} contradict each other")
    return Form(output, out, chart)


def write(query: "Query", form: Form) -> int:
    """Run the query and write its result.

    Returns:
        how many rows it has.
    """
    with destination(form.out) as out:
        if form.output == "table":
            _write_for_people(query, form, out)
        else:
            _write_for_programs(query, form, out)
    return query.report.rows


def _write_for_people(query: "Query", form: Form, out: IO[bytes]) -> None:
    width = shutil.get_terminal_size((100, 24)).columns if form.is_terminal else None
    colored = is_colored() and form.out in (None, "-")
    draw = _drawing(query.schema, form)
    if draw is not None:
        lines = draw(query.arrow(), width or 100, is_colored=colored)
        if query.report.rows:
            out.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
            out.flush()
        return
    writer = GridWriter(out, query.schema, width=width, is_colored=colored)
    for batch in query.batches():
        for part in _parts(batch):
            writer.write(part)
    if writer.is_cut:
        note("long values are cut; -o json shows them as a whole")


def _drawing(schema: pa.Schema, form: Form) -> Callable[..., list[str]] | None:
    """Choose the function that draws the result; None for a table."""
    if form.chart is False:
        return None
    if charts.is_series(schema):
        return charts.series_lines if form.chart or form.is_terminal else None
    if form.chart and charts.are_bars(schema):
        return charts.bar_lines
    if form.chart:
        warn("--chart draws time series, and a number behind one or two keys; this is neither, so here is the table")
    return None


def _parts(batch: pa.RecordBatch, most: int = 5_000) -> Iterator[pa.RecordBatch]:
    """Cut a batch into parts, so that the first rows appear early."""
    for start in range(0, batch.num_rows, most):
        yield batch.slice(start, most)


class ObjectsWriter:
    """Writes one JSON object per line, with all fields; times are ISO 8601, durations are in nanoseconds."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch of records."""
        names = batch.schema.names
        encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        rows = zip(*(plain_values(column) for column in batch.columns), strict=True)
        lines = [harmless_json(encode(dict(zip(names, row, strict=True)))) + "\n" for row in rows]
        self._out.write("".join(lines).encode(errors="replace"))
        self._out.flush()

    def close(self) -> None:
        """Do nothing: every batch has been written."""


def _write_for_programs(query: "Query", form: Form, out: IO[bytes]) -> None:
    names = query.schema.names
    if form.output == "parquet":
        parquet = ParquetWriter(out, names, query.schema)
        try:
            for batch in query.batches():
                parquet.write(batch)
        finally:
            parquet.close()
        return
    if form.output == "lines":
        lines = LinesWriter(out, names, None, is_terminal=form.is_terminal, has_context=False)
        for batch in query.batches():
            lines.write(for_lines(batch))
        return
    writer = ObjectsWriter(out) if form.output == "json" else CsvWriter(out, names, form.is_terminal)
    for batch in query.batches():
        writer.write(for_programs(batch))
