"""Checks undecoded bytes for a possible match, before a batch is decoded."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from coprlake.kernel import U8Array
from coprlake.predicate.deciding.finding import Needle, find_rows, new_needle
from coprlake.predicate.narrowing.required import required_text
from coprlake.predicate.patterns.literals import AllOf, AnyOf, LiteralPiece, Requirement
from coprlake.predicate.predicates import And, Or, Predicate, TextPredicate

Screen: TypeAlias = Callable[[U8Array], bool]
"""Whether a batch with these bytes may contain a match; True if in doubt."""


def screen_of(predicate: Predicate, *fields: str) -> Screen | None:
    """The screen for the text of one field, if there are several names for it; None if that text decides nothing.

    Every text that a match must contain has to be somewhere in the bytes, whatever else is between the values.
    """
    if isinstance(predicate, And):
        screens = [screen for part in predicate.parts if (screen := screen_of(part, *fields)) is not None]
        return _all_screen(screens) if screens else None
    if isinstance(predicate, Or):
        found = [screen_of(part, *fields) for part in predicate.parts]
        screens = [screen for screen in found if screen is not None]
        return _any_screen(screens) if screens and len(screens) == len(found) else None
    if isinstance(predicate, TextPredicate) and predicate.field in fields:
        return _of_requirement(required_text(predicate))
    return None


def _all_screen(screens: list[Screen]) -> Screen:
    return lambda data: all(screen(data) for screen in screens)


def _any_screen(screens: list[Screen]) -> Screen:
    return lambda data: any(screen(data) for screen in screens)


def _of_requirement(requirement: Requirement) -> Screen | None:
    if isinstance(requirement, LiteralPiece):
        return _of_text(requirement.text)
    found = [_of_requirement(part) for part in requirement.parts]
    screens = [screen for screen in found if screen is not None]
    if isinstance(requirement, AllOf):
        return _all_screen(screens) if screens else None
    assert isinstance(requirement, AnyOf)
    return _any_screen(screens) if screens and len(screens) == len(found) else None


def _of_text(text: str) -> Screen | None:
    return None if not text else _NeedleScreen(new_needle(text, case_sensitive=False))


class _NeedleScreen:
    """Looks for one text, ignoring case; this also finds a text whose case matters."""

    def __init__(self, needle: Needle) -> None:
        self._needle = needle

    def __call__(self, data: U8Array) -> bool:
        found = np.zeros(1, bool)
        find_rows(data, np.array([0, len(data)], np.int64), self._needle, found)
        return bool(found[0])
