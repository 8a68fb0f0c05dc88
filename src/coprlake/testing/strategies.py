"""Hypothesis strategies for log lines, searches, fingerprints and expressions.

All draw from small alphabets on purpose, so that tokens repeat, tables collide and searches match. Each comment says
why a case must be among the samples.
"""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from coprlake.kernel import U32Array
from coprlake.sketch.algebra import And, Expression, Or, Token
from coprlake.testing import naive

_WORDS = st.one_of(
    # One to three symbols are deduplicated by a bit, more by a hash set: lengths on both sides of 3.
    st.text("abAB01", min_size=1, max_size=5).map(str.encode),
    # The first and the last symbol of the class, where a range test can be off by one.
    st.text("09azAZ", min_size=1, max_size=4).map(str.encode),
)
# Rules 4 and 5 depend on what is between two words: single separators, so that links are frequent.
_SEPARATORS = st.sampled_from([b".", b".", b".", b":", b"-", b"_", b"/", b"@", b"\\"])
_MARKS = st.one_of(
    # Separators in a row link nothing and are a run of marks; other marks never link.
    st.text("${.-", min_size=1, max_size=5).map(str.encode),
    # The edges of the four ASCII ranges of marks; the first and the last of all also in grams.
    st.sampled_from([b"!", b"/", b":", b"@", b"[", b"`", b"{", b"~"]),
    st.text("!~", min_size=3, max_size=6).map(str.encode),
)
# Tab, line end and NUL are blanks like the space. DEL is one too, but above 0x20: the scanner's search for the end of
# a chunk skips it. 0x1f and 0x20 are the last bytes below the edge.
_BLANKS = st.sampled_from([b" ", b" ", b"  ", b"\t", b"\n", b"\0", b"\x1f", b"\x7f"])
# Two, three and four bytes per character, and characters that share a lead byte (ä ö Ä: no case folding there).
_FOREIGN = st.text("äöÄéŁ漢字😀", min_size=1, max_size=4).map(str.encode)
# Logs are bytes: a lead without continuation, continuations without lead, too many of them, bytes that never occur in
# UTF-8, and truncated characters. All code must split a run of them into the same characters.
_INVALID = st.sampled_from(
    [b"\x80", b"\xbf\xbf", b"\xc3", b"\xc3\x80\x80", b"\xe6\xbc", b"\xf0\x9f\x98", b"\xff", b"\xf0", b"\xe6\xc3\xa4"]
)
# Longer than the eight bytes that are compared and searched at once, up to just over two of these words.
_LONG_RUNS = st.builds(
    lambda unit, count: unit * count, st.sampled_from([b"a", b"ab", b"-", "ä".encode(), b"\x80"]), st.integers(6, 17)
)


def lines(max_pieces: int = 8) -> st.SearchStrategy[bytes]:
    """Log lines of all byte classes in any order, including invalid UTF-8 and empty lines."""
    piece = st.one_of(_WORDS, _WORDS, _SEPARATORS, _SEPARATORS, _MARKS, _BLANKS, _FOREIGN, _INVALID, _LONG_RUNS)
    return st.lists(piece, max_size=max_pieces).map(b"".join)


def text_lines(max_pieces: int = 8) -> st.SearchStrategy[str]:
    """Log lines that are valid text: what Arrow's string types can hold."""
    piece = st.one_of(_WORDS, _WORDS, _SEPARATORS, _SEPARATORS, _MARKS, _BLANKS, _FOREIGN)
    return st.lists(piece, max_size=max_pieces).map(lambda pieces: b"".join(pieces).decode())


@st.composite
def search_texts(draw: st.DrawFn, line: bytes) -> str | bytes:
    """Something to search for in `line`: mostly a piece of it."""
    kind = draw(st.sampled_from(["bytes", "characters", "runs", "other case", "unrelated"]))
    if kind == "unrelated":  # must work too; short ones match by chance
        return draw(st.one_of(lines(max_pieces=2), text_lines(max_pieces=2)))
    if kind == "runs":  # cuts between runs, where whole terms start and end
        runs = [run for _, run in naive.runs_of(line)]
        start, end = _cut(draw, len(runs))
        return b"".join(runs[start:end])
    if kind == "characters" and (text := _decoded(line)) is not None:  # what a user can type
        start, end = _cut(draw, len(text))
        return text[start:end]
    start, end = _cut(draw, len(line))  # any bytes, also from the middle of a character
    piece = line[start:end]
    return piece.swapcase() if kind == "other case" else piece


def _cut(draw: st.DrawFn, size: int) -> tuple[int, int]:
    start = draw(st.integers(0, size))
    return start, draw(st.integers(start, size))


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


@st.composite
def searches(draw: st.DrawFn) -> tuple[bytes, str | bytes]:
    """A line and text to search for in it."""
    line = draw(lines())
    return line, draw(search_texts(line))


FINGERPRINTS = (
    *range(1, 13),  # neighbours in every table; 0 is not a fingerprint
    *(number << 20 for number in range(1, 9)),  # equal in all lower bits: one long chain in any table
    *(number << 10 | 1 for number in range(1, 5)),  # equal until a table has grown
    0x80000000,  # negative as a signed number
    0xFFFFFFFF,
)
"""Few enough that the same token recurs in many batches."""


def fingerprints() -> st.SearchStrategy[int]:
    """One of a few fingerprints."""
    return st.sampled_from(FINGERPRINTS)


def fingerprint_arrays(max_size: int = 12) -> st.SearchStrategy[U32Array]:
    """Distinct fingerprints in any order, as the scanner returns them for a batch; an empty batch has none."""
    return st.lists(fingerprints(), max_size=max_size, unique=True).map(lambda drawn: np.array(drawn, np.uint32))


def expressions(max_leaves: int = 8) -> st.SearchStrategy[Expression]:
    """Expressions over few tokens, including empty And and Or, duplicate tokens, and And and Or of one part."""
    leaves: st.SearchStrategy[Expression] = fingerprints().map(Token)

    def combined(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Any]:
        several = st.lists(parts, max_size=4).map(tuple)
        return st.one_of(several.map(And), several.map(Or))

    return st.recursive(leaves, combined, max_leaves=max_leaves)
