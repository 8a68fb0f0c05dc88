"""The tokens that a batch must contain if one of its records matches.

The result is an expression over tokens. It may keep a batch without a match, but never drops one with a match. Whatever
cannot be pruned is reported in words, for a user who wonders why a search reads so much.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from coprlake.config import RuleSet
from coprlake.kernel import U32Array
from coprlake.predicate.paths import is_path, key_in, prefixes
from coprlake.predicate.patterns.literals import (
    NO_REQUIREMENT,
    AllOf,
    AnyOf,
    LiteralPiece,
    Requirement,
    required_literals,
)
from coprlake.predicate.patterns.regex import parse_pattern
from coprlake.predicate.patterns.wildcards import pieces_of_wildcard
from coprlake.predicate.predicates import (
    ALL_FIELDS,
    ANY_VALUE,
    And,
    Compare,
    Contains,
    Equals,
    Exists,
    Leaf,
    Not,
    OneOf,
    Or,
    Phrase,
    Predicate,
    Prefix,
    Suffix,
    Term,
    TextPredicate,
    Value,
    Wildcard,
)
from coprlake.predicate.values import text_of
from coprlake.records import ATTRIBUTES, CONTENT, DAY
from coprlake.sketch import algebra
from coprlake.sketch.algebra import ANYTHING, NOTHING, Expression, Token, batches_in_all, batches_in_any
from coprlake.tokens.profile import NOT_SEARCHED, NOT_TOGETHER, Indexed, Profile
from coprlake.tokens.required_tokens import piece_tokens, value_tokens


class RequiredTokens(NamedTuple):
    """The batches to read, as an expression over tokens, and the reasons why there are not fewer."""

    expression: Expression
    notes: tuple[str, ...]


_Notes: TypeAlias = dict[str, None]  # in order, each once
_ABSENT: Final = object()
_NO_LITERAL: Final = "no literal that every match has"
_SHORT: Final = "shorter than 3 letters"


def required_tokens(predicate: Predicate, profile: Profile) -> RequiredTokens:
    """The tokens that a batch of the segment must contain if one of its records matches.

    Raises:
        UsageError: a regular expression is not valid.
    """
    notes: _Notes = {}
    expression = _expression(predicate, profile, notes)
    return RequiredTokens(expression, tuple(notes))


def _expression(predicate: Predicate, profile: Profile, notes: _Notes) -> Expression:
    if isinstance(predicate, And):
        return batches_in_all(*[_expression(part, profile, notes) for part in predicate.parts])
    if isinstance(predicate, Or):
        return batches_in_any(*[_expression(part, profile, notes) for part in predicate.parts])
    if isinstance(predicate, Not):
        return _negated(predicate.part, profile, notes)
    if predicate.field == ANY_VALUE:
        return _in_any_value(predicate, profile, notes)
    if predicate.field == ALL_FIELDS:
        return _in_all_fields(predicate, profile, notes)
    return _in_field(predicate, profile, notes)


def _negated(predicate: Predicate, profile: Profile, notes: _Notes) -> Expression:
    """Negation, by De Morgan's laws; nothing is indexed for what a record lacks."""
    if isinstance(predicate, Not):
        return _expression(predicate.part, profile, notes)
    if isinstance(predicate, And):
        return batches_in_any(*[_negated(part, profile, notes) for part in predicate.parts])
    if isinstance(predicate, Or):
        return batches_in_all(*[_negated(part, profile, notes) for part in predicate.parts])
    notes[f"not({predicate}) rules nothing out"] = None
    return ANYTHING


def _in_field(predicate: Leaf, profile: Profile, notes: _Notes) -> Expression:
    own = _of_name(predicate, predicate.field, profile, notes)
    if not is_path(predicate.field):
        return own
    return batches_in_any(own, *_in_columns_above(predicate, profile, notes))


def _of_name(predicate: Leaf, field: str, profile: Profile, notes: _Notes) -> Expression:
    """What a batch must contain if the column or attribute of this name matches."""
    indexed = profile.fields.get(field, _ABSENT)
    if indexed is None or field in profile.typed or field == ATTRIBUTES:
        notes[f"{field} is not indexed"] = None
        return ANYTHING
    if isinstance(indexed, Indexed):
        return _in_text(predicate, field, indexed, notes)
    if profile.complete:
        return NOTHING
    notes[f"{field} may be in the segment without being indexed"] = None
    return ANYTHING


