"""Insertion into the mutable sketch (paper 3.2): tokens move from list to list, and equal lists are one list.

The paper looks up a token's new list for each pair of token and posting. Here many tokens gain the same postings at
once (all tokens of a batch, or all that share a list of a spilled sketch), so tokens that share a list now will share
one afterwards: we look up the new list for the first of them and record it in the old list (MOVE, valid for one EPOCH)
for the others.
"""

from typing import Final, NamedTuple

import numpy as np

from coprlake.kernel import I64Array, U16Array, U32Array, U64Array, cold_kernel, i64, kernel, long_kernel
from coprlake.sketch.lookup_map import find_or_add, has_hash, home_slot, remove
from coprlake.sketch.posting_lists import (
    EPOCH,
    HASH,
    LIVE_LISTS,
    MOVE,
    OFFSET,
    TOKENS,
    UNIT_WORDS,
    Lists,
    append_in_place,
    decode,
    extend,
    free,
    has_posting,
    store,
    unite,
)
from coprlake.sketch.postings_hash import posting_hash, postings_hash
from coprlake.sketch.token_map import DIRECT, LIST, PAYLOAD, find_entry, set_value, value_of

TOKEN_COUNT, OWN_EPOCH, OWN_LIST = 0, 1, 2
"""Indexes into `Parts.sizes`: the number of tokens; an epoch; and the list that holds only that epoch's postings."""
WARMTH: Final = 3
_WARM_TOKENS: Final = 32
_LOWER: Final = np.uint64(0xFFFFFFFF)
NO_ROOM: Final = -1


class Parts(NamedTuple):
    """Everything a mutable sketch consists of."""

    entries: U64Array  # the token map
    slots: U64Array  # the lookup map
    lists: Lists
    direct_moves: U32Array  # like MOVE and EPOCH in `Lists`, for tokens with one posting, which have no list yet
    direct_epochs: U32Array
    scratch: U16Array  # two lists of postings
    sizes: I64Array


@kernel
def entries_limit(entries: U64Array) -> int:
    """The number of tokens the map holds before it must grow: filling three quarters keeps the chains short."""
    return len(entries) * 3 // 4


@kernel
def slots_limit(slots: U64Array) -> int:
    """The number of lists the lookup map holds before it must grow."""
    return len(slots) * 5 // 8


@kernel
def _keep_one(parts: Parts, number: int) -> int:
    """Deduplicate a list that was just made and return the one that its tokens must use; NO_ROOM passes through."""
    if number == NO_ROOM:
        return NO_ROOM
    kept = find_or_add(parts.slots, parts.lists, number)
    if kept != number:
        free(parts.lists, number)
    return kept


@kernel
def _own_list(parts: Parts, postings: U16Array, epoch: int, short_list_postings: int) -> int:
    """The value for a token that had no postings before: exactly `postings`."""
    if len(postings) == 1:
        return DIRECT | i64(postings[0])
    if parts.sizes[OWN_EPOCH] != epoch:
        number = _keep_one(parts, store(parts.lists, postings, postings_hash(postings), short_list_postings))
        if number == NO_ROOM:
            return NO_ROOM
        parts.sizes[OWN_EPOCH] = epoch
        parts.sizes[OWN_LIST] = number
    return LIST | parts.sizes[OWN_LIST]


@kernel
def _moved_direct(parts: Parts, posting: int, postings: U16Array, epoch: int, short_list_postings: int) -> int:
    """The value for a token that had only `posting`."""
    if parts.direct_epochs[posting] != epoch:
        parts.scratch[len(parts.scratch) >> 1] = posting
        number = unite(parts.lists, 1, posting_hash(posting), postings, short_list_postings, parts.scratch)
        number = _keep_one(parts, number)
        if number == NO_ROOM:
            return NO_ROOM
        parts.direct_epochs[posting] = epoch
        parts.direct_moves[posting] = number
        parts.lists.records[number, EPOCH] = epoch
        parts.lists.records[number, MOVE] = number
    return LIST | i64(parts.direct_moves[posting])


@cold_kernel
def _has_all(lists: Lists, number: int, postings: U16Array) -> bool:
    for i in range(len(postings)):
        if not has_posting(lists, number, i64(postings[i])):
            return False
    return True


@kernel
def _grow_in_place(parts: Parts, number: int, posting: int, short_list_postings: int) -> bool:
    """Extend in place a list that only one token has, if no other list can equal the result; False if nothing changed.

    Two insertions in five take this shortcut: words that share no list with any other.
    """
    lists = parts.lists
    if lists.records[number, TOKENS] != 1:
        return False
    if has_hash(parts.slots, lists.records[number, HASH] ^ posting_hash(posting)):
        return False
    remove(parts.slots, lists, number)
    grown = append_in_place(lists, number, posting, short_list_postings)
    find_or_add(parts.slots, lists, number)
    return grown


