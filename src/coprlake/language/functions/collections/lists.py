"""Computations over the elements of lists, for all lists of a column at once."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coprlake.language.functions.text.spelling import joined_lists, spell
from coprlake.language.types import STRING, Type


def _rows(lists: pa.Array) -> npt.NDArray[np.int64]:
    """The index of the list that each element belongs to."""
    return pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)


def _found(lists: pa.ListArray) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The non-null elements, and the index of the list of each."""
    elements = lists.flatten()
    is_there = elements.is_valid()
    return elements.filter(is_there), _rows(lists)[is_there.to_numpy(zero_copy_only=False)]


def _nulls(lists: pa.Array) -> npt.NDArray[np.bool_]:
    return lists.is_null().to_numpy(zero_copy_only=False)


def double_sums(lists: pa.ListArray) -> pa.Array:
    """The sum of each list; 0 without elements, null if it is not finite."""
    elements, rows = _found(lists)
    sums = np.bincount(rows, elements.to_numpy(zero_copy_only=False), len(lists)).astype(np.float64)
    return pa.array(sums, mask=_nulls(lists) | ~np.isfinite(sums))


def long_sums(lists: pa.ListArray) -> pa.Array:
    """The sum of each list; 0 without elements, null if it does not fit in 64 bits."""
    elements, rows = _found(lists)
    numbers = elements.to_numpy(zero_copy_only=False)
    low, high = (np.zeros(len(lists), np.int64) for _ in range(2))
    np.add.at(low, rows, numbers & 0xFFFFFFFF)
    np.add.at(high, rows, numbers >> 32)
    high += low >> 32
    fits = (high >= -(2**31)) & (high < 2**31)
    sums = (np.where(fits, high, 0) << 32) | (low & 0xFFFFFFFF)
    return pa.array(sums, mask=_nulls(lists) | ~fits)


def means(lists: pa.ListArray) -> pa.Array:
    """The mean of each list; 0 without elements, null if it is not finite."""
    elements, rows = _found(lists)
    sums = np.bincount(rows, elements.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), len(lists))
    counts = np.bincount(rows, minlength=len(lists))
    found = sums.astype(np.float64) / np.maximum(counts, 1)
    return pa.array(found, mask=_nulls(lists) | ~np.isfinite(found))


def extremes(lists: pa.ListArray, greatest: bool = False) -> pa.Array:
    """The least or greatest element of each list; null without elements."""
    elements, rows = _found(lists)
    places = np.full(len(lists), -1, np.int64)
    ranks = pc.rank(elements, tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(ranks if not greatest else -ranks, kind="stable")[::-1]
    places[rows[order]] = order  # the last write wins, which is the first in the order
    return elements.take(pa.array(places, mask=places < 0))


def distinct(lists: pa.ListArray) -> pa.Array:
    """The distinct elements of each list, in order of first appearance; null counts as an element."""
    codes = pc.dictionary_encode(lists.flatten(), null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    rows = _rows(lists)
    order = np.lexsort((codes, rows))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (codes[order][1:] != codes[order][:-1]) | (rows[order][1:] != rows[order][:-1])
    kept = np.sort(order[is_first])
    counts = np.bincount(rows[kept], minlength=len(lists))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(offsets, lists.flatten().take(pa.array(kept)), mask=mask)


def joined(lists: pa.ListArray, kind: Type = STRING, delimiter: str = ",") -> pa.Array:
    """The elements of each list joined into one string; nulls are skipped."""
    elements, rows = _found(lists)
    counts = pa.array(np.bincount(rows, minlength=len(lists)), mask=_nulls(lists))
    return joined_lists(counts, spell(elements, kind), delimiter)
