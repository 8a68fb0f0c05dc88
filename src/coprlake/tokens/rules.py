"""The alphabet of the token rules (paper 5.1.1), and the sets of rules that a field can be indexed by.

Every byte is one *symbol*. Upper and lower case of an ASCII letter share a symbol, so lower-casing happens by looking
the symbol up. Symbols are numbered so that the class of a byte is a range test, and so that up to three symbols of one
class make a small number (see `GRAM_RADIX`), which is how grams are deduplicated with one bit each.

| symbols    | bytes                                  | class   | rules that use the class     |
|------------|----------------------------------------|---------|------------------------------|
| 1 - 36     | ``0-9 a-z`` (and ``A-Z``)              | word    | 1, 4, 5; 3-grams: 6          |
| 37 - 68    | the other printable ASCII characters   | mark    | 2; 1-, 2- and 3-grams: 7     |
| 69 - 102   | space and control bytes                | blank   | none: they only end a run    |
| 103 - 230  | all bytes above 127                    | foreign | 3; 2-grams of characters: 8  |

Rule 9, winnowed grams, is ours and crosses the borders of words; see `tokens/winnowing.py`.
"""

from typing import Final

import numpy as np

from coprlake.config import Rules
from coprlake.errors import UsageError
from coprlake.kernel import U8Array

RULES_VERSION: Final = 2
"""Stored in every sketch. A change of rules, symbols or fingerprints needs a new number; the older stay readable."""
PAPER_VERSION: Final = 1
"""The eight rules of the paper as they stand there."""

WORDS: Final = 0
"""Rules 1-5: whole words, and words that hang together. The rules of fields that are not searched inside of words."""
PAPER: Final = 1
"""Rules 1-8 of the paper."""
WINNOWED: Final = 2
"""Rule set 2: rules 1-8, but for tokens of rules 1, 4 and 5 that rule 9 makes superfluous, and rule 9."""

WINDOW_BYTES: Final = 11
"""A piece of text with so many bytes between blanks surely has a winnowed gram: as many as ``123.456.789`` has."""
LONG_WORD_BYTES: Final = 16
"""A word with a digit and so many bytes has two or three winnowed grams, which stand for it in rule set 2."""

SEPARATORS: Final = b".:-_/@\\"
"""The characters of rule 4. The backslash is ours: Windows paths are as common in logs as URLs."""

RULE_SETS: Final[dict[Rules, int]] = {"winnowed": WINNOWED, "paper": PAPER}

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
LAST_DIGIT: Final = 10


def rule_set(rules: Rules, *, grams: bool) -> int:
    """The number of the rules for a field that is searched inside of words, or is not."""
    if rules not in RULE_SETS:
        raise UsageError(f"there are no token rules {rules!r}; expected {' or '.join(RULE_SETS)}")
    return RULE_SETS[rules] if grams else WORDS
