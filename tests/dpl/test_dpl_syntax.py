"""What is a pattern, what does it export, and what does an error say?"""

import pickle
from itertools import pairwise

import pytest

from coprlake.dpl.compiling.exports import BOOLEAN, DOUBLE, IP, JSON, LONG, MAP, STRING, TIMESTAMP, ExportType
from coprlake.dpl.compiling.program import compile_tree
from coprlake.dpl.pattern import compile_pattern
from coprlake.dpl.syntax.pattern_syntax import read_pattern
from coprlake.errors import PatternError, UsageError


def test_exports_come_in_order_of_their_first_appearance() -> None:
    pattern = compile_pattern(
        "LD:a INT:b (DOUBLE:c | BOOLEAN:d):e IPADDR:f ISO8601:g JSON:h KVP{LD:key '=' LD:value ' '}:i "
        "ARRAY{INT:x}{3}:j ARRAY{INT:x LD:y ' '}{3}:k STRUCTURE{INT:l}:m JSON{STRING:n}:o"
    )
    record = ExportType("record", fields=(("x", LONG), ("y", STRING)))
    assert [(export.name, export.type) for export in pattern.exports] == [
        ("a", STRING),
        ("b", LONG),
        ("e", STRING),
        ("c", DOUBLE),
        ("d", BOOLEAN),
        ("f", IP),
        ("g", TIMESTAMP),
        ("h", JSON),
        ("i", MAP),
        ("j", ExportType("array", LONG)),
        ("k", ExportType("array", record)),
        ("m", ExportType("record", fields=(("l", LONG),))),
        ("o", ExportType("record", fields=(("n", STRING),))),
    ]
    assert str(record) == "record of x long, y string"


def test_a_pattern_is_known_by_its_text() -> None:
    pattern = compile_pattern("LD:a")
    assert compile_pattern("LD:a") is pattern
    assert pickle.loads(pickle.dumps(pattern)) is pattern
    assert pattern == compile_pattern("LD:a") != compile_pattern("LD:b")
    assert len({pattern, compile_pattern("LD:a")}) == 1
    assert repr(pattern) == "Pattern('LD:a')"


