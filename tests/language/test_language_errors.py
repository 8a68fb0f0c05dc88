"""Bad queries: an error says what is wrong, where, and what was probably meant. Nothing hangs, nothing is injected."""

import sys
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coprlake import Table, create_table
from coprlake.errors import CoprlakeError, QueryError, QueryLimitError
from coprlake.language.parsing import parse
from coprlake.query.limits import Limits
from tests.language.language_cases import NOW


def _error(table: Table, text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        table.query(text, now=NOW).arrow()
    return caught.value


WRONG = [
    ("fetc logs", "no command fetc; did you mean fetch?", "fetc"),
    ("fetch logs | sumarize count()", "no command sumarize; did you mean summarize?", "sumarize"),
    ("fetch log", "no table log; did you mean logs?", "log"),
    (
        'fetch logs | filter contians(content, "x")',
        "no function contians; did you mean contains?",
        'contians(content, "x")',
    ),
    ("fetch logs | filter contains(content)", "contains needs part", "contains(content)"),
    (
        'fetch logs | filter contains(content, "x", caseSensitiv: true)',
        "did you mean caseSensitive?",
        "caseSensitiv: true",
    ),
    ('fetch logs | filter contains(id, "x")', "text of contains has to be string, found a long", "id"),
    ("fetch logs | filter content", "a condition: expected a boolean, found a string", "content"),
    ('fetch logs | filter loglevel = "x"', "use == to compare", 'loglevel = "x"'),
    ('fetch logs | fields x = content + "a"', "join texts by concat()", 'content + "a"'),
    ("fetch logs | fields x = -content", "- needs a number", "-content"),
    ('fetch logs | filter matchesRegex(content, "(a")', "missing )", None),
    ('fetch logs | parse content, "LD IPADR:x"', "did you mean IPADDR?", '"LD IPADR:x"'),
    ('fetch logs | parse content, "LD \'x"', "at character", None),
    ('fetch logs | parse content, "LD"', "names no value", '"LD"'),
    ("fetch logs | summarize content", "in an aggregation", "content"),
    ("fetch logs | fields x = count()", "use it in summarize", "count()"),
    ("fetch logs | limit -5", "number of records", "-5"),
    ("fetch logs | limit", "takes one argument", "limit"),
    ("fetch logs | sort", "at least one field", "sort"),
    ("fetch logs | expand content", "takes an array", "content"),
    ("fetch logs | makeTimeseries count(), interval: 1s, from: -90d", "more than 1,500", None),
    ("fetch logs | makeTimeseries count(), bins: 0", "from 1 to 1500", "bins: 0"),
    ("fetch logs | filter source in [data record(a = 1) | fieldsRemove a]", "has no fields", None),
    ("fetch logs | join [data record(a = 1)], on:{idd}", "the right side has no field idd", None),
    ('data record(a = 1), record(a = "x")', "different types: long and string", None),
    ("data record(1)", "needs a name", "1"),
    ('data json:"{"', "not valid JSON", None),
    ("fetch logs, from:now(), to:-1h", "from is later than to", "from:now()"),
    ('fetch logs, from:"yesterday"', "from must be a time", None),
    ('fetch logs, timeframe:"x/y"', "timeframe must be like", None),
    ("fetch logs, frm:-1h", "no parameter frm; did you mean from?", "frm:-1h"),
    ("fetch logs | fetch logs", "can only be the first command", "fetch"),
    ("filter a == 1", "needs records to work on", "filter"),
    ('fetch logs | summarize count(), by:{source} | search "x"', "search must come before summarize", "search"),
    ("fetch logs | fields x = 5m + 1M", "no fixed length", "5m + 1M"),
    ("fetch logs | fields x = timestamp@7h", "24 is not a multiple of 7", "timestamp@7h"),
    ("fetch logs | filter $user == 1", "$user was not given a value", "$user"),
    ("fetch logs | filter id == 99999999999999999999", "does not fit into 64 bits", "99999999999999999999"),
    ('fetch logs | fields x = if(true, 1, else: "a")', "cannot be used with", None),
    ('fetch logs | filter content == "abc', "not closed", '"'),
    ("fetch logs | filter (id == 1", "expected `)`", None),
    ("fetch logs | | limit 5", "unexpected `|`; expected a name", "|"),
    ("fetch logs |", "the query ends here", None),
    ("fetch logs | limit 5 6", "unexpected `6`", "6"),
    ("fetch logs | sort id descc", "unexpected `descc`", "descc"),
    ("", "the query is empty", None),
    ("/* never closed", "comment is not closed", "/"),
    ("fetch logs /* never closed", "comment is not closed", "/"),
]


@pytest.mark.parametrize(("text", "message", "marked"), WRONG, ids=[text[:60] for text, _, _ in WRONG])
def test_the_error_says_what_and_where(table: Table, text: str, message: str, marked: str | None) -> None:
    error = _error(table, text)
    assert message in str(error)
    if marked is not None:
        assert text[error.start : error.end] == marked


def test_the_marks_stand_under_the_place(table: Table) -> None:
    error = _error(table, 'fetch logs\n| filter contians(content, "x")')
    lines = str(error).splitlines()
    assert lines[1] == "  line 2, column 10"
    assert lines[2].index("contians") == lines[3].index("^")


def test_the_marks_stand_right_behind_wide_characters(table: Table) -> None:
    lines = str(_error(table, 'data record(a = "日本", e = arra(1))')).splitlines()
    assert lines[3].index("^") == lines[2].index("arra") + 2


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ('fetch logs | filter contnt == "x"', "did you mean content?"),
        ("data record(user = 1) | fields usr", "there is no field usr, so it is null; did you mean user?"),
        ("data record(r = record(a = 1)) | fields r[b]", "the record has no member b"),
        ('data record(a = "x", user = 1) | parse a, "LD:user"', "parse replaces the field user"),
    ],
)
def test_what_is_odd_is_a_warning(table: Table, text: str, warning: str) -> None:
    query = table.query(text)
    query.arrow()
    assert any(warning in told for told in query.warnings), query.warnings


