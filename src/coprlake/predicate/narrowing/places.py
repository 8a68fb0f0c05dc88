"""Where the values of a segment are that a plain search looks at, so that it reads no more columns than it has to."""

from dataclasses import replace
from typing import Literal, TypeAlias

from coprlake.predicate.predicates import ANY_VALUE, And, Contains, Not, Or, Predicate
from coprlake.records import CONTENT
from coprlake.tokens.profile import Profile

Where: TypeAlias = Literal["anywhere", "also in content", "content"]
"""In any field; in other fields too, but each of them is a part of its record's content; in the content alone."""


def where_values_are(profile: Profile) -> Where:
    """What the index of a segment says about that."""
    if profile.only_content:
        return "content"
    return "also in content" if profile.all_in_content else "anywhere"


def narrowed(predicate: Predicate, where: Where) -> Predicate:
    """A predicate that the same records match, with `ANY_VALUE` replaced by the content where that has all of it."""
    if where == "anywhere":
        return predicate
    if isinstance(predicate, And | Or):
        return type(predicate)(tuple(narrowed(part, where) for part in predicate.parts))
    if isinstance(predicate, Not):
        return Not(narrowed(predicate.part, where))
    if predicate.field != ANY_VALUE or not (where == "content" or isinstance(predicate, Contains)):
        return predicate
    return replace(predicate, field=CONTENT)
