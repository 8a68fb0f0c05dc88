"""Strings: their parts, their lengths, and transforming them. Indexes count code points, from 0."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, unquote_plus

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from coprlake.language.functions.array_functions import array_function, by_distinct, call_together
from coprlake.language.functions.registry import function
from coprlake.language.functions.text.text_matching import constant_at
from coprlake.language.functions.values.conversion import as_text, kind_at
from coprlake.language.functions.values.ranges import in_range_of, span
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import LONG

GROUP: Final = "text"
_PARTS: Final = (pa.string(), pa.string(), pa.int64())
_TRIMMED: Final = "".join(map(chr, range(0x21)))
_NO_PUNCTUATION: Final = r"[^!-/:-@\[-`{-~]+"
_NO_PUNCTUATION_OR_SPACE: Final = r"[^ !-/:-@\[-`{-~]+"

Sql = Sequence[exp.Expression]


@function(
    'concat(values: any..., delimiter: const string = "") -> string',
    "The values converted as by `toString` and joined with the delimiter. Null values are ignored.",
    group=GROUP,
    example='data record(a = "GET", b = null, c = 200) | fields x = concat(a, b, c), '
    'y = concat(a, b, c, delimiter: " ")',
    gives=[{"x": "GET200", "y": "GET 200"}],
)
def _concat(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    texts = [as_text(d, value, kind_at(node, place)) for place, value in enumerate(args[:-1])]
    return d.call("concat_ws", args[-1], *texts)


@function(
    "indexOf(text: string, part: string, from: long = 0) -> long",
    "The index of the first occurrence of the substring, starting at 0, or -1 if there is "
    "none. The search starts at `from`; a negative index counts from the end.",
    group=GROUP,
    example='data record(a = "banana") | fields x = indexOf(a, "an"), y = indexOf(a, "an", from: 2), '
    'z = indexOf(a, "x")',
    gives=[{"x": 1, "y": 3, "z": -1}],
)
def _index_of(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    if constant_at(node, 2) == 0:
        return d.minus(d.cast(d.call("instr", args[0], args[1]), LONG), d.long(1))
    return call_together(d, first_index, _PARTS, pa.int64(), *args)


@function(
    "lastIndexOf(text: string, part: string, from: long = null) -> long",
    "The index of the last occurrence of the substring, starting at 0, or -1 if there is "
    "none. The search goes backwards from `from`, by default the end; a negative index counts "
    "from the end.",
    group=GROUP,
    example='data record(a = "banana") | fields x = lastIndexOf(a, "an"), y = lastIndexOf(a, "an", from: 2)',
    gives=[{"x": 3, "y": 1}],
)
def _last_index_of(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    begin = d.long(2**63 - 1) if args[2] is None else args[2]
    return call_together(d, last_index, _PARTS, pa.int64(), args[0], args[1], begin)


def first_index(texts: pa.Array, parts: pa.Array, froms: pa.Array) -> pa.Array:
    """The index of the first occurrence of each part in its text."""
    from coprlake.language.functions.text.text_scanning import index_of

    return index_of(texts, parts, froms, backwards=False)


def last_index(texts: pa.Array, parts: pa.Array, froms: pa.Array) -> pa.Array:
    """The index of the last occurrence of each part in its text."""
    from coprlake.language.functions.text.text_scanning import index_of

    return index_of(texts, parts, froms, backwards=True)


def lower_texts(texts: pa.Array) -> pa.Array:
    """Each text in lower case, converted character by character."""
    return pc.utf8_lower(texts)


def upper_texts(texts: pa.Array) -> pa.Array:
    """Each text in upper case, converted character by character."""
    return pc.utf8_upper(texts)


@function(
    "lower(text: string) -> string",
    "The text in lower case.",
    group=GROUP,
    example='data record(a = "Größe") | fields x = lower(a)',
    gives=[{"x": "größe"}],
)
def _lower(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.apply(array_function(lower_texts, (pa.string(),), pa.string()), args[0])


@function(
    "upper(text: string) -> string",
    "The text in upper case. The number of characters stays the same, so ß becomes ẞ.",
    group=GROUP,
    example='data record(a = "warn") | fields x = upper(a)',
    gives=[{"x": "WARN"}],
)
def _upper(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.apply(array_function(upper_texts, (pa.string(),), pa.string()), args[0])


@function(
    "trim(text: string) -> string",
    "The text without leading and trailing whitespace and control characters.",
    group=GROUP,
    example='data record(a = "  two words\\n") | fields x = trim(a)',
    gives=[{"x": "two words"}],
)
def _trim(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.call(d.pick(duckdb="trim", spark="btrim"), args[0], d.text(_TRIMMED))


@function(
    "replaceString(text: string, part: string, replacement: string) -> string",
    "The text with each occurrence of a part replaced.",
    group=GROUP,
    example='data record(a = "a-b-c") | fields x = replaceString(a, "-", "+")',
    gives=[{"x": "a+b+c"}],
)
def _replace_string(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.call("replace", *args)


@function(
    "splitString(text: string, delimiter: const string) -> array<string>",
    "The parts of the text between the delimiters, including empty ones; with an empty delimiter, its characters.",
    group=GROUP,
    example='data record(a = "a,,b") | fields x = splitString(a, ","), y = splitString("abc", "")',
    gives=[{"x": ["a", "", "b"], "y": ["a", "b", "c"]}],
)
def _split_string(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    delimiter = str(constant_at(node, 1))
    return d.apply(array_function(split_texts, (pa.string(),), pa.list_(pa.string()), delimiter=delimiter), args[0])


def split_texts(texts: pa.Array, delimiter: str = "") -> pa.Array:
    """Each text split at the delimiter, or into characters without one."""
    if delimiter:
        return pc.split_pattern(texts, delimiter)
    from coprlake.language.functions.text.text_scanning import characters

    return characters(texts)


@function(
    "stringLength(text: string) -> long",
    "The number of characters (code points).",
    group=GROUP,
    example='data record(a = "käse") | fields x = stringLength(a)',
    gives=[{"x": 4}],
)
def _string_length(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.cast(d.call("length", args[0]), LONG)


@function(
    "substring(text: string, from: long = 0, to: long = null) -> string",
    "The text from index `from` up to, but not including, index `to`, or up to the end. "
    "Negative indexes count from the end.",
    group=GROUP,
    example='data record(a = "banana") | fields x = substring(a, from: 2), y = substring(a, from: -3, to: -1)',
    gives=[{"x": "nana", "y": "an"}],
)
def _substring(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    begin, count = span(d, node, args, d.cast(d.call("length", args[0]), LONG))
    return d.call("substring", args[0].copy(), begin, count)


@function(
    "getCharacter(text: string, index: long) -> string",
    "The character at an index, or null if there is none; a negative index counts from the end.",
    group=GROUP,
    example='data record(a = "abc") | fields x = getCharacter(a, 0), y = getCharacter(a, -1), z = getCharacter(a, 3)',
    gives=[{"x": "a", "y": "c", "z": None}],
)
def _get_character(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    length = d.cast(d.call("length", args[0]), LONG)
    return in_range_of(d, args[1], length, lambda at: d.call("substring", args[0].copy(), at, exp.Literal.number(1)))


@function(
    "punctuation(text: string, count: const long = 32, withSpace: const boolean = true) -> string",
    "The punctuation of the text, which tells lines of different forms apart: its first "
    "`count` ASCII characters that are neither letters nor digits, with or without "
    "whitespace.",
    group=GROUP,
    example='data record(a = "[12:30] user=x failed!") | fields x = punctuation(a), '
    "y = punctuation(a, count: 4, withSpace: false)",
    gives=[{"x": "[:] = !", "y": "[:]="}],
)
def _punctuation(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    count, has_space = constant_at(node, 1), constant_at(node, 2) is not False
    assert isinstance(count, int)
    return d.apply(
        array_function(punctuation_of, (pa.string(),), pa.string(), count=max(0, count), has_space=has_space), args[0]
    )


def punctuation_of(texts: pa.Array, count: int = 32, has_space: bool = True) -> pa.Array:
    """The first `count` punctuation characters of each text."""
    kept = pc.replace_substring_regex(texts, _NO_PUNCTUATION_OR_SPACE if has_space else _NO_PUNCTUATION, "")
    return pc.utf8_slice_codeunits(kept, 0, count)


@function(
    "levenshteinDistance(text: string, other: string) -> long",
    "The number of characters that must be inserted, deleted or replaced to turn one text into the other.",
    group=GROUP,
    example='data record(a = "kitten", b = "sitting") | fields x = levenshteinDistance(a, b)',
    gives=[{"x": 3}],
)
def _levenshtein(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return call_together(d, edit_distance, (pa.string(), pa.string()), pa.int64(), *args)


def edit_distance(lefts: pa.Array, rights: pa.Array) -> pa.Array:
    """The edit distance of each pair."""
    from coprlake.language.functions.text.text_scanning import distances

    return distances(lefts, rights)


@function(
    "encodeUrl(text: string) -> string",
    "Encodes text as a part of a URL: ASCII letters, digits and `-._~` stay, every other byte "
    "becomes `%` and two hexadecimal digits.",
    group=GROUP,
    example='data record(a = "a b&ä") | fields x = encodeUrl(a)',
    gives=[{"x": "a%20b%26%C3%A4"}],
)
def _encode_url(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.apply(array_function(encoded_urls, (pa.string(),), pa.string()), args[0])


def encoded_urls(texts: pa.Array) -> pa.Array:
    """Each text percent-encoded."""
    return by_distinct(texts, pa.string(), lambda text: quote(text, safe=""))


@function(
    "decodeUrl(text: string) -> string",
    "Decodes a part of a URL; `+` is a space. Invalid encodings are left unchanged.",
    group=GROUP,
    example='data record(a = "a+b%26%C3%A4") | fields x = decodeUrl(a)',
    gives=[{"x": "a b&ä"}],
)
def _decode_url(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.apply(array_function(decoded_urls, (pa.string(),), pa.string()), args[0])


def decoded_urls(texts: pa.Array) -> pa.Array:
    """Each text percent-decoded."""
    return by_distinct(texts, pa.string(), unquote_plus)
