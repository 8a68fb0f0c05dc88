"""Which strings occur inside the longer string of their row: fields that were taken out of a log line, for instance.

Such a string needs no tokens of its own if it stands in the longer one as its terms do: no word of it goes on there.
"""

from typing import Final

from coprlake.kernel import I32Array, I64Array, U8Array, i64, kernel, long_kernel
from coprlake.tokens.required_tokens import symbol_class
from coprlake.tokens.rules import SYMBOLS

OUTSIDE: Final = 0
CUT: Final = 1
"""Inside, but a word of it may go on there, before or after it: its tokens may be others."""
INSIDE: Final = 2
"""Inside, and every token that a search for a part of it asks for is a token of the longer string."""

_MARK: Final = 1
_BLANK: Final = 2
_ANY: Final = -1


@kernel
def _class_not_before(data: U8Array, start: int, end: int) -> int:
    """The class of bytes that would be in one run with the first one of ``data[start:end]``; -1 if that is no matter.

    Up to three marks are a token wherever they are, and blanks are none.
    """
    kind = symbol_class(i64(SYMBOLS[data[start]]))
    if kind == _MARK:
        i = start
        while i < end and symbol_class(i64(SYMBOLS[data[i]])) == _MARK:
            i += 1
        return _ANY if i - start <= 3 else _MARK
    return _ANY if kind == _BLANK else kind


@kernel
def _class_not_after(data: U8Array, start: int, end: int) -> int:
    """The same for what follows the last byte."""
    kind = symbol_class(i64(SYMBOLS[data[end - 1]]))
    if kind == _MARK:
        i = end
        while i > start and symbol_class(i64(SYMBOLS[data[i - 1]])) == _MARK:
            i -= 1
        return _ANY if end - i <= 3 else _MARK
    return _ANY if kind == _BLANK else kind


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


@long_kernel
def mark_inside(
    data: U8Array,
    starts: I32Array | I64Array,
    rows: I64Array,
    hay: U8Array,
    hay_starts: I32Array | I64Array,
    cursors: I64Array,
    out: U8Array,
) -> None:
    """``out[i] = data[starts[i]:starts[i + 1]] in hay[hay_starts[rows[i]]:hay_starts[rows[i] + 1]]``, as `INSIDE`.

    It is `CUT` instead if the place that was found is in the middle of a word, or of other bytes of one class.
    `cursors` has for each row where to look first, an offset into `hay` within the row, and keeps where the last string
    that was found ends: the fields of a line mostly follow one another, so that all of them cost one pass over it.
    """
    for i in range(len(starts) - 1):
        start = i64(starts[i])
        size = i64(starts[i + 1]) - start
        row = i64(rows[i])
        begin = i64(hay_starts[row])
        end = i64(hay_starts[row + 1])
        out[i] = INSIDE
        if size == 0:
            continue
        cursor = i64(cursors[row])
        place = _place_of(hay, cursor, end - size, data, start, size)
        if place < 0:
            place = _place_of(hay, begin, min(cursor - 1, end - size), data, start, size)
        if place < 0:
            out[i] = OUTSIDE
            continue
        cursors[row] = place + size
        if place > begin:
            kind = symbol_class(i64(SYMBOLS[hay[place - 1]]))
            if kind == _class_not_before(data, start, start + size):
                out[i] = CUT
        if place + size < end:
            kind = symbol_class(i64(SYMBOLS[hay[place + size]]))
            if kind == _class_not_after(data, start, start + size):
                out[i] = CUT
