"""Plain searches by text: fields of the table, levels, numbers, typos, and the same answers as plain Python."""

import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coprlake import Table, create_table
from coprlake.errors import UsageError
from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.plain_syntax import Item, Value, render
from coprlake.query.plain_search import TableFields, plain_search

ROWS: list[dict[str, Any]] = [
    {
        "content": ["connection reset by 10.0.0.1:8080", 'said "hi" -x', "12:34:56 done", "user:bob a*b"][n % 4],
        "user": ["bob", "bobby", "ann b", None][n % 4],
        "status": [200, 404, 500, 503][n % 4],
        "took": n / 4,
        "loglevel": ["INFO", "WARN", "ERROR", "DEBUG"][n % 4],
        "attributes": {"zone": f"eu-{n % 3}"},
    }
    for n in range(24)
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    table = create_table(tmp_path_factory.mktemp("plain") / "t", partition_by=None)
    table.append(ROWS)
    return table


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("reset", 6),
        ("reset connection", 6),
        ('"reset connection"', 0),
        ('"reset by"', 6),
        ("reset -10.0.0.1", 0),
        ("10.0.0.1:8080", 6),
        ("12:34:56", 6),
        ("user:bob", 6),
        ('"user:bob"', 6),
        ("user:bob*", 12),
        ("USER:Bob", 6),
        ("-user:bob", 18),
        ("user:*", 18),
        ("-user:*", 6),
        ('user:"ann b"', 6),
        ("user:ann", 0),
        ("zone:eu-1", 8),
        ("zone:eu-1 user:bob", 2),
        ("status:404", 6),
        ("status:404.0", 6),
        ("status:5*", 12),
        ("status:50*", 12),
        ("status:>=500 -status:503", 6),
        ("took:<1", 4),
        ("level:error", 6),
        ("level:warning", 6),
        ("level:warn+", 12),
        ("loglevel:err", 6),
        ("content:reset", 6),
        ("con*reset", 6),
        ("reset*connection", 0),
        ("a\\*b", 6),
        ("*", 24),
        ("", 24),
        ("503", 6),
    ],
)
def test_counts(table: Table, text: str, count: int) -> None:
    assert table.search(text).count() == count
    assert table.search(text, use_sketches=False).count() == count


def test_the_first_digits_of_the_largest_numbers(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    columns = {
        "content": pa.array(["x"] * 4),
        "id": pa.array([2**63 - 1, 92, 10**18, 920 * 10**15], pa.int64()),
        "ratio": pa.array([9.2e18, 9.25e300, 1.7e308, 0.92]),
        "cost": pa.array([Decimal("9" * 20), Decimal(92), Decimal("92" + "0" * 34 + ".5"), None], pa.decimal128(38, 2)),
    }
    table.append(pa.table(columns))
    expected = {"id:92*": 3, "id:9*": 3, "id:9223372036854775807*": 1, "id:1*": 1, "ratio:92*": 2, "ratio:1*": 1}
    for text, count in {**expected, "cost:9*": 3, "cost:92*": 2, "id:922337203685477580799*": 0}.items():
        assert table.search(text).count() == count, text
        assert table.search(text, use_sketches=False).count() == count, text
    unsigned = TableFields(pa.schema([("n", pa.uint64())]), frozenset(), complete=True)
    matcher = Matcher(plain_search("n:18446744073709551615*", lambda: unsigned).predicate, unsigned.schema)
    assert matcher.mask(pa.record_batch({"n": pa.array([2**64 - 1, 1], pa.uint64())})).tolist() == [True, False]


def test_a_typo_in_a_field_is_told(table: Table) -> None:
    with pytest.warns(UserWarning, match=r"no field usr.*did you mean user:"):
        assert table.search("usr:bob").count() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.search("12:34 http://x std::y").count()


def test_an_open_quote_is_told(table: Table) -> None:
    with pytest.warns(UserWarning, match="not closed"):
        assert table.search('"hi').count() == 6


def test_the_middle_of_a_number_cannot_be_looked_for(table: Table) -> None:
    with pytest.raises(UsageError, match="status is a number"):
        table.search("status:*4").count()


WORDS = st.sampled_from(["reset", "10.0.0.1", "-x", '"hi"', "a*b", "503", "by 10", "eu-1", "DONE", "nothing", ":", ""])
TERMS = st.builds(Item, st.builds(Value, WORDS.map(lambda text: (text,))), st.none(), st.booleans())
CONDITIONS = st.builds(
    Item,
    st.builds(Value, st.sampled_from(["bob", "ann b", "eu-2", "404", "x"]).map(lambda text: (text,))),
    st.sampled_from(["user", "zone", "status"]),
    st.booleans(),
)


def naive(items: list[Item], row: dict[str, Any]) -> bool:
    """What the page says, in plain Python."""
    written = [str(row["status"]), repr(row["took"]), row["content"], row["user"], row["attributes"]["zone"]]
    values = {**row, "zone": row["attributes"]["zone"]}
    for item in items:
        text = str(item.value.text).lower()
        if item.name is None:
            found = any(text in value.lower() for value in written if value is not None)
        else:
            found = str(values[item.name]).lower() == text
        if found == item.is_negated:
            return False
    return True


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=st.lists(TERMS | CONDITIONS, max_size=3))
def test_answers_are_those_of_plain_python(table: Table, items: list[Item]) -> None:
    assert table.search(render(items)).count() == sum(naive(items, row) for row in ROWS), render(items)


def test_fields_of_a_table(table: Table) -> None:
    assert {"user", "zone", "status"} <= table.fields().names


def test_records_that_are_not_committed_have_fields_too(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", partition_by=None)
    with table.writer() as writer:
        writer.append([{"content": "x", "attributes": {"pod": "p-1"}}])
        assert table.search("x").count() == 1


def test_a_word_in_a_field_of_numbers_is_compared(tmp_path: Path) -> None:
    table = create_table(tmp_path / "numbers")
    table.append([{"content": "404", "status": 200}, {"content": "b", "status": 14040}, {"status": 404}])
    fields = table.fields

    def count(text: str) -> int:
        return table.search(plain_search(text, fields, within=("status",)).predicate).count()

    assert [count("404"), count("14*"), count('-"404"'), count("200")] == [1, 1, 2, 1]
    with pytest.raises(UsageError, match="status"):
        count("4*4")
