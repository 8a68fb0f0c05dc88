"""A file that is read in ranges, or with others, has the records that it has by itself."""

import bz2
import gzip
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import config

from coprlake.errors import UsageError
from coprlake.intake.fields.timestamps import Clock
from coprlake.intake.lines import split_lines, split_pieces
from coprlake.intake.multiline import RecordStarts
from coprlake.intake.options import WARNING_LIMIT
from coprlake.intake.reading import Intake, IntakeReport, ReadOptions
from coprlake.intake.sources.inputs import InputFile, list_inputs
from coprlake.intake.sources.splitting import FILE_LIMIT, is_cut_safe, plan_splits
from coprlake.kernel import U8Array

pytestmark = pytest.mark.kernels

MODIFIED = 1_720_000_000.0
STAMP = "2024-05-06 07:08:09"
Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True, scope="module")
def _time_stands_still() -> Iterator[None]:
    """Records without a timestamp have the time of reading."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coprlake.intake.formats.text_lines.now_micros", lambda: 1_700_000_000_000_000)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("splits")


def read(files: Sequence[InputFile], options: ReadOptions) -> tuple[Rows, IntakeReport]:
    """All records and the report."""
    rows: Rows = []
    with Intake.of(files, options) as intake:
        for batch in intake:
            batch.validate(full=True)
            rows += [
                {name: value for name, value in row.items() if value not in (None, [])} for row in batch.to_pylist()
            ]
    assert intake.report.records == len(rows)
    assert intake.report.bytes_read == intake.total_bytes or intake.report.unreadable
    return rows, intake.report


def counts(report: IntakeReport) -> dict[str, Any]:
    """Everything but the warnings, which name ranges."""
    return {name: value for name, value in asdict(report).items() if not name.startswith("warning")}


def check(files: Sequence[InputFile], options: ReadOptions, target_bytes: int) -> list[list[InputFile]]:
    """The law: groups have the records of the files, and all counts; each byte is in one of them."""
    groups: list[list[InputFile]] = pickle.loads(pickle.dumps(plan_splits(files, options, target_bytes)))
    parts = [part for group in groups for part in group]
    ends: dict[str, int] = {}
    for part in parts:
        assert part.start == ends.get(part.path, 0)
        assert part.length or part.start == 0
        ends[part.path] = part.start + (part.length or 0)
    assert ends == {file.path: file.size for file in files}
    expected, report = read(files, options)
    rows: Rows = []
    merged = IntakeReport()
    for group in groups:
        some, of_group = read(group, options)
        rows += some
        merged.merge(pickle.loads(pickle.dumps(of_group)))
    assert rows == expected
    assert counts(merged) == counts(report)
    assert (merged.warning_count > 0) == (report.warning_count > 0)
    return groups


def written(path: Path, data: bytes | str) -> InputFile:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return InputFile(str(path), path.name, path.stat().st_size, MODIFIED)


PLAIN = [
    "foo bar", "WARN x", "x" * 70, "w" * 64, "ä\N{GRINNING FACE}" * 30, "a", "ends with return\r", "\ufeffmark", "PAR1",
    "one,two,time", "\x00",
]  # fmt: skip
TRACE = [
    "", " ", "\tat frame(x)", "  deep", "}", ")", "Traceback (most recent call last):", '  File "x", line 1', "---",
    "ValueError: x", "java.io.IOException: closed", "Caused by: x", "During handling of", "x.yError", "\t" + "y" * 90,
]  # fmt: skip
STAMPED = [
    f"{STAMP} INFO a", f"[{STAMP}] b", f"   {STAMP} indented", f"x {STAMP} 2023-01-02 03:04:05",
    "May  6 07:08:09 h a[1]: x",
    "x Dec 31 23:59:59 no year", "- 1117838570 2005.06.03 R02", f"{STAMP} ERROR {'z' * 80}", f"Caused by: {STAMP}",
    f"}} {STAMP}", f"{STAMP} 2023-01-02 03:04:05", "E0506 07:08:09.123456  12 a.cc:3] x",
    "Feb 29 01:02:03 leap",
]  # fmt: skip
RAW = [
    b"\xff\xfe broken",
    b"\xe2\x82",
    b"a\xc3",
    b"\xf0\x9f\x98 z",
    b"\x80" * 70,
    b"\xa0at nbsp",
    b"\x1f\x8b\x08",
    b"BZh",
    b"\xff",
]


def lines_of(*kinds: Sequence[str | bytes], size: int = 14) -> st.SearchStrategy[bytes]:
    """Files of such lines, with one line end or the other, and perhaps none behind the last."""
    line = st.sampled_from([text.encode() if isinstance(text, str) else text for kind in kinds for text in kind])
    pairs = st.lists(st.tuples(line, st.sampled_from([b"\n", b"\n", b"\r\n"])), min_size=1, max_size=size)
    return st.tuples(pairs, st.booleans(), st.sampled_from([b"", b"", b"\xef\xbb\xbf"])).map(
        lambda made: made[2] + b"".join(text + end for text, end in made[0])[: -1 if made[1] else None]
    )


OPTIONS = st.builds(
    ReadOptions,
    text=st.sampled_from([True, True, False]),
    format=st.sampled_from(["text", "text", "auto", "syslog", "access", "ndjson"]),
    multiline=st.sampled_from([None, None, None, "", r"^\d", r"^(?=\S)", "a"]),
    encoding=st.sampled_from(["utf-8", "utf-8", "latin-1", "cp1252", "ascii"]),
    max_record_bytes=st.sampled_from([64, 65, 100, 1000]),
    block_bytes=st.integers(1, 120),
    zone=st.sampled_from(["UTC", "+02:00"]),
    year=st.sampled_from([None, None, 2023]),
)
TARGETS = st.sampled_from([1, 1, 7, 20, 50, 100, 200])


@pytest.mark.slow
@settings(max_examples=300)
@given(
    data=st.one_of(
        lines_of(PLAIN, TRACE, STAMPED, RAW),
        lines_of(PLAIN, TRACE),
        lines_of(TRACE, STAMPED[:2], size=30),
        lines_of(PLAIN, RAW),
        lines_of(STAMPED),
        st.binary(max_size=60),
    ),
    options=OPTIONS,
    target_bytes=TARGETS,
)
@example(b"x" * 64 + b"\r\nb\n" * 3, ReadOptions(max_record_bytes=64, block_bytes=65), 20)
@example(f"{STAMP} a\n".encode() + b"\tat\n" * 60 + b"z\n", ReadOptions(max_record_bytes=64, block_bytes=50), 20)
@example(b"y\n" + b"x" * 500, ReadOptions(max_record_bytes=64, block_bytes=50, multiline=""), 20)
def test_texts_may_be_cut_anywhere(folder: Path, data: bytes, options: ReadOptions, target_bytes: int) -> None:
    file = written(folder / "any.log", data)
    check([file], options, target_bytes)


@settings(max_examples=150)
@given(
    data=st.one_of(lines_of(PLAIN, TRACE, STAMPED, RAW), lines_of(TRACE, STAMPED[:2], size=30)),
    options=OPTIONS.filter(lambda options: options.format != "auto"),
)
def test_where_a_block_ends_does_not_matter(folder: Path, data: bytes, options: ReadOptions) -> None:
    files = [written(folder / "blocks.log", data)]
    rows, report = read(files, options)
    expected, in_one = read(files, ReadOptions(**{**asdict(options), "block_bytes": 1 << 20}))
    assert rows == expected
    assert counts(report) == counts(in_one)


def as_lines(text: bytes) -> tuple[U8Array, Any, Any]:
    data = np.frombuffer(text, np.uint8)
    lines, _ = split_lines(data, last=True)
    return data, lines, Clock(modified=MODIFIED).stamps(data, lines.starts, lines.ends)


@settings(max_examples=300)
@given(
    before=lines_of(PLAIN, TRACE, STAMPED).map(lambda text: text + b"\n"),
    text=lines_of(PLAIN, TRACE, STAMPED),
    limit=st.sampled_from([1, 20, 1000]),
    pattern=st.sampled_from([None, None, "", "a"]),
)
@example(f"{STAMP} x\nTraceback (most recent call last):\n".encode(), b"foo\nbar\n", 1000, None)
def test_sure_heads_are_heads_whatever_stands_before(
    before: bytes, text: bytes, limit: int, pattern: str | None
) -> None:
    starts = RecordStarts(pattern, limit)
    sure = starts.sure_heads(*as_lines(text))
    heads = starts.heads(*as_lines(before + text))
    heads = heads[len(heads) - len(sure) :]
    assert (heads[sure] == 1).all()
    if sure.any():
        first = int(np.argmax(sure))
        alone = starts.heads(*as_lines(text))
        assert alone[first:].tolist() == heads[first:].tolist(), "from there on nothing else counts"


@given(data=lines_of(PLAIN, RAW), size=st.integers(0, 200), limit=st.integers(64, 90))
@example(b"x" * 64 + b"\r\nb\n", 65, 64)
def test_pieces_do_not_depend_on_what_follows(data: bytes, size: int, limit: int) -> None:
    data = data.decode("utf-8", "replace").encode()
    whole, _, _ = split_pieces(np.frombuffer(data, np.uint8), limit, last=True)
    some, goes_on, used = split_pieces(np.frombuffer(data[:size], np.uint8), limit, last=False)
    assert some.starts.tolist() == whole.starts.tolist()[: some.count]
    assert some.ends.tolist() == whole.ends.tolist()[: some.count]
    assert used == [*whole.starts.tolist(), len(data)][some.count]
    assert len(goes_on) == some.count + 1
    assert min(size, len(data)) - used <= limit + 1


def json_line(number: int) -> str:
    row = {"timestamp": STAMP, "level": "INFO", "message": f"m{number}", "n": number, "deep": {"x": number / 2 + 0.25}}
    return json.dumps(row)


@settings(max_examples=100)
@given(
    lines=st.lists(
        st.one_of(
            st.integers(0, 9).map(json_line),
            st.sampled_from(
                ["{broken", "", "{}", "[1]", "x" * 200, '{"message": "{a\\nb"}', "{not json}", f"{STAMP} x"]
            ),
        ),
        max_size=12,
    ),
    block_bytes=st.integers(1, 200),
    limit=st.sampled_from([64, 100, 1000]),
    target_bytes=TARGETS,
)
def test_ndjson(folder: Path, lines: list[str], block_bytes: int, limit: int, target_bytes: int) -> None:
    file = written(folder / "a.ndjson", "\n".join([json_line(1), *lines]))
    check([file], ReadOptions(format="ndjson", block_bytes=block_bytes, max_record_bytes=limit), target_bytes)


HEAD = f"{STAMP},123 ERROR [main] org.example.App - failed {{}}\n"
LOG4J = (
    HEAD.format(1) + "java.io.IOException: closed\n" + "\tat org.example.App.run(App.java:7)\n" * 5 + "Caused by: x\n"
)
SYSLOG = "<34>May  6 07:08:{:02} web-1 sshd[{}]: accepted\n"
ACCESS = '10.0.0.{0} - bob [06/May/2024:07:08:{0:02} +0000] "GET /{0} HTTP/1.1" 200 {0} "-" "curl"\n'
FILES: dict[str, str] = {
    "log4j": "".join(LOG4J + HEAD.format(number) * (number % 3) for number in range(300)),
    "crlf": "".join(LOG4J + HEAD.format(number) for number in range(300)).replace("\n", "\r\n"),
    "plain": "".join(f"line {number} of plain text\n" for number in range(3000)),
    "python": (HEAD.format(1) + "Traceback (most recent call last):\n  File 'x'\nfoo\nbar\n") * 700,
    "ndjson": "".join(json_line(number) + "\n" for number in range(800)),
    "syslog": "".join(SYSLOG.format(number % 60, number) for number in range(1500)),
    "access": "".join(ACCESS.format(number % 60) for number in range(800)),
}


@pytest.mark.parametrize("name", FILES)
def test_common_formats_are_cut_evenly(folder: Path, name: str) -> None:
    text = FILES[name][: 20_000 if config.DISABLE_JIT else None]
    file = written(folder / f"{name}.log", text)
    assert file.size is not None
    for target_bytes, options in ((4000, ReadOptions()), (3000, ReadOptions(block_bytes=500)), (9000, ReadOptions())):
        groups = check([file], options, target_bytes)
        sizes = [sum(part.length or 0 for part in group) for group in groups]
        assert max(sizes) <= 1.6 * target_bytes + len(LOG4J)
        assert len(groups) <= 2 * file.size / target_bytes + 1
        kind = name if name in ("ndjson", "syslog", "access") else "text"
        assert {part.format for group in groups for part in group} == {kind}


def test_the_time_of_the_file_counts_for_each_range(folder: Path) -> None:
    file = written(folder / "years.log", "Dec 31 23:59:59 h a: x\nJan  1 00:00:00 h a: y\n" * 50)
    check([file], ReadOptions(), 100)
    rows, _ = read(plan_splits([file], ReadOptions(), 100)[-1], ReadOptions())
    assert {row["timestamp"].year for row in rows} == {2023, 2024}


def test_what_has_no_sure_record_is_not_cut(folder: Path) -> None:
    no_start = f"{HEAD}{'   frame' * 3}\n" + "   frame\n" * 900
    for text in (no_start, "x" * 9000, "\n" * 9000, "  all indented\n" * 500):
        file = written(folder / "whole.log", text)
        assert check([file], ReadOptions(format="text"), 300) == [[file]]
    file = written(folder / "whole.log", no_start + HEAD * 100)
    assert len(check([file], ReadOptions(), 300)) > 5, "but where there is one again"
    assert len(check([file], ReadOptions(max_record_bytes=64, block_bytes=64), 300)) > 5
    assert len(check([file], ReadOptions(multiline=""), 300)) > 20


def test_other_files_are_not_cut(folder: Path) -> None:
    text = FILES["plain"]
    table = pa.table({"message": text.splitlines()})
    pq.write_table(table, folder / "a.parquet")
    wide = ("utf-16", "utf-16-le", "utf-32")
    cases = [
        (written(folder / "a.gz", gzip.compress(text.encode())), ReadOptions()),
        (written(folder / "a.bz2", bz2.compress(text.encode())), ReadOptions(format="text")),
        (written(folder / "a.csv", "time,message\n" + f'{STAMP},"a\nb"\n' * 400), ReadOptions()),
        (written(folder / "a.txt", "time,message\n" + f'{STAMP},"a\nb"\n' * 400), ReadOptions(format="csv")),
        (written(folder / "marked.log", text.encode("utf-16")), ReadOptions()),
        *[(written(folder / name, text.encode(name)), ReadOptions(encoding=name)) for name in wide],
        (written(folder / "a.parquet", (folder / "a.parquet").read_bytes()), ReadOptions()),
    ]
    for file, options in cases:
        assert check([file], options, 500) == [[file]]
    assert len(check([file], ReadOptions(format="text", text=True), 500)) > 5, "who says it is text shall have text"
    latin = written(folder / "latin.log", ("größe é\n" * 500).encode("latin-1"))
    assert len(check([latin], ReadOptions(encoding="latin-1"), 500)) > 5


def test_encodings() -> None:
    for safe in ("utf-8", "ascii", "utf-8-sig", "latin-1", "cp1252", "koi8-r", "iso8859-15", "mac-roman"):
        assert is_cut_safe(safe)
    for unsafe in (
        "utf-16",
        "utf-32-be",
        "utf-7",
        "cp037",
        "shift-jis",
        "gb18030",
        "iso2022-jp",
        "hz",
        "unicode-escape",
        "idna",
        "punycode",
    ):
        assert not is_cut_safe(unsafe)


def test_small_files_are_gathered(folder: Path) -> None:
    small = [written(folder / f"small{number}.log", f"{STAMP} {number}\n" * 5) for number in range(20)]
    empty = written(folder / "empty.log", "")
    large = written(folder / "large.log", HEAD * 100)
    packed = written(folder / "packed.gz", gzip.compress(HEAD.encode() * 50))
    groups = check([*small[:10], large, empty, *small[10:], packed], ReadOptions(), 600)
    assert [part.path for group in groups for part in group if part.start == 0] == [
        file.path for file in [*small[:10], large, empty, *small[10:], packed]
    ]
    assert [len(group) for group in groups[:2]] == [5, 5]
    assert groups[-1] == [packed], "eight times its size"
    stream = InputFile("-", "stdin", None, None)
    assert plan_splits([small[0], stream, small[1]], ReadOptions(), 10**6) == [[small[0]], [stream], [small[1]]]
    assert max(map(len, plan_splits([empty] * 2500, ReadOptions(), 10**6))) <= FILE_LIMIT
    assert plan_splits([], ReadOptions(), 5) == []
    parts = plan_splits([large], ReadOptions(), 600)
    assert [[part] for group in parts for part in group] == plan_splits(
        [part for group in parts for part in group], ReadOptions(), 1
    ), "ranges stay as they are"
    with pytest.raises(UsageError, match="target_bytes is 0"):
        plan_splits([large], ReadOptions(), 0)
    gone = InputFile(str(folder / "gone.log"), "gone.log", 10**6, MODIFIED)
    assert plan_splits([gone], ReadOptions(), 600) == [[gone]]


def test_ranges_say_what_is_wrong_with_them(folder: Path) -> None:
    file = written(folder / "wrong.log", HEAD.encode() * 50 + b"\xff" + HEAD.encode() * 50)
    groups = check([file], ReadOptions(), 1000)
    merged = IntakeReport()
    for group in groups:
        merged.merge(read(group, ReadOptions())[1])
    (warning,) = merged.warnings
    assert warning.startswith(f"{file.path} (from byte ")
    assert "1 line is not valid utf-8" in warning
    assert (merged.files, merged.formats) == (1, {"text": 1})

    Path(file.path).write_bytes(HEAD.encode() * 10)
    with Intake.of(groups[-1]) as intake:
        assert not list(intake)
    assert intake.report.unreadable == 1
    assert "bytes that were there before are missing" in intake.report.warnings[0]


def test_reports_are_merged() -> None:
    first, second = IntakeReport(files=1, records=2), IntakeReport(files=2, broken=3)
    first.formats["text"] += 1
    second.formats.update(["text", "csv"])
    for number in range(70):
        first.warn("a", str(number))
        second.warn("b", str(number))
    first.merge(second)
    assert (first.files, first.records, first.broken, first.warning_count) == (3, 2, 3, 140)
    assert first.formats == {"text": 2, "csv": 1}
    assert len(first.warnings) == WARNING_LIMIT
    assert len(second.warnings) == 70


def test_an_intake_of_listed_files(folder: Path) -> None:
    (folder / "listed").mkdir()
    written(folder / "listed" / "a.log", HEAD * 3)
    files = list_inputs([folder / "listed"])
    with Intake.of(files) as listed, Intake([folder / "listed"]) as found:
        assert listed.files == found.files
        assert [batch.to_pylist() for batch in listed] == [batch.to_pylist() for batch in found]
        assert listed.total_bytes == found.total_bytes == 3 * len(HEAD)
    part = InputFile(files[0].path, "a", files[0].size, MODIFIED, start=len(HEAD), end=2 * len(HEAD))
    assert (part.length, part.size) == (len(HEAD), 3 * len(HEAD))
    rows, report = read([part], ReadOptions())
    assert [row["content"] for row in rows] == [HEAD.rstrip("\n")]
    assert (report.files, report.raw_bytes, dict(report.formats)) == (0, len(HEAD), {})
