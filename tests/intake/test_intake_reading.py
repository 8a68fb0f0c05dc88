"""Files of every format become records; nothing that could be read is lost."""

import bz2
import gzip
import io
import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from coprlake.errors import NotFoundError, UsageError
from coprlake.intake.formats.detection import detect
from coprlake.intake.reading import Intake, IntakeReport, ReadOptions
from coprlake.intake.sources.inputs import list_inputs
from coprlake.records import HIDDEN, SCHEMA

pytestmark = pytest.mark.kernels

TOO_SLOW = pytest.mark.skipif(config.DISABLE_JIT, reason="too slow without the JIT")

STAMP = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
LINE = "2024-05-06 07:08:09 INFO"


def read(*inputs: str | Path, stdin: Any = None, **options: Any) -> tuple[list[dict[str, Any]], IntakeReport]:
    """All records of the inputs, and the report."""
    rows: list[dict[str, Any]] = []
    types: dict[str, pa.DataType] = {}
    options.setdefault("text", True)  # zero bytes are text here
    with Intake(inputs, ReadOptions(**options), stdin=stdin) as intake:
        for batch in intake:
            batch.validate(full=True)
            assert batch.num_rows
            for field in batch.schema:
                kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
                assert types.setdefault(field.name, kind) == kind
            shown = batch.drop_columns([name for name in batch.schema.names if name in HIDDEN])
            rows += [
                {name: value for name, value in row.items() if value not in (None, [])} for row in shown.to_pylist()
            ]
    for name in set(types) & set(SCHEMA.names):
        assert types[name] == SCHEMA.field(name).type
    report = intake.report
    assert report.records == len(rows)
    assert all(row["timestamp"] and row["source"] and "content" in row for row in rows)
    return rows, report


def contents(*inputs: str | Path, **options: Any) -> list[str]:
    return [row["content"] for row in read(*inputs, **options)[0]]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


def test_text_is_kept_to_the_letter(log: Path) -> None:
    log.write_bytes(f"{LINE} one\r\n{LINE} two \r \n\nunstamped\x00\n{LINE} last without end".encode())
    rows, report = read(log)
    assert [row["content"] for row in rows] == [
        f"{LINE} one",
        f"{LINE} two \r ",
        "unstamped\x00",
        f"{LINE} last without end",
    ]
    assert [row.get("loglevel") for row in rows] == ["INFO", "INFO", None, "INFO"]
    assert rows[0]["timestamp"] == STAMP
    assert abs((rows[2]["timestamp"] - datetime.now(UTC)).total_seconds()) < 60
    assert (report.lines, report.records, report.without_timestamp, report.files) == (5, 4, 1, 1)
    assert report.bytes_read == report.raw_bytes == log.stat().st_size
    assert not report.warnings


TEXTS = st.text(alphabet=st.sampled_from(list("ab\n\r {é\N{GRINNING FACE}\x00")), max_size=60)


