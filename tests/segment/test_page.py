"""A page is looked at before it is decoded: only where that is surely all of the text, and never to lose a match."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake.predicate.deciding.screening import screen_of
from coprlake.predicate.predicates import And, Contains, Not, Or, Predicate, Regex, Term
from coprlake.segment.footer import Footer
from coprlake.segment.page import page_bytes
from coprlake.testing.naive_search import matches
from coprlake.testing.predicate_strategies import searches_of_rows

LINES = [f"line {number} of many, connection refused" for number in range(500)]


def page_of(path: Path, row_group: int = 0) -> bytes | None:
    with pa.memory_map(str(path)) as source:
        found = page_bytes(source, Footer(source, source.size()).chunks(0)[row_group])
        return None if found is None else found.tobytes()


def written(path: Path, lines: Sequence[str | None] = LINES, **options: Any) -> Path:
    settings: dict[str, Any] = {"compression": "zstd", "use_dictionary": False} | options
    pq.write_table(pa.table({"content": lines}), path, **settings)
    return path


def test_a_plain_page_has_all_values(tmp_path: Path) -> None:
    page = page_of(written(tmp_path / "a.parquet", [None, "", *LINES, None]))
    assert page is not None
    assert all(line.encode() in page for line in LINES)


@pytest.mark.parametrize(
    "options",
    [
        {"use_dictionary": True},
        {"compression": "snappy"},
        {"compression": "none"},
        {"column_encoding": {"content": "DELTA_BYTE_ARRAY"}},
        {"column_encoding": {"content": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"data_page_size": 64, "write_batch_size": 10},
    ],
    ids=str,
)
def test_other_pages_are_left_to_the_reader(tmp_path: Path, options: dict[str, Any]) -> None:
    assert page_of(written(tmp_path / "a.parquet", **options)) is None


def test_pages_of_the_second_version_are_whole(tmp_path: Path) -> None:
    for lines in (LINES, [None, *LINES], [None, "x"] * 300):
        page = page_of(written(tmp_path / "a.parquet", lines, data_page_version="2.0"))
        assert page is not None
        assert all((line or "").encode() in page for line in lines)


def test_a_damaged_page_is_left_to_the_reader(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet")
    data = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    for at in range(chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size, 7):
        damaged = data.copy()
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        page = page_of(path)  # no error, whatever it is
        assert page is None or len(page) <= chunk.total_uncompressed_size


def bytes_of(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def test_a_screen_needs_all_of_an_and_and_one_of_an_or() -> None:
    data = bytes_of("\x04\0\0\0warm\x07\0\0\0REFUSED")
    expected: dict[Predicate, bool | None] = {
        Contains("refused"): True,
        Contains("absent"): False,
        Contains("REFUSED", case_sensitive=True): True,
        Term("warm", field="source"): None,
        Not(Contains("absent")): None,
        And((Contains("warm"), Contains("absent"))): False,
        And((Contains("warm"), Not(Contains("absent")))): True,
        Or((Contains("warm"), Contains("absent"))): True,
        Or((Contains("warm"), Not(Contains("absent")))): None,
        Or((Contains("gone"), Contains("absent"))): False,
        Regex("wa(rm|ter) *refused?"): True,
        Regex("cold.*refused"): False,
        Regex(".*"): None,
        Contains(""): None,
    }
    for predicate, answer in expected.items():
        screen = screen_of(predicate, "content")
        assert (screen is None) == (answer is None), predicate
        assert screen is None or screen(data) == answer, predicate


@given(searches_of_rows(max_rows=6), st.data())
def test_no_match_is_screened_out(search: tuple[list[dict[str, object]], Predicate], data: st.DataObject) -> None:
    rows, predicate = search
    screen = screen_of(predicate, "content")
    if screen is not None and any(matches(predicate, row) for row in rows):
        texts = [row.get("content") or "" for row in rows]
        assert screen(bytes_of("\x01\0\0\0".join(map(str, texts))))
