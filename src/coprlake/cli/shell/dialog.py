"""What the shell does with each thing that is typed: a query, or an order such as ``exit``."""

import sys
import time
import traceback
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import click

from coprlake.cli.options.engine import Engine
from coprlake.cli.options.query_options import Terms, heard
from coprlake.cli.printing.harmless import harmless
from coprlake.cli.printing.notices import is_colored, note, warn_each
from coprlake.cli.shell.query_words import is_order
from coprlake.errors import CoprlakeError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coprlake.query.querying import Query
    from coprlake.table import Table

ROWS = 100
"""So many are shown unless somebody says otherwise."""
_LEAVE = ("exit", "quit", "\\q")


class Leave(Exception):  # noqa: N818 - it is no error
    """The user wants to go."""


@dataclass
class ShellSession:
    """One conversation with a table.

    Attributes:
        table: that is asked.
        terms: times, variables and limits of every query.
        engine: where queries run.
        limit: so many rows are shown; None for all.
        timing: whether a line with rows, time and pruning stands below each result.
        failures: how many things went wrong.
    """

    table: "Table"
    terms: Terms
    engine: Engine
    limit: int | None = None
    timing: bool = True
    failures: int = 0
    _stack: ExitStack = field(default_factory=ExitStack)
    _spark: "SparkSession | None" = None

    def run(self, text: str) -> None:
        """Do what was typed, and say what went wrong instead of raising it.

        Raises:
            Leave: that was it.
        """
        text = text.strip().rstrip(";").rstrip()
        if not text:
            return
        try:
            if is_order(text):
                self._obey(text)
            else:
                first, *rest = text.split(None, 1)
                is_explain = first.lower() == "explain"
                query = " ".join(rest) if is_explain else text
                with heard():
                    self._ask(query, explain=is_explain)
        except KeyboardInterrupt:
            self._stop_spark_jobs()
            note("\nstopped")
        except BrokenPipeError:
            raise
        except (CoprlakeError, OSError) as error:
            self._failed(str(error))
        except (Leave, click.ClickException):
            raise
        except Exception:
            traceback.print_exc()
            self._failed("this is an error in coprlake itself; please report it with the lines above")

    def _failed(self, text: str) -> None:
        self.failures += 1
        sys.stdout.flush()
        click.echo(f"{click.style('error:', fg='red', bold=True)} {harmless(text)}", err=True)

    def _stop_spark_jobs(self) -> None:
        if self._spark is not None:
            self._spark.sparkContext.cancelAllJobs()

    # Queries

    def _ask(self, text: str, *, explain: bool) -> None:
        from coprlake.cli.printing import answers
        from coprlake.cli.printing.query_report import explanation, summary

        started = time.perf_counter()
        terms = self.terms if explain else replace(self.terms, rows=self.limit)
        query = terms.ask(self.table, text, self._session())
        warned = list(query.warnings)
        warn_each(warned)
        if explain:
            query.explain()
            click.echo(explanation(query, time.perf_counter() - started))
            return
        answers.write(query, answers.Form("table"))
        self._tell(query, warned, summary(query, time.perf_counter() - started))

    def _tell(self, query: "Query", warned: list[str], line: str) -> None:
        """What stands below a result."""
        report = query.report
        late = [text for text in report.warnings if text not in warned]
        warn_each(late[:-1] if report.is_cut else late)
        for scan in report.scans:
            warn_each(scan.search.problems)
        if report.is_cut:
            line += "; \\limit N shows more"
        if not self.timing and not report.is_cut:
            if not report.rows:
                note("no records")
            return
        sys.stdout.flush()
        click.echo(click.style(line, dim=True) if is_colored(err=True) else line, err=True)

    def _session(self) -> "SparkSession | None":
        """Spark's, started when the first query needs it."""
        if not self.engine.is_spark:
            return None
        if self._spark is None:
            self._spark = self._stack.enter_context(self.engine.session())
        return self._spark

    def close(self) -> None:
        """End Spark, if it runs."""
        self._spark = None
        self._stack.close()

    # Orders

    def _obey(self, text: str) -> None:
        order, *rest = text.split(None, 1)
        value = rest[0].strip() if rest else ""
        order = order.lower()
        if order in _LEAVE:
            raise Leave
        if order in ("\\h", "\\?", "\\help", "help"):
            from coprlake.cli.shell.help_pages import help_text

            click.echo(help_text(value))
        elif order == "\\fields":
            click.echo(self._fields())
        elif order == "\\limit":
            self._set_limit(value)
        elif order == "\\engine":
            self._set_engine(value)
        elif order == "\\timing":
            if value not in ("", "on", "off"):
                raise UsageError(f"\\timing is on or off, not {value}")
            self.timing = value == "on" if value else not self.timing
            note(f"timing is {'on' if self.timing else 'off'}")
        else:
            raise UsageError(f"there is no {order}; \\h tells what there is")

    def _set_limit(self, value: str) -> None:
        if value and not value.isdecimal():
            raise UsageError(f"\\limit takes a number of rows, not {value}")
        if value:
            self.limit = int(value) or None
        note("all rows are shown" if self.limit is None else f"at most {self.limit:,} rows are shown")

    def _set_engine(self, value: str) -> None:
        if value not in ("", "duckdb", "spark"):
            raise UsageError(f"\\engine is duckdb or spark, not {value}")
        if value:
            self.engine = replace(self.engine, name=value)
        note(f"queries run on {'Spark' if self.engine.is_spark else 'DuckDB'}")

    def _fields(self) -> str:
        from coprlake.cli.printing import figures
        from coprlake.cli.shell.known_fields import attributes_seen, fields_of

        rows = list(fields_of(self.table).items())
        rows += [(name, "attribute: text") for name in attributes_seen(self.table)]
        return figures.pairs(rows)
