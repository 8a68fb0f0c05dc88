"""Whether a text matches: substrings, phrases, whole values, patterns.

Unless a function says otherwise, only the case of ASCII letters can be ignored. Regular expressions use only what RE2
and Java interpret alike: no lookaround, no classes except bracketed ASCII ones, letters of either case as ``[aA]``.
"""

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from coprlake.language.functions.array_functions import array_function
from coprlake.language.functions.registry import FUNCTIONS, function, internal
from coprlake.language.functions.values import operators
from coprlake.language.plan import Apply, Constant, Expr
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import BOOLEAN, DOUBLE, LONG, Type, array, member_names
from coprlake.predicate.patterns.regex import parse_pattern
from coprlake.predicate.values import spellings

GROUP: Final = "text matching"
_WORD: Final = "[A-Za-z0-9_]"
_NO_WORD: Final = "[^A-Za-z0-9_]"
_IS_WORD = re.compile(_WORD)

Sql = Sequence[exp.Expression]


def quoted(text: str, *, exact: bool) -> str:
    """A regular expression that matches a literal text."""
    return "".join(_sign(character, exact) for character in text)


def _sign(character: str, exact: bool) -> str:
    if character.isascii() and character.isalpha():
        return character if exact else f"[{character.lower()}{character.upper()}]"
    if character.isascii() and not character.isdigit():
        return f"\\x{ord(character):02x}"
    return character


def constant_at(node: Apply, place: int) -> object:
    """The value of an argument if it is a constant, otherwise None."""
    argument = node.arguments[place]
    return argument.value if isinstance(argument, Constant) else None


def _same_case(text: str) -> bool:
    return not any(character.isascii() and character.isalpha() for character in text)


def _part(d: Dialect, node: Apply, args: Sql, pattern: str, duckdb: str, spark: str) -> exp.Expression:
    """Call a function of the engine, or match a regular expression if case is ignored."""
    exact = constant_at(node, 2) is not False
    part = constant_at(node, 1)
    if exact or (isinstance(part, str) and _same_case(part)):
        return d.call(d.pick(duckdb=duckdb, spark=spark), args[0], args[1])
    if isinstance(part, str):
        return d.matches(args[0], pattern.format(quoted(part, exact=False)))
    lowered = [ascii_lower(d, side) for side in args[:2]]
    return d.call(d.pick(duckdb=duckdb, spark=spark), *lowered)


def ascii_lower(d: Dialect, text: exp.Expression) -> exp.Expression:
    """The text with ASCII letters in lower case."""
    upper, lower = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
    return d.call("translate", text, d.text(upper), d.text(lower))


