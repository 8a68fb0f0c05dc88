"""Messages of a queue become records: one each, as a few lines of plain Python say."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake.errors import UsageError
from coprlake.intake.messages import MessageReader, json_lines
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.reading import Intake
from coprlake.records import HIDDEN, SCHEMA

pytestmark = pytest.mark.kernels

STAMP = "2024-05-06 07:08:09"
STAMP_TIME = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
SENT = datetime(2024, 6, 1, tzinfo=UTC)
Row = dict[str, Any]
Values = list[bytes | None]


def read(
    values: Values | pa.Array | pa.ChunkedArray,
    times: list[datetime | None] | None = None,
    sources: list[str | None] | None = None,
    **options: Any,
) -> tuple[list[Row], IntakeReport]:
    """The records of one batch of messages, without what they do not have."""
    report = IntakeReport()
    batches = MessageReader(ReadOptions(**options), report).read(
        pa.array(values, pa.binary()) if isinstance(values, list) else values,
        None if times is None else pa.array(times, pa.timestamp("us", tz="UTC")),
        None if sources is None else pa.array(sources, pa.string()),
    )
    return rows_of(batches), report


def rows_of(batches: list[pa.RecordBatch]) -> list[Row]:
    rows: list[Row] = []
    types: dict[str, pa.DataType] = {}
    for batch in batches:
        batch.validate(full=True)
        for field in batch.schema:
            kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            assert types.setdefault(field.name, kind) == kind
        shown = batch.drop_columns([name for name in batch.schema.names if name in HIDDEN])
        rows += [{name: value for name, value in row.items() if value not in (None, [])} for row in shown.to_pylist()]
    for name in set(types) & set(SCHEMA.names):
        assert types[name] == SCHEMA.field(name).type
    return rows


def contents(values: Values, **options: Any) -> list[str]:
    return [row["content"] for row in read(values, **options)[0]]


# --- the oracle ---


def naive_text(text: str, *, first_line: bool) -> Row:
    """What the first line of a plain message says, or all of it."""
    line = text.split("\n")[0] if first_line else text
    row: Row = {"content": text}
    stamp = line.find(STAMP)
    if 0 <= stamp < 64:
        row["timestamp"] = STAMP_TIME
    level = re.search(r"\b(ERROR|WARN)\b", line)
    if level and level.start() < 128:
        row["loglevel"] = level[1]
    return row


def naive_object(text: str, record: dict[str, Any]) -> Row:
    row: Row = {"content": record.pop("message", text)}
    if record.get("time") == STAMP:
        row["timestamp"] = STAMP_TIME
        del record["time"]
    if "level" in record:
        row["loglevel"] = record["level"]
    for key, value in record.items():
        row |= {f"{key}.{inner}": one for inner, one in value.items()} if isinstance(value, dict) else {key: value}
    if "source" in row:
        row["source_value"] = row["source"]  # as it is written, for plain searches
    return row


def naive_records(
    values: Values, times: list[datetime | None], sources: list[str | None], name: str
) -> tuple[list[Row], dict[str, int]]:
    counts = dict.fromkeys(("empty", "broken", "replaced", "without_timestamp"), 0)
    rows = []
    for value, time, source in zip(values, times, sources, strict=True):
        text = (value or b"").decode("utf-8", "replace")
        counts["replaced"] += text.count("\ufffd")
        text = re.sub(r"\r?\n[ \t\r\n]*\Z", "", text)
        if not text:
            counts["empty"] += 1
            continue
        record = None
        if name == "ndjson":
            try:
                record = json.loads(text)
            except ValueError:
                record = None
            counts["broken"] += not isinstance(record, dict)
        if isinstance(record, dict):
            row = naive_object(text, record)
        else:
            row = naive_text(text, first_line=name == "text" or not text.lstrip().startswith("{"))
        if "timestamp" not in row:
            counts["without_timestamp"] += 1
            row["timestamp"] = time
        if source is not None:
            row.setdefault("source", source)
        rows.append(row)
    return rows, counts


# --- its law ---

MARKS = ["\n", "\r\n", "\r", "{", "}", '"', "\\", " "]
WORDS = st.sampled_from([*MARKS, STAMP, "ERROR", "WARN", "x", "é", "[1]", '{"n": 1}'])
TEXTS = st.lists(WORDS, max_size=5).map(" ".join) | st.lists(st.sampled_from(MARKS), max_size=4).map("".join)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "time": st.sampled_from([STAMP, "x"]),
        "level": st.sampled_from(["ERROR", "WARN"]),
        "message": st.sampled_from(["", "a\nb", 'say "x"\\', "WARN"]),
        "source": st.sampled_from(["own", "else"]),
        "n": st.integers(-5, 5),
        "deep": st.fixed_dictionaries({"k": st.sampled_from(["v", "w"])}),
    },
)
LAYOUTS = st.sampled_from([{}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",\r\n", ":\n")}])
JSON = st.builds(lambda record, layout: json.dumps(record, **layout), OBJECTS, LAYOUTS)
PLACES = st.integers(0, 60)
BROKEN_JSON = st.builds(lambda text, at: text[:at] + "\n" + text[at:], JSON.filter(lambda x: STAMP not in x), PLACES)
CUT_JSON = st.builds(lambda text, at: text[at:], JSON, st.integers(1, 3))
ENDS = st.sampled_from([b"", b"", b"\n", b"\r\n", b"\r", b"\n\n", b" \xff"])
MESSAGES = st.none() | st.builds(
    lambda text, end: text.encode() + end, JSON | JSON | TEXTS | BROKEN_JSON | CUT_JSON, ENDS
)
SOURCES = st.sampled_from(["logs-0", "logs-1", None])


@given(messages=st.lists(st.tuples(MESSAGES, SOURCES), max_size=12), block_bytes=st.integers(1, 300), data=st.data())
def test_each_message_becomes_the_record_that_plain_python_makes(
    messages: list[tuple[bytes | None, str | None]], block_bytes: int, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(["ndjson", "text"]))
    values, sources = [value for value, _ in messages], [source for _, source in messages]
    times: list[datetime | None] = [SENT + timedelta(seconds=number) for number in range(len(messages))]
    rows, report = read(values, times, sources, format=name, block_bytes=block_bytes)
    expected, counts = naive_records(values, times, sources, name)
    if name == "ndjson":
        lift_attributes(rows)
    assert rows == expected
    assert {key: getattr(report, key) for key in counts} == counts
    assert (report.records, report.lines) == (len(rows), len(rows))
    assert report.raw_bytes == sum(len(value or b"") for value in values)


def lift_attributes(rows: list[Row]) -> None:
    """What has a column of another type is an attribute; the oracle makes no difference."""
    for row in rows:
        row |= dict(row.pop("attributes", []))


@given(texts=st.lists(JSON | BROKEN_JSON | TEXTS.filter(bool), max_size=8))
def test_lines_for_json_are_one_each_and_mean_the_same(texts: list[str]) -> None:
    values = [text.encode() for text in texts if text]
    starts = np.cumsum([0, *map(len, values)])
    data = np.frombuffer(b"".join(values), np.uint8)
    out, ends = np.full(len(data) + 2 * len(values), 255, np.uint8), np.empty(len(values), np.int64)
    size = json_lines(data, starts[:-1].copy(), starts[1:].copy(), ends, out)
    lines = out[:size].tobytes().decode().split("\n")
    assert len(lines) == len(values) + 1
    assert all(lines[:-1])
    assert not lines[-1]
    assert np.cumsum([len(line.encode()) + 1 for line in lines[:-1]]).tolist() == (ends + 1).tolist()
    for text, line in zip(filter(None, texts), lines, strict=False):
        assert meaning(line) == meaning(text)


def meaning(text: str) -> Any:
    """The object that a text is, or None."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