@settings(max_examples=60)
@given(text=TEXTS, block_bytes=st.integers(1, 20), stamped=st.booleans())
def test_blocks_of_any_size_give_the_same_lines(
    text: str, block_bytes: int, stamped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "x.log"
    text = text.replace("{", LINE) if stamped else text
    path.write_bytes(text.encode())
    *lines, rest = text.split("\n")
    lines = [line.removesuffix("\r") for line in lines] + ([rest] if rest else [])
    assert contents(path, multiline="", block_bytes=block_bytes, format="text") == lines
    joined = contents(path, block_bytes=block_bytes, format="text")
    assert "\n".join(joined) == "\n".join(lines)
    assert joined == contents(path, format="text"), "where a block ends does not matter"


def test_a_record_may_span_blocks(log: Path) -> None:
    trace = [f"{LINE} start", *[f"\tat frame{i}" for i in range(50)]]
    log.write_text("\n".join(trace * 3))
    assert contents(log, block_bytes=16) == ["\n".join(trace)] * 3


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs" / "deep").mkdir(parents=True)
    for name in ("b.log", "a.log", "deep/c.log", ".hidden"):
        (tmp_path / "logs" / name).write_text(f"{LINE}\n")
    monkeypatch.chdir(tmp_path)

    def sources(*inputs: str | Path, **options: Any) -> list[str]:
        return [row["source"] for row in read(*inputs, **options)[0]]

    assert sources("logs") == ["logs/a.log", "logs/b.log", "logs/deep/c.log"]
    assert sources("logs/") == sources("logs")
    assert sources("./logs") == ["./logs/a.log", "./logs/b.log", "./logs/deep/c.log"]
    assert sources("logs/*.log") == ["logs/a.log", "logs/b.log"]
    assert sources("logs/**/*.log") == ["logs/a.log", "logs/b.log", "logs/deep/c.log"]
    assert sources("logs/b.log", "logs") == ["logs/b.log", "logs/a.log", "logs/deep/c.log"]
    assert sources("logs/b.log", "./logs/b.log", tmp_path / "logs" / "b.log") == ["logs/b.log"], "each file once"
    assert sources("logs/b.log", "logs/b.log") == ["logs/b.log"], "each file once"
    assert sources("logs/b.log", source="web") == ["web"]
    assert [file.source for file in list_inputs(["logs"], recursive=False)] == ["logs/a.log", "logs/b.log"]
    assert Intake(["logs"]).total_bytes == 3 * len(f"{LINE}\n")


def test_files_of_the_same_name_in_two_folders_have_two_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("web-1", "web-2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "app.log").write_text(f"{LINE} {folder}\n")
    monkeypatch.chdir(tmp_path)
    expected = ["web-1/app.log", "web-2/app.log"]
    for inputs in (["web-1", "web-2"], ["web-*"], ["*/app.log"], ["web-1/app.log", "web-2/app.log"]):
        assert [row["source"] for row in read(*inputs)[0]] == expected, inputs


def test_inputs_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for path, text in [
        ("nothing.log", "no such file"),
        ("empty", "has no files"),
        ("*.none", "no file matches"),
        ("dangling", "link points to"),
    ]:
        with pytest.raises(NotFoundError, match=text):
            Intake([tmp_path / path])
    with pytest.raises(UsageError, match="nothing to read"):
        Intake([])
    os.mkfifo(tmp_path / "pipe")
    for path, text in [(str(tmp_path / "pipe"), "named pipe"), ("/dev/null", "a device")]:
        with pytest.raises(UsageError, match=text):
            Intake([path])
    (tmp_path / "ok.log").write_text("x\n")
    rows, report = read(tmp_path)
    assert [row["content"] for row in rows] == ["x"], "pipes and dangling links in a folder are passed over"
    assert report.warning_count == 2


def test_options_that_make_no_sense() -> None:
    wrong: list[dict[str, Any]] = [
        {"format": "xml"},
        {"encoding": "klingon"},
        {"encoding": "base64"},
        {"multiline": "("},
        {"max_record_bytes": 1},
        {"block_bytes": 0},
        {"year": 3},
    ]
    for options in wrong:
        with pytest.raises(UsageError):
            ReadOptions(**options)
    with pytest.raises(UsageError, match="unknown time zone"):
        Intake(["-"], ReadOptions(zone="nowhere"))


def test_standard_input() -> None:
    intake = Intake(["-"], stdin=io.BytesIO(f"{LINE}\n".encode() * 3))
    assert intake.total_bytes is None
    batches = list(intake)
    assert sum(batch.num_rows for batch in batches) == 3
    assert batches[0]["source"][0].as_py() == "<stdin>"
    with pytest.raises(UsageError, match="only once"):
        list(intake)
    rows, _ = read("-", stdin=io.BytesIO(gzip.compress(b"zipped\n")))
    assert rows[0]["content"] == "zipped"


def test_a_slow_pipe_delivers_what_it_has() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as stream, os.fdopen(writer, "wb") as out:
        out.write(b"one\ntwo\nthr")
        out.flush()
        batches = iter(Intake(["-"], ReadOptions(multiline=""), stdin=stream))
        assert next(batches)["content"].to_pylist() == ["one", "two"]

        def finish() -> None:
            out.write(b"ee\n")
            out.close()

        threading.Timer(0.05, finish).start()
        assert next(batches)["content"].to_pylist() == ["three"]


def _zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return sink.getvalue().to_pybytes()


PACK: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "zst": _zstd}


@pytest.mark.parametrize("kind", PACK)
def test_compressed_files_whatever_their_name(kind: str, tmp_path: Path) -> None:
    count = 2_000 if config.DISABLE_JIT else 20_000
    text = "".join(f"{LINE} number {i} é\n" for i in range(count)).encode()
    packed = tmp_path / "packed.log"
    packed.write_bytes(PACK[kind](text))
    assert "\n".join(contents(packed)).encode() + b"\n" == text
    two = tmp_path / "two"
    two.write_bytes(PACK[kind](text) + PACK[kind](b"more\n") + (b"\0" * 512 if kind == "gz" else b""))
    found, report = read(two)
    assert (len(found), found[-1]["content"]) == (count + 1, "more")
    assert report.bytes_read == two.stat().st_size
    assert report.raw_bytes == len(text) + 5
    assert not report.warnings


@TOO_SLOW
@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("harm", ["cut", "broken", "followed"])
def test_damaged_files_give_what_comes_before(kind: str, harm: str, tmp_path: Path) -> None:
    lines = [f"{LINE} {i * 7919 % 100_003:06} {i * 104_729 % 1_000_003:07}" for i in range(60_000)]
    data = PACK[kind]("".join(f"{line}\n" for line in lines).encode())
    middle = len(data) // 2
    path = tmp_path / "x.log"
    changed = {
        "cut": data[:middle],
        "broken": data[:middle] + bytes(64) + data[middle + 64 :],
        "followed": data + b"no more",
    }
    path.write_bytes(changed[harm])
    found, report = read(path)
    texts = [row["content"] for row in found]
    if harm == "broken" and kind == "zst":
        return  # the frame has no checksum: other bytes come out, and nobody can know
    assert report.unreadable == 1
    assert report.warning_count >= 1
    assert str(path) in report.warnings[0]
    if harm == "followed":
        assert texts == lines
    else:
        whole = next((i for i, (text, line) in enumerate(zip(texts, lines, strict=False)) if text != line), len(texts))
        assert whole >= 0.3 * len(lines)


def test_a_gz_cut_anywhere_loses_nothing_before(tmp_path: Path) -> None:
    text = "".join(f"line {i * i}\n" for i in range(400)).encode()
    data = gzip.compress(text)
    path = tmp_path / "x.gz"
    for size in range(0, len(data), 97):
        path.write_bytes(data[:size])
        found = "\n".join(contents(path, format="text")).encode()
        assert text.startswith(found)
        if size > len(data) * 0.9:
            assert len(found) > 0.8 * len(text)


def rows_of(tmp_path: Path, lines: list[Any], **options: Any) -> tuple[list[dict[str, Any]], IntakeReport]:
    path = tmp_path / "rows.json"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return read(path, **options)


def test_ndjson_has_typed_columns(tmp_path: Path) -> None:
    rows, report = rows_of(
        tmp_path,
        [
            {
                "@timestamp": "2024-05-06T07:08:09Z",
                "level": "warning",
                "message": "one",
                "http": {"status": 200, "ok": True},
            },
            {
                "time": 1714979289,
                "lvl": "err",
                "msg": "two",
                "tags": ["a", 1.5],
                "ms": 1.5,
                "day_seen": "2024-05-06 07:08:09",
            },
            {"ts": 1714979289000, "level": 30, "log": "three", "source": "s3", "content_type": None, "day": 5},
            {"timestamp": "yesterday", "x": {"y": {"z": {"a": {"b": {"c": 1}}}}}},
        ],
    )
    assert report.formats == {"ndjson": 1}
    assert report.without_timestamp == 1
    name = str(tmp_path / "rows.json")
    same = {"timestamp": STAMP, "source": name}
    assert (rows[0].pop("level"), rows[1].pop("lvl")) == ("warning", "err"), "levels stay as they are written too"
    assert rows[0] == {**same, "loglevel": "WARN", "content": "one", "http.status": 200, "http.ok": True}
    assert rows[1].pop("tags") == '["a",1.5]'
    assert rows[1] == {**same, "loglevel": "ERROR", "content": "two", "ms": 1.5, "day_seen": "2024-05-06 07:08:09"}
    assert rows[2]["content"] == "three"
    assert (rows[2]["source"], rows[2]["source_value"]) == ("s3", "s3")
    assert rows[2]["day_value"] == 5
    assert rows[3]["timestamp_value"] == "yesterday"
    assert rows[3]["x.y.z.a.b"] == '{"c":1}'
    assert json.loads(rows[3]["content"])["timestamp"] == "yesterday", "without a message the line is the content"


def test_ndjson_with_broken_lines(tmp_path: Path) -> None:
    good = [{"ts": 1714979289 + i, "msg": f"m{i}", "n": i} for i in range(3000)]
    lines: list[Any] = [
        *good[:1500],
        '{"ts": 1, "msg": "cut',
        *good[1500:],
        "2024-05-06 07:08:09 ERROR text",
        "[1]",
        "{}x}",
    ]
    rows, report = rows_of(tmp_path, lines)
    assert [row["content"] for row in rows] == [line["msg"] if isinstance(line, dict) else line for line in lines]
    assert report.broken == 4
    assert [row["n"] for row in rows if "n" in row] == list(range(3000))
    text = rows[3001]
    assert (text["timestamp"], text["loglevel"]) == (STAMP, "ERROR"), "a line of text is read as text"
    assert any("do not have the format" in warning for warning in report.warnings)


def test_ndjson_values_that_do_not_fit_are_attributes(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(
        '{"msg":"a","v":1,"w":"x"}\n{"msg":"b","v":"two"}\n{"msg":"c","v":[3]}\n{"msg":"d","w":5}\n'
    )
    (tmp_path / "2.json").write_text('{"msg":"e","v":true,"w":1.5,"new":1}\n{"msg":"f","v":false}\n')
    (tmp_path / "3.json").write_text(f'{{"msg":"g","v":{1 << 70},"V":5,"a b":6}}\n{{"msg":"h","v":8}}\n')
    rows, report = read(tmp_path)
    found = {row["content"]: (row.get("v"), dict(row.get("attributes", {}))) for row in rows}
    assert found["a"] == (1, {})
    assert found["b"] == (None, {"v": "two"})
    assert found["c"] == (None, {"v": "[3]"})
    assert found["e"] == (None, {"v": "true"})
    assert found["f"] == (None, {"v": "false"})
    assert found["g"] == (None, {"v": str(1 << 70), "V": "5", "a b": "6"})
    assert found["h"][0] == 8
    assert [row.get("w") for row in rows] == ["x", None, None, "5", "1.5", None, None, None]
    assert rows[4]["new"] == 1
    assert report.misfits == 5


def test_ndjson_with_too_many_keys(tmp_path: Path) -> None:
    lines = [{"msg": "m", **{f"k{j}": j for j in range(i, i + 30)}} for i in range(0, 600, 10)]
    rows, _ = rows_of(tmp_path, lines)
    for row, line in zip(rows, lines, strict=True):
        attributes = dict(row.pop("attributes", {}))
        found = {**{k: v for k, v in row.items() if k[0] == "k"}, **{k: int(v) for k, v in attributes.items()}}
        assert found == {k: v for k, v in line.items() if k != "msg"}
    assert len({name for row in rows for name in row if name[0] == "k"}) == 200
    rows, _ = rows_of(tmp_path, lines[:3], attributes=True)
    assert dict(rows[0]["attributes"]) == {k: str(v) for k, v in lines[0].items() if k != "msg"}


def without_nulls(value: Any) -> Any:
    """A key whose value is null means the same as none."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=60)
@given(
    lines=st.lists(
        st.dictionaries(st.sampled_from(["p", "q", "P", "r s"]), VALUES, max_size=3), min_size=1, max_size=6
    ),
    small=st.booleans(),
)
def test_no_value_of_ndjson_is_lost(
    lines: list[dict[str, Any]], small: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every row has each of its keys, as a column or attribute, with the same value or its text."""
    path = tmp_path_factory.mktemp("any") / "x.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows, _ = read(path, format="ndjson", block_bytes=40 if small else 1 << 20)
    for row, line in zip(rows, lines, strict=True):
        assert json.loads(row["content"]) == line
        flat = {**row, **dict(row.get("attributes", {}))}
        for key, value in line.items():
            if value is None or isinstance(value, dict):
                continue
            found = flat[key]
            if isinstance(value, list):
                assert without_nulls(json.loads(found)) == without_nulls(value)
            elif isinstance(found, str) and not isinstance(value, str):
                assert float(json.loads(found)) == pytest.approx(float(value))
            else:
                assert found == value.encode("utf-8", "replace").decode() if isinstance(value, str) else found == value


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        'Time;Level;Message;Code;Zip;Flag\n2024-05-06 07:08:09;warn;"a;b\nc";7;007;true\n'
        "2024-05-06T07:08:09Z;INFO;plain;8;12;false\ntoo;few\n\n1714979289;x;;nine;1;true\n"
    )
    rows, report = read(path)
    assert report.formats == {"csv": 1}
    same = {"timestamp": STAMP, "source": str(path)}
    assert rows[0].pop("Level") == "warn"
    assert rows[0] == {**same, "loglevel": "WARN", "content": "a;b\nc", "Code": "7", "Zip": "007", "Flag": True}
    assert rows[2]["content"] == "too;few"
    assert rows[3]["content"] == "1714979289;x;;nine;1;true"
    assert (report.broken, report.without_timestamp) == (1, 1)


def test_csv_types_hold_over_blocks(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "time,code,text\n"
        + "".join(f"2024-05-06 07:08:09,{i},r{i}\n" for i in range(50))
        + "2024-05-06 07:08:09,many,r50\n"
    )
    rows, report = read(path, block_bytes=100)
    assert [row.get("code") for row in rows] == [*range(50), None]
    assert dict(rows[50]["attributes"]) == {"code": "many"}
    assert report.misfits == 1
    assert contents(path, content_key="code")[:2] == ["0", "1"]


def test_csv_with_a_quote_that_nobody_closes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"2024-05-06 07:08:09,{i}" for i in range(30)]
    rows[10] += '"x"y'
    path.write_text("time,code\n" + "\n".join(rows) + '\n2024-05-06 07:08:09,"open\nlast,1')
    found = "\n".join(str(row) for row in read(path)[0])
    assert all(str(i) in found for i in range(30))
    assert "last,1" in found


