"""Regular expressions as trees, rewritten so that only ASCII letters fold, and so that searches go by lines.

RE2 decides what matches; this parser reads patterns that RE2 has accepted. It has three uses. It finds the literals of
a pattern (`literals.py`). It folds case as everything else here does: RE2's own ``(?i)`` also lets ``k`` match the
Kelvin sign and ``s`` the long s, which the index would miss, so a letter becomes a class of two, and no ``(?i)``
remains. And it keeps a match within one line (`line_classes.py`). A pattern that it does not understand runs almost as
it is and prunes nothing.

A search looks at the lines of a record, as grep does: ``^`` and ``$`` match at each line, and no class matches a line
feed. A pattern that names a line feed, or uses ``(?s)``, may match across lines. The function `matchesRegex` of the
query language looks at a text as a whole instead.
"""

import contextlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute

from coprlake.errors import UsageError
from coprlake.predicate.patterns.line_classes import NotReadError, names_line_feed, within_line
from coprlake.predicate.patterns.regex_tree import (
    ANY_CLASS,
    FOREIGN,
    Anchor,
    AnchorKind,
    Char,
    Chars,
    Choice,
    Group,
    Node,
    Repeat,
    Sequence,
    class_bit,
    emitted,
)

_MOST_NESTED: Final = 40
_MOST_CHARACTERS: Final = 2000
_FEW_MEMBERS: Final = 4
_ASCII: Final = [chr(code) for code in range(128)]
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PERL_CLASSES: Final = frozenset("dDsSwW")

_REPETITION = re.compile(r"(?:([*+?])|\{([0-9]+)(?:(,)([0-9]*))?\})\??")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED = re.compile(r"\(\?P?<[^>]*>")
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?[a-z]+:\]|\\[^Q]|[^\]\\])*\]", re.DOTALL)
_CODE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|([0-7]{1,3}))")
_UNICODE_CLASS = re.compile(r"\\[pP](?:\{[^}]*\}|[^{])")
_FOLDS_BEFORE_NEGATION = re.compile(r"\\P|\\p\{\^|\[:\^")
_MAY_BE_FOREIGN = re.compile(r"[^\x00-\x7f]|\\[^dwsafnrtv\W_]|\[:\^")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern ready for RE2, with case as written, and its tree; None if it was not understood.

    `goes_by_line` says that it was parsed for a search, and means something else there than on the text as a whole.
    """

    source: str
    tree: Node | None
    goes_by_line: bool = False


class _NotUnderstoodError(Exception):
    """The parser does not understand the pattern, which may still be valid."""


def check_pattern(pattern: str) -> None:
    """Raise `UsageError` with RE2's own message if RE2 rejects the pattern."""
    try:
        pa.compute.match_substring_regex(pa.array([""]), pattern)
    except UnicodeEncodeError as error:
        raise UsageError(f"bad regular expression {pattern!r}: not valid UTF-8") from error
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        culprit = reason.rpartition(": ")[2]
        place = f" (at character {pattern.index(culprit) + 1})" if pattern.count(culprit) == 1 else ""
        raise UsageError(f"bad regular expression {pattern!r}: {reason}{place}") from error


@lru_cache(maxsize=256)
def parse_pattern(pattern: str, *, case_sensitive: bool, by_line: bool = True) -> Pattern:
    """The pattern as a tree, and in the form that RE2 runs.

    Args:
        pattern: the pattern, as a person wrote it.
        case_sensitive: whether the case of ASCII letters matters.
        by_line: whether a match is looked for in each line, as searches do, or in the text as a whole.

    Raises:
        UsageError: RE2 rejects it.
    """
    check_pattern(pattern)
    try:
        return _parsed(pattern, folds=not case_sensitive, by_line=by_line)
    except (_NotUnderstoodError, NotReadError, UsageError):
        return Pattern(_run_as_it_is(pattern, case_sensitive, by_line), None, by_line)


def for_whole_text(pattern: str, *, case_sensitive: bool) -> str:
    """A pattern that means in a search what this one means on a text as a whole."""
    parsed = parse_pattern(pattern, case_sensitive=case_sensitive)
    return f"(?s)(?-ms){pattern}" if parsed.goes_by_line else pattern


