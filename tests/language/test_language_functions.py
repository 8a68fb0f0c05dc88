"""Every function of the language does what its example says, and what it should with odd values, on each engine."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import coprlake
from coprlake import spark as lake
from coprlake.errors import QueryError
from coprlake.language.functions.catalog import FUNCTIONS
from tests.spark_sessions import QUIET

pytestmark = QUIET

Run = Callable[[str], list[dict[str, Any]]]

EXAMPLES = [(f.name, e.query, list(e.rows)) for f in FUNCTIONS.values() for e in f.examples]

_LEAST, _MOST = -(2**63), 2**63 - 1

EDGES: dict[str, list[Any]] = {
    # text
    "concat(null, null)": [""],
    'concat("ä", 1.5, true, 90s, {1, null}, record(k = "v"))': ['ä1.5true1m 30s[1,null]{"k":"v"}'],
    'indexOf("x😀y", "y")': [2],
    'indexOf("", "")': [0],
    'indexOf("aXbX", "X", from: -1)': [3],
    'indexOf("aXbX", "X", from: 99)': [-1],
    'indexOf("a", null)': [None],
    'lastIndexOf("😀x😀x", "x", from: -2)': [1],
    'lastIndexOf("abc", "")': [3],
    'lastIndexOf(null, "x")': [None],
    'lower("ÄÖİẞΣ")': ["äöißσ"],
    'upper("straße ŉ ǰ")': ["STRAẞE ŉ ǰ"],
    "lower(null)": [None],
    'trim("\t\u00a0 x \r\n")': ["\u00a0 x"],
    'trim("   ")': [""],
    'replaceString("aaa", "", "x")': ["aaa"],
    'replaceString("aaaa", "aa", "b")': ["bb"],
    'replaceString("a", "a", null)': [None],
    'splitString("", ",")': [[""]],
    'splitString("", "")': [[]],
    'splitString("ä😀", "")': [["ä", "😀"]],
    'splitString("a.b|c", ".")': [["a", "b|c"]],
    'splitString(null, ",")': [None],
    'stringLength("")': [0],
    'stringLength("ä😀")': [2],
    'substring("ä😀xy", from: 1, to: 3)': ["😀x"],
    'substring("abc", from: 2, to: 1)': [""],
    'substring("abc", from: -99, to: 99)': ["abc"],
    f'substring("abc", from: {_LEAST}, to: {_MOST})': ["abc"],
    'substring("abc", from: 5)': [""],
    "substring(null, from: 1)": [None],
    'substring("abc", from: 0, to: toLong("x"))': [None],
    'getCharacter("ä😀", 1)': ["😀"],
    'getCharacter("ä😀", -2)': ["ä"],
    'getCharacter("ab", -3)': [None],
    f'getCharacter("ab", {_MOST})': [None],
    'punctuation("äß…  (1)")': ["  ()"],
    'punctuation("a.b", count: 0)': [""],
    "punctuation(null)": [None],
    'levenshteinDistance("ä😀", "a😀b")': [2],
    'levenshteinDistance("", "")': [0],
    'levenshteinDistance("a", null)': [None],
    'encodeUrl("ä/😀?~")': ["%C3%A4%2F%F0%9F%98%80%3F~"],
    'decodeUrl("%zz%4")': ["%zz%4"],
    'decodeUrl("%ff")': ["\ufffd"],
    # JSON
    """jsonField("{\\"a\\": 1.50, \\"b\\": null}", "a")""": ["1.5"],
    'jsonField("{\\"b\\": null}", "b")': [None],
    'jsonField("[1", "a")': [None],
    'jsonField("{\\"a\\": NaN}", "a")': [None],
    'jsonField("{\\"a\\": \\"\\\\ud800\\"}", "a")': ["\ufffd"],
    'jsonPath("[[1, {\\"ä b\\": true}]]", "$[0][-1][\'ä b\']")': ["true"],
    'jsonPath("[1]", "$[5]")': [None],
    'jsonPath("{\\"a\\":{\\"b\\":1}}", "a.b") == 1': [True],
    # patterns
    'matchesPattern(null, "INT")': [None],
    'parse("x", "INT:n")': [None],
    """parse("x", "INT:a ' ' INT:b")""": [None],
    'parseAll("none", "INT:n")': [[]],
    """parseAll("1-2 3-4", "INT:a '-' INT:b")""": [[{"a": 1, "b": 2}, {"a": 3, "b": 4}]],
    'replacePattern("ä1ß22", "INT", "😀")': ["ä😀ß😀"],
    """splitByPattern("ä,ß", "','")""": [["ä", "ß"]],
    # conversion
    "toString(-0.5)": ["-0.5"],
    "toString(1e16)": ["1e+16"],
    "toString(-90m)": ["-1h 30m"],
    "toString(0s)": ["0s"],
    'toString(toTimestamp("2026-01-31T12:00:00.120Z"))': ["2026-01-31T12:00:00.120Z"],
    'toString(toTimestamp("0001-01-01T00:00:00Z"))': ["0001-01-01T00:00:00Z"],
    'toString({"a\\"", null})': ['["a\\"",null]'],
    "toString(record(a = 1, `B c` = {true}, d = null))": ['{"a":1,"B c":[true],"d":null}'],
    "toString(null)": [None],
    'toLong("9223372036854775808")': [None],
    "toLong(9.3e18)": [None],
    "toLong(-2.9)": [-2],
    "toLong(true)": [1],
    "toLong({1})": [None],
    'toDouble("1e999")': [None],
    'toDouble(" 1")': [None],
    "toDouble(true)": [1.0],
    'toBoolean("")': [False],
    "toBoolean(0.0)": [False],
    "toBoolean(null)": [None],
    'toDuration("-1d 2h")': [-93_600_000_000_000],
    'toDuration("300y")': [None],
    'toDuration("99999999999999999999w")': [None],
    "toDuration(2.9)": [2],
    'toIp("010.0.0.1")': [None],
    'toIp("fe80::1%eth0")': [None],
    'ip("::FFFF:1.2.3.4") == ip("::ffff:102:304")': [True],
    'ip("9.0.0.0") < ip("10.0.0.0")': [True],
    "toArray(null)": [None],
    "asLong(1.5)": [None],
    "asArray(1)": [None],
    "asRecord(1)": [None],
    # time
    'getYear(toTimestamp("0001-01-01T00:00:00Z"))': [1],
    'getDayOfWeek(toTimestamp("1969-12-28T23:59:59Z"))': [7],
    'getWeekOfYear(toTimestamp("2021-01-03T00:00:00Z"))': [53],
    'getDayOfYear(toTimestamp("2024-12-31T00:00:00Z"))': [366],
    'getHour(toTimestamp("1969-12-31T23:59:59.999999Z"))': [23],
    'getSecond(toTimestamp("1969-12-31T23:59:59.999999Z"))': [59],
    'getHour(toTimestamp("2026-07-01T22:30:00Z"), timezone: "Europe/Vienna")': [0],
    'getMonth(toTimestamp("2026-12-31T23:30:00Z"), timezone: "Europe/Vienna")': [1],
    "getYear(null)": [None],
    f"getYear(timestampFromUnixMillis({_MOST}))": [None],
    f"timestampFromUnixSeconds({_LEAST})": [None],
    "unixMillisFromTimestamp(timestampFromUnixNanos(-1))": [-1],
    "unixNanosFromTimestamp(null)": [None],
    'formatTimestamp(toTimestamp("1969-12-31T23:05:09.007Z"), format: "yy/M/d h:m:s.SSS a EEEE MMMM D")': [
        "69/12/31 11:5:9.007 PM Wednesday December 365"
    ],
    """formatTimestamp(toTimestamp("2026-01-01"), format: "X XX XXX Z '''o''' ''", timezone: "Asia/Kolkata")""": [
        "+0530 +0530 +05:30 +0530 'o' '"
    ],
    'formatTimestamp(toTimestamp("2026-01-01T00:00:00Z"), format: "H\'h\'X")': ["0hZ"],
    "formatTimestamp(null)": [None],
    "timestamp(year: 2024, month: 2, day: 29, millis: 5)": ["2024-02-29T00:00:00.005000Z"],
    f"timestamp(year: {_MOST}, month: 1, day: 1)": [None],
    "timestamp(year: 2024, month: 13, day: 1)": [None],
    f'duration({_MOST}, unit: "w")': [None],
    "duration(1e300)": [None],
    'duration(-1, unit: "ms")': [-1_000_000],
    # network
    'ipIn("::1", "0.0.0.0/0")': [False],
    'ipIn(null, "10.0.0.0/8")': [None],
    'ipMask("255.255.255.255", 0)': ["0.0.0.0"],
    'ipMask("ffff::1", 8)': ["ff00::"],
    'isIp("")': [False],
    "isIp(null)": [None],
    'ipIsPublic("224.0.0.1")': [False],
    # hash
    'hashMd5("ä")': ["8419b71c87a225a2c70b50486fbee545"],
    'hashSha1("")': ["da39a3ee5e6b4b0d3255bfef95601890afd80709"],
    'hashXxHash64("")': ["ef46db3751d8e999"],
    'hashXxHash64("Nobody inspects the spammish repetition")': ["fbcea83c8a378bf1"],
    'hashXxHash32("Nobody inspects the spammish repetition")': ["e2293b2f"],
    "hashSha512(null)": [None],
    "hashSha256(null)": [None],
    # numbers
    f"abs({_LEAST})": [None],
    "abs(-0.5)": [0.5],
    "toString(ceil(-0.5))": ["0.0"],
    "floor(-1e300)": [-1e300],
    "round(-0.5)": [-1.0],
    "round(0.125, decimals: 2)": [0.13],
    "round(1e300, decimals: 18)": [1e300],
    f"round({_MOST}, decimals: -1)": [None],
    "round(-15, decimals: -1)": [-20],
    "round(null)": [None],
    "sqrt(-1)": [None],
    "log(0)": [None],
    "log10(-1)": [None],
    "exp(1000)": [None],
    "power(0, -1)": [None],
    "power(-8, 0.5)": [None],
    "asin(2)": [None],
    "cbrt(null)": [None],
    "toString(sqrt(-0.0))": ["0.0"],
    "bin(1e300, 0.5)": [1e300],
    "signum(null)": [None],
    'hexStringToNumber("FFFFFFFFFFFFFFFF")': [-1],
    'hexStringToNumber("")': [None],
    "numberToHexString(0)": ["0"],
    f"numberToHexString({_LEAST})": ["8000000000000000"],
    f"bitwiseNot({_LEAST})": [_MOST],
    "bitwiseXor(-1, 1)": [-2],
    "bitwiseShiftLeft(1, 63)": [_LEAST],
    "bitwiseShiftLeft(1, 64)": [0],
    "bitwiseShiftLeft(1, -1)": [None],
    "bitwiseShiftRight(-1, 99)": [-1],
    "bitwiseShiftRight(-1, 99, ignoreSign: true)": [0],
    # arrays
    "arraySize({})": [0],
    "arraySize(null)": [None],
    f"arraySum({{{_MOST}, 1}})": [None],
    f"arraySum({{{_MOST}, 1, -1}})": [_MOST],
    "arraySum({1.5, null})": [1.5],
    "arraySum({1s, 2s})": [3_000_000_000],
    "arrayAvg({})": [0.0],
    'arrayMin({"b", "ä", null})': ["b"],
    "arrayMax({})": [None],
    "arrayMax({true, false})": [True],
    "arrayFirst({})": [None],
    "arrayElement({1, 2}, -3)": [None],
    "arrayConcat(null, null)": [None],
    "arrayConcat({1}, {2.5})": [[1.0, 2.5]],
    'arrayDistinct({"b", "a", "b"})': [["b", "a"]],
    "arrayDistinct({})": [[]],
    "arrayIndexOf({1, 2}, 2.0)": [1],
    "arrayIndexOf({1, null}, null)": [None],
    "arrayReverse(null)": [None],
    'arraySort({"b", "B", "ä", "a"})': [["B", "a", "b", "ä"]],
    "arraySlice({1, 2, 3}, from: -99, to: -1)": [[1, 2]],
    "arraySlice({1, 2, 3}, from: 2, to: 1)": [[]],
    f"arraySlice(null, from: {_MOST})": [None],
    "arraySlice({1, 2}, from: toLong(null))": [None],
    "arrayFlatten({{1}, null, {}})": [[1]],
    'arrayToString({1.5, 2.0}, delimiter: "")': ["1.52.0"],
    "arrayToString({})": [""],
    "arrayToString(null)": [None],
    # null and flow
    "isTrueOrNull(null)": [True],
    "isFalseOrNull(null)": [True],
    "exists(null)": [False],
}
"""Expressions and their values."""

REFUSED = [
    ('matchesRegex("a", "(")', "bad regular expression"),
    ('matchesPattern("a", "NOPE")', "NOPE"),
    ('parse("a", "INT")', "names no value"),
    ('splitByPattern("a", "INT?")', "an empty match"),
    ('jsonPath("{}", "$[")', "not a valid JSON path"),
    ('ipIn("10.0.0.1", "nowhere")', "not a valid network"),
    ('ipMask("10.0.0.1", 129)', "0 to 128"),
    ("round(1.5, decimals: 99)", "-18 to 18"),
    ('formatTimestamp(now(), format: "Q")', "unknown letter Q"),
    ('formatTimestamp(now(), timezone: "Mars/Base")', "unknown time zone"),
    ('duration(1, unit: "y")', "has no fixed length"),
    ('arraySort({1}, direction: "up")', "ascending or descending"),
    ('matchesRegex("a", null)', "cannot be null"),
]


def shown(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as in the reference: times as ISO texts, durations as nanoseconds."""
    columns = [
        [_shown(value) for value in (c.cast(pa.int64()) if pa.types.is_duration(c.type) else c).to_pylist()]
        for c in table.columns
    ]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, list):
        return [_shown(part) for part in value]
    return {name: _shown(part) for name, part in value.items()} if isinstance(value, dict) else value


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> coprlake.Table:
    return coprlake.create_table(tmp_path_factory.mktemp("functions") / "table")