def test_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {
            "Timestamp": pa.array([STAMP.replace(tzinfo=None), None], pa.timestamp("ms")),
            "severity": pa.array(["Error", None]).dictionary_encode(),
            "body": ["text", None],
            "count": pa.array([1, 2], pa.int32()),
            "nested": [{"a": [1, 2]}, {"a": None}],
            "bytes": [b"ok", b"\xff"],
        }
    )
    path = tmp_path / "t"
    pq.write_table(table, path)
    rows, report = read(path)
    assert rows[0] == {
        "timestamp": STAMP, "source": str(path), "loglevel": "ERROR", "content": "text", "count": 1,
        "nested.a": "[1,2]", "bytes": "ok", "severity": "Error",
    }  # fmt: skip
    assert json.loads(rows[1]["content"]) == {"count": 2, "bytes": "\ufffd"}
    assert report.bytes_read == path.stat().st_size
    packed = tmp_path / "t.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert len(read(packed)[0]) == 2
    assert len(read("-", stdin=io.BytesIO(path.read_bytes()))[0]) == 2
    path.write_bytes(path.read_bytes()[:-20])
    rows, report = read(path)
    assert rows == []
    assert "expected a complete Parquet file" in report.warnings[0]


def test_syslog_and_access_logs_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "messages").write_text(
        "".join(f"May  6 07:08:{i:02} host app[{i}]: text\n" for i in range(9)) + "odd line\n"
    )
    (tmp_path / "site").write_text('1.2.3.4 - - [06/May/2024:07:08:09 +0000] "GET /a HTTP/1.1" 404 12\n' * 3)
    rows, report = read(tmp_path, year=2024)
    assert report.formats == {"syslog": 1, "access": 1}
    assert rows[8]["process_pid"] == 8
    assert rows[9]["content"] == "odd line"
    assert rows[10]["http_status"] == 404
    assert rows[10]["timestamp"] == STAMP
    assert report.broken == 1


