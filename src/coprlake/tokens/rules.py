"""The alphabet of the eight token rules (paper 5.1.1).

Every byte is one *symbol*. Upper and lower case of an ASCII letter share a symbol, so lower-casing happens by looking
the symbol up. Symbols are numbered so that the class of a byte is a range test, and so that up to three symbols of one
class make a small number (see `GRAM_RADIX`), which is how grams are deduplicated with one bit each.

| symbols    | bytes                                  | class   | rules that use the class     |
|------------|----------------------------------------|---------|------------------------------|
| 1 - 36     | ``0-9 a-z`` (and ``A-Z``)              | word    | 1, 4, 5; 3-grams: 6          |
| 37 - 68    | the other printable ASCII characters   | mark    | 2; 1-, 2- and 3-grams: 7     |
| 69 - 102   | space and control bytes                | blank   | none: they only end a run    |
| 103 - 230  | all bytes above 127                    | foreign | 3; 2-grams of characters: 8  |
"""

from typing import Final

import numpy as np

from coprlake.kernel import U8Array, kernel

RULES_VERSION: Final = 1
"""Stored in every sketch. A change of rules, symbols or fingerprints needs a new number; this one stays readable."""

SEPARATORS: Final = b".:-_/@\\"
"""The characters of rule 4. The backslash is ours: Windows paths are as common in logs as URLs."""

LAST_WORD: Final = 36
LAST_MARK: Final = 68
LAST_BLANK: Final = 102

GRAM_RADIX: Final = 37
"""Word symbols are 1-36 and marks, less 36, are 1-32: no digit is 0, so grams of different lengths stay different."""
GRAM_NUMBERS: Final = GRAM_RADIX**3


def _symbols() -> U8Array:
    words = b"0123456789abcdefghijklmnopqrstuvwxyz"
    marks = bytes(b for b in range(0x21, 0x7F) if not chr(b).isalnum())
    blanks = bytes(range(0x21)) + b"\x7f"
    foreign = bytes(range(0x80, 0x100))
    symbols = np.zeros(256, np.uint8)
    for number, byte in enumerate(words + marks + blanks + foreign, start=1):
        symbols[byte] = number
    symbols[np.frombuffer(words[10:].upper(), np.uint8)] = symbols[np.frombuffer(words[10:], np.uint8)]
    return symbols


SYMBOLS: Final = _symbols()
IS_SEPARATOR: Final = np.isin(np.arange(256), list(SEPARATORS)).astype(np.uint8)
DOT: Final = ord(".")


@kernel
def character_end(data: U8Array, start: int, end: int) -> int:
    """Where the non-ASCII character at `start` ends, in valid UTF-8 and in anything else.

    A lead byte takes at most as many continuation bytes as it announces; a continuation byte without a lead is a
    character of its own. So the cut depends on nothing before `start`, and a piece of a run is cut as the run is.
    """
    lead = data[start]
    if lead < 0xC0:
        return start + 1
    most = 2 if lead < 0xE0 else (3 if lead < 0xF0 else 4)
    stop = start + 1
    while stop < end and stop < start + most and data[stop] >= 0x80 and data[stop] < 0xC0:
        stop += 1
    return stop
