"""Every predicate can be written and read back, and what cannot be read is said with its place."""

import contextlib
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import coprlake
from coprlake.errors import UsageError
from coprlake.predicate import build
from coprlake.predicate.build import (
    at_least,
    at_most,
    compare,
    contains,
    equals,
    exists,
    less_than,
    more_than,
    one_of,
    phrase,
    prefix,
    regex,
    suffix,
    term,
    wildcard,
)
from coprlake.predicate.expression import expression_of, parse_expression, parse_query
from coprlake.predicate.predicates import (
    ANY_VALUE,
    EVERYTHING,
    NOTHING,
    And,
    Combinable,
    Contains,
    Equals,
    Not,
    OneOf,
    Or,
    Predicate,
    Value,
)
from coprlake.sketch.algebra import Token
from coprlake.testing.predicate_strategies import predicates

A, B, C = contains("a"), contains("b"), exists("c")

MEANINGS: list[tuple[str, Predicate]] = [
    ('contains("refused") & ~equals("loglevel", "debug")', contains("refused") & ~equals("loglevel", "debug")),
    ("contains('a') | term('b', 'source')", contains("a") | term("b", "source")),
    ('term("b", field="source", case_sensitive=True)', term("b", "source", case_sensitive=True)),
    ('phrase(text="x y*", case_sensitive=false)', phrase("x y*")),
    ('prefix("p") & suffix("s") & wildcard(pattern="a*b")', prefix("p") & suffix("s") & wildcard("a*b")),
    (r'regex(r"\d+") | regex("\d+") | regex("\\d+")', regex(r"\d+") | regex(r"\d+") | regex(r"\d+")),
    ('one_of("level", ["a", 1, true]) & one_of("x", ()) & one_of("x", "y")', one_of("level", ["a", 1, True])
     & one_of("x", ()) & one_of("x", "y")),
    ('less_than("n", 1) & at_most("n", -1.5)', less_than("n", 1) & at_most("n", -1.5)),
    ('more_than("n", +1) & at_least("n", 1e3)', more_than("n", 1) & at_least("n", 1e3)),
    ('compare("n", "<=", 0x10)', compare("n", "<=", 16)),
    ('equals("t", datetime("2026-11-16T03:55:00Z"))', equals("t", datetime(2026, 11, 16, 3, 55, tzinfo=UTC))),
    ('equals("t", datetime("2026-11-16T03:55"))', equals("t", datetime(2026, 11, 16, 3, 55))),
    ('equals("day", date("2026-11-16"))', equals("day", date(2026, 11, 16))),
    ('equals("x", float("-inf"))', equals("x", float("-inf"))),
    ('contains("a") and not contains("b") or exists("c")', (A & ~B) | C),
    ('not contains("a") & contains("b")', ~(A & B)),  # as Python has it
    ('~contains("a") & contains("b")', ~A & B),
    ('contains("a") & (contains("b") & exists("c"))', And((A, B, C))),
    ('all_of(contains("a") & contains("b"), exists("c"))', And((And((A, B)), C))),
    ('any_of(contains("a"))', Or((A,))),
    ("everything() | nothing()", Or((EVERYTHING,))),
    ('  contains(\n"a")\r\n &\n contains("b")  # both', A & B),
    ('contains("a" "b")', contains("ab")),
    ('contains("a", field="any value")', Contains("a", "any value")),
    ('contains("a")', Contains("a", ANY_VALUE)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "meaning"), MEANINGS, ids=[text for text, _ in MEANINGS])
def test_an_expression_means_what_python_would_make_of_it(text: str, meaning: Predicate) -> None:
    assert parse_expression(text) == meaning
    assert parse_query(text) == meaning


@given(predicates(["ab \u212a\"'\\ \x00\x7f\n\r\t\u2028 😀"], max_leaves=8))
@example(And((And((A, B)), C)))
@example(Or((NOTHING, And((EVERYTHING,)))))
@example(And((contains("x"),) * 5000))
@example(OneOf("x", tuple(range(5000))))
@example(Not(Not(Not(A & B))))
@example(contains("\ud800\udfff\\ud83d", 'a field, "quoted"'))
@example(Equals("x", datetime(2026, 3, 29, 1, 2, 3, 456, tzinfo=timezone(timedelta(hours=-3, minutes=-30, seconds=5)))))
@example(Equals("x", datetime.max))
@example(Equals("x", 10**5000))
@example(Equals("x", -(10**5000)))
@example(Equals("x", -0.0))
@example(Equals("x", 1e-300))
def test_what_is_written_is_read_back(predicate: Predicate) -> None:
    text = expression_of(predicate)
    assert repr_of(parse_expression(text)) == repr_of(predicate)
    assert repr_of(parse_query(text)) == repr_of(predicate)
    text.encode()


