"""Queries on any sketch (paper 4.4): mutable, sealed or partly spilled."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from coprlake.errors import UsageError
from coprlake.kernel import I64Array, U8Array, U16Array, U32Array
from coprlake.records import CONTENT
from coprlake.sketch.algebra import Expression, Token, TokenProgram, compile_expression, may_match
from coprlake.tokens.fingerprint import fingerprint


class PostingsConsumer(Protocol):
    """Takes the posting lists of a query's tokens, one by one, until it has seen enough."""

    def accept(self, postings: U16Array) -> None:
        """Take the postings of a token that is present, or an empty array for one that is absent."""

    def should_stop(self) -> bool:
        """Whether more lists cannot change the result."""


def as_fingerprints(fingerprints: U32Array) -> U32Array:
    """The array in the form that kernels take; rejects anything but uint32 instead of truncating it."""
    if not isinstance(fingerprints, np.ndarray) or fingerprints.dtype != np.uint32 or fingerprints.ndim != 1:
        kind = getattr(fingerprints, "dtype", type(fingerprints).__name__)
        raise UsageError(f"fingerprints must be a one-dimensional NumPy array of uint32, not {kind}")
    return np.ascontiguousarray(fingerprints)


class Sketch(ABC):
    """A map from fingerprints to sets of postings that may give too many postings, never too few."""

    @property
    @abstractmethod
    def token_count(self) -> int:
        """The number of distinct fingerprints."""

    @property
    @abstractmethod
    def posting_count(self) -> int:
        """One more than the largest posting; 0 for an empty sketch."""

    @abstractmethod
    def list_ids(self, fingerprints: U32Array) -> I64Array:
        """A number that identifies each fingerprint's posting list in this sketch, -1 where it is absent."""

    @abstractmethod
    def decode(self, list_id: int) -> U16Array:
        """The postings of a list, ascending."""

    def close(self) -> None:  # noqa: B027 (a sketch in memory has nothing to release)
        """Release files, if there are any; the sketch cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def may_contain(self, token: str | bytes, field: str = CONTENT) -> bool:
        """Whether any batch can contain the token."""
        return bool(self.list_ids(np.array([fingerprint(token, field)], np.uint32))[0] >= 0)

    def candidate_postings(self, token: str | bytes, field: str = CONTENT) -> U16Array:
        """The batches that can contain the token, ascending."""
        return self.candidates(Token(fingerprint(token, field)))

    def query(self, tokens: Iterable[str | bytes], consumer: PostingsConsumer, field: str = CONTENT) -> None:
        """Algorithm 3: hand the posting list of each token to the consumer; each distinct list is decoded once."""
        fingerprints = np.array([fingerprint(token, field) for token in tokens], np.uint32)
        list_ids: dict[int, None] = {}
        for list_id in self.list_ids(fingerprints).tolist():
            if list_id >= 0:
                list_ids[list_id] = None
                continue
            consumer.accept(np.zeros(0, np.uint16))
            if consumer.should_stop():
                return
        for list_id in list_ids:
            consumer.accept(self.decode(list_id))
            if consumer.should_stop():
                return

    def candidates(self, expression: Expression) -> U16Array:
        """The batches that can match an expression over tokens, ascending."""
        return self.run(compile_expression(expression))

    def run(self, program: TokenProgram) -> U16Array:
        """Like `candidates`, for an expression that is compiled once and run on many sketches."""
        list_ids = self.list_ids(program.fingerprints)
        if not may_match(program.steps, list_ids, np.zeros(len(program.steps), np.uint8)):
            return np.zeros(0, np.uint16)
        marked = _Evaluation(self).evaluate(program.steps.tolist(), list_ids.tolist())
        return np.flatnonzero(marked).astype(np.uint16)


class _Evaluation:
    """Runs a program on one sketch, with one byte per posting.

    The stack holds the number of a token's list. The list is decoded once, when a combination needs it, and not at all
    if an "and" is already empty. Lists with low numbers come first: single postings have the lowest ones.
    """

    def __init__(self, sketch: Sketch) -> None:
        self._sketch = sketch
        self._decoded: dict[int, U8Array] = {}

    def evaluate(self, steps: list[int], list_ids: list[int]) -> U8Array:
        stack: list[int | U8Array] = []
        for step in steps:
            if step >= 0:
                stack.append(list_ids[step])
                continue
            count = (-step - 1) // 2
            operands = [stack.pop() for _ in range(count)]
            stack.append(self._combine(operands, wants_all=step % 2 == 1))
        return self._marked(stack.pop())

    def _combine(self, operands: list[int | U8Array], *, wants_all: bool) -> U8Array:
        result = np.full(self._sketch.posting_count, wants_all, np.uint8)
        for operand in sorted(operands, key=lambda operand: operand if isinstance(operand, int) else -1):
            if wants_all:
                result &= self._marked(operand)
                if not result.any():
                    break
            else:
                result |= self._marked(operand)
        return result

    def _marked(self, operand: int | U8Array) -> U8Array:
        if not isinstance(operand, int):
            return operand
        if operand not in self._decoded:
            marked = np.zeros(self._sketch.posting_count, np.uint8)
            if operand >= 0:
                marked[self._sketch.decode(operand)] = 1
            self._decoded[operand] = marked
        return self._decoded[operand]
