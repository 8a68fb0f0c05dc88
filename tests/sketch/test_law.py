"""The law: whatever lines go in and whatever is asked, no batch with a match is ruled out."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from coprlake import (
    ANYTHING,
    NOTHING,
    BatchScanner,
    MutableSketch,
    SealedSketch,
    SketchWriter,
    UsageError,
    all_tokens,
    batches_in_all,
    batches_in_any,
    contains_tokens,
    term_tokens,
)
from coprlake.sketch.algebra import And, Expression, Or, Token, compile_all_tokens, compile_expression
from coprlake.sketch.asking import Sketch
from coprlake.sketch.immutable import CANNOT, MIGHT, may_match_any
from coprlake.sketch.merge import add_sealed
from coprlake.sketch.sealing import seal
from coprlake.testing.naive import NaiveSketch, contains, matches_term
from coprlake.testing.strategies import expressions, fingerprint_arrays, lines, search_texts

pytestmark = pytest.mark.kernels
some = settings(max_examples=8 if config.DISABLE_JIT else 60)

Batch = list[bytes]


def sketches_of(batches: Sequence[Batch], folder: Path) -> dict[str, Sketch]:
    """The same batches in every kind of sketch there is."""
    scanner = BatchScanner()
    columns = [scanner.scan(pa.array(batch, pa.binary())).copy() for batch in batches]
    mutable = MutableSketch(None)
    merged = MutableSketch(None)
    writer = SketchWriter(spill_folder=folder)
    for posting, fingerprints in enumerate(columns):
        mutable.insert(fingerprints, posting)
        writer.insert(fingerprints, posting)
        writer._spill()  # after every batch, not when memory is short: each part must answer for itself
        alone = MutableSketch(None)
        alone.insert(fingerprints, 0)
        seal(alone, folder / f"{posting}.copr", signature_bits=32)
        with SealedSketch.open(folder / f"{posting}.copr") as part:
            add_sealed(merged, part, posting_base=posting)
    seal(mutable, folder / "sealed.copr", signature_bits=1)
    return {
        "mutable": mutable,
        "spilled": writer,
        "merged": merged,
        "sealed": SealedSketch.open(folder / "sealed.copr"),
    }


@some
@given(st.lists(st.lists(lines(), max_size=4), min_size=1, max_size=4), st.data())
def test_no_batch_with_a_match_is_ruled_out(batches: list[Batch], data: st.DataObject) -> None:
    line = data.draw(st.sampled_from([line for batch in batches for line in batch] or [b""]))
    text = data.draw(search_texts(line))
    with TemporaryDirectory() as folder:
        for kind, sketch in sketches_of(batches, Path(folder)).items():
            for matches, tokens in ((contains, contains_tokens), (matches_term, term_tokens)):
                left = set(sketch.candidates(all_tokens(tokens(text))).tolist())
                truth = {number for number, batch in enumerate(batches) if any(matches(one, text) for one in batch)}
                assert truth <= left, kind
            if isinstance(sketch, SketchWriter | SealedSketch):
                sketch.close()


@given(st.lists(fingerprint_arrays(), min_size=1, max_size=6), expressions())
def test_expressions_leave_what_sets_would_leave(columns: list[np.ndarray], expression: Expression) -> None:
    naive = NaiveSketch()
    mutable = MutableSketch(None)
    for posting, fingerprints in enumerate(columns):
        naive.insert(fingerprints, posting)
        mutable.insert(fingerprints, posting)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sealed.copr"
        seal(mutable, path, signature_bits=32)
        with SealedSketch.open(path) as sealed:
            expected = sorted(naive.candidates(expression))
            assert mutable.candidates(expression).tolist() == expected
            assert sealed.candidates(expression).tolist() == expected
            (verdict,) = may_match_any([sealed], compile_expression(expression))
            assert verdict == MIGHT or not expected
            assert verdict == CANNOT or any_present(expression, naive)


@some
@given(st.lists(fingerprint_arrays(), min_size=1, max_size=6), st.data())
def test_batches_may_change_places_when_sketches_are_merged(columns: list[np.ndarray], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(columns)), min_size=len(columns), max_size=len(columns)))
    posting_map = np.array(sorted(numbers) if data.draw(st.booleans()) else numbers, np.int64)
    source, expected = MutableSketch(None), MutableSketch(None)
    for posting, fingerprints in enumerate(columns):
        source.insert(fingerprints, posting)
        expected.insert(fingerprints, int(posting_map[posting]) + 3)
    with TemporaryDirectory() as folder:
        seal(source, Path(folder) / "source.copr", signature_bits=32)
        merged = MutableSketch(None)
        with SealedSketch.open(Path(folder) / "source.copr") as sealed:
            add_sealed(merged, sealed, posting_base=3, posting_map=posting_map)
            with pytest.raises(UsageError, match="map"):
                add_sealed(MutableSketch(None), sealed, posting_map=np.zeros(0, np.int64))
        seal(merged, Path(folder) / "merged.copr")
        seal(expected, Path(folder) / "expected.copr")
        assert (Path(folder) / "merged.copr").read_bytes() == (Path(folder) / "expected.copr").read_bytes()


def test_all_tokens_have_a_shorter_way_to_a_program() -> None:
    for count in range(1, 40):
        fingerprints = np.arange(5, 5 + count, dtype=np.uint32)
        short, long = compile_all_tokens(fingerprints), compile_expression(all_tokens(fingerprints))
        sketch = MutableSketch(None)
        sketch.insert(fingerprints, 1)
        sketch.insert(fingerprints[:-1], 2)
        assert sketch.run(short).tolist() == sketch.run(long).tolist() == [1]


def any_present(expression: Expression, naive: NaiveSketch) -> bool:
    """What a sketch can know of an expression without looking at lists: is each token there at all?"""
    if isinstance(expression, Token):
        return bool(naive.postings(expression.fingerprint))
    combine = all if isinstance(expression, And) else any
    return combine(any_present(part, naive) for part in expression.parts)


@given(expressions(), expressions())
def test_combinations_are_flat_and_keep_their_meaning(a: Expression, b: Expression) -> None:
    naive = NaiveSketch()
    for posting in range(8):
        naive.insert(np.array([f for f in range(1, 13) if f * (posting + 3) % 5 < 2], np.uint32), posting)
    left_a, left_b = naive.candidates(a), naive.candidates(b)
    assert naive.candidates(batches_in_all(a, b)) == left_a & left_b
    assert naive.candidates(batches_in_any(a, b)) == left_a | left_b
    assert batches_in_all(a, ANYTHING) == batches_in_all(a)
    assert batches_in_all(a, NOTHING) == NOTHING
    assert batches_in_any(a, NOTHING) == batches_in_any(a)
    assert batches_in_any(a, ANYTHING) == ANYTHING


def test_an_expression_may_be_nested_deeply() -> None:
    expression: Expression = Token(5)
    for _ in range(20_000):
        expression = And((Or((expression, Token(7))), Token(9)))
    sketch = MutableSketch(None)
    sketch.insert(np.array([5, 9], np.uint32), 1)
    sketch.insert(np.array([7], np.uint32), 2)
    assert sketch.candidates(expression).tolist() == [1]