@pytest.mark.parametrize(
    ("text", "problem", "offset"),
    [
        ("", "expected a matcher, found the end", 0),
        ("LD IPADR:x", "unknown matcher IPADR; did you mean IPADDR?", 3),
        ("ipaddr", "did you mean IPADDR?", 0),
        ("QQQQ", "unknown matcher QQQQ", 0),
        ("XML:x", "XML is not supported", 0),
        ("LD:x LD:x", "x is exported twice", 5),
        ("(LD:x|INT:x)", "x is exported as string and as long", 6),
        ("(LD:x):x", "x is exported twice", 0),
        ("'a", "this quote is not closed", 0),
        ("''", "at least one character", 0),
        ("LD [a", "this character set is not closed", 3),
        ("[]", "this character set is empty", 0),
        ("[z-a]", "z-a is reversed", 1),
        ("[:foo:]", "unknown class [:foo:]", 2),
        (r"'\xZZ'", "expected 2 hexadecimal digits", 3),
        (r"'\ud800'", "half of a surrogate pair", 3),
        ("'\ud800'", "half of a surrogate pair", 1),
        ("/* open", "this comment is not closed", 0),
        ("LD{5,2}", "with n at most m", 2),
        ("LD{5000}", "between 1 and 4096", 2),
        ("LD{0}", "between 1 and 4096", 2),
        ("LD{1", "expected '}'", 4),
        ("INT{2}", "only the quantifiers * and +", 3),
        ("LD:x?", "'?' must come before the name", 4),
        ("LD:", "expected the name of an export", 3),
        ("LD:''", "the name of an export is empty", 3),
        ("('a'", "expected a matcher or ')'", 4),
        ("'a')", "expected a matcher", 3),
        ("'a' |", "expected a matcher, found the end", 5),
        ("'a'; 'b'", "expected a matcher", 5),
        ("(" * 40 + "'a'" + ")" * 40, "nested deeper than 32", 32),
        ("$x 'a'", "unknown macro $x", 0),
        ("$x = 'a' 'b'", "expected ';'", 12),
        ("EOL:x", "EOL exports nothing", 4),
        (">>INT:x", "a lookaround exports nothing", 6),
        (">>(INT:x)", "a lookaround exports nothing", 0),
        ("INT(min=5, max=1)", "min is greater than max", 3),
        ("INT(min=1.5)", "whole numbers", 3),
        ("INT(min='a')", "min and max must be numbers", 3),
        ("INT(foo=1)", "unknown option foo; expected charset, locale, max, min", 4),
        ("LD(charset='latin1')", "text must be UTF-8", 3),
        ("TIMESTAMP('qq')", "unknown letters 'qq'", 9),
        ("TIMESTAMP('')", "is empty", 9),
        ('TIMESTAMP("\'")', "not closed", 9),
        ("TIMESTAMP(format=5)", "a quoted string", 9),
        ("TIMESTAMP(tz='Foo/Bar')", "unknown time zone 'Foo/Bar'", 9),
        ("TIMESTAMP(tz='../etc')", "unknown time zone", 9),
        ("TIMESTAMP(locale='de')", "only English names", 10),
        ("JSON(strict=false)", "strict=false is not supported", 4),
        ("JSON(greedy='x')", "greedy is not supported", 4),
        ("JSON(maxlen='x')", "maxlen must be a number of bytes", 4),
        ("JSON(flat=true)", "flat=true needs members", 4),
        ("JSON{STRING:a}(flat=true):x", "the members are exported, not the object", 0),
        ("JSON{'a'}:x", "expected a matcher and the name of a member", 5),
        ("JSON_ARRAY{LONG}", "JSON_ARRAY takes no braces", 10),
        ("ENUM{}", "an entry such as 'A'=1", 5),
        ("ENUM{'a'}", "expected '=' and a number", 8),
        ("ENUM{'a'=99999999999999999999}", "does not fit in 64 bits", 9),
        ("ENUM 'a'", "expected '{' after ENUM", 5),
        ("ARRAY{INT:x}:y", "expected a quantifier of ARRAY", 12),
        ("ARRAY{INT}{2}:y", "needs an export", 0),
        ("KVP{LD:k}:x", "KVP needs exports named key and value", 0),
        ("STRUCTURE{INT}:x", "at least one export", 0),
        ("(INT)(fs='')", "at least one character", 9),
        ("(INT)(fs=1)", "a quoted string or matchers in braces", 9),
        ("'a'" * 30_000, "at most 65536 bytes", 0),
    ],
)
def test_errors_say_what_was_expected_and_where(text: str, problem: str, offset: int) -> None:
    with pytest.raises(PatternError) as error:
        compile_pattern(text)
    assert problem in str(error.value)
    assert error.value.offset == offset
    assert isinstance(error.value, UsageError)
    again = pickle.loads(pickle.dumps(error.value))
    assert (str(again), again.offset) == (str(error.value), offset)


def test_macros_may_not_grow_without_end() -> None:
    letters = "abcdefghijklmnopqrst"
    doubled = "".join(f"${new} = ${old} ${old};" for old, new in pairwise(letters))
    with pytest.raises(PatternError, match="more than 20000 matchers"):
        compile_pattern(f"$a = 'x'; {doubled} $t")


def test_programs_grow_with_patterns_and_not_with_ways_to_look_at_them() -> None:
    def row_count(depth: int) -> int:
        text = "'a'"
        for _ in range(depth):
            text = f"(LD {text} LD)"
        return len(compile_tree(read_pattern(f"LD {text}")).code.rows)

    assert row_count(28) < 40 * row_count(7)
