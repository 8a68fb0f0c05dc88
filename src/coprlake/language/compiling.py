"""Compile the text of a query into what an engine needs: the plan, the pruning conditions and the SQL."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from coprlake.language import plan, syntax
from coprlake.language.binding.session import QuerySession
from coprlake.language.commands import catalog  # noqa: F401
from coprlake.language.commands.pipeline import Pipeline
from coprlake.language.commands.sources import until_now
from coprlake.language.parsing import parse
from coprlake.language.plan import Expr, Scan
from coprlake.language.pruning import Pruning, pruning
from coprlake.language.sql.lowering import Lowered, lower
from coprlake.language.table_facts import Tables
from coprlake.language.types import Type, arrow_type


@dataclass
class Compiled:
    """A compiled query.

    Attributes:
        text: the source of the query.
        tree: its syntax tree.
        node: its plan.
        fields: the columns of the result, by name.
        warnings: messages for the user.
        seconds: the time that parsing and planning took.
    """

    text: str
    tree: syntax.Pipeline
    node: plan.Node
    fields: dict[str, Expr]
    warnings: list[str]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, Type]:
        """The types of the result's columns, by name."""
        return {name: value.type for name, value in self.fields.items()}

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return pa.schema([(name, arrow_type(kind)) for name, kind in self.types.items()])

    @cached_property
    def prunings(self) -> dict[Scan, Pruning]:
        """The conditions to prune each scanned table by."""
        return pruning(self.node)

    def pruning_of(self, scan: Scan) -> Pruning:
        """The conditions to prune the table of a scan by."""
        return self.prunings[scan]

    def lowered(self, engine: str) -> Lowered:
        """The query in the SQL of an engine."""
        return lower(self.node, list(self.fields.values()), engine)


def compile_query(
    text: str,
    tables: Tables,
    *,
    now: int | None = None,
    variables: Mapping[str, Any] | None = None,
    timeframe: tuple[int | None, int | None] = (None, None),
) -> Compiled:
    """Compile a query.

    Args:
        text: the query.
        tables: finds tables and their columns.
        now: the value of ``now()``, in microseconds.
        variables: values for ``$names``.
        timeframe: the default timeframe of `fetch`; without an end, it ends now.

    Raises:
        QueryError: the query is invalid; the error says where.
    """
    began = time.perf_counter()
    tree = parse(text)
    parsed = time.perf_counter()
    moment = time.time_ns() // 1000 if now is None else now
    session = QuerySession(text, moment, variables or {}, keys_of=tables.keys)
    scope = Pipeline(session, tables, until_now(*timeframe, moment)).run(tree)
    if not scope.fields:
        last = tree.commands[-1]
        session.fail("this leaves no fields; keep at least one", last.span)
    seconds = {"parse": parsed - began, "plan": time.perf_counter() - parsed}
    return Compiled(text, tree, scope.node, scope.fields, session.warnings, seconds)