DETECTION = [
    (b"", "text"),
    (b"\n\n", "text"),
    (b"hello\n", "text"),
    (b'{"a":1}\n{"b":2}\nbroken\n', "ndjson"),
    (b'[{"a":1}]\n', "text"),
    (b"{not json}\n", "text"),
    (b"time,message\n1,2\n", "csv"),
    (b"ts\tlevel\tmsg\na\tb\tc\n", "csv"),
    (b"a,b\n1,2\n", "text"),
    (b"2024-05-06 07:08:09,123 INFO x, y\n", "text"),
    (b"<13>May  6 07:08:09 h a: b\n", "syslog"),
    (b"2024-05-06T07:08:09+00:00 h sshd[1]: b\n", "syslog"),
    (b"May  6 07:08:09 something else entirely\n", "text"),
]


@pytest.mark.parametrize(("head", "name"), DETECTION)
def test_formats_are_told_by_content(head: bytes, name: str) -> None:
    assert detect(head, "x.json") == name


def test_a_table_without_usual_names_needs_its_own() -> None:
    assert detect(b"a,b\n1,2\n", "x.CSV.gz") == "csv"


def test_encodings(log: Path) -> None:
    text = f"{LINE} größer\nzweite Zeile €\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"):
        log.write_bytes(text.encode(encoding))
        given = {"utf-16": "utf-8", "utf-8-sig": "utf-8"}.get(encoding, encoding)  # a mark says it
        rows, report = read(log, encoding=given, block_bytes=7)
        assert [row["content"] for row in rows] == text.splitlines(), encoding
        assert rows[0]["timestamp"] == STAMP
        assert report.replaced == 0


