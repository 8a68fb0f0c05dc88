"""Small edits to bytes and text, as plain data.

A case is a list of edits; it is shrunk by leaving some out.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

EDIT_LIMIT: Final = 4
_NUMBERS: Final = (0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 64) - 1)


@dataclass(frozen=True)
class Edit:
    """Replace ``size`` bytes at ``offset``, counted from the end if negative, by ``data``."""

    offset: int
    size: int
    data: bytes

    def __str__(self) -> str:
        shown = self.data if len(self.data) <= 32 else self.data[:32] + b"..."
        return f"[{self.offset}:+{self.size}] = {shown!r}"


def edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Apply all edits in turn; offsets beyond the end mean the end."""
    for edit in edits:
        offset = min(max(edit.offset + len(data) if edit.offset < 0 else edit.offset, 0), len(data))
        data = data[:offset] + edit.data + data[offset + edit.size :]
    return data


def random_edits(chance: random.Random, data: bytes, others: Sequence[bytes]) -> list[Edit]:
    """One to four edits: bits, bytes, numbers, and ranges that are cut, doubled, or copied from here or elsewhere."""
    count = 1 if chance.random() < 0.6 else chance.randint(2, EDIT_LIMIT)
    return [_edit(chance, data, others) for _ in range(count)]


def _edit(chance: random.Random, data: bytes, others: Sequence[bytes]) -> Edit:
    size = len(data)
    at = _place(chance, size)
    length = min(chance.choice((1, 2, 4, 8, 16, 64, 512, 4096)), max(size - at, 0))
    kind = chance.randrange(10)
    if kind <= 1 and at < size:
        return Edit(at, 1, bytes([data[at] ^ 1 << chance.randrange(8)]))
    if kind == 2:
        return Edit(at, 1, bytes([chance.choice((0, 255, 10, 34, 92, 123, chance.randrange(256)))]))
    if kind == 3:
        width = chance.choice((2, 4, 8))
        number = chance.choice(_NUMBERS) + chance.choice((0, 0, 1, -1))
        return Edit(at, width, (number % (1 << 8 * width)).to_bytes(width, chance.choice(("little", "big"))))
    if kind == 4:
        return Edit(at, size, b"")  # cut off
    if kind == 5:
        return Edit(size, 0, chance.randbytes(chance.choice((1, 8, 100))) if chance.random() < 0.5 else data[at:])
    if kind == 6:
        return Edit(at, length, b"")
    if kind == 7:
        return Edit(at, 0, data[at : at + length])
    if kind == 8:
        other = chance.choice(others) if others else data
        begin = _place(chance, len(other))
        return Edit(at, length, other[begin : begin + length])
    begin = _place(chance, size)
    return Edit(at, length, data[begin : begin + length])


def _place(chance: random.Random, size: int) -> int:
    """A random place, more often near the ends, where headers and footers are."""
    where = chance.random()
    if where < 0.25:
        return chance.randrange(min(size, 256) or 1)
    if where < 0.5:
        return max(0, size - 1 - chance.randrange(min(size, 256) or 1))
    return chance.randrange(size or 1)


def random_text_edits(chance: random.Random, text: str, words: Sequence[str]) -> list[Edit]:
    """Edits to text in UTF-8: inserted words of the language, removals, deep nesting, odd values and random edits."""
    data = text.encode()
    edits = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(8)
        if kind <= 2:
            edits.append(Edit(at, chance.choice((0, 0, 1, 4)), chance.choice(words).encode()))
        elif kind == 3:
            edits.append(Edit(at, chance.randint(1, 12), b""))
        elif kind == 4:
            depth = chance.choice((3, 50, 400, 3000))
            edits.append(Edit(at, 0, (chance.choice(("(", "[", "{", "not ", "-", "((", "'", "a|")) * depth).encode()))
        elif kind == 5:
            edits.append(
                Edit(
                    at,
                    0,
                    chance.choice(("99999999999999999999", "-1", "1e999", "\x00", "\udcff", "é😀", "\n")).encode(
                        "utf-8", "surrogatepass"
                    ),
                )
            )
        else:
            edits.append(_edit(chance, data, ()))
    return edits
