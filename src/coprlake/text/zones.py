"""Time zones as timestamps name them: UTC, or an offset from it."""

from coprlake.kernel import U8Array, kernel
from coprlake.text.byte_classes import COLON, DASH, PLUS
from coprlake.text.digits import number_at

_MOST_HOURS = 15


@kernel
def is_utc_at(data: U8Array, at: int, end: int) -> bool:
    """``data[at:at + 3] in (b"UTC", b"GMT")``, before `end`."""
    if at + 3 > end:
        return False
    if data[at] == 85:
        return bool(data[at + 1] == 84 and data[at + 2] == 67)
    return bool(data[at] == 71 and data[at + 1] == 77 and data[at + 2] == 84)


@kernel
def offset_at(data: U8Array, at: int, end: int) -> tuple[int, int]:
    """``[+-]HH(:?MM)?``: the minutes east of UTC, and where the offset ends; 0 and -1 if there is none.

    Hours are at most 15. Minutes over 59 make it no offset.
    """
    if at + 3 > end or (data[at] != PLUS and data[at] != DASH):
        return 0, -1
    hours = number_at(data, at + 1, end, 2)
    if hours < 0 or hours > _MOST_HOURS:
        return 0, -1
    stop = at + 3
    colon = 1 if stop < end and data[stop] == COLON else 0
    minutes = number_at(data, stop + colon, end, 2)
    if minutes > 59:
        return 0, -1
    if minutes < 0:
        minutes = 0
    else:
        stop += colon + 2
    east = hours * 60 + minutes
    return -east if data[at] == DASH else east, stop
