"""Sealing: from the mutable sketch to the bytes of the immutable one (paper 3.3, 4.2)."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from coprlake.bits.prefix_code import shortest_table
from coprlake.bits.sequence import position_width, words_for, write_bits
from coprlake.config import FULL_SIGNATURE_BITS, RULES, SIGNATURE_BITS, RuleSet
from coprlake.errors import NotFoundError, UsageError
from coprlake.files import sync_path, written_aside
from coprlake.kernel import I64Array, U16Array, U32Array, U64Array, i64, kernel, long_kernel
from coprlake.sketch import interpolative
from coprlake.sketch.bbhash import PerfectHash, build_perfect_hash
from coprlake.sketch.format import LIST_INTERVAL, TIGHT_MINOR, assemble, minor_for
from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.posting_lists import COUNT, HASH, NEXT_LIST, TOKENS, Lists
from coprlake.sketch.posting_lists import decode as decode_list
from coprlake.sketch.postings_hash import hash_each
from coprlake.sketch.ranks import build_ranks
from coprlake.sketch.signatures import build_signatures
from coprlake.sketch.token_map import DIRECT, LIST, PAYLOAD
from coprlake.summary import Report
from coprlake.tokens.rules import rule_set

_ENCODE_MARGIN_BITS = 18 * (1 << 16) + 64
"""The most bits that one list can take."""
_UNRANKED: Final = (1 << 32) - 1
"""Placeholder for the rank of an own list, which follows from its token's minimal hash."""


@dataclass(repr=False)
class SealReport(Report):
    """What sealing made and how long each phase took."""

    bytes_by_part: dict[str, int] = field(default_factory=dict)
    seconds_by_phase: dict[str, float] = field(default_factory=dict)

    @property
    def file_bytes(self) -> int:
        """The size of the sealed sketch."""
        return sum(self.bytes_by_part.values())

    @property
    def seconds(self) -> float:
        """The total time of all phases."""
        return sum(self.seconds_by_phase.values())


class Ranking(NamedTuple):
    """The distinct lists of a sketch in rank order, and the rank for each value of the token map.

    Lists from `first_own` on have one token each and no rank yet: `_rank_tokens` adds them.
    """

    first_own: int
    values: U32Array  # by rank: a direct posting or a list number, marked as in the token map
    direct_ranks: U32Array  # by posting
    list_ranks: U32Array  # by list number


@long_kernel
def _collect(entries: U64Array, fingerprints: U32Array, values: U32Array) -> None:
    """Copy the fingerprints and values of the token map, in its order."""
    count = 0
    for i in range(len(entries)):
        if entries[i] != np.uint64(0):
            fingerprints[count] = np.uint32(entries[i] >> np.uint64(32))
            values[count] = np.uint32(entries[i] & np.uint64(0xFFFFFFFF))
            count += 1


@long_kernel
def _arrange(
    fingerprints: U32Array, values: U32Array, indexes: I64Array, out_fingerprints: U32Array, out_values: U32Array
) -> None:
    """Put fingerprints and values into the order of the minimal hashes."""
    for i in range(len(fingerprints)):
        out_fingerprints[indexes[i]] = fingerprints[i]
        out_values[indexes[i]] = values[i]


@long_kernel
def _rank_tokens(values: U32Array, ranking: Ranking, ranks: U32Array) -> None:
    """Write the rank of each token's list; own lists are ranked here, in the order of their tokens.

    `values` are in the order of the minimal hashes.
    """
    next_own = ranking.first_own
    for i in range(len(values)):
        payload = i64(values[i]) & PAYLOAD
        rank = i64(ranking.direct_ranks[payload] if values[i] & DIRECT else ranking.list_ranks[payload])
        if rank == _UNRANKED:
            rank = next_own
            ranking.values[rank] = values[i]
            next_own += 1
        ranks[i] = np.uint32(rank)


@long_kernel
def _encode_lists(
    lists: Lists,
    values: U32Array,
    rank: int,
    posting_count: int,
    offsets: I64Array,
    out: U64Array,
    scratch: U16Array,
    stack: I64Array,
) -> int:
    """Write the lists from `rank` on and their `offsets`; returns the first rank that did not fit."""
    while rank < len(values):
        payload = i64(values[rank]) & PAYLOAD
        if values[rank] & DIRECT:
            scratch[0] = payload
            count = 1
        else:
            count = i64(lists.records[payload, COUNT])
        if offsets[rank] + 18 * count + 64 > len(out) << 6:
            return rank
        if not values[rank] & DIRECT:
            decode_list(lists, payload, scratch)
        offsets[rank + 1] = interpolative.encode(scratch[:count], posting_count, out, offsets[rank], stack)
        rank += 1
    return rank