@pytest.fixture(scope="module")
def run(table: coprlake.Table) -> Run:
    """Runs a query on DuckDB."""
    return lambda text: shown(table.query(text).arrow())


@pytest.fixture(scope="module")
def run_on_spark(table: coprlake.Table, spark: SparkSession) -> Run:
    """Runs a query on Spark."""
    return lambda text: shown(lake.query(spark, table, text).arrow())


@pytest.mark.parametrize(("name", "query", "rows"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_a_function_does_what_its_example_says(run: Run, name: str, query: str, rows: list[dict[str, Any]]) -> None:
    assert repr(run(query)) == repr(rows)  # 1 is not 1.0


@pytest.mark.slow
def test_every_example_is_the_same_on_spark(run_on_spark: Run) -> None:
    for name, query, rows in EXAMPLES:
        assert repr(run_on_spark(query)) == repr(rows), name


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(EDGES), 25))
def test_odd_values_are_the_same_on_spark(run_on_spark: Run, first: int) -> None:
    some = dict(list(EDGES.items())[first : first + 25])
    fields = ", ".join(f"x{i} = {expression}" for i, expression in enumerate(some))
    (row,) = run_on_spark(f"data record(nothing = 1) | fields {fields}")
    found = {expression: [value] for expression, value in zip(some, row.values(), strict=True)}
    assert {name: repr(value) for name, value in found.items()} == {name: repr(value) for name, value in some.items()}


