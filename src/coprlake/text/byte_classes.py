"""ASCII characters by name, and the classes of bytes that kernels ask for."""

import numpy as np

from coprlake.kernel import i64, kernel

TAB, NEWLINE, RETURN, BLANK = 9, 10, 13, 32
QUOTE, APOSTROPHE, PLUS, COMMA, DASH, DOT, SLASH = 34, 39, 43, 44, 45, 46, 47
ZERO, NINE, COLON = 48, 57, 58
OPEN_BRACKET, BACKSLASH, CLOSE_BRACKET, UNDERSCORE = 91, 92, 93, 95
OPEN_BRACE, CLOSE_BRACE = 123, 125

CASE_BIT = 32
"""Set in lower-case letters, not set in capitals: ``i64(byte) | CASE_BIT`` is the lower case of a letter."""


@kernel
def is_digit(byte: np.uint8) -> bool:
    """``byte in b"0123456789"``."""
    return bool(ZERO <= byte <= NINE)


@kernel
def is_letter(byte: np.uint8) -> bool:
    """``chr(byte).isascii() and chr(byte).isalpha()``."""
    return 97 <= (i64(byte) | CASE_BIT) <= 122