# --- examples ---


def test_a_message_is_never_split_or_joined() -> None:
    trace = f"{STAMP} ERROR boom\n\tat one\n\tat two".encode()
    rows, report = read([trace, b"\tat three", b"a\r\nb\r\n"], format="text")
    assert [row["content"] for row in rows] == [trace.decode(), "\tat three", "a\r\nb"]
    assert rows[0]["loglevel"] == "ERROR"
    assert (report.split, report.without_timestamp, report.records) == (0, 2, 3)


def test_long_messages_stay_whole() -> None:
    long = "x" * 5000
    values: Values = [long.encode(), json.dumps({"message": long}).encode(), b"short"]
    for name in ("text", "ndjson"):
        assert [len(text) for text in contents(values, format=name, max_record_bytes=64, block_bytes=10)][0::2] == [
            5000,
            5,
        ]


def test_empty_messages_give_no_record() -> None:
    rows, report = read([None, b"", b"\n", b"\r\n", b"\xef\xbb\xbf", b" "])
    assert [row["content"] for row in rows] == [" "]
    assert report.empty == 5
    assert read([])[0] == read([None, b""])[0] == []
    assert read(pa.nulls(3))[1].empty == 3
    assert read(pa.chunked_array([], pa.binary()))[0] == []


def test_newlines_in_json() -> None:
    values: Values = [
        b'{\n "n": 1,\r\n "message": "a\\nb"\n}\n',
        b'{\n "n": 2\n}',
        b'{"message": "a\nb"}',  # which is no JSON
        b'{"n": 3}\n{"n": 4}',
        b'{"message": "\\\\\\"",\n"n": 5}',
    ]
    rows, report = read(values, format="ndjson")
    assert [row["content"] for row in rows] == [
        "a\nb",
        '{\n "n": 2\n}',
        '{"message": "a\nb"}',
        '{"n": 3}\n{"n": 4}',
        '\\"',
    ]
    assert [row.get("n") for row in rows] == [1, 2, None, None, 5]
    assert report.broken == 2