def test_every_function_has_an_example_and_a_text() -> None:
    for function in FUNCTIONS.values():
        assert not function.group or (function.examples and function.doc.endswith((".", "`"))), function.name


@pytest.mark.parametrize(("expression", "values"), EDGES.items(), ids=EDGES)
def test_odd_values(run: Run, expression: str, values: list[Any]) -> None:
    rows = run(f"data record(nothing = 1) | fields x = {expression}")
    assert repr([row["x"] for row in rows]) == repr(values)


@pytest.mark.parametrize(("expression", "problem"), REFUSED, ids=[text for text, _ in REFUSED])
def test_a_constant_that_makes_no_sense_is_refused_where_it_stands(
    table: coprlake.Table, expression: str, problem: str
) -> None:
    with pytest.raises(QueryError, match=problem) as raised:
        table.query(f"data record(nothing = 1) | fields x = {expression}")
    assert raised.value.start > len("data record(nothing = 1) | fields x = ")


def test_a_percentile_is_refused_outside_of_0_to_100(table: coprlake.Table) -> None:
    for aggregation in ("percentile(a, 101)", "percentiles(a, {50, -1})"):
        with pytest.raises(QueryError, match="from 0 to 100"):
            table.query(f"data record(a = 1) | summarize {aggregation}")
