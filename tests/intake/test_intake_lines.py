"""Lines, levels and records of several lines, against slow twins."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake.intake.fields.levels import LEVELS, WORDS, find_levels, level_named
from coprlake.intake.fields.timestamps import Clock
from coprlake.intake.formats.access import access_parts
from coprlake.intake.formats.csv import split_rows
from coprlake.intake.formats.syslog import syslog_parts
from coprlake.intake.lines import (
    Lines,
    newline_joined,
    spans_of,
    split_lines,
    split_long,
    text_column,
    trim_blank_lines,
    without_blank_ends,
)
from coprlake.intake.multiline import RecordStarts
from coprlake.kernel import U8Array

pytestmark = pytest.mark.kernels

TEXTS = st.text(alphabet='a\r\n"é,', max_size=40)


def array(text: str) -> U8Array:
    return np.frombuffer(text.encode(), np.uint8)


def lines_of(lines: list[str]) -> tuple[U8Array, Lines]:
    data = array("\n".join(lines) + "\n")
    return data, split_lines(data, last=True)[0]


@given(TEXTS, st.booleans())
def test_lines_are_what_split_says(text: str, last: bool) -> None:
    data = array(text)
    lines, used = split_lines(data, last=last)
    parts = text.split("\n")
    rest = "" if last else parts[-1]
    wanted = [line.removesuffix("\r") for line in parts[:-1]] + ([parts[-1]] if last and parts[-1] else [])
    assert text_column(data, lines).to_pylist() == wanted
    assert text.encode()[used:].decode() == rest
    if wanted:
        assert bytes(newline_joined(text_column(data, lines))).decode() == "".join(f"{line}\n" for line in wanted)


@given(TEXTS)
def test_rows_are_lines_outside_quotes(text: str) -> None:
    rows, used = split_rows(array(text), last=False)
    wanted, row = [], ""
    for character in text:
        row += character
        if character == "\n" and row.count('"') % 2 == 0:
            wanted.append(row[:-1].removesuffix("\r"))
            row = ""
    assert text_column(array(text), rows).to_pylist() == wanted
    assert text.encode()[used:].decode() == row


@given(st.lists(TEXTS), st.data())
def test_spans_that_are_null(texts: list[str], draw: st.DataObject) -> None:
    missing = np.array(draw.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))), np.bool_)
    sizes = np.array([len(text.encode()) for text in texts], np.int64)
    starts = np.cumsum(sizes) - sizes
    spans = Lines(np.where(missing, -1, starts), np.where(missing, -1, starts + sizes))
    column = text_column(array("".join(texts)), spans)
    column.validate(full=True)
    assert column.to_pylist() == [None if gone else text for text, gone in zip(texts, missing, strict=True)]


@given(st.text(alphabet="aé\N{GRINNING FACE}", min_size=1, max_size=60), st.integers(4, 9))
def test_long_lines_are_cut_at_characters(text: str, limit: int) -> None:
    data = array(text)
    pieces, goes_on = split_long(data, split_lines(data, last=True)[0], limit)
    parts = text_column(data, pieces).to_pylist()
    assert "".join(parts) == text
    assert all(len(part.encode()) <= limit for part in parts)
    assert goes_on.tolist() == [False] + [True] * (len(parts) - 1)


def level_of(line: str) -> str | None:
    data = array(line or "\0")
    starts, ends = np.array([0]), np.array([len(line.encode())])
    stamps = Clock().stamps(data, starts, ends)
    out = np.empty(1, np.int64)
    find_levels(data, starts, ends, stamps.firsts, stamps.stops, out)
    return None if out[0] < 0 else LEVELS[out[0]]


@pytest.mark.parametrize("word", WORDS)
def test_every_word_in_every_place(word: str) -> None:
    name = LEVELS[WORDS[word]]
    stamp = "2024-05-06 07:08:09,123"
    for line in (f"{stamp} {word} x", f"{word} {stamp} x", f"[{word}] x", f"{stamp} [main] {word}  a.B - x", word):
        assert level_of(line) == name, line
    small = word.lower()
    for line in (f"{stamp} {small} x", f"{stamp} [a] level={small} x", f"[{small}] x", f'{{"level":"{small}"}}'):
        assert level_of(line) == name, line
    for line in (f"{stamp}\t{small}\tx", f"{small}: x", f"{stamp} [core:{small}] x", f'{{"severity": "{small}"}}'):
        assert level_of(line) == name, line
    for line in (f"{stamp} the {small} x", f"{word}S x", f"{word}_X", f"X{word}", f"{'x ' * 80}{word}"):
        assert level_of(line) is None, line
    assert level_named(f" {small} ") == name


def test_letters_that_are_levels() -> None:
    assert level_of("03-17 16:13:38.811  1702  2395 D WindowManager: x") == "DEBUG"
    assert level_of("03-17 16:13:38.811  1702  2395 V W: x") == "TRACE"
    assert level_of("03-17 16:13:38.811  1702 E x") is None
    assert level_of("E0506 07:08:09.123456  12 a.cc:3] INFO") == "ERROR"
    assert level_of("W0506 07:08:09.123456  12 a.cc:3] x") == "WARN"
    assert level_of("") is None
    assert level_named("audit") == "AUDIT"


TRACE = """2024-05-06 07:08:09 ERROR first
java.lang.IllegalStateException: broken
\tat a.B.c(B.java:1)
Caused by: java.io.IOException: 2024-05-06 07:08:08 closed
\t... 23 more
2024-05-06 07:08:10 ERROR second
Traceback (most recent call last):
  File "x.py", line 1, in <module>
    raise StopAll(2)