@kernel
def _moved_list(parts: Parts, number: int, postings: U16Array, epoch: int, short_list_postings: int) -> int:
    """The value for a token that was on list `number`."""
    lists = parts.lists
    if lists.records[number, EPOCH] != epoch:
        if _has_all(lists, number, postings) or (
            len(postings) == 1 and _grow_in_place(parts, number, i64(postings[0]), short_list_postings)
        ):
            target = number
        elif len(postings) == 1:
            target = extend(lists, number, i64(postings[0]), short_list_postings, parts.scratch)
            target = _keep_one(parts, target)
        else:
            count = decode(lists, number, parts.scratch[len(parts.scratch) >> 1 :])
            target = unite(lists, count, lists.records[number, HASH], postings, short_list_postings, parts.scratch)
            target = _keep_one(parts, target)
        if target == NO_ROOM:
            return NO_ROOM
        lists.records[number, EPOCH] = epoch
        lists.records[number, MOVE] = target
        lists.records[target, EPOCH] = epoch
        lists.records[target, MOVE] = target
    return LIST | i64(lists.records[number, MOVE])


@kernel
def _release(parts: Parts, number: int) -> None:
    """Remove one token from list `number`, and free the list when its last token leaves."""
    parts.lists.records[number, TOKENS] -= np.uint32(1)
    if parts.lists.records[number, TOKENS] == 0:
        remove(parts.slots, parts.lists, number)
        free(parts.lists, number)


@kernel
def _warm_up(parts: Parts, fingerprints: U32Array, gained_hash: np.uint32) -> np.uint64:
    """Touch the memory that these tokens will need, so that cache misses overlap instead of following each other.

    Numba has no prefetch instruction, but independent loads have the same effect: first all
    entries of the token map, then the records of the lists, then the slots of the lists after the move.
    """
    entries, slots, records = parts.entries, parts.slots, parts.lists.records
    touched = np.uint64(0)
    for i in range(len(fingerprints)):
        touched ^= entries[i64(fingerprints[i]) * len(entries) >> 32]
    for i in range(len(fingerprints)):
        value = i64(entries[i64(fingerprints[i]) * len(entries) >> 32] & _LOWER)
        if value & LIST:
            touched ^= np.uint64(records[value & PAYLOAD, HASH])
    for i in range(len(fingerprints)):
        value = i64(entries[i64(fingerprints[i]) * len(entries) >> 32] & _LOWER)
        if value & LIST:
            own_hash = records[value & PAYLOAD, HASH]
            touched ^= slots[home_slot(slots, own_hash)] ^ slots[home_slot(slots, own_hash ^ gained_hash)]
            touched ^= np.uint64(parts.lists.pool[i64(records[value & PAYLOAD, OFFSET]) * UNIT_WORDS])
    return touched


@long_kernel
def insert_tokens(
    parts: Parts, fingerprints: U32Array, postings: U16Array, epoch: int, short_list_postings: int
) -> int:
    """``for f in fingerprints: sketch[f] |= set(postings)``; returns how many were inserted before something was full.

    `postings` are sorted, distinct and below ``len(direct_moves)``. Each set of postings needs a new `epoch`; a call
    that continues where another stopped uses the same one. Fingerprint 0 is not a token and is skipped.
    """
    lists = parts.lists
    gained_hash = postings_hash(postings)
    for i in range(len(fingerprints)):
        if i % _WARM_TOKENS == 0:
            parts.sizes[WARMTH] ^= i64(_warm_up(parts, fingerprints[i : i + _WARM_TOKENS], gained_hash))
        fingerprint = fingerprints[i]
        if fingerprint == 0:
            continue
        entry = find_entry(parts.entries, fingerprint)
        value = value_of(parts.entries, entry)
        if value == DIRECT | i64(postings[0]) and len(postings) == 1:
            continue
        if lists.state[LIVE_LISTS] >= slots_limit(parts.slots):
            return i
        if value == 0:
            if parts.sizes[TOKEN_COUNT] >= entries_limit(parts.entries):
                return i
            target = _own_list(parts, postings, epoch, short_list_postings)
        elif value & DIRECT:
            target = _moved_direct(parts, value & PAYLOAD, postings, epoch, short_list_postings)
        else:
            target = _moved_list(parts, value & PAYLOAD, postings, epoch, short_list_postings)
        if target == NO_ROOM:
            return i
        if target == value:
            continue
        if target & LIST:
            lists.records[target & PAYLOAD, TOKENS] += np.uint32(1)
        if value & LIST:
            _release(parts, value & PAYLOAD)
        if value == 0:
            parts.sizes[TOKEN_COUNT] += 1
        set_value(parts.entries, entry, fingerprint, target)
    return len(fingerprints)


@long_kernel
def insert_lists(
    parts: Parts,
    fingerprints: U32Array,
    token_starts: I64Array,
    postings: U16Array,
    posting_starts: I64Array,
    epoch: int,
    short_list_postings: int,
    done: I64Array,
) -> bool:
    """`insert_tokens` for many sets of postings: set ``k`` belongs to the tokens from ``token_starts[k]`` on.

    ``done = [k, n]`` says where to start, and is updated to where the call stopped: at set ``k``, with ``n`` of its
    tokens inserted. Returns False if something was full. Set ``k`` uses epoch ``epoch + k``.
    """
    while done[0] < len(token_starts) - 1:
        k = done[0]
        start, end = token_starts[k] + done[1], token_starts[k + 1]
        own = postings[posting_starts[k] : posting_starts[k + 1]]
        count = insert_tokens(parts, fingerprints[start:end], own, epoch + k, short_list_postings)
        if count < end - start:
            done[1] += count
            return False
        done[0] += 1
        done[1] = 0
    return True