def _parsed(pattern: str, *, folds: bool, by_line: bool) -> Pattern:
    parser = _Parser(pattern, folds=folds, by_line=by_line)
    tree = parser.parse()
    if by_line and parser.may_span_lines:
        parser = _Parser(pattern, folds=folds, by_line=by_line, keeps_line_feeds=True)
        tree = parser.parse()
    source = f"(?m){emitted(tree)}" if by_line else emitted(tree)
    check_pattern(source)  # RE2 limits the size of what it compiles, and classes are larger than letters
    return Pattern(source, tree, by_line and (parser.has_line_anchors or parser.has_changed_classes))


def _run_as_it_is(pattern: str, case_sensitive: bool, by_line: bool) -> str:
    """What RE2 runs if the pattern cannot be folded: at least its classes stay within a line, if those can be read."""
    flags = ("" if case_sensitive else "i") + ("m" if by_line else "")
    if by_line:
        with contextlib.suppress(_NotUnderstoodError, NotReadError, UsageError):
            pattern = _parsed(pattern, folds=False, by_line=True).source.removeprefix("(?m)")
    return f"(?{flags}){pattern}" if flags else pattern


@lru_cache(maxsize=1024)
def _ascii_members(source: str) -> tuple[str, ...]:
    """The ASCII characters of a class, as RE2 defines it."""
    found = pa.compute.match_substring_regex(pa.array(_ASCII), f"^(?:{source})$").to_pylist()
    return tuple(character for character, is_member in zip(_ASCII, found, strict=True) if is_member)


