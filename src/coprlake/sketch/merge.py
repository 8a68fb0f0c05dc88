"""Merging sealed sketches without tokenizing again (paper 4.3)."""

import numpy as np

from coprlake.config import FULL_SIGNATURE_BITS, POSTING_LIMIT
from coprlake.errors import UsageError
from coprlake.kernel import I64Array, U32Array, kernel
from coprlake.sketch.immutable import SealedSketch
from coprlake.sketch.mutable import MutableSketch


@kernel
def _group_by_rank(fingerprints: U32Array, ranks: U32Array, ends: I64Array, out: U32Array) -> None:
    """Bring the fingerprints of each rank together: counting sort; ``ends[r]`` is where those of rank ``r`` end."""
    for i in range(len(fingerprints) - 1, -1, -1):
        ends[ranks[i]] -= 1
        out[ends[ranks[i]]] = fingerprints[i]


def add_sealed(target: MutableSketch, source: SealedSketch, *, posting_base: int = 0) -> bool:
    """Add all that `source` knows to `target`, with `posting_base` added to every posting.

    Each distinct list of the source is added once, with all the tokens that have it. Returns False if the target's
    memory limit came in between; then the target holds a part and should not be used.

    Raises:
        UsageError: the source does not keep whole fingerprints, or a posting would not fit.
        CorruptSketchError: the source is damaged; nothing was added.
    """
    if source.signature_bits != FULL_SIGNATURE_BITS:
        raise UsageError(
            f"{source.file}: keeps {source.signature_bits} bits of each fingerprint and cannot be merged; "
            f"seal with signature_bits={FULL_SIGNATURE_BITS}, or build it again from its data"
        )
    if posting_base < 0 or source.posting_count + posting_base > POSTING_LIMIT:
        raise UsageError(
            f"{source.file}: {source.posting_count} postings from {posting_base} on do not fit below {POSTING_LIMIT}; "
            "merge fewer sketches"
        )
    source.verify()  # damage must not become part of a sound file
    end = source.posting_count + posting_base if source.posting_count else 0
    fingerprints, ranks = source.tokens()
    postings, posting_starts = source.lists()
    token_starts = np.zeros(source.list_count + 1, np.int64)
    np.cumsum(np.bincount(ranks, minlength=source.list_count), out=token_starts[1:])
    grouped = np.zeros_like(fingerprints)
    _group_by_rank(fingerprints, ranks, token_starts[1:].copy(), grouped)
    shifted = (postings.astype(np.int64) + posting_base).astype(np.uint16)
    return target.insert_lists(grouped, token_starts, shifted, posting_starts, end)