def repr_of(predicate: Predicate) -> str:
    """To compare also what equals nothing (nan), and tells -0.0 from 0 and true from 1."""

    def shown(value: Value) -> str:
        return hex(value) if type(value) is int else value.isoformat() if isinstance(value, date) else repr(value)

    if isinstance(predicate, And | Or):
        return f"{type(predicate)}{[repr_of(part) for part in predicate.parts]}"
    if isinstance(predicate, Not):
        return f"~{repr_of(predicate.part)}"
    values: tuple[Any, ...] = getattr(predicate, "values", (getattr(predicate, "value", ""),))
    others = [getattr(predicate, name, None) for name in ("text", "field", "operator", "case_sensitive")]
    return f"{type(predicate)}{others}{[shown(value) for value in values]}"


def test_it_is_written_as_a_user_would() -> None:
    text = 'contains("refused") & ~(equals("loglevel", "debug") | exists("x")) & compare("status", ">=", 500)'
    assert expression_of(parse_expression(text)) == text
    text = 'term("ä", field="source", case_sensitive=True) | equals("t", datetime("2026-11-16T03:55:00Z"))'
    assert expression_of(parse_expression(text)) == text
    assert (expression_of(EVERYTHING), expression_of(NOTHING)) == ("everything()", "nothing()")


def test_every_function_of_build_is_there() -> None:
    functions = [name for name, value in vars(build).items() if getattr(value, "__module__", "") == build.__name__]
    names = {name for name in functions if not name.startswith("_")}
    assert len(names) == 17
    for name in names - {"all_of", "any_of"}:  # these take any number of predicates
        with pytest.raises(UsageError, match=rf"missing a required argument.*expected {name}\("):
            parse_expression(f"{name}()")
    assert [parse_expression(f"{name}()") for name in ("all_of", "any_of")] == [EVERYTHING, NOTHING]


PROBLEMS = [
    ('contans("x")', 1, "there is no predicate contans; did you mean contains?"),
    ('contains("ä") & Contain("b")', 17, "did you mean contains?"),
    ('contains("ä") &\n& contains("b")', 17, "invalid syntax"),
    ('xyzzy("a")', 1, "expected one of contains, term"),
    ('contains("a"', 13, "expected a closing bracket"),
    ('contains("a"))', 14, "a closing bracket too many"),
    ('contains("a")) & (contains("b")', 14, "a closing bracket too many"),
    ('contains("a"))(contains("b")', 14, "a closing bracket too many"),
    ('contains("a") & ', 16, "the expression is not complete"),
    ('contains("a") contains("b")', 1, "combined by &, | and ~"),
    ('contains("a"), contains("b")', 1, "expected one predicate, found 2"),
    ("", 1, "expected one predicate, found none"),
    ('contains("a', 10, "unterminated string literal"),
    ('contains("a") & error', 17, 'expected a predicate such as contains("text"), found error'),
    ('contains("a") & "b"', 17, 'found "b"'),
    ('contains("a") + contains("b")', 1, "expected a predicate"),
    ("contains(1)", 1, "expected a text to look for, found 1"),
    ('contains("a", feld="b")', 1, "unexpected keyword argument 'feld'; expected contains(text, field='any value'"),
    ('contains("a", case_sensitive=1)', 30, "expected true or false, found 1"),
    ('compare("a", "=", 1)', 1, "expected one of <, <=, >, >=, found '='"),
    ('one_of("a", 5)', 1, "expected a list of values, found 5"),
    ('one_of("a", [["x"]])', 1, "cannot be compared with a tuple"),
    ('equals("a", None)', 1, "use ~exists('a')"),
    ('equals("a", contains("x"))', 13, 'a number, a time or true, found contains("x")'),
    ('equals("a", datetime("noon"))', 13, 'expected datetime("2026-11-16T03:55:00Z")'),
    ('equals("a", date("2026-11-16T03:55:00Z"))', 13, 'expected date("2026-11-16")'),
    ('exists("x") | regex("a(")', 15, "bad regular expression 'a('"),
    ("everything(1)", 1, "everything takes no arguments"),
    ('all_of(x=exists("a"))', 1, "all_of takes only predicates"),
    # nothing of these is run
    ('__import__("os").system("true")', 1, "expected a predicate"),
    ('contains(__import__("os").getcwd())', 10, "expected a text"),
    ('contains(f"{1}")', 10, "expected a text"),
    ('equals("a", 1 + 1)', 13, "expected a text"),
    ('equals("a", b"x")', 13, "expected a text"),
    ('equals("a", 1j)', 13, "expected a text"),
    ('contains(*["a"])', 10, "expected a text"),
    ('contains(**{"text": "a"})', 12, "expected a text"),
    ("(lambda: 1)()", 1, "expected a predicate"),
    ("[exists(x) for x in y]", 1, "expected a predicate"),
    ('(x := exists("a"))', 2, "expected a predicate"),
]