def test_a_field_that_is_not_there_may_be_removed_without_a_warning(table: Table) -> None:
    query = table.query("fetch logs | fieldsRemove lglevel | fields a = 1 | limit 1")
    assert query.arrow().to_pylist() == [{"a": 1}]
    assert not query.warnings


def test_nothing_hangs_on_large_or_deep_queries(table: Table) -> None:
    started = time.monotonic()
    assert table.query("fetch logs | filter " + "(" * 10_000 + "true" + ")" * 10_000).arrow().num_rows == 12
    assert "characters" in _error(table, "fetch logs // " + "x" * 1_000_000).problem
    assert "deep" in _error(table, "fetch logs | filter " + "not " * 5_000 + "true").problem
    assert "deep" in _error(table, "data record(a = 1) | fields x = " + "+".join(["a"] * 3_000)).problem
    assert "deep" in _error(table, "data record(a = 1) | fields x = " + "abs(" * 500 + "a" + ")" * 500).problem
    assert "commands" in _error(table, "data record(a = 1)" + " | limit 5" * 500).problem
    alternatives = " or ".join(f'content == "x{i}"' for i in range(1_000))
    assert table.query(f"fetch logs | filter {alternatives}").arrow().num_rows == 0
    assert table.query("data record(a = 1)" + " | fieldsAdd a = a + 1" * 150).arrow().to_pylist() == [{"a": 151}]
    doubling = "".join(f" | fieldsAdd a{i} = a{i - 1} + a{i - 1}" for i in range(1, 40))
    found = table.query(
        f"fetch logs | fieldsAdd a0 = toLong(status) * 0{doubling} | filter a39 == 0 | summarize count()"
    )
    assert found.arrow().num_rows == 1
    assert time.monotonic() - started < 60


def test_long_pipelines_leave_the_recursion_limit_alone(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "setrecursionlimit", lambda _: pytest.fail("the limit is the process's"))
    assert table.query("data record(a = 1)" + " | fieldsAdd a = a + 1" * 190).arrow().to_pylist() == [{"a": 191}]
    assert table.query("data record(a = 1)" + " | append [data record(a = 1) | limit 1]" * 60).arrow().num_rows == 61
    assert table.query("data record(a = 1)" + " | filter a in [data record(a = 1)]" * 60).arrow().num_rows == 1
    nested = "data record(a = 1)"
    for _ in range(30):
        nested = f"data record(a = 1) | filter a in [{nested}]"
    assert table.query(nested).arrow().num_rows == 1
    terms = "".join(f' | fieldsAdd x = contains(content, "{i}") or x' for i in range(100))
    assert table.query(f"fetch logs | fieldsAdd x = true{terms} | filter x").arrow().num_rows == 12