def test_what_is_no_json_among_json_is_text() -> None:
    values: Values = [b'{"n": %d}' % i for i in range(40)]
    values[7] = f"{STAMP} WARN disk\n{STAMP} ERROR worse".encode()
    values[20] = b'{"n": 2'
    values[30] = b"[1, 2]"
    rows, report = read(values)
    assert report.formats == {"ndjson": 1}
    assert report.broken == 3
    assert [row["content"] for row in rows] == [(value or b"").decode() for value in values]
    assert [row.get("n") for row in rows] == [None if i in (7, 20, 30) else i for i in range(40)]
    assert (rows[7]["timestamp"], rows[7]["loglevel"]) == (STAMP_TIME, "WARN")


def test_bytes_that_are_no_text() -> None:
    rows, report = read([b"caf\xc3", b"\xa9", b"caf\xc3\xa9", b'{"a\xff": 1}', "\ufffd".encode()], format="text")
    assert [row["content"] for row in rows] == ["caf\ufffd", "\ufffd", "café", '{"a\ufffd": 1}', "\ufffd"]
    assert (report.replaced, report.replaced_lines) == (3, 3)
    assert contents(["é\n".encode("utf-16-le")], encoding="utf-16-le") == ["é"]
    assert contents([b"caf\xe9", None], encoding="latin-1") == ["café"]


def test_the_format_is_that_of_the_first_messages() -> None:
    def name_of(values: Values) -> str:
        [name] = read(values)[1].formats
        return name

    assert name_of([b'{"a": 1}', None, b'{"a":\n2}\r\n']) == "ndjson"
    assert name_of([b"\xef\xbb\xbf" + b'{"a": 1}']) == "ndjson"
    assert name_of([b'{"a": 1}', b"plain"]) == "text"
    assert name_of([json.dumps({"a": "x" * 200_000}).encode()] * 3) == "ndjson"
    assert name_of([b"<34>1 2024-05-06T07:08:09Z web sshd 12 - - hi\nthere"]) == "syslog"
    assert name_of([b'1.2.3.4 - - [06/May/2024:07:08:09 +0000] "GET / HTTP/1.1" 200 5']) == "access"
    assert name_of([b"time,message", b"1,x"]) == "text", "a message is no table"
    for name in ("csv", "parquet"):
        with pytest.raises(UsageError, match=name):
            MessageReader(ReadOptions(format=name), IntakeReport())


def test_structured_text_keeps_its_columns_and_its_content() -> None:
    values: Values = [b"<34>1 2024-05-06T07:08:09Z web sshd 12 - - hi\nthere", b"no syslog"]
    rows, report = read(values, format="syslog")
    assert (rows[0]["host_name"], rows[0]["process_pid"], rows[0]["loglevel"]) == ("web", 12, "FATAL")
    assert [row["content"] for row in rows] == ["<34>1 2024-05-06T07:08:09Z web sshd 12 - - hi\nthere", "no syslog"]
    assert report.broken == 1