def _in_columns_above(predicate: Leaf, profile: Profile, notes: _Notes) -> list[Expression]:
    """What a batch must contain if a value inside a column matches; its text is indexed under the column's name."""
    if not profile.complete:
        return [ANYTHING]  # a column that is not listed may be the one
    found = []
    for name, rest in prefixes(predicate.field):
        if name == ATTRIBUTES:
            found.append(_of_name(predicate, key_in(rest), profile, notes))
        if name in profile.typed and isinstance(predicate, Equals | OneOf | Compare | Exists):
            found.append(ANYTHING)  # a number inside may match
        elif name in profile.fields:
            indexed = profile.fields[name]
            found.append(ANYTHING if indexed is None else _in_text(predicate, name, indexed, notes))
    if ANYTHING in found:
        notes[f"{predicate.field} is not indexed"] = None
    return found


def _in_all_fields(predicate: Leaf, profile: Profile, notes: _Notes) -> Expression:
    """The same for any field with text; fields that are only typed have none."""
    if not profile.complete:
        notes[f"{predicate}: some fields may not be indexed"] = None
        return ANYTHING
    unknown = [field for field, indexed in profile.fields.items() if indexed is None and field not in profile.typed]
    if unknown:
        notes[f"{predicate}: {', '.join(unknown)} not indexed"] = None
        return ANYTHING
    return _in_texts(predicate, {name: own for name, own in profile.fields.items() if own is not None}, notes)


def _in_any_value(predicate: Leaf, profile: Profile, notes: _Notes) -> Expression:
    """The same for any value of a record: in its content, or in another field, where it may be a number."""
    if isinstance(predicate, Compare | Exists):
        notes[f"{predicate} rules nothing out"] = None
        return ANYTHING
    if profile.only_content:
        return _of_name(predicate, CONTENT, profile, notes)
    if profile.any_value == NOT_TOGETHER:
        return _in_each_field(predicate, profile, notes)
    requirement = _required_anywhere(predicate)
    expression = _tokens_of(requirement, CONTENT, RuleSet(profile.any_value))
    if expression == ANYTHING:
        no_literal = requirement == NO_REQUIREMENT
        notes[f"{predicate}: {_NO_LITERAL if no_literal else _SHORT}"] = None
    return expression


def _in_each_field(predicate: Leaf, profile: Profile, notes: _Notes) -> Expression:
    """For a segment of an earlier build: the fields as they are indexed one by one; numbers are not."""
    if not profile.complete:
        notes["some fields may not be indexed"] = None
        return ANYTHING
    typed = profile.typed - NOT_SEARCHED - {DAY}
    if typed and may_be_number(_required_anywhere(predicate)):
        notes[f"{predicate}: numbers are not indexed here; `coprlake index --rebuild` does that"] = None
        return ANYTHING
    unknown = [field for field, indexed in profile.fields.items() if indexed is None and field not in NOT_SEARCHED]
    if unknown:
        notes[f"{predicate}: {', '.join(unknown)} not indexed"] = None
        return ANYTHING
    known = {name: own for name, own in profile.fields.items() if own is not None and name not in NOT_SEARCHED}
    return _in_texts(predicate, known, notes)


def _in_texts(predicate: Leaf, fields: Mapping[str, Indexed], notes: _Notes) -> Expression:
    """What a batch must contain if the text of one of the fields matches; one reason is enough if nothing."""
    own: _Notes = {}
    places = {(indexed.place(field), indexed.rules, indexed.whole_values): field for field, indexed in fields.items()}
    expression = batches_in_any(*[_in_text(predicate, field, fields[field], own) for field in places.values()])
    if expression == ANYTHING:
        notes |= dict.fromkeys(list(own)[:1])
    return expression


def _required_anywhere(predicate: Leaf) -> Requirement:
    """The pieces of text that every value has that matches, if numbers are text."""
    if isinstance(predicate, Equals | OneOf):
        values = (predicate.value,) if isinstance(predicate, Equals) else predicate.values
        if any(not isinstance(value, str) or may_be_number(LiteralPiece(value, True, True)) for value in values):
            return NO_REQUIREMENT  # 404 also equals 404.0
        return AnyOf(tuple(LiteralPiece(str(value), False, False) for value in values))
    assert not isinstance(predicate, Compare | Exists)
    return required_text(predicate)


_NUMERIC: Final = re.compile(r"[0-9+\-e]*\.?[0-9+\-e]*")
_OTHER_TYPED: Final = ("true", "false", "nan", "-inf")


