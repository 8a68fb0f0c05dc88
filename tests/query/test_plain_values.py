"""A plain search looks at every value of a record, wherever it is, and is pruned for it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coprlake import Table, contains, create_table, equals, term
from coprlake.ingestion import ingest
from coprlake.intake.options import ReadOptions
from coprlake.intake.reading import Intake
from coprlake.predicate.predicates import ANY_VALUE, Predicate, Prefix, Regex
from coprlake.segment.mutable import SegmentOptions
from coprlake.segment.sidecar import Description, are_all_in_content, joined_any_value
from coprlake.testing.naive_search import matches
from coprlake.tokens.profile import NOT_TOGETHER

WORDS = st.sampled_from(["alpha", "10.0.0.7", "GET", "x=1", "true", "404", "zz", "Ünï", "a\nb", ""])
SCALARS = st.one_of(WORDS, st.integers(-5, 5000), st.floats(allow_nan=False, width=32), st.booleans(), st.none())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=2),
    max_leaves=4,
)
RECORDS = st.dictionaries(
    st.sampled_from(["msg", "level", "user", "http", "n", "tags", "any value"]), VALUES, max_size=5
)


def ingested(folder: Path, text: str, name: str = "log.json", **options: Any) -> Table:
    path = folder / name
    path.write_text(text)
    table = create_table(folder / "table", partition_by=None)
    ingest(table, Intake([path], ReadOptions(**options)))
    return table


def description_of(table: Table) -> Description:
    (segment,) = table.snapshot().segments
    assert segment.sidecar is not None
    return segment.sidecar.description


def check(table: Table, *predicates: Predicate) -> None:
    """Every search finds what the naive one finds, with and without sketches."""
    rows = list(table.search().rows())
    for predicate in predicates:
        expected = sum(matches(predicate, row) for row in rows)
        assert table.search(predicate).count() == expected, predicate
        assert table.search(predicate, use_sketches=False).count() == expected, predicate


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(RECORDS, min_size=1, max_size=6),
    st.lists(st.one_of(WORDS, st.integers(0, 50).map(str)), min_size=1, max_size=4),
)
def test_every_value_of_json_is_found(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], texts: list[str]
) -> None:
    table = ingested(tmp_path_factory.mktemp("json"), "".join(f"{json.dumps(record)}\n" for record in records))
    check(table, *(kind(text, ANY_VALUE) for text in texts for kind in (contains, term, Prefix)))
    for record in records:
        for value in texts_of(record):
            assert table.search(contains(value)).count(), (value, record)


def texts_of(value: Any, key: str = "") -> list[str]:
    """The texts that a search for each value of a record must find."""
    if isinstance(value, dict):
        return [text for name, inner in value.items() for text in texts_of(inner, name)]
    if isinstance(value, list):
        return [text for inner in value for text in texts_of(inner) if isinstance(inner, int)]
    if isinstance(value, str):
        return [value]
    return [json.dumps(value)] if isinstance(value, int) else []


def test_json_is_searched_as_ripgrep_searches_it_but_for_keys(tmp_path: Path) -> None:
    rows = [
        {"ts": f"2024-05-06T07:08:{n % 60:02}Z", "level": ["info", "warning"][n % 2], "msg": f"request {n} done",
         "client": {"ip": f"10.0.{n % 7}.{n}"}, "status": 200 + n % 5, "took": n / 8, "ok": n % 3 == 0}
        for n in range(3000)
    ]  # fmt: skip
    table = ingested(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    for text in ("10.0.3.", "warning", "204", "1.125", "request 77 ", "true", "0.3.1207"):
        expected = sum(any(text in inner for inner in map(_written, _leaves(row))) for row in rows)
        assert expected
        search = table.search(contains(text))
        assert search.count() == expected, text
    for absent in ("client", "07:08", "nowhere at all", "10.9.9.9"):
        search = table.search(contains(absent))
        assert search.count() == 0
        assert search.report.batches_opened == 0 or absent == "07:08", absent


def _leaves(value: Any, key: str = "") -> Sequence[Any]:
    if isinstance(value, dict):
        return [leaf for name, inner in value.items() if name != "ts" for leaf in _leaves(inner)]
    return [value]


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_the_fields_of_a_line_cost_nothing_more(tmp_path: Path) -> None:
    lines = [
        f'10.0.0.{n % 200} - - [06/May/2024:07:08:09 +0000] "GET /a/{n} HTTP/1.1" 200 {n} "-" "agent {n % 9}"\n'
        for n in range(500)
    ]
    table = ingested(tmp_path, "".join(lines), "access.log")
    assert "http_status" in table.schema.names
    assert description_of(table).all_in_content
    check(table, contains("agent 7", ANY_VALUE), term("10.0.0.19", ANY_VALUE), Prefix("agent 8", ANY_VALUE))
    check(table, Regex("^agent 8$", ANY_VALUE), term("agent", ANY_VALUE), contains("absent", ANY_VALUE))


def test_a_whole_term_in_a_field_that_the_content_has_inside_a_word(tmp_path: Path) -> None:
    """The value is a part of the content, so it is not indexed again; yet in the content it is no whole term."""
    table = create_table(tmp_path / "t", partition_by=None)
    table.append([{"content": "xalphax", "user": "alpha"}, {"content": "beta", "user": "gamma"}])
    assert table.search(term("alpha", ANY_VALUE)).count() == 1
    assert table.search(Prefix("alp", ANY_VALUE)).count() == 1
    assert table.search(Regex("^alpha$", ANY_VALUE)).count() == 1


def test_text_that_spans_two_values_does_not_match(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    table.append([{"content": "one", "a": "two", "b": "three"}])
    assert [table.search(text).count() for text in ("one", "two", "three")] == [1, 1, 1]
    assert [table.search(contains(text)).count() for text in ("onetwo", "one two", "twothree")] == [0, 0, 0]


def test_a_field_may_be_called_any_value(tmp_path: Path) -> None:
    lines = [{"message": "abc hello world def", "any value": "zzz"}, {"message": "zzz", "any value": "other"}]
    table = ingested(tmp_path, "".join(f"{json.dumps(line)}\n" for line in lines))
    expected = {'"c hello w"': 1, "zzz": 2, "other": 1, '"any value":zzz': 1, '"any value":*': 2, "absent": 0}
    for use_sketches in (True, False):
        found = {text: table.search(text, use_sketches=use_sketches).count() for text in expected}
        assert found == expected
        assert table.search(contains("zz", "any value"), use_sketches=use_sketches).count() == 1
        assert table.search(~contains("zz", "any value"), use_sketches=use_sketches).count() == 1
    check(table, contains("zzz"), contains("zzz", "any value"), term("hello", "any value"), equals("any value", "zzz"))
    with pytest.raises((UnicodeEncodeError, pa.ArrowException)):
        pa.array([ANY_VALUE])  # so no column and no attribute can have this name


def test_time_source_and_level_are_not_looked_at(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    table.append([{"content": "x", "source": "error.log", "loglevel": "ERROR", "attributes": {"source": "error"}}])
    assert table.search("error").count() == 0
    assert table.search("2").count() == 0


@pytest.mark.parametrize("searchable", [True, False])
def test_new_records_are_pruned_too(tmp_path: Path, searchable: bool) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    with table.writer(options=SegmentOptions(batch_bytes=500, slot_count=2), searchable=searchable) as writer:
        writer.append([{"content": f"line {n}", "user": f"user-{n}", "n": n * 1000} for n in range(300)])
        if not searchable:
            writer.close()
        search = table.search("user-177")
        assert search.count() == 1
        assert search.report.batches_pruned_by_sketch > 0
        assert table.search("177000").count() == 1


def test_optimize_keeps_values_searchable(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    for start in (0, 50):
        table.append([{"content": f"line {n}", "user": f"user-{n}"} for n in range(start, start + 50)])
    table.append([{"content": "only text"}])
    table.optimize(full=True)
    assert description_of(table).any_value == "winnowed"
    assert not description_of(table).all_in_content
    assert table.search("user-77").count() == 1
    assert table.verify(deep=True).is_sound


def test_how_values_are_indexed_after_a_merge() -> None:
    def described(any_value: str, *fields: str, inside: bool = False) -> Description:
        kinds = dict.fromkeys(fields, "any+winnowed") | {"content": "winnowed"}
        return Description("x", 1, 1, 1, 1, kinds, any_value=any_value, all_in_content=inside)

    new, lines = described("winnowed", "user"), described("winnowed", "http_method", inside=True)
    old, old_text = described(NOT_TOGETHER, "user"), described(NOT_TOGETHER, "source")
    empty, unlisted = Description("x", 1, 0, 0, 0), Description("x", 1, 1, 1, 1, complete=False)
    assert joined_any_value([new, lines, empty]) == "winnowed"
    assert not are_all_in_content([new, lines])
    assert joined_any_value([lines, old_text]) == "winnowed"
    assert are_all_in_content([lines, old_text, empty])
    for other in (old, unlisted, described("paper"), described("of a later version")):
        assert joined_any_value([new, other]) == NOT_TOGETHER or other.any_value == "of a later version"
    assert joined_any_value([new, described("of a later version", "user")]) == NOT_TOGETHER


def test_columns_of_other_writers(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = pa.table({"a": pa.array([[1, 25], None]), "b": pa.array([b"raw bytes", None]), "c": pa.array([1.5, 2.0])})
    pq.write_table(table, tmp_path / "x.parquet")
    from coprlake import open_table

    opened = open_table(tmp_path)
    for _ in range(2):
        counts = {text: opened.search(text).count() for text in ("25", "raw", "1.5", "2.0", "7")}
        assert counts == {"25": 1, "raw": 1, "1.5": 1, "2.0": 1, "7": 0}
        opened.index()
