"""Scan a pattern: names, quoted strings, character sets, and the blanks and comments between them."""

import re
from typing import Final

from coprlake.dpl.syntax.matcher_names import CLASSES, merged, negated
from coprlake.dpl.syntax.tree import Ranges
from coprlake.errors import PatternError

_GAP: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_GAP_AND_COMMAS: Final = re.compile(r"(?:[\s,]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME: Final = re.compile(r"[A-Za-z_@][A-Za-z0-9_.@-]*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_HEX_LENGTHS: Final = {"x": 2, "u": 4}


class Scanner:
    """A position in the text of a pattern, and methods that read from there and move past what they read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, expected: str, at: int | None = None) -> PatternError:
        """An error that says what was expected here and what was found."""
        place = self.at if at is None else at
        found = repr(self.text[place]) if place < len(self.text) else "the end"
        return PatternError(f"expected {expected}, found {found}", place)

    def skip_gap(self, *, commas: bool = False) -> None:
        """Skip blanks and comments, and commas if asked."""
        gap = (_GAP_AND_COMMAS if commas else _GAP).match(self.text, self.at)
        assert gap
        self.at = gap.end()
        if self.text.startswith("/*", self.at):
            raise PatternError("this comment is not closed", self.at)

    def peek(self) -> str:
        """The next character, or an empty string at the end."""
        return self.text[self.at : self.at + 1]

    def sees(self, mark: str) -> bool:
        """Whether `mark` comes next."""
        return self.text.startswith(mark, self.at)

    def takes(self, mark: str) -> bool:
        """Move past `mark` if it comes next, and return whether it did."""
        found = self.sees(mark)
        self.at += len(mark) if found else 0
        return found

    def take(self, mark: str, what: str) -> None:
        """Skip a gap and move past `mark`; an error says that `what` was expected."""
        self.skip_gap()
        if not self.takes(mark):
            raise self.error(what)

    def looking_at(self, pattern: str) -> bool:
        """Whether the regular expression matches at this position."""
        return re.compile(pattern).match(self.text, self.at) is not None

    def _matched(self, pattern: re.Pattern[str], what: str) -> str:
        match = pattern.match(self.text, self.at)
        if not match:
            raise self.error(what)
        self.at = match.end()
        return match[0]

    def word(self, what: str) -> str:
        """Read a word."""
        return self._matched(_WORD, what)

    def integer(self) -> int:
        """Read a whole number."""
        return int(self._matched(_INTEGER, "a whole number"))

    def number(self) -> float:
        """Read a number; an int if it is written as one."""
        written = self._matched(_NUMBER, "a number")
        return int(written) if _INTEGER.fullmatch(written) else float(written)

    def name(self) -> str:
        """Read the name of an export, plain or quoted."""
        if self.peek() in ("'", '"'):
            start = self.at
            name = self.quoted()
            if not name:
                raise PatternError("the name of an export is empty", start)
            return name
        return self._matched(_NAME, "the name of an export")

    def quoted(self) -> str:
        """Read a quoted string and resolve its escapes."""
        start, quote = self.at, self.peek()
        self.at += 1
        out: list[str] = []
        while self.peek() != quote:
            if self.at >= len(self.text):
                raise PatternError("this quote is not closed", start)
            out.append(self._character())
        self.at += 1
        return "".join(out)

    def _character(self) -> str:
        """Read one character, or the escape sequence for one."""
        letter = self.peek()
        self.at += 1
        if letter != "\\" or self.at >= len(self.text):
            return letter
        letter = self.peek()
        self.at += 1
        if letter in _HEX_LENGTHS:
            digits = self.text[self.at : self.at + _HEX_LENGTHS[letter]]
            if not re.fullmatch(f"[0-9a-fA-F]{{{_HEX_LENGTHS[letter]}}}", digits):
                raise self.error(f"{_HEX_LENGTHS[letter]} hexadecimal digits")
            self.at += len(digits)
            letter = chr(int(digits, 16))
            if "\ud800" <= letter <= "\udfff":
                raise PatternError("half of a surrogate pair is not a valid character", self.at - len(digits))
            return letter
        return _ESCAPES.get(letter, letter)

    def char_set(self) -> Ranges:
        """Read a character set: ``[a-z]``, ``[!a-z]``, ``[^a-z]``, ``[:alpha:]`` or ``[[:alpha:]_]``."""
        start = self.at
        if self.looking_at(r"\[:[a-z]+:\]"):
            self.at += 1
            ranges = self._posix_class()
            self.take("]", "']'")
            return ranges
        self.at += 1
        inverted = self.takes("!") or self.takes("^")
        members: list[tuple[int, int]] = []
        while not self.takes("]"):
            if self.at >= len(self.text):
                raise PatternError("this character set is not closed", start)
            if self.looking_at(r"\[:[a-z]+:\]"):
                self.at += 1
                members += self._posix_class()
                self.at += 1
                continue
            place = self.at
            low = high = self._character()
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._character()
            if high < low:
                raise PatternError(f"the range {low}-{high} is reversed", place)
            members.append((ord(low), ord(high)))
        if not members:
            raise PatternError("this character set is empty", start)
        ranges = merged(members)
        return negated(ranges) if inverted else ranges

    def _posix_class(self) -> Ranges:
        """Read ``:alpha:``."""
        self.at += 1
        start = self.at
        name = self.word("the name of a character class")
        self.at += 1
        if name.upper() not in CLASSES:
            raise PatternError(f"unknown class [:{name}:]; expected one of {', '.join(CLASSES).lower()}", start)
        return CLASSES[name.upper()]