def may_be_number(requirement: Requirement) -> bool:
    """Whether a number or a boolean, as it is written, may have these pieces."""
    if isinstance(requirement, LiteralPiece):
        text = requirement.text.lower()
        return _NUMERIC.fullmatch(text) is not None or any(text in word for word in _OTHER_TYPED)
    parts = [may_be_number(part) for part in requirement.parts]
    return all(parts) if isinstance(requirement, AllOf) else any(parts)


def _in_text(predicate: Leaf, field: str, indexed: Indexed, notes: _Notes) -> Expression:
    """What a batch must contain if the text of an indexed field matches."""
    place = indexed.place(field)
    if isinstance(predicate, Term):  # first, because it is the most frequent and should cost no more than its tokens
        expression = _all_tokens(
            piece_tokens(predicate.text, place, left_open=False, right_open=False, rules=indexed.rules)
        )
    elif isinstance(predicate, Equals):
        expression = _equal(predicate.value, place, indexed)
    elif isinstance(predicate, OneOf):
        expression = batches_in_any(*[_equal(value, place, indexed) for value in predicate.values])
    elif isinstance(predicate, Compare | Exists):
        notes[f"{predicate} rules nothing out"] = None
        return ANYTHING
    else:
        expression = _tokens_of(required_text(predicate), place, indexed.rules)
    if expression == ANYTHING:
        notes[f"{predicate}: {_reason(predicate, field, indexed)}"] = None
    return expression


def required_text(predicate: TextPredicate) -> Requirement:
    """The pieces of text that every match contains."""
    text = predicate.text
    if isinstance(predicate, Contains):
        return LiteralPiece(text, True, True)
    if isinstance(predicate, Term):
        return LiteralPiece(text, False, False)
    if isinstance(predicate, Prefix):
        return LiteralPiece(text, False, True)
    if isinstance(predicate, Suffix):
        return LiteralPiece(text, True, False)
    if isinstance(predicate, Phrase):
        core, checks_left, checks_right = phrase_parts(text)
        return LiteralPiece(core, not (checks_left and _is_word(core[0])), not (checks_right and _is_word(core[-1])))
    if isinstance(predicate, Wildcard):
        return pieces_of_wildcard(text)
    return required_literals(parse_pattern(text, case_sensitive=predicate.case_sensitive).tree)


def phrase_parts(text: str) -> tuple[str, bool, bool]:
    """The part of a phrase that is searched for, and whether its start and its end are checked."""
    core = text.removeprefix("*").removesuffix("*")
    return core, bool(core) and not text.startswith("*"), bool(core) and not text.endswith("*")


def _is_word(character: str) -> bool:
    """Whether a phrase that is checked here also ends a term here; not after ``_``, which may be next to a dash."""
    return character.isascii() and character.isalnum()


def _tokens_of(requirement: Requirement, field: str, rules: RuleSet | None) -> Expression:
    if isinstance(requirement, LiteralPiece):
        text, left_open, right_open = requirement.text, requirement.left_open, requirement.right_open
        return _all_tokens(piece_tokens(text, field, left_open=left_open, right_open=right_open, rules=rules))
    parts = [_tokens_of(part, field, rules) for part in requirement.parts]
    return batches_in_all(*parts) if isinstance(requirement, AllOf) else batches_in_any(*parts)


def _equal(value: Value, field: str, indexed: Indexed) -> Expression:
    text = text_of(value)
    tokens = piece_tokens(text, field, left_open=False, right_open=False, rules=indexed.rules)
    whole = _all_tokens(value_tokens(text, field)) if indexed.whole_values else ANYTHING
    return batches_in_all(whole, _all_tokens(tokens))


def _all_tokens(fingerprints: U32Array) -> Expression:
    """`algebra.all_tokens` in half the time."""
    tokens = tuple(map(Token, dict.fromkeys(fingerprints.tolist())))
    return tokens[0] if len(tokens) == 1 else algebra.And(tokens)


def _reason(predicate: Leaf, field: str, indexed: Indexed) -> str:
    """Why a predicate on text has no token."""
    if isinstance(predicate, Equals | OneOf | Compare | Exists):
        return "a value without a word"
    if required_text(predicate) == NO_REQUIREMENT:
        return _NO_LITERAL
    return f"cuts words, and {field} is indexed by whole words" if indexed.rules is None else _SHORT