def test_bytes_that_are_not_utf8(log: Path) -> None:
    log.write_bytes(b"ok\nbad \xff\xfe here\n\xef\xbf\xbd was there\nend \xe2\x82")
    for block_bytes in (1, 5, 1000):
        rows, report = read(log, block_bytes=block_bytes)
        assert [row["content"] for row in rows] == ["ok", "bad \ufffd\ufffd here", "\ufffd was there", "end \ufffd"]
        assert report.replaced == 3
        assert "not valid utf-8" in report.warnings[0]
    assert report.replaced_lines == 2


def test_random_bytes(log: Path) -> None:
    data = os.urandom(300_000).replace(b"PAR1", b"----")
    log.write_bytes(b"\x01" + data)
    rows, report = read(log)
    assert report.records == len(rows) > 0
    assert report.warning_count == 1
    assert report.raw_bytes == len(data) + 1


def test_a_line_without_end(log: Path) -> None:
    log.write_bytes(b"first\n" + b"x" * 1_000_000 + b"\nlast\n")
    rows, report = read(log, max_record_bytes=100_000, block_bytes=30_000)
    assert [len(row["content"]) for row in rows] == [5, *[100_000] * 10, 4]
    assert (report.split, report.lines) == (9, 3)
    assert "longer than 100000 bytes" in report.warnings[0]


