"""Differential fuzzing with fixed seeds, and proof that it would find what it looks for."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coprlake.predicate.deciding import conditions
from coprlake.predicate.narrowing import required
from coprlake.predicate.predicates import (
    ALL_FIELDS,
    And,
    Compare,
    Contains,
    Equals,
    Exists,
    Not,
    OneOf,
    Or,
    Regex,
    Term,
)
from coprlake.segment.sealed import SealedSegment
from coprlake.testing.torture import differential
from coprlake.testing.torture.answers.answer_comparing import SearchCase
from coprlake.testing.torture.answers.oracle import answer, is_in_time
from coprlake.testing.torture.answers.plain_rows import Moment, plain_rows
from coprlake.testing.torture.answers.plain_sql import NoSqlError, PlainTable
from coprlake.testing.torture.answers.shrinking import shrunk, simpler
from coprlake.testing.torture.outcome import Outcome

CASES = 150
FEW = 400
"""Cases within which a fault that was put in on purpose has to be found."""


@pytest.mark.parametrize("seed", [1, 2])
def test_all_ways_agree(seed: int, tmp_path: Path) -> None:
    outcome = differential.run(seed, 200, tmp_path, cases=CASES)
    assert not outcome.failures, "\n".join(map(str, outcome.failures))
    assert outcome.cases >= CASES
    kinds = outcome.counts
    assert kinds["sql"] > 15
    assert kinds["meaning"] > 3
    assert sum(count for kind, count in kinds.items() if kind.endswith("search")) > 80
    assert kinds.get("refused", 0) <= 5  # what is refused compares nothing


def test_a_run_can_be_run_again() -> None:
    first, second = differential.table_of(3, 8), differential.table_of(3, 8)
    assert first[0] == second[0]
    assert plain_rows(first[1]).__repr__() == plain_rows(second[1]).__repr__()
    assert repr(differential.table_of(3, 9)) != repr(first)


# --- faults that are put in on purpose ---


def _loses_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sketch answers, but forgets the last of several batches."""
    answers = SealedSegment.candidates

    def candidates(self: SealedSegment, program: Any) -> Any:
        found = answers(self, program)
        return found[:-1] if len(found) > 1 and len(found) < self.batch_count else found

    monkeypatch.setattr(SealedSegment, "candidates", candidates)


def _asks_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a word is asked for as if it were a whole one."""
    tokens = required.required_tokens

    def too_many(predicate: Any, profile: Any) -> Any:
        if isinstance(predicate, Contains) and predicate.text.isalnum():
            predicate = Term(predicate.text, predicate.field, predicate.case_sensitive)
        return tokens(predicate, profile)

    import coprlake.predicate.narrowing.demand as demand

    monkeypatch.setattr(demand, "required_tokens", too_many)


def _decides_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without sketches alike: only the oracle and SQL can tell."""

    def on_typed(self: Any, column: pa.Array) -> Any:
        return np.zeros(len(column), np.bool_)

    monkeypatch.setattr(conditions._Ordered, "on_typed", on_typed)


@pytest.mark.parametrize("fault", [_loses_a_batch, _asks_too_much, _decides_wrongly])
def test_faults_are_found(
    fault: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differential, "MOST_FAILURES", 1)
    monkeypatch.setattr(differential, "SHRINK_SECONDS", 3.0)
    fault(monkeypatch)
    outcome: Outcome = differential.run(1, 200, tmp_path, cases=FEW)
    assert outcome.failures, f"{outcome.cases} cases did not show it"
    shown = str(outcome.failures[0])
    assert "--seed 1 --table" in shown
    assert "search(" in shown or "fetch logs" in shown


# --- the oracle ---


def _row(**columns: pa.Array) -> dict[str, Any]:
    return plain_rows(pa.table(columns))[0]


def test_the_oracle_on_typed_values() -> None:
    row = _row(
        id=pa.array([1]),
        dec=pa.array(["12345678901234567890.1"], pa.string()).cast(pa.decimal128(38, 1)),
        nan=pa.array([float("nan")]),
        far=pa.array([2**62], pa.timestamp("us")),
        late=pa.array([1_717_200_000_000_000_001], pa.timestamp("ns")),
        tags=pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())),
        who=pa.array([{"name": "Eve"}]),
    )
    assert answer(Equals("dec", "12345678901234567890.1"), row)
    assert not answer(Equals("dec", 12345678901234567890), row)
    assert not answer(Equals("nan", float("nan")), row)
    assert not answer(Compare("nan", "<", 1), row)
    assert answer(Compare("far", ">", "9999-12-31"), row)
    assert answer(Compare("late", ">", "2024-06-01"), row)
    assert answer(Equals("who.name", "eve"), row)
    assert answer(Contains("v", "tags[k]"), row)
    assert answer(Exists("tags"), row)
    assert answer(Contains("eve", ALL_FIELDS), row)
    assert not answer(Contains("k", ALL_FIELDS), row)
    assert is_in_time({"t": Moment(row["late"].microseconds)}, "t", 1_717_200_000_000_000, 1_717_200_000_000_001)


def test_the_oracle_does_not_know_what_is_not_defined() -> None:
    row = {"content": b"a\xff", "id": 1}
    assert answer(Regex("a.", "content"), row) is None
    assert answer(Not(Regex("a.", "content")), row) is None
    assert answer(Or((Regex("a.", "content"), Contains("a"))), row) is True
    assert answer(And((Regex("a.", "content"), Contains("b"))), row) is False


def test_plain_sql_says_only_what_it_can_say_exactly(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    data = {"id": [1, 2, 3], "content": ["Straße 10", "STRASSE 1", None], "n": [1.5, float("nan"), None]}
    pq.write_table(pa.table(data), path)
    with PlainTable([str(path)], []) as table:
        assert table.ids(Term("1")) == [2]
        assert table.ids(Contains("STRA")) == [1, 2]
        assert table.ids(Contains("STRASSE")) == [2]
        assert table.ids(Not(Contains("stra"))) == [3]
        assert table.ids(Compare("n", ">", 1.0)) == [1]  # to DuckDB, NaN is the greatest number
        assert table.ids(OneOf("content", ("straße 10", "x"))) == [1]
        with pytest.raises(NoSqlError):
            table.ids(Equals("n", "1.5"))


# --- shrinking ---


def test_the_smallest_case_is_found() -> None:
    data = pa.table({"id": range(40), "a": range(40), "b": ["x"] * 40})
    asked = SearchCase(And((Contains("x"), Or((Equals("a", 7), Term("y"))))), since=5)

    def fails(smaller: pa.Table, question: Any) -> str | None:
        has_seven = 7 in smaller.column("id").to_pylist() and "a" in smaller.schema.names
        return "wrong" if has_seven and "equals(a, 7)" in str(question.predicate) else None

    small, question, problem = shrunk(data, asked, fails, 20.0)
    assert small.to_pydict() == {"id": [7], "a": [7]}
    assert question == SearchCase(Equals("a", 7))
    assert problem == "wrong"


def test_simpler_predicates_are_smaller() -> None:
    predicate = Not(Or((Contains("a"), And((Term("b"), OneOf("c", (1, 2)))))))
    for part in simpler(predicate):
        assert len(repr(part)) < len(repr(predicate))
    assert dataclasses.is_dataclass(predicate)
