"""The tokens that a predicate needs in a segment, compiled for its sketch."""

from typing import Final, Literal, NamedTuple

from coprlake.config import RuleSet
from coprlake.predicate.narrowing.required import required_tokens
from coprlake.predicate.paths import is_path
from coprlake.predicate.predicates import ALL_FIELDS, ANY_VALUE, Contains, Predicate, Term
from coprlake.records import CONTENT
from coprlake.sketch.algebra import ANYTHING, NOTHING, TokenProgram, compile_all_tokens, compile_expression
from coprlake.tokens.profile import Profile
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
    if isinstance(predicate, Term | Contains):
        where = _where(predicate.field, profile)
        if where is not None:
            place, rules = where
            is_open = isinstance(predicate, Contains)
            tokens = piece_tokens(predicate.text, place, left_open=is_open, right_open=is_open, rules=rules)
            if len(tokens):
                return Demand(SOMETIMES, compile_all_tokens(tokens), ())
    expression, notes = required_tokens(predicate, profile)
    found: Kind = NEVER if expression == NOTHING else ALWAYS_POSSIBLE if expression == ANYTHING else SOMETIMES
    return Demand(found, compile_expression(expression), notes)


def _where(field: str, profile: Profile) -> tuple[str, RuleSet | None] | None:
    """The field that the tokens of a field are scoped to, and their rules; None if it is not as simple as that."""
    if field == ANY_VALUE:
        if profile.any_value in _RULES:
            return CONTENT, _RULES[profile.any_value]
        if not profile.only_content:
            return None
        field = CONTENT
    elif field == ALL_FIELDS or is_path(field):
        return None
    indexed = profile.fields.get(field)
    if indexed is None or field in profile.typed:
        return None
    return indexed.place(field), indexed.rules
