"""What each matcher of a pattern takes, by examples."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from numba import config

from coprlake.dpl.matching_texts import parse
from coprlake.dpl.pattern import compile_pattern

pytestmark = pytest.mark.kernels


def parsed(pattern: str, text: str | None) -> Any:
    """What the pattern exports from one text: a value if it is only one, a dict of several."""
    values = parse(compile_pattern(pattern), pa.array([text], pa.string()))
    values.validate(full=True)
    row = values.to_pylist()[0]
    return next(iter(row.values())) if len(row) == 1 else row


def micros(*parts: int) -> int:
    return int((datetime(*parts, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000  # type: ignore[misc, arg-type]


def test_the_example_of_the_documentation() -> None:
    text = "117.16.75.9--[14/Mar/2016:23:34:25 +0200] GET//setup.php HTTP/1.1 404 474"
    assert parsed("IPV4:ip LD HTTPDATE:time ']' LD:text", text) == {
        "ip": "117.16.75.9",
        "time": micros(2016, 3, 14, 21, 34, 25),
        "text": " GET//setup.php HTTP/1.1 404 474",
    }


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("[a-z.]+:x '.'", "john.doe", None),  # nothing is given back
        ("LD:x ':' LD:y", "a:b:c", {"x": "a", "y": "b:c"}),
        ("LD:x LD:y", "alpha beta", {"x": "a", "y": "lpha beta"}),
        ("'a' LD:x", "a rest of the line\nnext", " rest of the line"),
        ("'a' DATA:x", "a rest\nnext", " rest\nnext"),
        ("LD:x", "", None),
        ("LD*:x", "", ""),
        ("LD:x EOL", "no line feed", None),
        ("LD:x ','", "a\nb,", None),
        ("DATA:x ','", "a\nb,", "a\nb"),
        ("LD:x 'é'", "äöü€😀é", "äöü€😀"),
        ("LD{2,3}:x 'b'", "abb", "ab"),
        ("LD{2,3}:x 'b'", "aaaab", None),
        ("LD:x 'b'", "a" * 4096 + "b", "a" * 4096),
        ("LD:x 'b'", "a" * 4097 + "b", None),
        ("LD:x 'b'", "ü" * 4096 + "b", "ü" * 4096),
        ("LD:x", "ü" * 5000, "ü" * 4096),
        ("DATA:x (EOL EOL)", "a\nb\n\nc", "a\nb"),
        ("LD:x INT? ' '", "ab12 ", "ab12"),  # an optional matcher does not end it
        ("LD?:x 'a'", "a", None),
        ("(IPADDR | LD:x) ' '", "host 1", "host"),  # what follows the group ends it
        ("LD:x !>>'a'", "aab", "aa"),
    ],
)
def test_data(pattern: str, text: str, expected: Any) -> None:
    assert parsed(pattern, text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("INT:x", "-12x", -12),
        ("INT:x", "+2147483647", 2147483647),
        ("INT:x", "2147483648", None),
        ("INT:x", "-2147483648", -2147483648),
        ("INTEGER:x", "x", None),
        ("LONG:x", "9223372036854775807", 9223372036854775807),
        ("LONG:x", "-9223372036854775808", -9223372036854775808),
        ("LONG:x", "9223372036854775808", None),
        ("LONG:x", "99999999999999999999999", None),
        ("LONG:x", "0007", 7),
        ("INT(min=5, max=10):x", "4", None),
        ("INT(min=5, max=10):x", "10", 10),
        ("INT(max=-1):x", "0", None),
        ("INT*:x 'a'", "a", None),
        ("HEXINT:x", "ff", 255),
        ("HEXINT:x", "0xDEADBEEF", 0xDEADBEEF),
        ("HEXINT:x", "123456789", None),
        ("HEXLONG:x", "ffffffffffffffff", -1),
        ("HEXLONG:x", "7fffffffffffffff", (1 << 63) - 1),
        ("DOUBLE:x", "1.5e3", 1500.0),
        ("DOUBLE:x", "-0.1", -0.1),
        ("DOUBLE:x", "12", 12.0),
        ("DOUBLE:x '.'", "12.", 12.0),
        ("DOUBLE:x", ".5", None),
        ("DOUBLE:x", "0.1234567890123456789", 0.1234567890123456789),
        ("DOUBLE:x", "123456789012345678901234567890", 123456789012345678901234567890.0),
        ("DOUBLE:x", "4.9e-324", 4.9e-324),
        ("DOUBLE:x", "1e999", float("inf")),
        ("FLOAT(min=1, max=3):x", "0.5", None),
        ("FLOAT(min=1, max=3):x", "3e0", 3.0),
        ("CDOUBLE:x", "1,25", 1.25),
        ("CFLOAT:x", "1,1234567890123456789", 1.1234567890123456789),
        ("BOOLEAN:x", "TrUe", True),
        ("BOOLEAN:x", "FALSEly", False),
        ("BOOLEAN:x", "truth", None),
    ],
)
def test_numbers(pattern: str, text: str, expected: Any) -> None:
    assert parsed(pattern, text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("IPADDR:x", "10.0.0.1:80", "10.0.0.1"),
        ("IPV4:x", "10.0.0.256", None),
        ("IPV4ADDR:x", "10.0.0.1234", None),
        ("IPV4:x", "::1", None),
        ("IPV6:x", "10.0.0.1", None),
        ("IPADDR:x", "FE80::A:1 x", "fe80::a:1"),
        ("IPV6ADDR:x", "::", "::"),
        ("IPADDR:x", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("IPADDR:x", "1:2:3:4:5:6:7:8:9", None),
        ("IPADDR:x", "::ffff:1.2.3.4", "::ffff:1.2.3.4"),
        ("IPADDR:x", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:1.2.3.4"),
        ("IPADDR:x", "fe80::1: up", "fe80::1"),
        ("IPADDR:x", "::1.", "::1"),
        ("IPADDR:x", "12:34:56", None),
        ("IPADDR:x", "add::later", None),
        ("LD IPADDR:x", "connection from 1.2.3.4", "1.2.3.4"),
        ("UUIDSTRING:x", "550e8400-E29B-41d4-a716-446655440000!", "550e8400-E29B-41d4-a716-446655440000"),
        ("UUIDSTRING:x", "550e8400-e29b-41d4-a716-44665544000", None),
        ("CREDITCARD:x", "4111 1111 1111 1111.", "4111 1111 1111 1111"),
        ("CREDITCARD:x", "378282246310005", "378282246310005"),
        ("CREDITCARD:x", "4111111111111112", None),
        ("CREDITCARD:x", "411111111", None),
    ],
)
def test_addresses_and_identifiers(pattern: str, text: str, expected: Any) -> None:
    assert parsed(pattern, text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("TIMESTAMP:x", "2024-05-06 07:08:09", micros(2024, 5, 6, 7, 8, 9)),
        ("TIME('yyyy-MM-dd HH:mm:ss.SSS'):x", "2024-05-06 07:08:09.123", micros(2024, 5, 6, 7, 8, 9) + 123_000),
        ("TIMESTAMP('ss.S yyyy'):x", "09.1234567 2024", micros(2024, 1, 1, 0, 0, 9) + 123_456),
        ("TIMESTAMP(format='d/M/yy h:mm a'):x", "6/5/24 7:08 PM", micros(2024, 5, 6, 19, 8)),
        ("TIMESTAMP('d/M/yy h:mm a'):x", "6/5/99 12:08 am", micros(1999, 5, 6, 0, 8)),
        ("TIMESTAMP('EEE, d MMM yyyy HH:mm:ss Z'):x", "Mon, 6 May 2024 07:08:09 GMT", micros(2024, 5, 6, 7, 8, 9)),
        ("TIMESTAMP('EEEE d MMMM yyyy'):x", "monday 6 february 2023", micros(2023, 2, 6)),
        ("TIMESTAMP(\"yyyy'y'MM''dd\"):x", "2023y02'06", micros(2023, 2, 6)),
        ("TIMESTAMP('yyyy-MM-dd HH:mm:ss', tz='Europe/Vienna'):x", "2024-07-01 12:00:00", micros(2024, 7, 1, 10)),
        ("TIMESTAMP(timezone='+0530'):x", "2024-07-01 12:00:00", micros(2024, 7, 1, 6, 30)),
        ("TIMESTAMP('yyyy-MM-dd HHX', tz='Europe/Vienna'):x", "2024-07-01 12-03", micros(2024, 7, 1, 15)),
        ("TIMESTAMP('HH:mm'):x", "01:02", 3_720_000_000),
        ("TIMESTAMP:x", "2024-02-30 07:08:09", None),
        ("TIMESTAMP:x", "2024-05-06 24:08:09", None),
        ("TIMESTAMP('d MMM yyyy'):x", "6 Foo 2024", None),
        ("ISO8601:x", "2024-05-06T07:08:09Z", micros(2024, 5, 6, 7, 8, 9)),
        ("ISO8601:x", "2024-05-06T07:08:09.5+02:00", micros(2024, 5, 6, 5, 8, 9) + 500_000),
        ("ISO8601:x", "2024-05-06T07:08:09", None),
        ("JSONTIMESTAMP:x", "2024-05-06T07:08:09.123UTC", micros(2024, 5, 6, 7, 8, 9) + 123_000),
        ("HTTPDATE:x", "26/Dec/2018:02:59:40 +0100", micros(2018, 12, 26, 1, 59, 40)),
        ("HTTPDATE:x", "26/Dec/2018:02:59:40", None),
    ],
)
def test_timestamps(pattern: str, text: str, expected: Any) -> None:
    assert parsed(pattern, text) == expected


def test_a_missing_year_is_the_latest_that_is_possible() -> None:
    now = datetime.now(UTC)
    pattern = "TIMESTAMP('MMM d HH:mm:ss'):x"
    for month in ("Jan", "Jun", "Dec"):
        value = parsed(pattern, f"{month}  2 03:04:05")
        found = datetime.fromtimestamp(value / 1e6, UTC)
        assert -366 <= (found - now).days <= 1
        assert (found.strftime("%b"), found.day, found.hour) == (month, 2, 3)
    assert datetime.fromtimestamp(parsed(pattern, "Feb 29 00:00:00") / 1e6, UTC).year % 4 == 0


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("SPACE", " \t\r\n\v\f"),
        ("NSPACE", "aé€!"),
        ("BLANK", " \t"),
        ("WORD", "aZ_09"),
        ("ALPHA", "aZ"),
        ("ALNUM", "aZ09"),
        ("DIGIT", "0123456789"),
        ("XDIGIT", "09afAF"),
        ("UPPER", "AZ"),
        ("LOWER", "az"),
        ("PUNCT", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        ("PRINT", " a~"),
        ("GRAPH", "!a~"),
        ("CNTRL", "\0\x1f\x7f"),
        ("ASCII", "\0 a\x7f"),
        ("[a-c]+", "abcba"),
        ("[!a-c]+", "xé€😀"),
        ("[^é]+", "eè"),
        ("[à-ü€]+", "éü€à"),
        ("[:digit:]+", "123"),
        ("[[:digit:]_]+", "1_2"),
        ("[a\\-\\]]+", "a]-"),
        ("[a-]+", "a-a"),
    ],
)
def test_classes_of_characters(name: str, taken: str) -> None:
    other = {"NSPACE": " ", "PRINT": "\n", "GRAPH": " ", "[!a-c]+": "a", "[^é]+": "é", "ASCII": "é"}.get(name, "\x80")
    assert parsed(f"{name}:x", taken + other) == taken
    assert parsed(f"{name}:x", other + taken) is None


def test_quantifiers_of_classes() -> None:
    assert parsed("[a-z]:x", "abc") == "a"
    assert parsed("ALPHA{2}:x", "abc") == "ab"
    assert parsed("ALPHA{4}:x", "abc") is None
    assert parsed("ALPHA{,2}:x", "abc") == "ab"
    assert parsed("ALPHA{2,}:x", "abc") == "abc"
    assert parsed("ALPHA*:x", "1") == ""
    assert parsed("ALPHA?:x '1'", "1") is None
    assert parsed("ALPHA:x", "a" * 5000) == "a" * 4096
    assert parsed("'ab'{2}:x", "ababab") == "abab"
    assert parsed("'ab'+:x EOS", "ababab") == "ababab"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("DQS:x", r'"a\"b\\\n\u00e9\ud83d\ude00\q"', 'a"b\\\né😀\\q'),
        ("DQS:x", r'"\ud83d"', "\ufffd"),
        ("DQS:x", '"open', None),
        ("DQS:x", "'a'", None),
        ("SQS:x", r"'it\'s' x", "it's"),
        ("CSVDQS:x", '"a""b",', 'a"b'),
        ("CSVSQS:x", "'it''s'", "it's"),
        ("CSVSQS:x", "'it''", None),
        ("STRING:x", "'a\"b'", 'a"b'),
        ("STRING:x", '""', ""),
        (r"'\x41\u00e9\t\'' LD:x", "Aé\t'b", "b"),
        ("LD:x EOL", "a\n", "a"),
        ("LD:x EOLWIN", "a\r\n", "a"),
        ("LD:x CR LF", "a\r\n", "a"),
        ("BOS LD:x EOS", "abc", "abc"),
        ("LD:x MOS EOF", "abc", None),
        ("'a' BOF LD:x", "ab", None),
        ("ENUM{'A'=1, 'AB'=2}:x", "ABC", 2),
        ("ENUM{'a'=1}:x", "A", None),
        ("ENUM{'a'=1}(cis=true):x", "A", 1),
        ("ENUM{''=-3, 'b'=1}:x 'c'", "c", -3),
    ],
)
def test_strings_places_and_enumerations(pattern: str, text: str, expected: Any) -> None:
    assert parsed(pattern, text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("IPADDR:x <<INT(min=50) EOL", "1.2.3.55\n", "1.2.3.55"),
        ("IPADDR:x <<INT(min=50) EOL", "1.2.3.40\n", None),
        ("LD:x >>'b' 'bc'", "abc", "a"),
        ("!>>'a' LD:x", "abc", None),
        ("!>>'a' LD:x", "bc", "bc"),
        ("LD:x '=' !<<'a=' LD", "a=b=c", None),
        ("LD:x ' ' !<<'é ' LD:y", "è b", {"x": "è", "y": "b"}),
        ("( 'a' | 'ab' ):x 'c'", "abc", None),
        ("(INT:i | WORD:w) EOS", "12", {"i": 12, "w": None}),
        ("(INT:i EOS | WORD:w EOS)", "12a", {"i": None, "w": "12a"}),
        ("('a' LD:x ',' | 'b' LD:x ';')", "b1;", "1"),
        ("(INT:a WORD:b)(fs=', '):x", "1, z", {"x": "1, z", "a": 1, "b": "z"}),
        ("(INT:a INT:b)(fs={BLANK})", "1 \t2", {"a": 1, "b": 2}),
        ("('a' INT:x)+ EOS", "a1a2a3", 3),
        ("('a' INT:x){2} EOS", "a1a2a3", None),
        ("('a' INT:x)? 'b'", "b", None),
        ("('a' ' '?){3}:x EOS", "aa a", "aa a"),
        ("(' '?){3} 'b':x", " b", "b"),
        ("'a':'http.method'", "a", "a"),
        ("/* what */ LD:x // ever\n ' '", "a b", "a"),
        ("$v = INT:n ' '; $v LD:rest;", "5 abc", {"n": 5, "rest": "abc"}),
        ("$h = LD:host; $h ' ' LD", "abc def", "abc"),
        ("$p = INT:a ',' INT:b; $p:x", "1,2", {"a": 1, "b": 2}),
        ("$p = INT ',' INT; $p:x", "1,2", "1,2"),
        ("$p = INT ','; $p{2}:x", "1,2,", "1,2,"),
    ],
)
def test_groups_lookarounds_and_macros(pattern: str, text: str, expected: Any) -> None:
    assert parsed(pattern, text) == expected


PERSON = '{"name":"J\\u00f6hn", "age" : 33,"weight":72.3,"ok":true,"kids":["M", {"a":[]}],"at":{"city":"New York"}}'


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("JSON:x", PERSON + " rest", PERSON),
        ("JSON_OBJECT:x", "[1]", None),
        ("JSON_ARRAY:x", '[80, 443, "a\\n", null, -1.5e3]', '[80, 443, "a\\n", null, -1.5e3]'),
        ("JSON_ARRAY:x", "[80,]", None),
        ("JSON_ARRAY:x", "[" * 100 + "]" * 100, None),
        ("JSON_VALUE:x", '"web-01" x', '"web-01"'),
        ("JSON_VALUE:x", "503", "503"),
        ("JSON_VALUE:x", "nul", None),
        ("JSON:x", '{"a":"\n"}', None),
        ("JSON:x", '{"a" 1}', None),
        ("JSON(maxlen=5):x", '{"a":1}', None),
        ("JSON{STRING:name, LONG:age}:x", PERSON, {"name": "Jöhn", "age": 33}),
        ("JSON{DOUBLE:weight, BOOLEAN:ok, JSON_ARRAY:kids}:x", PERSON,
         {"weight": 72.3, "ok": True, "kids": '["M", {"a":[]}]'}),
        ("JSON{JSON{STRING:city, LONG:zip}:at}:x", PERSON, {"at": {"city": "New York", "zip": None}}),
        ("JSON{LONG:name, STRING:missing}:x", PERSON, {"name": None, "missing": None}),
        ("JSON{LONG:age, STRING:name}(flat=true)", PERSON, {"age": 33, "name": "Jöhn"}),
        ("JSON{IPADDR:ip, INT:n}:x", '{"ip":"FE80::1","n":1.5}', {"ip": "fe80::1", "n": None}),
        ("JSON{LONG:a}:x", "[]", None),
        ("LD JSON{LONG:a}:x", 'log: {"a":1}', {"a": 1}),
        ("KVP{LD:key '=' LD:value (',' | EOS)}:x", "a=1,b=zwei,c=", [("a", "1"), ("b", "zwei")]),
        ("KVP{WORD:key '=' (DQS:value | INT:value_n) ' '?}:x", 'a="x y" b=2', [("a", "x y"), ("b", "2")]),
        ("KVP{[a-z]:key '=' INT:value ' '?}:x", "a=1 b=2 a=3", [("b", "2"), ("a", "3")]),
        ("KVP{[a-z]:key '=' INT:value ' '?}{1}:x ' '?", "a=1 b=2", [("a", "1")]),
        ("KVP{[a-z]:key '=' INT:value}?:x", "?", None),
        ("ARRAY{INT*:i '/'?}{3,5}:x EOL", "201//203//205\n", [201, None, 203, None, 205]),
        ("ARRAY{INT:i ','?}{2,3}:x", "1", None),
        ("ARRAY{INT:i ','?}{0,3}:x", "a", []),
        ("ARRAY{WORD:k '=' INT:v ';'?}+:x", "a=1;b=2", [{"k": "a", "v": 1}, {"k": "b", "v": 2}]),
        ("ARRAY{ARRAY{INT:i ','?}+:row ';'?}+:x", "1,2;3", [[1, 2], [3]]),
        ("(ARRAY{INT:i ','?}+:x ';')+", "1,2;3;", [3]),
        ("STRUCTURE{INT:i ',' LD:s}:x EOS", "1,red", {"i": 1, "s": "red"}),
        ("STRUCTURE{INT:i}?:x", "a", None),
        ("STRUCTURE{('a' INT:i | 'b' INT:j)}:x", "b2", {"i": None, "j": 2}),
    ],
)  # fmt: skip
def test_json_pairs_arrays_and_records(pattern: str, text: str, expected: Any) -> None:
    values = parse(compile_pattern(pattern), pa.array([text]))
    values.validate(full=True)
    row = values.to_pylist()[0]
    assert (row if "flat" in pattern else row["x"]) == expected


def test_patterns_that_could_go_on_for_ever_end_soon() -> None:
    text = "a" * (100 if config.DISABLE_JIT else 4000)
    assert parsed("LD (LD (LD 'b')) 'c':x", text[: len(text) // 4]) is None
    assert parsed("(((('a'?)*)*)*)*:x", text) == text
    assert parsed("LD DQS:x", '"\\' * len(text)) is None
    assert parsed("LD JSON_ARRAY:x", '[{"a":' * len(text)) is None
    if not config.DISABLE_JIT:
        assert parsed("LD (LD (LD (LD (LD 'b')))) 'c':x", text) is None