class _Parser:
    """Recursive descent over a pattern that RE2 accepts."""

    def __init__(self, pattern: str, *, folds: bool, by_line: bool, keeps_line_feeds: bool = False) -> None:
        if len(pattern) > _MOST_CHARACTERS:
            raise _NotUnderstoodError
        self._pattern = pattern
        self._at = 0
        self._nested = 0
        self._flags = {"i": folds, "m": by_line}
        self._keeps_line_feeds = keeps_line_feeds or not by_line
        self.may_span_lines = False
        self.has_line_anchors = False
        self.has_changed_classes = False

    def parse(self) -> Node:
        tree = self._choice()
        if self._at != len(self._pattern):
            raise _NotUnderstoodError
        return tree

    def _rest(self, size: int = 1) -> str:
        return self._pattern[self._at : self._at + size]

    def _taken(self, expression: re.Pattern[str]) -> re.Match[str]:
        """Skip the expression if it matches here; its match."""
        match = expression.match(self._pattern, self._at)
        if match is None:
            raise _NotUnderstoodError
        self._at = match.end()
        return match

    def _choice(self) -> Node:
        branches = [self._sequence()]
        while self._rest() == "|":
            self._at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._rest() not in ("", "|", ")"):
            start = self._at
            parts.extend(self._atoms())
            match = _REPETITION.match(self._pattern, self._at)
            if match is not None:
                if _FLAGS.fullmatch(self._pattern, start, self._at):  # RE2 repeats what stands before the flags
                    raise _NotUnderstoodError
                self._at = match.end()
                parts[-1] = _repeated(parts[-1], match)
        return Sequence(tuple(parts))

    def _atoms(self) -> list[Node]:
        """The next atom; several characters only for quoted text."""
        character = self._rest()
        if character == "(":
            return [self._group()]
        if character == "[":
            return [self._class(self._taken(_CLASS).group())]
        if self._rest(2) == "\\Q":
            return self._quoted()
        if character == "\\":
            return [self._escape()]
        self._at += 1
        if character == ".":
            return [Chars(ANY_CLASS, (), ".")]
        if character in "^$":
            place: AnchorKind = "start" if character == "^" else "end"
            line_place: AnchorKind = "line start" if character == "^" else "line end"
            self.has_line_anchors = True
            return [Anchor(line_place if self._flags["m"] else place, character)]
        return [self._literal(character, character)]

    def _group(self) -> Node:
        opening = "("
        flags = self._flags.copy()
        if self._rest(2) != "(?":
            self._at += 1
        elif _NAMED.match(self._pattern, self._at):
            opening = self._taken(_NAMED).group()
        else:
            switched_on, switched_off, end = self._taken(_FLAGS).groups("")
            self._flags = {**flags, **dict.fromkeys(switched_on, True), **dict.fromkeys(switched_off, False)}
            self.may_span_lines |= "s" in switched_on
            on, off = switched_on.replace("i", ""), switched_off.replace("i", "")
            kept = f"{on}-{off}" if off else on
            if end == ")":
                return Anchor("other", f"(?{kept})" if kept else "")
            opening = f"(?{kept}:"
        self._nested += 1
        if self._nested > _MOST_NESTED:
            raise _NotUnderstoodError
        part = self._choice()
        if self._rest() != ")":
            raise _NotUnderstoodError
        self._at += 1
        self._nested -= 1
        self._flags = flags
        return Group(part, opening)

    def _literal(self, character: str, source: str) -> Char:
        self.may_span_lines |= character == "\n"
        if not self._flags["i"] or not (character.isascii() and character.isalpha()):
            return Char(character, source)
        return Char(character.lower(), f"[{character.lower()}{character.upper()}]")

    def _quoted(self) -> list[Node]:
        end = self._pattern.find("\\E", self._at)
        text = self._pattern[self._at + 2 : end if end >= 0 else None]
        if not text:
            raise _NotUnderstoodError
        self._at = end + 2 if end >= 0 else len(self._pattern)
        return [self._literal(character, _escaped(character)) for character in text]

    def _escape(self) -> Node:
        kind = self._pattern[self._at + 1]
        if kind in "pP":
            return self._class(self._taken(_UNICODE_CLASS).group())
        if kind in "x01234567":
            match = self._taken(_CODE)
            code = int(match[3], 8) if match[3] else int(match[1] or match[2], 16)
            return self._literal(chr(code), match.group())
        self._at += 2
        source = f"\\{kind}"
        if kind in _PERL_CLASSES:
            return self._class(source)
        if kind == "C":
            self.may_span_lines = True
            return Chars(ANY_CLASS, (), source)
        anchors: dict[str, AnchorKind] = {"A": "start", "z": "end", "b": "border", "B": "other"}
        if kind in anchors:
            return Anchor(anchors[kind], source)
        if kind in _CONTROLS:
            return self._literal(_CONTROLS[kind], source)
        if not kind.isascii() or kind.isalnum():
            raise _NotUnderstoodError
        return Char(kind, source)

    def _class(self, source: str) -> Chars:
        """The class in brackets, or of an escape, closed under the case of ASCII letters if case does not matter."""
        self.may_span_lines |= names_line_feed(source)
        if self._flags["i"]:
            source = _folded_class(source)
        members = _ascii_members(source)
        foreign = source.startswith("[^") or _MAY_BE_FOREIGN.search(source) is not None
        are_few = len({member.lower() for member in members}) <= _FEW_MEMBERS and not foreign
        if "\n" in members and not self._keeps_line_feeds:
            self.has_changed_classes = True
            source = within_line(source)
            members = _ascii_members(source)
        classes = 0
        for member in members:
            classes |= class_bit(member)
        few = tuple(dict.fromkeys(member.lower() for member in members))
        return Chars(classes | FOREIGN * foreign, few if are_few else (), source)


def _escaped(character: str) -> str:
    return (
        f"\\{character}" if character.isascii() and not character.isalnum() and character.isprintable() else character
    )


def _repeated(part: Node, match: re.Match[str]) -> Repeat:
    sign, least, comma, most = match.groups()
    if sign:
        return Repeat(part, 1 if sign == "+" else 0, 1 if sign == "?" else None, match.group())
    if not comma:
        return Repeat(part, int(least), int(least), match.group())
    return Repeat(part, int(least), int(most) if most else None, match.group())


def _folded_class(source: str) -> str:
    """The class closed under the case of ASCII letters; a negated class is folded before it is negated."""
    if _FOLDS_BEFORE_NEGATION.search(source):
        raise _NotUnderstoodError
    if not source.startswith("["):
        source = f"[{source}]"
    negation = "^" if source.startswith("[^") else ""
    inner = source[1 + len(negation) : -1]
    members = _ascii_members(f"[{_guarded(inner)}]")
    others = {member.swapcase() for member in members if member.isalpha()}.difference(members)
    return f"[{negation}{''.join(sorted(others))}{_guarded(inner)}]" if others else source


def _guarded(inner: str) -> str:
    """Escaped so that text put before it does not change its meaning."""
    return f"\\{inner}" if inner[0] in "-]^" else inner
