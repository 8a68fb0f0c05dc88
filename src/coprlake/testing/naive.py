"""The slow, obvious twins of what the kernels do: plain Python, and what the tests call right.

Nothing here knows how the index works inside. A line is bytes; a search ignores the case of ASCII letters, and only of
those (``bytes.lower`` does just that).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from coprlake.sketch.algebra import And, Expression, Token

_RUN = re.compile(
    rb"(?P<word>[0-9a-z]+)"
    rb"|(?P<mark>[!-/:-@\[-`{-~]+)"  # what remains of ASCII above the space
    rb"|(?P<blank>[\x00-\x20\x7f]+)"  # the space and the control bytes
    rb"|(?P<foreign>[\x80-\xff]+)"
)
_CHARACTER = re.compile(
    rb"[\x80-\xbf]"  # a continuation byte without a lead
    rb"|[\xc0-\xdf][\x80-\xbf]{0,1}"  # a lead, and as many continuation bytes as it announces or as there are
    rb"|[\xe0-\xef][\x80-\xbf]{0,2}"
    rb"|[\xf0-\xff][\x80-\xbf]{0,3}"
)
_SEPARATORS = frozenset(b".:-_/@\\")


def runs_of(line: bytes) -> list[tuple[str, bytes]]:
    """The line, lower-cased and cut wherever the class of its bytes changes: pairs of class and bytes."""
    return [(str(match.lastgroup), match.group()) for match in _RUN.finditer(line.lower())]


def class_of(byte: int) -> str:
    """The class of one byte: word, mark, blank or foreign."""
    return runs_of(bytes([byte]))[0][0]


def characters_of(run: bytes) -> list[bytes]:
    """The characters of a run of non-ASCII bytes; bytes that are not UTF-8 are cut by what their leads announce."""
    return _CHARACTER.findall(run)


def tokens_of(line: bytes, grams: bool = True) -> set[bytes]:
    """The tokens of a line by the rules of paper 5.1.1: all eight, or the first five without `grams`."""
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
    """Whether the text stands anywhere in the line."""
    return _as_bytes(text).lower() in line.lower()


def starts_with(line: bytes, text: str | bytes) -> bool:
    """Whether the line begins with the text."""
    return line.lower().startswith(_as_bytes(text).lower())


def ends_with(line: bytes, text: str | bytes) -> bool:
    """Whether the line ends with the text."""
    return line.lower().endswith(_as_bytes(text).lower())


def matches_term(line: bytes, text: str | bytes) -> bool:
    """Whether the text stands in the line as a whole term.

    That is: somewhere the character before it is not of the class of the text's first character, and the one after it
    not of the class of its last.
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
    """What every sketch approximates: exactly the postings of each fingerprint."""

    def __init__(self) -> None:
        self._postings: dict[int, set[int]] = {}
        self.posting_count = 0
        """One more than the largest posting; 0 as long as nothing was inserted."""

    @property
    def token_count(self) -> int:
        """Distinct fingerprints."""
        return len(self._postings)

    @property
    def fingerprints(self) -> set[int]:
        """All fingerprints that were inserted."""
        return set(self._postings)

    def insert(self, fingerprints: Iterable[int], posting: int) -> None:
        """Note that the tokens occur in batch `posting`."""
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
