"""Merging sealed sketches without tokenizing again (paper 4.3)."""

import numpy as np
import numpy.typing as npt

from coprlake.config import FULL_SIGNATURE_BITS, POSTING_LIMIT
from coprlake.errors import UsageError
from coprlake.kernel import I64Array, U16Array, U32Array, long_kernel
from coprlake.sketch.immutable import SealedSketch
from coprlake.sketch.mutable import MutableSketch


@long_kernel
def _group_by_rank(fingerprints: U32Array, ranks: U32Array, ends: I64Array, out: U32Array) -> None:
    """Group the fingerprints by rank with a counting sort; those of rank ``r`` end at ``ends[r]``."""
    for i in range(len(fingerprints) - 1, -1, -1):
        ends[ranks[i]] -= 1
        out[ends[ranks[i]]] = fingerprints[i]


def add_sealed(
    target: MutableSketch,
    source: SealedSketch,
    *,
    posting_base: int = 0,
    posting_map: I64Array | None = None,
    is_verified: bool = False,
) -> bool:
    """Add all tokens and postings of `source` to `target`, with `posting_base` added to every posting.

    With a `posting_map`, posting ``p`` becomes ``posting_map[p]`` first, in any order; several small batches may become
    one. `is_verified` says that `source.verify` was called before.

    Each distinct list of the source is added once, with all the tokens that have it. Returns False if the target
    reached its memory limit; then it holds only a part and should not be used.

    Raises:
        UsageError: the source does not keep whole fingerprints, or a posting would not fit.
        CorruptSketchError: the source is damaged; nothing was added.
    """
    if source.signature_bits != FULL_SIGNATURE_BITS:
        raise UsageError(
            f"{source.file}: keeps {source.signature_bits} bits of each fingerprint and cannot be merged; "
            f"seal with signature_bits={FULL_SIGNATURE_BITS}, or build it again from its data"
        )
    if posting_map is not None:
        posting_map = _checked_map(posting_map, source)
    end = posting_base + 1 + _last_posting(source, posting_map) if source.posting_count else 0
    if posting_base < 0 or end > POSTING_LIMIT:
        raise UsageError(
            f"{source.file}: {source.posting_count} postings from {posting_base} on do not fit below {POSTING_LIMIT}; "
            "merge fewer sketches"
        )
    if not is_verified:
        source.verify()  # damage must not get into a sound file
    fingerprints, ranks = source.tokens()
    token_starts = np.zeros(source.list_count + 1, np.int64)
    np.cumsum(np.bincount(ranks, minlength=source.list_count), out=token_starts[1:])
    grouped = np.zeros_like(fingerprints)
    _group_by_rank(fingerprints, ranks, token_starts[1:].copy(), grouped)
    if not source.list_count:
        nothing = np.zeros(1, np.int64)
        return target.insert_lists(grouped, nothing, np.zeros(0, np.uint16), nothing, end)
    for first, postings, posting_starts in source.list_runs():
        if posting_map is None:
            shifted = (postings.astype(np.int64) + posting_base).astype(np.uint16)
        else:
            shifted, posting_starts = _mapped(posting_map[postings] + posting_base, posting_starts)
        own_starts = token_starts[first : first + len(posting_starts)]
        own = grouped[own_starts[0] : own_starts[-1]]
        if not target.insert_lists(own, own_starts - own_starts[0], shifted, posting_starts, end):
            return False
    return True


def _checked_map(posting_map: I64Array, source: SealedSketch) -> I64Array:
    posting_map = np.ascontiguousarray(posting_map, np.int64)
    if len(posting_map) < source.posting_count or (posting_map < 0).any():
        raise UsageError(f"{source.file}: the map must give a number to each of the {source.posting_count} postings")
    return posting_map


def _last_posting(source: SealedSketch, posting_map: I64Array | None) -> int:
    return source.posting_count - 1 if posting_map is None else int(posting_map[: source.posting_count].max())


def _mapped(postings: I64Array, starts: I64Array) -> tuple[U16Array, I64Array]:
    """The lists in ascending order, without the duplicates that the map produced."""
    if len(postings) > 1 and (np.diff(postings) < 0)[_inside_lists(starts)].any():
        order = np.lexsort((postings, np.repeat(np.arange(len(starts) - 1), np.diff(starts))))
        postings = postings[order]
    fresh = np.ones(len(postings), bool)
    fresh[1:] = postings[1:] != postings[:-1]
    fresh[starts[:-1]] = True  # the first of a list is not compared with the last of the one before
    counts = np.concatenate([[0], np.cumsum(fresh)])
    return postings[fresh].astype(np.uint16), counts[starts].astype(np.int64)


def _inside_lists(starts: I64Array) -> npt.NDArray[np.bool_]:
    """For each posting but the last, whether the next one is in the same list."""
    inside = np.ones(int(starts[-1]) - 1, bool)
    inside[starts[1:-1] - 1] = False
    return inside