@TOO_SLOW
@pytest.mark.slow
def test_a_hundred_megabytes_in_one_line(log: Path) -> None:
    with log.open("wb") as out:
        for _ in range(100):
            out.write(b"x" * 1_000_000)
    assert sum(map(len, contents(log))) == 100_000_000


def test_empty_files_have_no_records(log: Path) -> None:
    log.touch()
    (log.parent / "e.gz").write_bytes(gzip.compress(b""))
    rows, report = read(log.parent)
    assert rows == []
    assert (report.files, report.warning_count, report.formats["text"]) == (2, 0, 2)
    for name in ("ndjson", "csv", "syslog", "access", "text"):
        assert read(log, format=name)[0] == []


@pytest.mark.parametrize("name", ["ndjson", "csv", "syslog", "access"])
def test_a_format_that_the_file_does_not_have(name: str, log: Path) -> None:
    log.write_bytes(b"".join(b'%d plain \x00 text, {with} "things\n' % i for i in range(100)))
    found = " ".join(str(row) for row in read(log, format=name)[0])
    assert all(f"{i} plain" in found for i in range(name == "csv", 100)), "the first line of a table is its header"


def test_a_file_that_vanishes_is_a_warning(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(f"{name}\n")
    intake = Intake([tmp_path])
    (tmp_path / "b").unlink()
    assert [batch["content"][0].as_py() for batch in intake] == ["a", "c"]
    assert intake.report.unreadable == 1
    assert intake.report.warnings[0].startswith(str(tmp_path / "b"))


def test_warnings_are_capped() -> None:
    report = IntakeReport()
    for i in range(1000):
        report.warn(f"f{i}", "odd")
    assert (len(report.warnings), report.warning_count) == (100, 1000)
