"""Which strings occur inside the longer string of their row: fields that were taken out of a log line, for instance."""

from coprlake.kernel import I32Array, I64Array, U8Array, i64, kernel


@kernel
def _place_of(hay: U8Array, first: int, last: int, data: U8Array, start: int, size: int) -> int:
    """``hay.find(data[start:start + size], first)``, if it begins at `last` or before; -1 if it does not."""
    head = data[start]
    for place in range(first, last + 1):
        if hay[place] == head:
            i = 1
            while i < size and hay[place + i] == data[start + i]:
                i += 1
            if i == size:
                return place
    return -1


@kernel
def mark_inside(
    data: U8Array,
    starts: I32Array | I64Array,
    rows: I64Array,
    hay: U8Array,
    hay_starts: I32Array | I64Array,
    cursors: I64Array,
    out: U8Array,
) -> None:
    """``out[i] = data[starts[i]:starts[i + 1]] in hay[hay_starts[rows[i]]:hay_starts[rows[i] + 1]]``.

    `cursors` has for each row where to look first, an offset into `hay` within the row, and keeps where the last string
    that was found ends: the fields of a line mostly follow one another, so that all of them cost one pass over it.
    """
    for i in range(len(starts) - 1):
        start = i64(starts[i])
        size = i64(starts[i + 1]) - start
        row = i64(rows[i])
        begin = i64(hay_starts[row])
        last = i64(hay_starts[row + 1]) - size
        out[i] = 1
        if size == 0:
            continue
        cursor = i64(cursors[row])
        place = _place_of(hay, cursor, last, data, start, size)
        if place < 0:
            place = _place_of(hay, begin, min(cursor - 1, last), data, start, size)
        if place < 0:
            out[i] = 0
        else:
            cursors[row] = place + size
