"""A damaged checkpoint: only what no committed batch rests on is ever removed."""

from pathlib import Path

import pytest

from coprlake.spark.streams.checkpoint_repair import _checksum, mend_checkpoint

BATCHES = 3


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.with_name(f".{path.name}.crc").write_bytes(_checksum(text.encode()))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A stream from a folder: batches 0 and 1 are done, batch 2 is planned."""
    write(tmp_path / "metadata", '{"id":"a"}')
    for number in range(BATCHES):
        write(tmp_path / f"offsets/{number}", f'v1\n{{"conf":{{}}}}\n{{"logOffset":{number}}}')
        write(tmp_path / f"sources/0/{number}", f'v1\n{{"path":"file-{number}","batchId":{number}}}')
        if number < BATCHES - 1:
            write(tmp_path / f"commits/{number}", 'v1\n{"nextBatchWatermarkMs":0}')
    return tmp_path


def files(checkpoint: Path) -> set[str]:
    return {path.relative_to(checkpoint).as_posix() for path in checkpoint.rglob("*") if path.is_file()}


PLANNED = {"offsets/2", "offsets/.2.crc", "sources/0/2", "sources/0/.2.crc"}
COMPLETED = {"commits/1", "commits/.1.crc"}


def test_a_whole_checkpoint_is_left_alone(checkpoint: Path) -> None:
    before = files(checkpoint)
    for last in (None, 0, 1, 2, 3):
        assert mend_checkpoint(checkpoint, last) == []
    assert files(checkpoint) == before


@pytest.mark.parametrize("name", ["offsets/2", "sources/0/2", "commits/1"])
@pytest.mark.parametrize("damage", [b"", b"\0" * 40, b"v1\n", b'v1\n{"conf":{', b'v1\n{"conf":{}}'])
def test_what_a_power_loss_has_cut_short_goes(checkpoint: Path, name: str, damage: bytes) -> None:
    before = files(checkpoint)
    (checkpoint / name).write_bytes(damage)
    assert set(mend_checkpoint(checkpoint, 1)) == PLANNED | COMPLETED
    assert files(checkpoint) == before - PLANNED - COMPLETED


@pytest.mark.parametrize("lost", ["sources/0/2", "commits/1", "offsets/2"])
def test_names_that_were_lost_are_noticed(checkpoint: Path, lost: str) -> None:
    (checkpoint / lost).unlink()
    assert set(mend_checkpoint(checkpoint, 1)) == (PLANNED | COMPLETED) - {lost}


@pytest.mark.parametrize("name", ["offsets/0", "offsets/1", "sources/0/1", "commits/0", "metadata"])
def test_what_a_committed_batch_rests_on_is_never_removed(checkpoint: Path, name: str) -> None:
    """Spark refuses to start then; without these it would take the files once more."""
    (checkpoint / name).write_bytes(b"")
    before = files(checkpoint)
    assert not {"offsets/0", "offsets/1", "sources/0/0", "sources/0/1"} & set(mend_checkpoint(checkpoint, 1))
    assert before - files(checkpoint) <= PLANNED | COMPLETED


def test_a_damaged_summary_of_files_is_left_to_spark(checkpoint: Path) -> None:
    """Entries that it sums up may be gone."""
    (checkpoint / "sources/0/3.compact").write_bytes(b"")
    before = files(checkpoint)
    assert mend_checkpoint(checkpoint, 1) == []
    assert files(checkpoint) == before


def test_sources_without_a_log_of_files_keep_where_they_began(checkpoint: Path) -> None:
    """Kafka's has one entry, from the first batch."""
    for number in range(BATCHES):
        write(checkpoint / f"offsets/{number}", f'v1\n{{"conf":{{}}}}\n{{"topic":{{"0":{number}}}}}')
    (checkpoint / "offsets/2").write_bytes(b"")
    assert set(mend_checkpoint(checkpoint, 1)) == {"offsets/2", "offsets/.2.crc"} | COMPLETED
