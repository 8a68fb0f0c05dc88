"""Writes small tables as this build writes them: ``python tests/storage/tables/make.py``.

To be run once for every build whose files differ from those of the build before, never over what is there: the archives
of a version show for ever what that version wrote, and every later build must read, search, extend, optimize and verify
them. A letter behind the version names a later build of the same version whose files differ: 0.2.0-b has tokens of any
value with those of the content, 0.2.0-c sketches of format 1.2. Each archive holds a folder ``table`` and
``expected.jsonl``, the records that are in it.
"""

import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

import coprlake
from coprlake import SegmentOptions, Table, create_table, open_table, term

HERE = Path(__file__).parent
BEGIN = datetime(2026, 11, 14, 22, tzinfo=UTC)
SMALL = SegmentOptions(batch_bytes=1500, slot_count=2)
Row = dict[str, Any]


def records(first: int = 0, count: int = 90) -> list[Row]:
    """Log lines of a few kinds, over three days."""
    lines = [
        "GET /login from 10.{a}.2.{b}, session {hex}, took {n} ms",
        "upstream 172.16.{b}.30 refused the connection: Zeitüberschreitung nach {n} ms",
        "user=ann order {n}-{hex} shipped to depot_{a}/{b}",
    ]
    return [
        {
            "timestamp": BEGIN + timedelta(minutes=37 * n),
            "source": f"web-{n % 3}",
            "loglevel": ("INFO", "WARN", "ERROR")[n % 3],
            "content": lines[n % 3].format(a=n % 7, b=n % 251, n=n, hex=f"{n * 2654435761 % 2**64:016x}"),
        }
        for n in range(first, first + count)
    ]


def _fill(table: Table, rows: list[Row], options: SegmentOptions = SMALL) -> None:
    with table.writer(options=options) as writer:
        writer.append(rows)


def plain(path: Path) -> None:
    """Not partitioned, the default rules."""
    _fill(create_table(path, partition_by=None), records())


def paper(path: Path) -> None:
    """The rules of the paper, sketch format 1.0."""
    _fill(create_table(path, partition_by=None, rules="paper"), records())


def partitioned(path: Path) -> None:
    """By day, and by a source whose name is encoded in paths."""
    rows = [row | {"source": f"web {row['source'][-1]}/ü=%"} for row in records()]
    _fill(create_table(path, partition_by=["day", "source"]), rows)


def spilled(path: Path) -> None:
    """A sketch that was spilled twice and merged at the seal."""
    with create_table(path, partition_by=None).writer(options=SMALL) as writer:
        for first in (0, 30, 60):
            writer.append(records(first, 30))
            for segment in writer._segmenter._open.values():
                segment._sketch._spill()


def narrow(path: Path) -> None:
    """Signatures of a few bits, which cannot be merged without the logs."""
    options = SegmentOptions(batch_bytes=1500, slot_count=2, signature_bits=6)
    _fill(create_table(path, partition_by=None), records(), options)


def optimized(path: Path) -> None:
    """Small segments, merged; the old files are still there."""
    table = create_table(path, partition_by=None)
    for first in (0, 30, 60):
        _fill(table, records(first, 30))
    assert table.optimize().segments_after == 1


def attributes(path: Path) -> None:
    """Attributes, typed columns that came later, and a field that is searched inside words."""
    table = create_table(path, partition_by=None, grams=["user"])
    rows = [row | {"attributes": {"user": f"ann-{n}", "trace.id": f"{n:032x}"}} for n, row in enumerate(records())]
    _fill(table, rows[:45])
    _fill(table, [row | {"took": n / 4, "status": 200 + n, "ok": n % 2 == 0} for n, row in enumerate(rows[45:])])


def nested(path: Path) -> None:
    """Text inside structs, lists and maps, indexed since 0.2.0; some records without any."""
    table = create_table(path, partition_by=None)
    rows = [
        row
        | {
            "request": {"headers": {"host": f"shop-{n % 5}.example"}, "size": n},
            "tags": [f"tag-{n}", "all"],
            "labels": {"zone": f"eu-{n % 4}"},
        }
        for n, row in enumerate(records())
    ]
    kinds = pa.schema(
        [
            ("timestamp", pa.timestamp("us", "UTC")),
            *((name, pa.string()) for name in ("source", "loglevel", "content")),
            ("request", pa.struct([("headers", pa.struct([("host", pa.string())])), ("size", pa.int64())])),
            ("tags", pa.list_(pa.string())),
            ("labels", pa.map_(pa.string(), pa.string())),
        ]
    )
    table.append(pa.Table.from_pylist([row | {"labels": list(row["labels"].items())} for row in rows[:60]], kinds))
    _fill(table, records(60, 30))


def mixed(path: Path) -> None:
    """Segments of both rule sets in one table, one without a sidecar, some records deleted."""
    table = create_table(path, partition_by=None)
    _fill(table, records(0, 30))
    _fill(table, records(30, 30), SegmentOptions(batch_bytes=1500, slot_count=2, rules="paper"))
    bare = {path.name for path in (path / "_coprlake").rglob("*") if path.is_file()}
    _fill(table, records(60, 30))
    for file in (path / "_coprlake").rglob("*"):
        if file.is_file() and file.name not in bare:
            file.unlink()
    open_table(path).delete(term("depot_3"))


def checkpointed(path: Path) -> None:
    """A log with a checkpoint in its middle."""
    table = create_table(path, partition_by=None)
    for first in range(0, 90, 9):
        _fill(table, records(first, 9))
        if first == 45:
            DeltaTable(path).create_checkpoint()


def spark(path: Path) -> None:
    """A batch and a stream on Spark."""
    from coprlake import spark as lake

    with lake.session("local[1]") as session, tempfile.TemporaryDirectory() as folder:
        lines = [f"{row['timestamp']:%Y-%m-%dT%H:%M:%SZ} {row['loglevel']} {row['content']}\n" for row in records()]
        logs, stream = Path(folder) / "web.log", Path(folder) / "stream"
        logs.write_text("".join(lines[:45]))
        create_table(path, partition_by=None)
        lake.ingest(session, [str(logs)], str(path))
        stream.mkdir()
        (stream / "web-2.log").write_text("".join(lines[45:]))
        query = lake.stream_folder(session, str(stream), str(path), lake.StreamSettings(once=True))
        query.awaitTermination(120)
    shutil.rmtree(path / "_coprlake" / "streams", ignore_errors=True)


KINDS: list[Callable[[Path], None]] = [
    plain,
    paper,
    partitioned,
    spilled,
    narrow,
    optimized,
    attributes,
    nested,
    mixed,
    checkpointed,
    spark,
]


def _expected(path: Path) -> bytes:
    rows = [row | {"timestamp": row["timestamp"].isoformat()} for row in open_table(path).search().rows()]
    lines = sorted(json.dumps(row, sort_keys=True, default=str, ensure_ascii=False) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode()


def make(kind: Callable[[Path], None], archive: Path) -> None:
    """Write one archive."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        kind(path)
        expected = _expected(path)
        with tarfile.open(archive, "w:gz", compresslevel=9) as tar:
            tar.add(path, "table", filter=_anonymous)
            told = tarfile.TarInfo("expected.jsonl")
            told.size = len(expected)
            tar.addfile(told, io.BytesIO(expected))


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


if __name__ == "__main__":
    version = HERE / coprlake.__version__
    version.mkdir()
    for kind in KINDS:
        make(kind, version / f"{kind.__name__}.tar.gz")
        print(f"{version.name}/{kind.__name__}.tar.gz")
