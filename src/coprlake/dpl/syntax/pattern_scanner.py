"""The characters of a pattern: names, quoted texts, sets of characters, and the blanks and comments between them."""

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
    """A place in the text of a pattern. What it `takes` it goes past; it never stands in a gap that it was told to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, expected: str, at: int | None = None) -> PatternError:
        """What was expected here, and what is there."""
        place = self.at if at is None else at
        found = repr(self.text[place]) if place < len(self.text) else "the end"
        return PatternError(f"expected {expected}, found {found}", place)

    def skip_gap(self, *, commas: bool = False) -> None:
        """Go to the next character that means something."""
        gap = (_GAP_AND_COMMAS if commas else _GAP).match(self.text, self.at)
        assert gap
        self.at = gap.end()
        if self.text.startswith("/*", self.at):
            raise PatternError("this comment is not closed", self.at)

    def peek(self) -> str:
        """The character here, or nothing at the end."""
        return self.text[self.at : self.at + 1]

    def sees(self, mark: str) -> bool:
        """Whether the text goes on so."""
        return self.text.startswith(mark, self.at)

    def takes(self, mark: str) -> bool:
        """Go past a mark if it is here."""
        found = self.sees(mark)
        self.at += len(mark) if found else 0
        return found

    def take(self, mark: str, what: str) -> None:
        """Go past a mark that has to be here, gaps aside."""
        self.skip_gap()
        if not self.takes(mark):
            raise self.error(what)

    def looking_at(self, pattern: str) -> bool:
        """Whether a regular expression matches here."""
        return re.compile(pattern).match(self.text, self.at) is not None

    def _matched(self, pattern: re.Pattern[str], what: str) -> str:
        match = pattern.match(self.text, self.at)
        if not match:
            raise self.error(what)
        self.at = match.end()
        return match[0]

    def word(self, what: str) -> str:
        """The word here."""
        return self._matched(_WORD, what)

    def integer(self) -> int:
        """The whole number here."""
        return int(self._matched(_INTEGER, "a whole number"))

    def number(self) -> float:
        """The number here; an int if it is written as one."""
        written = self._matched(_NUMBER, "a number")
        return int(written) if _INTEGER.fullmatch(written) else float(written)

    def name(self) -> str:
        """The name of an export, plain or quoted."""
        if self.peek() in ("'", '"'):
            start = self.at
            name = self.quoted()
            if not name:
                raise PatternError("the name of an export is empty", start)
            return name
        return self._matched(_NAME, "the name of an export")

    def quoted(self) -> str:
        """The text between two quotes, escapes undone."""
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
        """The character here, or the one that an escape stands for."""
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
                raise PatternError("half of a surrogate pair is no character", self.at - len(digits))
            return letter
        return _ESCAPES.get(letter, letter)

    def char_set(self) -> Ranges:
        """The characters of ``[a-z]``, ``[!a-z]``, ``[^a-z]``, ``[:alpha:]`` or ``[[:alpha:]_]``."""
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
                raise PatternError("this set of characters is not closed", start)
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
                raise PatternError(f"the range {low}-{high} is the wrong way round", place)
            members.append((ord(low), ord(high)))
        if not members:
            raise PatternError("this set of characters is empty", start)
        ranges = merged(members)
        return negated(ranges) if inverted else ranges

    def _posix_class(self) -> Ranges:
        """Of ``:alpha:``."""
        self.at += 1
        start = self.at
        name = self.word("the name of a class of characters")
        self.at += 1
        if name.upper() not in CLASSES:
            raise PatternError(f"unknown class [:{name}:]; known are {', '.join(CLASSES).lower()}", start)
        return CLASSES[name.upper()]