def _canonical_order(keys: U64Array, values: U32Array, sketch: MutableSketch) -> I64Array:
    """The order that sorts by key; the few lists with equal keys are sorted by their postings."""
    order = np.argsort(keys, kind="stable")
    rising = keys[order]
    borders = np.diff((rising[1:] == rising[:-1]).astype(np.int8), prepend=0, append=0)
    firsts, lasts = np.flatnonzero(borders > 0), np.flatnonzero(borders < 0)
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        group = order[first : last + 1]
        postings = [sketch.decode(int(values[i])).tolist() for i in group]
        order[first : last + 1] = group[sorted(range(len(group)), key=postings.__getitem__)]
    return order


def rank_lists(sketch: MutableSketch, values: U32Array, *, own_apart: bool) -> Ranking:
    """Order all distinct lists by how many tokens refer to them, most first; ties by postings hash, then postings.

    The order depends only on the content, so the same content gives the same bytes however it was built. `own_apart`
    leaves out lists that only one token has: they go at the end, in the order of their tokens.
    """
    lists = sketch.parts.lists
    direct = values[values & DIRECT != 0] & PAYLOAD
    direct_tokens = np.bincount(direct, minlength=1)
    postings = np.flatnonzero(direct_tokens)
    numbers = np.flatnonzero(lists.records[: int(lists.state[NEXT_LIST]), COUNT])
    tokens = np.concatenate([direct_tokens[postings], lists.records[numbers, TOKENS]]).astype(np.uint64)
    hashes = np.zeros(len(postings), np.uint64)
    hash_each(postings, hashes)
    hashes = np.concatenate([hashes, lists.records[numbers, HASH].astype(np.uint64)])
    all_values = np.concatenate([postings | DIRECT, numbers | LIST]).astype(np.uint32)
    ranked = np.flatnonzero(tokens != 1) if own_apart else np.arange(len(tokens))
    keys = (~tokens[ranked] << np.uint64(32)) | hashes[ranked]
    order = ranked[_canonical_order(keys, all_values[ranked], sketch)]
    ranks = np.full(len(all_values), _UNRANKED, np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    direct_ranks = np.zeros(len(direct_tokens), np.uint32)
    direct_ranks[postings] = ranks[: len(postings)]
    list_ranks = np.zeros(int(lists.state[NEXT_LIST]) + 1, np.uint32)
    list_ranks[numbers] = ranks[len(postings) :]
    by_rank = np.zeros_like(all_values)
    by_rank[: len(order)] = all_values[order]
    return Ranking(len(order), by_rank, direct_ranks, list_ranks)


@kernel
def _sample_offsets(offsets: I64Array, width: int, out: U64Array) -> None:
    for i in range(0, len(offsets), LIST_INTERVAL):
        write_bits(out, i // LIST_INTERVAL * width, width, np.uint64(offsets[i]))


def build_offset_samples(offsets: I64Array, list_words: int) -> U64Array:
    """The start of every LIST_INTERVAL-th list, in as few bits as a position needs."""
    width = position_width(list_words)
    out = np.zeros(words_for(width * -(-(len(offsets) - 1) // LIST_INTERVAL)), np.uint64)
    _sample_offsets(offsets[:-1], width, out)
    return out


def encode_lists(sketch: MutableSketch, values: U32Array) -> tuple[U64Array, I64Array]:
    """The lists in the order of `values` as one bit sequence, and where each starts (and the last one ends)."""
    offsets = np.zeros(len(values) + 1, np.int64)
    out = np.zeros(words_for(32 * len(values) + _ENCODE_MARGIN_BITS), np.uint64)
    scratch = np.zeros(max(sketch.posting_count, 1), np.uint16)
    stack = np.zeros(interpolative.STACK_SIZE, np.int64)
    rank = 0
    while True:
        rank = _encode_lists(sketch.parts.lists, values, rank, sketch.posting_count, offsets, out, scratch, stack)
        if rank == len(values):
            return out[: words_for(int(offsets[-1]))], offsets
        out = np.concatenate([out, np.zeros(len(out) + words_for(_ENCODE_MARGIN_BITS), np.uint64)])


class _Stopwatch:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase] = now - self._last
        self._last = now


def encode(
    sketch: MutableSketch,
    *,
    signature_bits: int = SIGNATURE_BITS,
    object_id: bytes = bytes(16),
    rules: RuleSet | str = RULES,
) -> tuple[list[bytes], SealReport]:
    """Encode the sketch as the pieces of a sealed file. The sketch itself does not change.

    Args:
        sketch: any mutable sketch, also an empty one.
        signature_bits: 1 to 32; one absent token in ``2 ** signature_bits`` is taken for a present one.
        object_id: 16 bytes that the owner can tell this file by, such as the id of the data file it belongs to.
        rules: the token rules that made the fingerprints. Those of the paper are written in format 1.0, as they always
            were; others in format 1.2.
    """
    _check_options(signature_bits, object_id)
    rules = rule_set(rules)
    minor = minor_for(rules)
    watch = _Stopwatch()
    fingerprints = np.zeros(sketch.token_count, np.uint32)
    values = np.zeros(sketch.token_count, np.uint32)
    _collect(sketch.parts.entries, fingerprints, values)
    ranking = rank_lists(sketch, values, own_apart=minor > 0)
    watch.lap("rank lists")
    function, indexes = build_perfect_hash(fingerprints)
    watch.lap("perfect hash")
    keys, ranks = np.zeros_like(fingerprints), np.zeros_like(fingerprints)
    values_in_order = np.zeros_like(values)
    _arrange(fingerprints, values, indexes, keys, values_in_order)
    _rank_tokens(values_in_order, ranking, ranks)
    signatures = build_signatures(keys, signature_bits)
    sums, rank_bits = build_ranks(ranks, ranking.first_own)
    watch.lap("signatures and ranks")
    list_bits, offsets = encode_lists(sketch, ranking.values)
    samples = build_offset_samples(offsets, len(list_bits))
    watch.lap("lists")
    sections = {
        "levels": function.levels,
        "level_ranks": function.rank_samples,
        "fallback": function.fallback,
        "signatures": signatures,
        "width_samples": sums.samples,
        "width_codes": sums.codes,
        "width_table": shortest_table(sums.table) if minor >= TIGHT_MINOR else sums.table,
        "ranks": rank_bits,
        "list_offsets": samples,
        "lists": list_bits,
    }
    counts = {"signature_bits": signature_bits} | _counts(sketch, ranking, function)
    pieces = assemble(rules, minor, counts, function.level_starts, sections, object_id)
    watch.lap("assemble")
    sizes = {name: section.nbytes for name, section in sections.items()}
    sizes["header, footer, padding"] = sum(map(len, pieces)) - sum(sizes.values())
    return pieces, SealReport(sizes, watch.seconds)


def _check_options(signature_bits: int, object_id: bytes) -> None:
    if not 1 <= signature_bits <= FULL_SIGNATURE_BITS:
        raise UsageError(f"signature bits must be 1 to {FULL_SIGNATURE_BITS}, not {signature_bits}")
    if len(object_id) != 16:
        raise UsageError(f"an object id has 16 bytes, not {len(object_id)}")


def _counts(sketch: MutableSketch, ranking: Ranking, function: PerfectHash) -> dict[str, int]:
    """The counts in the header, taken from the content."""
    return {
        "token_count": sketch.token_count,
        "list_count": len(ranking.values),
        "posting_count": sketch.posting_count,
        "level_count": len(function.level_starts) - 1,
        "fallback_count": sketch.token_count - _ones(function.levels),
        "own_list_count": len(ranking.values) - ranking.first_own,
    }


def seal(
    sketch: MutableSketch,
    path: str | os.PathLike[str],
    *,
    signature_bits: int = SIGNATURE_BITS,
    object_id: bytes = bytes(16),
    rules: RuleSet | str = RULES,
) -> SealReport:
    """Write the sealed form of `sketch` to `path`: complete and synced, or not at all. Arguments as for `encode`."""
    pieces, report = encode(sketch, signature_bits=signature_bits, object_id=object_id, rules=rules)
    started = time.perf_counter()
    write_whole_file(Path(path), pieces)
    report.seconds_by_phase["write"] = time.perf_counter() - started
    return report


def write_whole_file(path: Path, pieces: list[bytes]) -> None:
    """Write a file under a temporary name, sync it, and only then rename it."""
    if not path.parent.is_dir():
        raise NotFoundError(f"{path.parent}: no such folder for {path.name}; create it first")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file to write")
    with written_aside(os.fspath(path)) as unfinished, Path(unfinished).open("wb") as file:
        file.writelines(pieces)
    sync_path(os.fspath(path.parent))  # the new name, too


def _ones(words: U64Array) -> int:
    return int(np.bitwise_count(words).sum())