@pytest.mark.parametrize("name", ["text", "ndjson"])
def test_times_of_messages(name: str) -> None:
    values: Values = [f"{STAMP} x".encode(), b"x", b"x", b"x"]
    unknown = datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)  # what Spark makes of Kafka's -1
    for times in ([SENT, SENT, None, unknown], None):
        rows, report = read(values, times, format=name)
        assert rows[0]["timestamp"] == STAMP_TIME
        assert (rows[1]["timestamp"] == SENT) == (times is not None)
        for row in rows[2:]:
            assert abs((row["timestamp"] - datetime.now(UTC)).total_seconds()) < 60
        assert report.without_timestamp == 3


def test_a_timestamp_without_a_year_is_not_later_than_its_message() -> None:
    [row] = read([b"Dec 31 23:59:59 web cron: x"], [datetime(2019, 1, 1, 0, 0, 5, tzinfo=UTC)])[0]
    assert row["timestamp"] == datetime(2018, 12, 31, 23, 59, 59, tzinfo=UTC)


def test_sources() -> None:
    values: Values = [b'{"source": "own"}', b"{}", None, b"{}", b'{"source": null}']
    sources = ["a", "b", "c", None, "d"]

    def sources_of(values: Values, sources: list[str | None] | None, **options: Any) -> list[str | None]:
        return [row.get("source") for row in read(values, None, sources, **options)[0]]

    assert sources_of(values, sources) == ["own", "b", None, "d"]
    assert sources_of(values, None) == ["own", None, None, None]
    assert sources_of(values, sources, source="all") == ["all"] * 4
    assert sources_of([b"x", None, b"y"], ["a", "b", "c"], format="text") == ["a", "c"]
    assert sources_of([b"x"], None, format="text") == [None]


def test_columns_keep_their_type_over_batches() -> None:
    reader = MessageReader(ReadOptions(), IntakeReport())
    first = reader.read(pa.array([b'{"n": 1, "s": "a", "f": 1.5}']))
    second = reader.read(pa.array([b'{"n": "x", "s": 2, "f": 3}', b'{"n": 5, "s": 1.0}']))
    rows = rows_of(first + second)
    assert [row.get("n") for row in rows] == [1, None, 5]
    assert [row.get("s") for row in rows] == ["a", "2", "1.0"]
    assert [row.get("f") for row in rows] == [1.5, 3.0, None]
    assert rows[1]["attributes"] == [("n", "x")]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary()])
def test_any_type_of_bytes_whole_or_in_chunks(kind: pa.DataType) -> None:
    column = pa.chunked_array([pa.array(["a", None]), pa.array(["b", "é"])]).cast(kind)
    assert [row["content"] for row in read(column)[0]] == ["a", "b", "é"]
    assert [row["content"] for row in read(column.slice(1, 2))[0]] == ["b"]
    assert [row["content"] for row in read(column.combine_chunks().slice(2))[0]] == ["b", "é"]


def test_json_messages_are_read_as_the_lines_of_a_file(tmp_path: Any) -> None:
    odd = ['{"n": 1}', '{"n": "x"}', '{"n": [1, {"a": null}]}', '{"n": 12345678901234567890}', '{"n": {"a": {"b": 1}}}']
    lines = [*odd, '{"ts": 1714979289, "lvl": "warn", "MSG": "hi", "n": true}', "{}", '{"n": null, "z": 1e3}', "no"] * 3
    (tmp_path / "x.ndjson").write_text("\n".join(lines))
    intake = Intake([tmp_path], ReadOptions(source="s", format="ndjson"))
    wanted = rows_of(list(intake))
    rows, report = read([line.encode() for line in lines], source="s", format="ndjson")
    for row in wanted + rows:
        row["timestamp"] = row["timestamp"].replace(second=0, microsecond=0)
    assert rows == wanted
    assert (report.broken, report.misfits) == (intake.report.broken, intake.report.misfits)