@pytest.mark.parametrize(("text", "place", "message"), PROBLEMS, ids=[text for text, _, _ in PROBLEMS])
def test_an_error_says_where_it_is(text: str, place: int, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_expression(text)
    said, line, caret = str(caught.value).split("\n")
    assert message in said
    assert f"(at character {place} of the expression)" in said
    before = text[: place - 1].rpartition("\n")[2]
    assert line.startswith("  " + before)
    assert caret == " " * (2 + len(before)) + "^"


LEAF = 'exists("a")'


@pytest.mark.parametrize(
    "text",
    [
        "~" * 100_000 + LEAF,
        "not " * 100_000 + LEAF,
        "(" * 100_000,
        "(" * 100_000 + LEAF + ")" * 100_000,
        "-" * 100_000,
        "all_of(" * 100 + LEAF + ")" * 100,
        " & ".join([LEAF] * 50_000),
        "a." * 50_000,
        "equals('a', " + "[" * 100_000,
        "equals('a', " + "9" * 5000 + ")",
        "~" * 61 + LEAF,
        "contains('\ud800')",
        "contains('\0')",
        " " * 5_000_000,
    ],
    ids=range(14),
)
def test_what_is_too_much_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_expression(text)


def test_what_cannot_be_read_is_not_written() -> None:
    predicate: Predicate = A
    for _ in range(60):
        predicate = Not(predicate)
    assert parse_expression(expression_of(predicate)) == predicate
    with pytest.raises(UsageError, match="nested too deeply"):
        expression_of(Not(predicate))
    for _ in range(5000):
        predicate = Not(predicate)
    with pytest.raises(UsageError, match="nested too deeply"):
        expression_of(predicate)


@given(st.text('contains(")& ~not\n\\é', max_size=20))
def test_other_texts_are_predicates_or_usage_errors(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(parse_expression(f'contains("{text}")'), Combinable)
    with contextlib.suppress(UsageError):
        assert isinstance(parse_query(text), Combinable)


@pytest.mark.parametrize(
    "text",
    ["", "connection refused", "contains", 'contans("x")', "term (x)", "f(contains(1))", "not found", "~x", "((",
     "notcontains(1)", "date(1)", '"contains("', "Contains(x)"],
)  # fmt: skip
def test_any_other_query_is_a_text(text: str) -> None:
    assert parse_query(text) == Contains(text)


@pytest.mark.parametrize("text", ["contains(x)", "not exists(x", " ( ~ term()", "~(not (all_of(1)"])
def test_a_query_that_begins_like_an_expression_is_one(text: str) -> None:
    with pytest.raises(UsageError, match=r"(?s)character.*\nto look for the text itself, write contains\("):
        parse_query(text)


def test_all_of_and_any_of_mean_in_python_what_they_mean_in_a_text() -> None:
    assert coprlake.all_of(A, B, C) == parse_expression('all_of(contains("a"), contains("b"), exists("c"))')
    assert coprlake.any_of(A, B & C) == parse_expression('any_of(contains("a"), contains("b") & exists("c"))')
    assert (coprlake.all_of(), coprlake.any_of()) == (coprlake.EVERYTHING, Or(()))


def test_all_of_and_any_of_still_combine_tokens_and_warn() -> None:
    one, two = Token(1), Token(2)
    with pytest.warns(DeprecationWarning, match="all_of of tokens is deprecated, use batches_in_all"):
        assert coprlake.all_of(one, two) == coprlake.batches_in_all(one, two)  # type: ignore[arg-type, comparison-overlap]
    with pytest.warns(DeprecationWarning, match="any_of of tokens is deprecated, use batches_in_any"):
        assert coprlake.any_of(coprlake.NOTHING, two) == two  # type: ignore[arg-type, comparison-overlap]
