"""The law of patterns: the machine finds what the obvious interpreter finds, for any pattern and any text."""

from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from coprlake.dpl.matching_texts import matches, parse, parse_all, replace, split
from coprlake.dpl.pattern import compile_pattern
from coprlake.dpl.syntax.pattern_syntax import read_pattern
from coprlake.errors import PatternError, UsageError
from coprlake.testing.naive_dpl import naive_parse, naive_parse_all

pytestmark = pytest.mark.kernels

COUNTED = ["'a'", "'b'", "' '", "','", "'é'", "'ab'", "LD", "LD", "LD", "DATA", "[ab]", "[^a]", "[!b ,]", "[éa-b]"]
COUNTED += ["WORD", "SPACE", "NSPACE", "DIGIT", "PUNCT"]
SINGLE = ["INT", "LONG", "DOUBLE", "CDOUBLE", "HEXINT", "HEXLONG", "BOOLEAN", "INT(min=2)", "DOUBLE(max=3)"]
SINGLE += ["DQS", "SQS", "CSVDQS", "CSVSQS", "STRING", "JSON", "JSON_ARRAY", "JSON_VALUE", "IPADDR", "IPV4", "IPV6"]
SINGLE += ["ENUM{'a'=1,'ab'=2,'B'=3}(cis=true)", "ENUM{''=0,'b'=2}", "UUIDSTRING", "CREDITCARD", "ISO8601", "HTTPDATE"]
SINGLE += ["TIMESTAMP('yyyy-M-d H:m')", "TIMESTAMP('d MMM yyyy hh:mm a')"]
PLACES = ["EOL", "EOS", "BOS", "MOS"]
PIECES = [
    "a",
    "b",
    "ab",
    "B",
    " ",
    ",",
    "\n",
    "1",
    "23",
    "-4",
    "5.5",
    "1,5",
    "é",
    "€",
    "😀",
    '"',
    "'",
    "\\",
    "=",
    ".",
    ":",
]
PIECES += [
    '"a\\"b\\u00e9"',
    "'x'",
    '""',
    "''",
    '{"a":1,"b":"x\\u00e9"}',
    '{"b": null, "c":[{}]}',
    "[1, 2]",
    "{}",
    "{",
    "[",
]
PIECES += [
    "true",
    "nul",
    "null",
    "1.2.3.4",
    "::1",
    "fe80::a:1",
    "a=b",
    "2024-1-2 3:4",
    "2024-01-02T03:04:05.5Z",
    "0x",
    "f",
]
PIECES += [
    "14/Mar/2016:23:34:25 +0200",
    " 5 Jan 2020 12:30 PM",
    "550e8400-e29b-41d4-a716-446655440000",
    "4111 1111 1111 1111",
]


class PatternMaker:
    """Writes patterns; each export has a name of its own."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.name_count = 0

    def name(self) -> str:
        self.name_count += 1
        return f":x{self.name_count}"

    def export(self) -> str:
        return self.name() if self.random.random() < 0.6 else ""

    def alternatives(self, depth: int) -> str:
        return " | ".join(self.sequence(depth) for _ in range(self.random.choice([1, 1, 2, 3])))

    def sequence(self, depth: int) -> str:
        return " ".join(self.node(depth) for _ in range(self.random.randint(1, 4)))

    def node(self, depth: int) -> str:
        pick = self.random.choice
        made = self.random.random()
        if depth > 0 and made < 0.3:
            composites: list[Callable[[int], str]] = [
                self.group,
                self.group,
                self.array,
                self.record,
                self.pairs,
                self.look,
            ]
            return pick(composites)(depth - 1)
        if made < 0.35:
            return pick(PLACES)
        if made < 0.4:
            return "JSON{LONG:a,STRING:b,JSON_VALUE:c,DOUBLE:a2}" + pick(["", "?"]) + self.name()
        if made < 0.7:
            return pick(COUNTED) + pick(["", "", "", "?", "*", "+", "{2}", "{0,2}", "{1,3}", "{1,3}?"]) + self.export()
        return pick(SINGLE) + pick(["", "", "?", "*"]) + self.export()

    def group(self, depth: int) -> str:
        quantifier = self.random.choice(["", "", "", "?", "*", "+", "{2}", "{0,2}", "{1,2}", "{0,1}"])
        return f"({self.alternatives(depth)}){quantifier}{self.export()}"

    def array(self, depth: int) -> str:
        quantifier = self.random.choice(["{1,3}", "{0,2}", "{2}", "*", "+", "+?"])
        return f"ARRAY{{{self.sequence(depth)} 'a'?{self.name()}}}{quantifier}{self.name()}"

    def record(self, depth: int) -> str:
        return f"STRUCTURE{{{self.sequence(depth)} 'a'?{self.name()}}}{self.random.choice(['', '?', '*'])}{self.name()}"

    def pairs(self, _depth: int) -> str:
        between, behind = self.random.choice("=, "), self.random.choice(["','", "' '", "(','|EOS)"])
        return f"KVP{{WORD:key '{between}' LD:value {behind}}}{self.random.choice(['', '?', '{1,2}'])}{self.name()}"

    def look(self, _depth: int) -> str:
        seen = [*COUNTED, *SINGLE, *PLACES, "('a' LD 'b')", "('a' | INT)"]
        return self.random.choice([">>", "!>>", "<<", "!<<"]) + self.random.choice(seen)


patterns = st.randoms(use_true_random=False).map(lambda random: PatternMaker(random).alternatives(3))
any_text = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=10).map("".join),
    st.text(max_size=12).map(lambda text: text.encode("utf-8", "replace").decode()),
)
columns = st.lists(any_text, min_size=1, max_size=8)


@given(patterns, columns)
def test_parse_and_matches(text: str, texts: list[str]) -> None:
    note(text)
    pattern, tree = compile_pattern(text), read_pattern(text)
    parsed = parse(pattern, pa.array(texts))
    parsed.validate(full=True)
    expected = [naive_parse(tree, each) for each in texts]
    nothing = {export.name: None for export in pattern.exports}
    assert parsed.to_pylist() == [nothing if values is None else values for values in expected]
    assert matches(pattern, pa.array(texts)).to_pylist() == [values is not None for values in expected]


@given(patterns, columns)
def test_all_matches(text: str, texts: list[str]) -> None:
    note(text)
    pattern, tree = compile_pattern(text), read_pattern(text)
    column = pa.array(texts)
    found = [list(naive_parse_all(tree, each)) for each in texts]
    parsed = parse_all(pattern, column)
    parsed.validate(full=True)
    assert parsed.to_pylist() == [[values for _, _, values in row] for row in found]
    between = []
    for each, row in zip(texts, found, strict=True):
        edges = [0, *(edge for start, stop, _ in row for edge in (start, stop)), len(each)]
        between.append([each[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True)])
    assert replace(pattern, column, "<é>").to_pylist() == ["<é>".join(pieces) for pieces in between]
    try:
        pieces = split(pattern, column).to_pylist()
    except UsageError:
        assert pattern.program.may_be_empty
    else:
        assert pieces == between


@given(st.text(st.sampled_from("LD INT'a\"([{}])|?*+:x1,=$;<>!&/\\é"), max_size=30))
def test_any_text_is_a_pattern_or_an_error(text: str) -> None:
    try:
        pattern = compile_pattern(text)
    except PatternError:
        return
    parse(pattern, pa.array(["a 1 x", ""])).validate(full=True)