@function(
    "contains(text: string, part: string, caseSensitive: const boolean = true) -> boolean",
    "Whether the text contains the substring.",
    group=GROUP,
    example='data record(a = "Connection refused") | fields x = contains(a, "refuse"), y = contains(a, "CONN"), '
    'z = contains(a, "CONN", caseSensitive: false)',
    gives=[{"x": True, "y": False, "z": True}],
)
def _contains(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return _part(d, node, args, "{}", "contains", "contains")


@function(
    "startsWith(text: string, part: string, caseSensitive: const boolean = true) -> boolean",
    "Whether the text starts with the prefix.",
    group=GROUP,
    example='data record(a = "GET /index") | fields x = startsWith(a, "GET"), y = startsWith(a, "get")',
    gives=[{"x": True, "y": False}],
)
def _starts_with(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return _part(d, node, args, r"\A{}", "starts_with", "startswith")


@function(
    "endsWith(text: string, part: string, caseSensitive: const boolean = true) -> boolean",
    "Whether the text ends with the suffix.",
    group=GROUP,
    example='data record(a = "app.log") | fields x = endsWith(a, ".log"), '
    'y = endsWith(a, ".LOG", caseSensitive: false)',
    gives=[{"x": True, "y": True}],
)
def _ends_with(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return _part(d, node, args, r"{}\z", "ends_with", "endswith")


def phrase_pattern(phrase: str, *, exact: bool) -> str:
    """A regular expression for `matchesPhrase`: the phrase cuts no word at its ends, except at a ``*``."""
    left_open, right_open = phrase.startswith("*"), phrase.endswith("*") and len(phrase) > 1
    core = phrase[left_open : len(phrase) - right_open]
    before = "" if left_open or not _IS_WORD.match(core) else rf"(?:\A|{_NO_WORD})"
    after = "" if right_open or not _IS_WORD.match(core[-1:]) else rf"(?:\z|{_NO_WORD})"
    return before + quoted(core, exact=exact) + after


def value_pattern(pattern: str, *, exact: bool) -> str:
    """A regular expression for whole values, where ``*`` at either end matches anything."""
    left_open, right_open = pattern.startswith("*"), pattern.endswith("*") and len(pattern) > 1
    core = pattern[left_open : len(pattern) - right_open]
    return ("" if left_open else r"\A") + quoted(core, exact=exact) + ("" if right_open else r"\z")


def _on_each(d: Dialect, kind: Type, value: exp.Expression, pattern: str) -> exp.Expression:
    """Whether the pattern matches a text or any element of an array."""
    if kind.kind == "array" and kind.element and kind.element.kind == "string":
        hits = d.keep(value, lambda element: d.matches(element, pattern))
        return d.binary(exp.GT, d.size(hits), d.long(0))
    return d.matches(value, pattern) if kind.is_text else d.null(BOOLEAN)


@function(
    "matchesPhrase(text: string|array, phrase: const string, caseSensitive: const boolean = false) -> boolean",
    "Whether the text contains the phrase as whole words: next to an ASCII letter, a digit or "
    "`_` at its start or end, there may not be another one. A `*` as the first or last "
    "character lifts this. For an array, whether any element does.",
    group=GROUP,
    example='data record(a = "failed to login from 192.168.0.1") | fields x = matchesPhrase(a, "failed to login"), '
    'y = matchesPhrase(a, "failed to log"), z = matchesPhrase(a, "failed to log*")',
    gives=[{"x": True, "y": False, "z": True}],
)
def _matches_phrase(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    pattern = phrase_pattern(str(constant_at(node, 1)), exact=constant_at(node, 2) is True)
    assert node.arguments[0] is not None
    return _on_each(d, node.arguments[0].type, args[0], pattern)


def patterns_of(arguments: Sequence[Expr | None]) -> list[str]:
    """The strings among constants and arrays of constants; other values are ignored."""
    found: list[str] = []
    for argument in arguments:
        if isinstance(argument, Constant) and isinstance(argument.value, str):
            found.append(argument.value)
        elif isinstance(argument, Apply) and argument.function is operators.LIST:
            found += patterns_of(argument.arguments)
    return found


@function(
    "matchesValue(value: string|array, patterns: const any..., caseSensitive: const boolean = false) -> boolean",
    "Whether the whole value matches one of the patterns, in which `*` as the first or last "
    "character matches anything. The case of ASCII letters is ignored unless requested. For "
    "an array, whether any element does.",
    group=GROUP,
    example='data record(a = "Java11"), record(a = "docker") | fields a, x = matchesValue(a, "java*"), '
    'y = matchesValue(a, {"DOCKER", "k8s"})',
    gives=[{"a": "Java11", "x": True, "y": False}, {"a": "docker", "x": False, "y": True}],
)
def _matches_value(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    exact = constant_at(node, len(node.arguments) - 1) is True
    patterns = patterns_of(node.arguments[1:-1])
    assert node.arguments[0] is not None
    kind = node.arguments[0].type
    if not patterns:
        return d.case((d.is_null(args[0]), d.null(BOOLEAN)), default=d.false())
    return d.either(*(_on_each(d, kind, args[0].copy(), value_pattern(text, exact=exact)) for text in patterns))


def like_pattern(pattern: str) -> str:
    """A regular expression for a pattern of `like`."""
    signs = {"%": "(?s:.*)", "_": "(?s:.)"}
    return r"\A" + "".join(signs.get(sign) or quoted(sign, exact=True) for sign in pattern) + r"\z"


@function(
    "like(text: string, pattern: const string) -> boolean",
    "Whether the whole text matches a pattern in which `%` matches anything and `_` one character.",
    group=GROUP,
    example='data record(a = "TLS 1.2") | fields x = like(a, "TLS%"), y = like(a, "TLS _.3"), z = like(a, "TLS")',
    gives=[{"x": True, "y": False, "z": False}],
)
def _like(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.matches(args[0], like_pattern(str(constant_at(node, 1))))


def _regex(texts: pa.Array, pattern: str = "") -> pa.Array:
    return pc.match_substring_regex(texts, pattern)


@function(
    "matchesRegex(text: string, pattern: const string, caseSensitive: const boolean = true) -> boolean",
    "Whether a regular expression, in RE2 syntax, matches anywhere in the text. `^` and `$` match at "
    "the beginning and the end of the whole text; after `(?m)`, at those of each line.",
    group=GROUP,
    example=r'data record(a = "took 231 ms") | fields x = matchesRegex(a, """\b\d+ ms$"""), '
    r'y = matchesRegex(a, "^\\d+")',
    gives=[{"x": True, "y": False}],
    checks={"pattern": lambda pattern: parse_pattern(pattern, case_sensitive=True)},
)
def _matches_regex(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    exact = constant_at(node, 2) is not False
    pattern = parse_pattern(str(constant_at(node, 1)), case_sensitive=exact, by_line=False)
    if not d.is_spark:
        return d.call("regexp_matches", args[0], d.text(pattern.source))
    return d.apply(array_function(_regex, (pa.string(),), pa.bool_(), pattern=pattern.source), args[0])


@function(
    "in(needle: any, haystack: any...) -> boolean",
    "Whether the value is among the others; arrays among them count as their elements. For an "
    "array, whether any element is.",
    group=GROUP,
    example='data record(a = 2, b = {"x", "y"}) | fields x = in(a, 1, 2), y = in(a, {3, 4}), z = in(b, "y")',
    gives=[{"x": True, "y": False, "z": True}],
    result=lambda types: BOOLEAN,
)
def _in(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return _among(d, node, args)


def _among(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    """Whether a needle equals one of the values or their elements; for an array, whether any element does.

    Values of different types are never equal.
    """
    needle = node.arguments[0]
    assert needle is not None
    is_array = needle.type.kind == "array"
    have = needle.type.element if is_array else needle.type
    assert have is not None
    parts: list[exp.Expression] = []
    for value, sql in zip(node.arguments[1:], args[1:], strict=True):
        assert value is not None
        kind = value.type.element if value.type.kind == "array" and have.kind != "array" else value.type
        assert kind is not None
        side = args[0].copy()
        if kind.kind != have.kind:
            if have.is_loose and not is_array and kind in (LONG, BOOLEAN) and _is_known(value):
                texts = [d.text(text) for text in _spelled(value)]  # as in ==
                parts += [exp.Paren(this=exp.In(this=side, expressions=texts))] if texts else []
                continue
            if have.is_loose and kind.kind in operators.FROM_TEXT and not is_array:
                side = operators.from_text(d, side, kind)
            elif not (have.is_number and kind.is_number):
                continue
        is_list = value.type.kind == "array" and have.kind != "array"
        if is_array:
            parts.append(_overlap(d, side, sql, is_list, DOUBLE if kind.kind != have.kind else have))
        elif is_list:
            holds = d.pick(duckdb="list_contains", spark="array_contains")
            parts.append(d.call(holds, sql, _as_kind(d, side, needle.type, kind)))
        else:
            parts.append(d.equal(side, sql))
    return d.case((d.is_null(args[0].copy()), d.null(BOOLEAN)), default=d.is_true(d.either(*parts)))


def _spelled(value: Expr) -> list[str]:
    """The texts that an attribute may have for a constant, or for one of an array of constants."""
    parts = value.arguments if isinstance(value, Apply) and value.function is operators.LIST else (value,)
    known = [part.value for part in parts if isinstance(part, Constant) and part.value is not None]
    texts = [spellings(one) if type(one) is int else (str(one).lower(),) for one in known]
    return list(dict.fromkeys(text for several in texts for text in several))


def _is_known(value: Expr) -> bool:
    """Whether the value is a constant or an array of constants."""
    parts = value.arguments if isinstance(value, Apply) and value.function is operators.LIST else (value,)
    return all(isinstance(part, Constant) for part in parts)


def _overlap(d: Dialect, elements: exp.Expression, value: exp.Expression, is_list: bool, kind: Type) -> exp.Expression:
    """Whether an array contains a value, or any element of another array, compared as `kind`."""
    elements = d.cast(elements, array(kind))
    if is_list:
        name = d.pick(duckdb="list_has_any", spark="arrays_overlap")
        return d.call(name, elements, d.cast(value, array(kind)))
    return d.call(d.pick(duckdb="list_contains", spark="array_contains"), elements, d.cast(value, kind))


def _as_kind(d: Dialect, side: exp.Expression, have: Type, want: Type) -> exp.Expression:
    return d.cast(side, want) if have.kind != want.kind and have.is_number else side


# `~` and `search` for values of all types


def _term(d: Dialect, kind: Type, value: exp.Expression, term: str, exact: bool) -> exp.Expression:
    if kind.is_text:
        return d.matches(value, term_pattern(term, exact=exact))
    if kind.kind in ("long", "double", "ip"):
        if kind.kind == "ip":
            return d.equal(value, d.text(term))
        spelled = _number(term)
        if spelled is None:
            return d.case((d.is_null(value), d.null(BOOLEAN)), default=d.false())
        return d.equal(
            value, d.long(spelled) if isinstance(spelled, int) and kind.kind == "long" else d.double(float(spelled))
        )
    if kind.kind == "array" and kind.element is not None:
        element = kind.element
        hits = d.keep(value, lambda one: d.is_true(_term(d, element, one, term, exact)))
        return d.binary(exp.GT, d.size(hits), d.long(0))
    if kind.kind == "map":
        values = d.call("map_values", value)
        hits = d.keep(values, lambda one: d.matches(one, term_pattern(term, exact=exact)))
        return d.binary(exp.GT, d.size(hits), d.long(0))
    if kind.kind == "record":
        parts = [
            d.is_true(_term(d, member, d.member(value.copy(), name), term, exact))
            for name, (_, member) in zip(member_names(kind), kind.members, strict=True)
        ]
        return d.either(*parts)
    return d.case((d.is_null(value), d.null(BOOLEAN)), default=d.false())


def _number(term: str) -> int | float | None:
    if re.fullmatch(r"-?[0-9]{1,18}", term):
        return int(term)
    return float(term) if re.fullmatch(r"-?[0-9]+\.[0-9]+", term) else None


def term_pattern(term: str, *, exact: bool) -> str:
    """A regular expression for a term: a phrase that may also have ``*`` inside."""
    left_open, right_open = term.startswith("*"), term.endswith("*") and len(term) > 1
    core = term[left_open : len(term) - right_open]
    before = "" if left_open or not _IS_WORD.match(core) else rf"(?:\A|{_NO_WORD})"
    after = "" if right_open or not _IS_WORD.match(core[-1:]) else rf"(?:\z|{_NO_WORD})"
    return before + "(?s:.*)".join(quoted(piece, exact=exact) for piece in core.split("*")) + after


def _tilde(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    value, term = node.arguments[0], node.arguments[1]
    assert value is not None
    if not isinstance(term, Constant):
        return d.null(BOOLEAN)
    exact = len(node.arguments) > 2 and constant_at(node, 2) is True
    return _term(d, value.type, args[0], str(term.value), exact)


FUNCTIONS["~"] = internal("~", _tilde, BOOLEAN)
FUNCTIONS["search term"] = internal("search term", _tilde, BOOLEAN)
FUNCTIONS["search anywhere"] = internal("search anywhere", lambda d, node, args: d.either(*args[2:]), BOOLEAN)
