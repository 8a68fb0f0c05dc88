"""Chooses the writer of search results that the command line asks for."""

from typing import IO, TYPE_CHECKING

import pyarrow as pa

from coprlake.cli.options.filters import SearchRequest
from coprlake.cli.options.search_options import Printing
from coprlake.cli.printing import search_output as outputs
from coprlake.cli.printing.notices import is_colored
from coprlake.cli.printing.record_layout import Shown

if TYPE_CHECKING:
    from coprlake.cli.printing.search_output import Writer
    from coprlake.table import Table


def new_writer(
    table: "Table", schema: pa.Schema, asked: SearchRequest, shown: Shown, printing: Printing, out: IO[bytes]
) -> "Writer":
    """The writer for results of this schema."""
    colors = is_colored() and shown.out in (None, "-")
    if printing.only_matching:
        from coprlake.cli.printing.matched_parts import PartsWriter

        return PartsWriter(out, asked.predicate(table), asked.fields, is_terminal=shown.is_terminal, colors=colors)
    if shown.output == "table":
        return outputs.ColumnWriter(
            out,
            shown.columns,
            asked.predicate(table) if colors else None,
            header=shown.are_columns_chosen,
            has_context=shown.has_context,
            folded=asked.predicate(table) if shown.is_terminal and not printing.full else None,
            local_times=shown.is_terminal and not printing.utc,
        )
    if shown.output == "lines":
        predicate = asked.predicate(table) if colors else None
        return outputs.LinesWriter(
            out,
            shown.columns,
            predicate,
            is_terminal=shown.is_terminal,
            has_context=shown.has_context,
            are_originals=shown.are_originals,
        )
    if shown.output == "json":
        return outputs.JsonWriter(out, shown.columns, are_originals=shown.are_originals)
    if shown.output == "csv":
        return outputs.CsvWriter(out, shown.columns, shown.is_terminal)
    return outputs.ParquetWriter(out, shown.columns, schema)
