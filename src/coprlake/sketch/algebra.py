"""The set algebra of pruning: which batches can match, expressed in tokens.

An expression is plain data. `And` of nothing is ANYTHING (no batch can be ruled out), `Or` of nothing is NOTHING.
There is no "not": a batch that contains a token may also contain lines without it, so a negation rules nothing out.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from coprlake.kernel import I32Array, I64Array, U8Array, U32Array, i64, kernel


@dataclass(frozen=True, slots=True)
class Token:
    """The batches that may contain this fingerprint."""

    fingerprint: int


@dataclass(frozen=True, slots=True)
class And:
    """The batches that are in all parts."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """The batches that are in at least one part."""

    parts: tuple["Expression", ...]


Expression: TypeAlias = Token | And | Or

ANYTHING: Final = And(())
NOTHING: Final = Or(())


def batches_in_all(*parts: Expression) -> Expression:
    """`And`, made flat: no ANYTHING and no And inside, NOTHING if a part is, the part itself if there is one."""
    flat = dict.fromkeys(inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,)))
    if NOTHING in flat:
        return NOTHING
    return next(iter(flat)) if len(flat) == 1 else And(tuple(flat))


def batches_in_any(*parts: Expression) -> Expression:
    """`Or`, made flat: no NOTHING and no Or inside, ANYTHING if a part is, the part itself if there is one."""
    flat = dict.fromkeys(inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,)))
    if ANYTHING in flat:
        return ANYTHING
    return next(iter(flat)) if len(flat) == 1 else Or(tuple(flat))


def all_tokens(fingerprints: U32Array) -> Expression:
    """The batches that may contain all of these tokens."""
    return batches_in_all(*(Token(fingerprint) for fingerprint in dict.fromkeys(fingerprints.tolist())))


class TokenProgram(NamedTuple):
    """An expression compiled for a stack machine, so that one kernel call evaluates it on many sketches.

    A step ``s >= 0`` pushes whether token ``s`` is present; ``-2 * n - 1`` replaces the top ``n`` values with their
    "and", ``-2 * n - 2`` with their "or".
    """

    fingerprints: U32Array
    steps: I32Array


def compile_expression(expression: Expression) -> TokenProgram:
    """Compile an expression; each of its tokens is in the program once."""
    tokens: dict[int, int] = {}
    steps: list[int] = []
    waiting: list[tuple[Expression, bool]] = [(expression, False)]
    while waiting:  # no recursion: a query may be nested deeply
        node, parts_done = waiting.pop()
        if isinstance(node, Token):
            steps.append(tokens.setdefault(node.fingerprint, len(tokens)))
        elif parts_done:
            steps.append(-2 * len(node.parts) - (1 if isinstance(node, And) else 2))
        else:
            waiting.append((node, True))
            waiting.extend((part, False) for part in reversed(node.parts))
    return TokenProgram(np.array(list(tokens), np.uint32), np.array(steps, np.int32))


@lru_cache(maxsize=256)
def _steps_of_all(count: int) -> I32Array:
    steps = np.append(np.arange(count), -2 * count - 1).astype(np.int32)
    steps.flags.writeable = False
    return steps


def compile_all_tokens(fingerprints: U32Array) -> TokenProgram:
    """``compile_expression(all_tokens(fingerprints))`` for distinct fingerprints, without building the expression."""
    return TokenProgram(fingerprints, _steps_of_all(len(fingerprints)))


@kernel
def is_conjunction(steps: I32Array, token_count: int) -> bool:
    """Whether the program is just the "and" of all its tokens, as most searches are."""
    if len(steps) == 1:
        return token_count == 1
    last = i64(steps[len(steps) - 1])
    return len(steps) == token_count + 1 and last == -2 * token_count - 1


@kernel
def may_match(steps: I32Array, list_ids: I64Array, stack: U8Array) -> bool:
    """Evaluate the steps; tokens with ``list_ids >= 0`` are present.

    False means that no batch can match; True means that some may. `stack` has room for all steps.
    """
    top = 0
    for i in range(len(steps)):
        step = i64(steps[i])
        if step >= 0:
            stack[top] = 1 if list_ids[step] >= 0 else 0
            top += 1
            continue
        count = (-step - 1) >> 1
        wants_all = step & 1 == 1
        result = wants_all
        for k in range(top - count, top):
            result = (result and stack[k] == 1) if wants_all else (result or stack[k] == 1)
        top -= count
        stack[top] = 1 if result else 0
        top += 1
    return stack[0] == 1
