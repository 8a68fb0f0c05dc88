"""The tokens that a predicate needs in a segment, compiled for its sketch."""

from functools import lru_cache
from typing import Final, Literal, NamedTuple

import numpy as np

from coprlake.config import RuleSet
from coprlake.kernel import I32Array, U32Array
from coprlake.predicate.narrowing.required import required_tokens
from coprlake.predicate.paths import is_path
from coprlake.predicate.predicates import ALL_FIELDS, ANY_VALUE, Contains, Predicate, Term
from coprlake.records import CONTENT
from coprlake.sketch.algebra import ANYTHING, NOTHING, TokenProgram, compile_all_tokens, compile_expression
from coprlake.tokens.profile import VALUES_FIELD, Profile
from coprlake.tokens.required_tokens import piece_tokens

NEVER: Final = "never"
SOMETIMES: Final = "sometimes"
ALWAYS_POSSIBLE: Final = "always"

_RULES: Final[dict[str, RuleSet]] = {rules.value: rules for rules in RuleSet}

Kind = Literal["never", "sometimes", "always"]


class Demand(NamedTuple):
    """The tokens that a batch must contain, as a program.

    Attributes:
        kind: ``never`` if no record of the segment can match, ``always`` if nothing can be ruled out.
        program: the question to the sketch.
        notes: in words, what the index could not narrow.
    """

    kind: Kind
    program: TokenProgram
    notes: tuple[str, ...]


NO_SKETCHES: Final = Demand(
    ALWAYS_POSSIBLE, compile_expression(ANYTHING), ("the sketches are not used, as was asked for",)
)


def demand_of(predicate: Predicate, profile: Profile) -> Demand:
    """`required_tokens`, compiled. The most frequent searches take a short cut of a few microseconds."""
    if isinstance(predicate, Term | Contains) and predicate.field != ALL_FIELDS and not is_path(predicate.field):
        field = CONTENT if predicate.field == ANY_VALUE and profile.only_content else predicate.field
        indexed = profile.fields.get(field)
        if indexed is not None and field not in profile.typed:
            is_open = isinstance(predicate, Contains)
            tokens = piece_tokens(predicate.text, field, left_open=is_open, right_open=is_open, rules=indexed.rules)
            if len(tokens):
                return Demand(SOMETIMES, compile_all_tokens(tokens), ())
    if isinstance(predicate, Term | Contains) and predicate.field == ANY_VALUE and profile.values in _RULES:
        program = _in_any_value(predicate, profile)
        if program is not None:
            return Demand(SOMETIMES, program, ())
    expression, notes = required_tokens(predicate, profile)
    found: Kind = NEVER if expression == NOTHING else ALWAYS_POSSIBLE if expression == ANYTHING else SOMETIMES
    return Demand(found, compile_expression(expression), notes)


def _in_any_value(predicate: Term | Contains, profile: Profile) -> TokenProgram | None:
    """What `required_tokens` makes of a text in any value, in the content or elsewhere; None if it is not as usual."""
    content = profile.fields.get(CONTENT)
    if content is None or CONTENT in profile.typed or profile.only_content:
        return None
    is_open = isinstance(predicate, Contains)
    text, rules = predicate.text, _RULES[profile.values]
    inside = piece_tokens(text, CONTENT, left_open=True, right_open=True, rules=content.rules)
    elsewhere = piece_tokens(text, VALUES_FIELD, left_open=is_open, right_open=is_open, rules=rules)
    return compile_either(inside, elsewhere) if len(inside) and len(elsewhere) else None


def compile_either(one: U32Array, other: U32Array) -> TokenProgram:
    """The batches with all tokens of one or of the other, neither empty, compiled without building the expression."""
    return TokenProgram(np.concatenate((one, other)), _steps_of_either(len(one), len(other)))


@lru_cache(maxsize=1024)
def _steps_of_either(first: int, second: int) -> I32Array:
    steps: list[int] = []
    for start, count in ((0, first), (first, second)):
        steps += range(start, start + count)
        steps.append(-2 * count - 1)
    found = np.array([*steps, -6], np.int32)
    found.flags.writeable = False
    return found
