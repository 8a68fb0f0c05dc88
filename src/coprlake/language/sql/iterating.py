"""Expressions over each element of an array, where one of our own functions stands in them.

Spark calls no Python function inside a lambda. So such a function is called on whole arrays before: its arguments
are computed for all elements, the results go beside the elements, and the lambda only picks them up.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from coprlake.language.functions.array_functions import ArrayFunction
from coprlake.language.sql.dialect import Dialect


@dataclass(frozen=True)
class Each:
    """A function over arrays as one over arrays of arrays."""

    run: Any

    def __call__(self, lists: pa.ListArray) -> pa.Array:
        """Apply it to all elements at once."""
        results = self.run(lists.flatten())
        lengths = pc.fill_null(pc.list_value_length(lists), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
        return pa.ListArray.from_arrays(offsets, results, mask=pc.is_null(lists) if lists.null_count else None)


def iterated(d: Dialect, values: exp.Expression, bound: str, body: exp.Expression) -> exp.Expression:
    """The body for each element, which is called `bound` in it."""
    call = _innermost(d, body) if d.is_spark else None
    if call is None:
        return d.call(d.pick(duckdb="list_transform", spark="transform"), values, _lambda(body, bound))
    function = d.array_functions[call.name]
    each = ArrayFunction(
        f"{function.name}_each", Each(function.run), (pa.list_(function.inputs[0]),), pa.list_(function.output)
    )
    given = d.call("transform", values.copy(), _lambda(call.expressions[0].copy(), bound))
    element, result, pair = d.bound_name(), d.bound_name(), d.bound_name()
    both = d.pack(["e", "k"], [exp.column(element), exp.column(result)])
    pairs = d.call("zip_with", values, d.apply(each, given), _lambda(both, element, result))
    return iterated(d, pairs, pair, _picked(d, body, call, bound, pair))


def _lambda(body: exp.Expression, *names: str) -> exp.Lambda:
    return exp.Lambda(this=body, expressions=[exp.to_identifier(name) for name in names])


def _innermost(d: Dialect, body: exp.Expression) -> exp.Anonymous | None:
    """One of our functions that has none of them in its arguments."""
    for call in body.find_all(exp.Anonymous):
        inner = (part for part in call.find_all(exp.Anonymous) if part is not call)
        if call.name in d.array_functions and not any(part.name in d.array_functions for part in inner):
            return call
    return None


def _picked(d: Dialect, body: exp.Expression, call: exp.Expression, bound: str, pair: str) -> exp.Expression:
    """The body with the result of the call, and the element, taken from a pair."""
    wanted = call.copy()

    def pick(node: exp.Expression) -> exp.Expression:
        if node == wanted:
            return d.member(exp.column(pair), "k")
        if isinstance(node, exp.Column) and node.name == bound and not node.table:
            return d.member(exp.column(pair), "e")
        return node

    return body.transform(pick)