StopAll: 2

During handling of the above exception, another exception occurred:

ValueError
2024-05-06 07:08:11 INFO {
  "a": 1
}
 2024-05-06 07:08:12 INFO indented, with a time of its own
    at 2024-05-06 07:08:12 it went on
plain line
  indented behind a line without time"""


def records_of(text: str, pattern: str | None = None, limit: int = 1 << 20) -> list[str]:
    data, lines = lines_of(text.split("\n"))
    heads = RecordStarts(pattern, limit).heads(data, lines, Clock().stamps(data, lines.starts, lines.ends))
    return [str(text) for text in text_column(data, lines, heads != 0).to_pylist()]


def test_stack_traces_belong_to_the_record_before() -> None:
    records = records_of(TRACE)
    assert [record.split("\n")[0].strip()[:22] for record in records] == [
        "2024-05-06 07:08:09 ER",
        "2024-05-06 07:08:10 ER",
        "2024-05-06 07:08:11 IN",
        "2024-05-06 07:08:12 IN",
        "plain line",
        "indented behind a line",
    ]
    assert "\n".join(records) == TRACE


def test_without_timestamps_each_line_is_a_record() -> None:
    lines = ["a", " b", "}", "java.io.IOException: x", "\tat c"]
    assert records_of("\n".join(lines)) == lines
    assert records_of(TRACE, "") == TRACE.split("\n")


def test_a_pattern_of_ones_own() -> None:
    assert records_of("x\nS1\na\nS2\nb", "^S") == ["x", "S1\na", "S2\nb"]
    assert records_of("x\nS1\na\nSx\nb", r"^S(?=\d)") == ["x", "S1\na\nSx\nb"], "RE2 knows no lookahead"
    assert records_of("S\naaa\nbbb\nccc", "^S", limit=6) == ["S\naaa", "bbb", "ccc"]


def test_a_record_that_is_too_long_is_cut() -> None:
    lines = ["2024-05-06 07:08:09 x", *[f"  {i:08}" for i in range(20)]]
    records = records_of("\n".join(lines), limit=64)
    assert "\n".join(records) == "\n".join(lines)
    assert all(len(record) <= 64 for record in records)
    assert len(records) == 5


@given(st.lists(st.sampled_from(["", "", " ", "\t", "\r ", "x", " x", "2024-05-06 07:08:09 y"]), max_size=12))
def test_a_record_does_not_end_in_blank_lines(texts: list[str]) -> None:
    data, lines = lines_of(texts)
    heads = RecordStarts(None, 1 << 20).heads(data, lines, Clock().stamps(data, lines.starts, lines.ends)) != 0
    records = [str(text) for text in text_column(data, lines, heads).to_pylist()]
    expected = [re.sub(r"(\n[ \t\r]*)+\Z", "", record) for record in records]
    assert text_column(data, *without_blank_ends(data, lines, heads)).to_pylist() == expected


@given(st.lists(st.text(alphabet="a \t\r\n", max_size=8), max_size=4))
def test_blank_lines_are_trimmed_off_messages(texts: list[str]) -> None:
    data, spans = spans_of(pa.array(texts, pa.string()))
    spans = Lines(spans.starts.astype(np.int64), spans.ends.astype(np.int64))
    trim_blank_lines(data, spans.starts, spans.ends)
    assert text_column(data, spans).to_pylist() == [re.sub(r"\r?\n[ \t\r\n]*\Z", "", text) for text in texts]


WORD = st.text(alphabet="abc-1", min_size=1, max_size=5)


def parts_of(lines: list[str], parse: object) -> list[dict[str, object]]:
    data, spans = lines_of(lines)
    columns, parsed, levels = parse(data, spans, Clock(year=2024).stamps(data, spans.starts, spans.ends))  # type: ignore[operator]
    rows = []
    for row in range(len(lines)):
        found = {name: column[row].as_py() for name, column in columns.items()}
        found = {name: value for name, value in found.items() if value is not None}
        if levels is not None and levels[row] >= 0:
            found["level"] = LEVELS[levels[row]]
        rows.append(found if parsed[row] else {"broken": True})
    return rows


@given(host=WORD, process=WORD, pid=st.integers(0, 99999), text=st.text(alphabet="ab: []", max_size=9))
def test_classic_syslog(host: str, process: str, pid: int, text: str) -> None:
    stamp = "May  6 07:08:09"
    rows = parts_of(
        [
            f"{stamp} {host} {process}[{pid}]: {text}",
            f"<29>{stamp} {host} {process}: {text}",
            f"<0>2024-05-06T07:08:09.123+02:00 {host} {process}: {text}",
            "no syslog at all",
            "<29>only a priority",
        ],
        syslog_parts,
    )
    name = {} if host == "-" else {"host_name": host}
    who = {**name, "process_name": process}
    if host != "-":
        assert rows[0] == {**who, "process_pid": pid}
        assert rows[1] == {**who, "syslog_facility": 3, "level": "NOTICE"}
        assert rows[2] == {**who, "syslog_facility": 0, "level": "FATAL"}
    assert rows[3] == {"broken": True}
    assert rows[4] == {"syslog_facility": 3, "level": "NOTICE"}


def test_modern_syslog() -> None:
    rows = parts_of(
        [
            '<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 ID47 [a@1 b="c"] It\'s time',
            "<34>1 - - - - - -",
            "<34>1 2003-10-11T22:14:15.003Z host app proc-x - - text",
            "<999>1 2003-10-11T22:14:15.003Z host app: - - - text",
        ],
        syslog_parts,
    )
    assert rows[0] == {
        "host_name": "192.0.2.1",
        "process_name": "myproc",
        "process_pid": 8710,
        "syslog_msgid": "ID47",
        "syslog_facility": 20,
        "level": "NOTICE",
    }
    assert rows[1] == {"syslog_facility": 4, "level": "FATAL"}
    assert rows[2] == {"host_name": "host", "process_name": "app", "syslog_facility": 4, "level": "FATAL"}
    assert rows[3] == {"host_name": "host", "process_name": "app"}


ACCESS = re.compile(
    r'(?P<client_ip>\S+) \S+ (?P<user_name>\S+) \[[^\]]+\] "(?:(?P<http_method>[^ "]+) (?P<url_path>[^ "]*)[^"]*)" '
    r"(?P<http_status>\d+) (?P<http_bytes>\d+|-)"
    r'(?: "(?P<http_referer>(?:[^"\\]|\\.)*)" "(?P<user_agent>(?:[^"\\]|\\.)*)")?'
)


@given(
    client=st.sampled_from(["10.1.2.3", "::1", "host.example"]),
    user=st.sampled_from(["-", "frank"]),
    path=st.text(alphabet="/ab?=%", min_size=1, max_size=9),
    status=st.integers(100, 599),
    size=st.sampled_from(["-", "0", "2326"]),
    agent=st.sampled_from(["", ' "-" "curl/8"', r' "http://a/b" "Mo\"z (x; y)"', ' "" ""']),
)
def test_access_logs(client: str, user: str, path: str, status: int, size: str, agent: str) -> None:
    line = f'{client} - {user} [10/Oct/2000:13:55:36 -0700] "GET {path} HTTP/1.0" {status} {size}{agent}'
    match = ACCESS.fullmatch(line)
    assert match
    wanted: dict[str, object] = {name: text for name, text in match.groupdict().items() if text and text != "-"}
    for name in ("http_status", "http_bytes"):
        if name in wanted:
            wanted[name] = int(str(wanted[name]))
    rows = parts_of([line, line[:-3], "something else", line.replace('"', "'")], access_parts)
    assert rows[0] == wanted
    assert rows[2] == rows[3] == {"broken": True}
