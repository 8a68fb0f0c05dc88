"""The law for every variant of a store: search equals the naive filter."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from coprlake.predicate.predicates import ALL_FIELDS, EVERYTHING, And, Contains, Equals, Exists, Not, Predicate
from coprlake.records import CONTENT, SOURCE, TIMESTAMP
from coprlake.segment.mutable import SegmentOptions
from coprlake.table import create_table
from coprlake.testing.conformance import check_context, check_law
from coprlake.testing.predicate_strategies import STATUS, USERAPP, Row, predicates, rows, texts_in
from coprlake.testing.store_variants import ID, SMALL, START, VARIANTS, Stored, numbered, record_batch

GENERATE = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking would store thousands of tables
few = settings(max_examples=6, phases=GENERATE)
MOMENTS = st.none() | st.sampled_from([row[TIMESTAMP] for row in numbered([{TIMESTAMP: None}] * 4)])


@pytest.mark.parametrize("variant", VARIANTS)
@few
@given(st.lists(rows(), max_size=9), st.data())
def test_search_equals_the_naive_filter(variant: str, some_rows: list[Row], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder, VARIANTS[variant](Path(folder, "table"), numbered(some_rows)) as stored:
        for predicate in data.draw(st.lists(predicates(texts_in(some_rows)), min_size=3, max_size=6)):
            since, until = data.draw(MOMENTS), data.draw(MOMENTS)
            threads, limit = data.draw(st.sampled_from([1, 4])), data.draw(st.integers(0, 4))
            check_law(stored, predicate, since=since, until=until, threads=threads, limit=limit)


FIXED_ROWS = numbered(
    {
        TIMESTAMP: None,
        SOURCE: [None, "", "web-1", "web 1/ä%20", "WEB-1"][number % 5],
        "loglevel": ["INFO", None, "warn"][number % 3],
        CONTENT: None if number == 7 else f"GET /index.html?id={number:04x} from 10.0.0.{number} ab",
        "attributes": [("region", "eu-1"), ("userapp", "hidden"), ("none", None)] if number % 2 else None,
        USERAPP: [None, "", "shop", "404"][number % 4],
        STATUS: [None, 200, 404][number % 3],
    }
    for number in range(14)
)
FIXED_PREDICATES: list[Predicate] = [
    EVERYTHING,
    Contains("index"),
    Contains("10.0.0.1"),
    Contains("nowhere to be found"),
    Contains(""),
    Contains("eu-1", ALL_FIELDS),
    Equals("region", "EU-1"),
    Equals(SOURCE, "web-1"),
    Equals(SOURCE, "web-1", case_sensitive=True),
    Equals(USERAPP, "hidden"),
    Not(Equals(USERAPP, "hidden")),
    Equals(USERAPP, "404"),
    Exists(USERAPP),
    Not(Exists(SOURCE)),
    Equals(STATUS, 404),
    And((Equals(STATUS, "200"), Contains("GET"), Not(Contains("id=0004")))),
]


@pytest.mark.parametrize("variant", VARIANTS)
def test_search_of_chosen_rows_equals_the_naive_filter(variant: str, tmp_path: Path) -> None:
    with VARIANTS[variant](tmp_path / "table", list(FIXED_ROWS)) as stored:
        for number, predicate in enumerate(FIXED_PREDICATES):
            bounds = {"since": START.replace(day=2), "until": START.replace(day=4)} if number % 3 == 2 else {}
            check_law(stored, predicate, threads=1 + number % 2, limit=7, **bounds)


CONTEXTS = st.integers(0, 3)


@settings(max_examples=40, phases=GENERATE)
@given(st.lists(rows(), max_size=12), st.booleans(), st.booleans(), CONTEXTS, CONTEXTS, st.data())
def test_context_is_that_of_the_naive_search(
    some_rows: list[Row], is_committed: bool, is_small: bool, before: int, after: int, data: st.DataObject
) -> None:
    stored_rows = numbered(some_rows)
    predicate = data.draw(predicates(texts_in(some_rows)))
    if not before and not after:
        return
    with TemporaryDirectory() as folder:
        table = create_table(Path(folder, "table"), partition_by=None)
        writer = table.writer(options=SMALL if is_small else SegmentOptions())
        writer.append(record_batch(stored_rows))
        if is_committed:
            writer.commit()
        with Stored(table, stored_rows, writer, segments=[[row[ID] for row in stored_rows]]) as stored:
            check_context(stored, predicate, before, after, threads=data.draw(st.sampled_from([1, 4])))


def test_context_of_two_segments_stands_in_two_groups(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    stored_rows = numbered({TIMESTAMP: None, SOURCE: "web", CONTENT: f"line {number}"} for number in range(6))
    for row in stored_rows:
        row |= {"loglevel": None, "attributes": None, USERAPP: None, STATUS: None}
    for part in (stored_rows[:3], stored_rows[3:]):
        table.append(record_batch(part))
    stored = Stored(table, stored_rows, segments=[[0, 1, 2], [3, 4, 5]])
    check_context(stored, And((Contains("line"), Equals(ID, 1))) | Equals(ID, 4), 1, 1)


def test_a_match_in_the_context_of_another_batch_is_a_match_there_too(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    with table.writer(options=SegmentOptions(batch_bytes=1)) as writer:
        writer.append(
            [{ID: number, SOURCE: "web", CONTENT: "hit" if number in (2, 3) else "no"} for number in range(6)]
        )
    found = list(table.search("hit", context=1).rows())
    assert {row[ID] for row in found} == {1, 2, 3, 4}
    assert all(row["match"] == (row[ID] in (2, 3)) for row in found)
    for limit in (1, 2, 3):
        limited = list(table.search("hit", context=1, limit=limit).rows())
        assert len({row[ID] for row in limited if row["match"]}) >= min(limit, 2)


def test_context_of_a_record_without_a_source_is_of_such_records(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    with table.writer(options=SegmentOptions(batch_bytes=1, slot_count=1)) as writer:
        sources = ["web", None, "web", None, "web", None]
        writer.append([{ID: n, SOURCE: source, CONTENT: "hit" if n == 3 else "no"} for n, source in enumerate(sources)])
    found = list(table.search("hit", context=1).rows())
    assert [row[ID] for row in found] == [1, 3, 5]
