"""The loops over the bytes of texts that Arrow has no function for. UTF-8 throughout; indexes count code points."""

import numpy as np
import pyarrow as pa

from coprlake.kernel import I64Array, I64Matrix, U8Array, i64, kernel, long_kernel
from coprlake.text.arrow_strings import Strings, view_strings
from coprlake.text.utf8 import count_chars, is_continuation


def views(texts: pa.Array) -> Strings:
    """A column of texts as kernels read it; null has no bytes."""
    return view_strings(texts.fill_null(""))


@kernel
def _is_at(texts: Strings, at: int, parts: Strings, start: int, end: int) -> bool:
    for i in range(end - start):
        if texts.data[at + i] != parts.data[start + i]:
            return False
    return True


@long_kernel
def find_parts(texts: Strings, parts: Strings, froms: I64Array, backwards: bool, out: I64Array) -> None:
    """``out[i] = text.find(part, from)``, or the last not behind `from`; a negative `from` counts from the end.

    As in a slice, a `from` outside of the text is its begin or end. -1 where there is no such part.
    """
    for row in range(len(out)):
        start, end = i64(texts.starts[row]), i64(texts.starts[row + 1])
        first, last = i64(parts.starts[row]), i64(parts.starts[row + 1])
        wanted = i64(froms[row])
        if wanted < 0:
            wanted = max(0, wanted + count_chars(texts.data, start, end))
        out[row] = -1
        index = -1
        for at in range(start, end + 1):
            if at < end and is_continuation(texts.data[at]):
                continue
            index += 1
            if (backwards and index > wanted) or at + last - first > end:
                break
            if (backwards or index >= wanted) and _is_at(texts, at, parts, first, last):
                out[row] = index
                if not backwards:
                    break


@kernel
def _code_points(data: U8Array, start: int, end: int, out: I64Array) -> int:
    """The characters of a text as numbers that differ where they do; how many there are."""
    count = 0
    for i in range(start, end):
        byte = i64(data[i])
        if not is_continuation(data[i]):
            out[count] = byte
            count += 1
        else:
            out[count - 1] = out[count - 1] << 8 | byte
    return count


@long_kernel
def edit_distances(lefts: Strings, rights: Strings, work: I64Matrix, out: I64Array) -> None:
    """How many characters have to be put in, taken out or replaced to make one text of the other (Levenshtein).

    Args:
        lefts: some texts.
        rights: as many.
        work: three rows, each longer than the longest text has bytes.
        out: the distances.
    """
    for row in range(len(out)):
        n = _code_points(lefts.data, lefts.starts[row], lefts.starts[row + 1], work[0])
        m = _code_points(rights.data, rights.starts[row], rights.starts[row + 1], work[1])
        costs = work[2]
        for j in range(m + 1):
            costs[j] = j
        for i in range(n):
            diagonal = i64(costs[0])
            costs[0] = i + 1
            for j in range(m):
                cost = diagonal + (work[0, i] != work[1, j])
                diagonal = i64(costs[j + 1])
                costs[j + 1] = min(cost, diagonal + 1, costs[j] + 1)
        out[row] = costs[m]


def index_of(texts: pa.Array, parts: pa.Array, froms: pa.Array, backwards: bool) -> pa.Array:
    """See `find_parts`; null where an argument is null."""
    out = np.empty(len(texts), np.int64)
    numbers = froms.fill_null(0).to_numpy(zero_copy_only=False)
    find_parts(views(texts), views(parts), np.ascontiguousarray(numbers), backwards, out)
    return pa.array(out, mask=_any_null(texts, parts, froms))


def distances(lefts: pa.Array, rights: pa.Array) -> pa.Array:
    """See `edit_distances`; null where an argument is null."""
    left, right = views(lefts), views(rights)
    out = np.empty(len(lefts), np.int64)
    longest = max((int(np.diff(side.starts).max(initial=0)) for side in (left, right)), default=0)
    edit_distances(left, right, np.empty((3, longest + 1), np.int64), out)
    return pa.array(out, mask=_any_null(lefts, rights))


def _any_null(*columns: pa.Array) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    mask = np.zeros(len(columns[0]), np.bool_)
    for column in columns:
        mask |= column.is_null().to_numpy(zero_copy_only=False)
    return mask


def characters(texts: pa.Array) -> pa.Array:
    """The characters of each text as a list; null for null."""
    data, starts, _ = views(texts)
    bounds = np.flatnonzero((data[: starts[-1]] & 0xC0) != 0x80)
    bounds = bounds[bounds >= starts[0]]
    offsets = np.searchsorted(bounds, starts)
    letters = pa.StringArray.from_buffers(
        len(bounds),
        pa.py_buffer(np.append(bounds, starts[-1]).astype(np.int32)),
        pa.py_buffer(data),
    )
    mask = texts.is_null() if texts.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), letters, mask=mask)