def test_a_catastrophic_pattern_is_not_one(table: Table) -> None:
    text = "a" * 30 + "!"
    started = time.monotonic()
    found = table.query(
        f'data record(a = "{text}") | fields x = matchesRegex(a, "^(a+)+$"), y = matchesPattern(a, "([a]*)*  \'b\'")'
    )
    assert found.arrow().to_pylist() == [{"x": False, "y": False}]
    assert time.monotonic() - started < 30


def test_numbers_that_do_not_fit(table: Table) -> None:
    assert "64 bits" in _error(table, "data record(a = 9223372036854775807) | fields x = a + 1").problem
    assert "64 bits" in _error(table, "data record(a = 9223372036854775807), record(a = 1) | summarize sum(a)").problem


def test_a_query_has_a_limit_of_time(table: Table) -> None:
    pairs = "data record(a = 1)" + " | append [data record(a = 1)]" * 3
    slow = "".join(f' | fieldsAdd k{i} = 1 | join [{pairs}], on:{{a}}, prefix:"p{i}."' for i in range(14))
    started = time.monotonic()
    with pytest.raises(QueryLimitError, match=r"longer than 0\.5 seconds"):
        table.query(f"{pairs}{slow} | summarize count()", limits=Limits(seconds=0.5)).arrow()
    assert time.monotonic() - started < 20


def test_a_query_has_a_limit_of_rows(table: Table) -> None:
    query = table.query("fetch logs | fields id | sort id", limits=Limits(rows=5))
    assert query.arrow().column("id").to_pylist() == [1, 2, 3, 4, 5]
    assert query.report.is_cut
    assert "only the first 5 rows" in query.warnings[-1]
    whole = table.query("fetch logs | fields id", limits=Limits(rows=12))
    assert whole.arrow().num_rows == 12
    assert not whole.report.is_cut


def test_a_query_has_a_limit_of_memory(table: Table) -> None:
    rows = "data record(a = 1)" + " | append [data record(a = 1)]" * 9
    joined = "".join(f' | join [{rows}], on:{{a}}, prefix:"p{i}."' for i in range(6))
    text = f'{rows}{joined} | fieldsAdd t = concat(toString(p0.a), "{"x" * 500}") | summarize x = collectArray(t)'
    with pytest.raises(QueryLimitError, match=r"more memory than 64 MiB|longer than"):
        table.query(text, limits=Limits(memory_bytes=64 * 2**20, seconds=60)).arrow()


def test_limits_are_checked() -> None:
    with pytest.raises(CoprlakeError, match="expected more than 0"):
        Limits(rows=0)


def test_variables_are_values_and_never_code(table: Table) -> None:
    hostile = '" or true or "" == "'
    assert table.query("fetch logs | filter content == $x", variables={"x": hostile}).arrow().num_rows == 0
    assert table.query("fetch logs | filter content == $x", variables={"x": "login"}).arrow().num_rows == 1
    assert table.query("fetch logs | filter in(id, $ids)", variables={"ids": [1, 2]}).arrow().num_rows == 2
    for odd in ({"a": 1}, [[1]], [b"x"], 2**70, "\ud800"):
        with pytest.raises(QueryError, match="the variable"):
            table.query("fetch logs | filter content == $x", variables={"x": odd})


HOSTILE = st.text(alphabet=st.sampled_from(list("'\"\\;-/*`${}()[]|%_:?@!\n\t\0 aé😀")), max_size=12)


@settings(max_examples=150, deadline=None)
@given(value=HOSTILE, name=HOSTILE.filter(bool))
def test_any_text_goes_through_as_it_is(value: str, name: str) -> None:
    table = _empty()
    field = "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
    found = table.query(f"data record({field} = $v) | filter {field} == $v", variables={"v": value}).arrow()
    assert found.to_pylist() == [{name: value}]


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_is_a_query_or_an_error(text: str) -> None:
    with suppress(QueryError):
        assert parse("fetch logs | " + text).commands[0].name == "fetch"


_made: list[Table] = []


def _empty() -> Table:
    if not _made:
        import tempfile

        _made.append(create_table(tempfile.mkdtemp() + "/empty"))
    return _made[0]
