"""Slow, obvious twins of the kernels in plain Python: the reference for the tests.

Nothing here knows how the index works. A line is bytes; a search ignores the case of ASCII letters only, as
``bytes.lower`` does.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from coprlake.sketch.algebra import And, Expression, Token
from coprlake.tokens.rules import SYMBOLS

_RUN = re.compile(
    rb"(?P<word>[0-9a-z]+)"
    rb"|(?P<mark>[!-/:-@\[-`{-~]+)"  # the rest of ASCII above the space
    rb"|(?P<blank>[\x00-\x20\x7f]+)"  # the space and the control bytes
    rb"|(?P<foreign>[\x80-\xff]+)"
)
_CHARACTER = re.compile(
    rb"[\x80-\xbf]"  # a continuation byte without a lead
    rb"|[\xc0-\xdf][\x80-\xbf]{0,1}"  # a lead byte and up to as many continuation bytes as it announces
    rb"|[\xe0-\xef][\x80-\xbf]{0,2}"
    rb"|[\xf0-\xff][\x80-\xbf]{0,3}"
)
_SEPARATORS = frozenset(b".:-_/@\\")


def runs_of(line: bytes) -> list[tuple[str, bytes]]:
    """The line, lower-cased and split wherever the class of its bytes changes: pairs of class and bytes."""
    return [(str(match.lastgroup), match.group()) for match in _RUN.finditer(line.lower())]


def class_of(byte: int) -> str:
    """The class of one byte: word, mark, blank or foreign."""
    return runs_of(bytes([byte]))[0][0]


def characters_of(run: bytes) -> list[bytes]:
    """The characters of a run of non-ASCII bytes; invalid UTF-8 is split by what its lead bytes announce."""
    return _CHARACTER.findall(run)


def tokens_of(line: bytes, grams: bool = True) -> set[bytes]:
    """The tokens of a line by the rules of paper 5.1.1: all eight, or only the first five without `grams`."""
    runs = runs_of(line)
    tokens = {run for kind, run in runs if kind != "blank"}  # rules 1, 2, 3
    for i in range(len(runs) - 2):  # rule 4: word, separator, word
        if _is_link(runs[i : i + 3]):
            tokens.add(_joined(runs[i : i + 3]))
    for i in range(len(runs) - 4):  # rule 5: word, dot, word, dot, word
        if _is_link(runs[i : i + 3], b".") and _is_link(runs[i + 2 : i + 5], b"."):
            tokens.add(_joined(runs[i : i + 5]))
    if grams:
        for kind, run in runs:
            tokens |= _grams_of(kind, run)
    return tokens


def rule_set_2_of(line: bytes, seed: int = 0) -> tuple[set[bytes], set[bytes]]:
    """The tokens of a line by rule set 2: those of rules 1-8 that it keeps, and the winnowed grams of rule 9."""
    runs = runs_of(line)
    tokens = {run for kind, run in runs if kind == "word" and (len(run) < 16 or not _has_digit(run))}
    tokens |= {run for kind, run in runs if kind in ("mark", "foreign")}
    for i in range(len(runs) - 2):
        if _is_link(runs[i : i + 3]) and _is_kept_pair(runs, i):
            tokens.add(_joined(runs[i : i + 3]))
    for i in range(len(runs) - 4):
        triple = _joined(runs[i : i + 5])
        is_address = triple.replace(b".", b"").isdigit() and len(triple) < 11  # its pairs are indexed
        if _is_link(runs[i : i + 3], b".") and _is_link(runs[i + 2 : i + 5], b".") and not is_address:
            tokens.add(triple)
    for kind, run in runs:
        tokens |= _grams_of(kind, run)
    return tokens, {gram for run in re.split(rb"[\x00-\x20]+", line.lower()) for gram in winnowed_of(run, seed)}


def _is_kept_pair(runs: list[tuple[str, bytes]], i: int) -> bool:
    """Whether a pair is kept: a short one with a word without digits, or two numbers in a longer chain of dots."""
    left, separator, right = (run for _, run in runs[i : i + 3])
    if not (_has_digit(left) and _has_digit(right)):
        return len(left) + len(right) + 1 < 11
    before = runs[i - 1][1] if i else b""
    after = runs[i + 3][1] if i + 3 < len(runs) else b""
    return left.isdigit() and right.isdigit() and separator == b"." and (before[-1:] == b"." or after[:1] == b".")


def winnowed_of(run: bytes, seed: int = 0) -> set[bytes]:
    """Rule 9 for lower-cased bytes without blanks: the first gram of each window in the order of `_gram_order`."""
    return {min(_grams_in(window), key=lambda gram: _gram_order(gram, seed)) for window in _windows(run, 11)}


def _grams_in(window: bytes) -> Iterator[bytes]:
    """The grams in a window: six bytes, or seven if the six are digits and dots."""
    for i in range(6):
        size = 7 if re.fullmatch(rb"[0-9.]{6}", window[i : i + 6]) else 6
        if i + size <= 11:
            yield window[i : i + size]


def _gram_order(gram: bytes, seed: int) -> tuple[int, int, int]:
    """The sort key: least pair in the middle, at an end, or elsewhere; then 30 hash bits; then the fingerprint."""
    symbols = [int(SYMBOLS[byte]) for byte in gram[:6]]
    pairs = [(left | right << 8) * 0x9E3779B1 % 2**32 for left, right in pairwise(symbols)]
    least = min(pairs)
    place = 0 if pairs[2] == least else 1 if least in (pairs[0], pairs[4]) else 2
    mixed = _mixed_gram(gram, seed)
    return place, mixed % 2**30, mixed >> 32


def gram_fingerprint(gram: bytes, seed: int = 0) -> int:
    """The fingerprint of a winnowed gram, which differs from that of the same text as a word."""
    return _mixed_gram(gram, seed) >> 32 or 1


def _mixed_gram(gram: bytes, seed: int) -> int:
    mixed = int.from_bytes(bytes(SYMBOLS[byte] for byte in gram), "little") ^ seed ^ 0xB5026F5AA96619E9
    mixed = (mixed ^ mixed >> 32) * 0xFF51AFD7ED558CCD % 2**64
    return (mixed ^ mixed >> 32) * 0xC4CEB9FE1A85EC53 % 2**64


def _has_digit(run: bytes) -> bool:
    return any(byte in b"0123456789" for byte in run)


def _is_link(runs: list[tuple[str, bytes]], separators: Iterable[int] = _SEPARATORS) -> bool:
    """Whether three runs are two words with a single separator between them."""
    (left, _), (_, middle), (right, _) = runs
    return left == right == "word" and len(middle) == 1 and middle[0] in separators


def _joined(runs: list[tuple[str, bytes]]) -> bytes:
    return b"".join(run for _, run in runs)


def _grams_of(kind: str, run: bytes) -> set[bytes]:
    if kind == "word":  # rule 6
        return set(_windows(run, 3))
    if kind == "mark":  # rule 7
        return {*_windows(run, 1), *_windows(run, 2), *_windows(run, 3)}
    if kind == "foreign":  # rule 8
        return {left + right for left, right in pairwise(characters_of(run))}
    return set()


def _windows(run: bytes, size: int) -> Iterator[bytes]:
    return (run[i : i + size] for i in range(len(run) - size + 1))


def _as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def contains(line: bytes, text: str | bytes) -> bool:
    """Whether the text is anywhere in the line."""
    return _as_bytes(text).lower() in line.lower()


def starts_with(line: bytes, text: str | bytes) -> bool:
    """Whether the line starts with the text."""
    return line.lower().startswith(_as_bytes(text).lower())


def ends_with(line: bytes, text: str | bytes) -> bool:
    """Whether the line ends with the text."""
    return line.lower().endswith(_as_bytes(text).lower())


def matches_term(line: bytes, text: str | bytes) -> bool:
    """Whether the text is in the line as a whole term.

    That is: somewhere, the character before it is not in the class of the text's first character, and the one after it
    not in the class of its last.
    """
    line, term = line.lower(), _as_bytes(text).lower()
    if not term:
        return True
    for start in range(len(line) - len(term) + 1):
        end = start + len(term)
        if (
            line[start:end] == term
            and (start == 0 or class_of(line[start - 1]) != class_of(term[0]))
            and (end == len(line) or class_of(line[end]) != class_of(term[-1]))
        ):
            return True
    return False


class NaiveSketch:
    """The exact postings of each fingerprint, which every sketch approximates."""

    def __init__(self) -> None:
        self._postings: dict[int, set[int]] = {}
        self.posting_count = 0
        """The largest posting plus 1; 0 if nothing was inserted."""

    @property
    def token_count(self) -> int:
        """The number of distinct fingerprints."""
        return len(self._postings)

    @property
    def fingerprints(self) -> set[int]:
        """All fingerprints that were inserted."""
        return set(self._postings)

    def insert(self, fingerprints: Iterable[int], posting: int) -> None:
        """Record that the tokens occur in batch `posting`."""
        for fingerprint in fingerprints:
            self._postings.setdefault(int(fingerprint), set()).add(posting)
        self.posting_count = max(self.posting_count, posting + 1)

    def postings(self, fingerprint: int) -> set[int]:
        """The batches with this token."""
        return set(self._postings.get(int(fingerprint), ()))

    def candidates(self, expression: Expression) -> set[int]:
        """The batches that an expression leaves; the empty `And` leaves all from 0 to the largest posting."""
        if isinstance(expression, Token):
            return self.postings(expression.fingerprint)
        parts = [self.candidates(part) for part in expression.parts]
        if isinstance(expression, And):
            return set(range(self.posting_count)).intersection(*parts)
        return set().union(*parts)
