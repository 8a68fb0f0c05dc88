"""From the text of a query to what an engine needs: the plan, what to prune by, and the SQL."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from coprlake.language import plan, syntax
from coprlake.language.binding.session import Session
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
    """A query that is understood.

    Attributes:
        text: as it was written.
        tree: its syntax.
        node: its plan.
        fields: the columns of the result, by name.
        warnings: what the user should be told.
        seconds: what parsing and planning took.
    """

    text: str
    tree: syntax.Pipeline
    node: plan.Node
    fields: dict[str, Expr]
    warnings: list[str]
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, Type]:
        """Of the columns of the result."""
        return {name: value.type for name, value in self.fields.items()}

    @property
    def schema(self) -> pa.Schema:
        """Of the result."""
        return pa.schema([(name, arrow_type(kind)) for name, kind in self.types.items()])

    @cached_property
    def prunings(self) -> dict[Scan, Pruning]:
        """What the records of each table that is read have to fulfil."""
        return pruning(self.node)

    def pruning_of(self, scan: Scan) -> Pruning:
        """What the records of a table have to fulfil."""
        return self.prunings[scan]

    def lowered(self, engine: str) -> Lowered:
        """The query in the words of an engine."""
        return lower(self.node, list(self.fields.values()), engine)


def compile_query(
    text: str,
    tables: Tables,
    *,
    now: int | None = None,
    variables: Mapping[str, Any] | None = None,
    timeframe: tuple[int | None, int | None] = (None, None),
) -> Compiled:
    """Understand a query.

    Args:
        text: the query.
        tables: tell what columns there are.
        now: the time that ``now()`` is, in microseconds.
        variables: values for ``$names``.
        timeframe: the time that `fetch` is about, unless it says otherwise; without an end, until now.

    Raises:
        QueryError: the query is wrong, and where.
    """
    began = time.perf_counter()
    tree = parse(text)
    parsed = time.perf_counter()
    moment = time.time_ns() // 1000 if now is None else now
    session = Session(text, moment, variables or {})
    scope = Pipeline(session, tables, until_now(*timeframe, moment)).run(tree)
    if not scope.fields:
        last = tree.commands[-1]
        session.fail("this leaves no fields; keep at least one", last.span)
    seconds = {"parse": parsed - began, "plan": time.perf_counter() - parsed}
    return Compiled(text, tree, scope.node, scope.fields, session.warnings, seconds)
