"""Finds the smallest case that still fails: fewer rows, fewer columns, a simpler question."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from coprlake.predicate.predicates import And, Not, OneOf, Or, Predicate
from coprlake.testing.torture.answers.answer_comparing import SearchCase
from coprlake.testing.torture.answers.foreign_data import ID
from coprlake.testing.torture.answers.random_pipelines import Pipeline

Question = SearchCase | Pipeline
Fails = Callable[[pa.Table, Question], str | None]


def shrunk(data: pa.Table, question: Question, fails: Fails, seconds: float) -> tuple[pa.Table, Question, str]:
    """The smallest data and question found in the given time that still fail, and how they fail.

    Args:
        data: rows for which the question fails.
        question: a search or a pipeline.
        fails: returns what is wrong with a smaller case; None if nothing is.
        seconds: the time limit.
    """
    end = time.monotonic() + seconds
    problem = fails(data, question) or "it failed once, and not again"

    def attempt(smaller: pa.Table, simpler: Question) -> bool:
        nonlocal data, question, problem
        if time.monotonic() > end:
            return False
        found = fails(smaller, simpler)
        if found is None:
            return False
        data, question, problem = smaller, simpler, found
        return True

    progress = True
    while progress and time.monotonic() < end:
        progress = any(attempt(data, simpler) for simpler in simpler_questions(question))
        progress = _fewer_rows(lambda: data, lambda smaller: attempt(smaller, question)) or progress
        for name in [name for name in data.schema.names if name != ID]:
            progress = attempt(data.drop_columns([name]), question) or progress
    return data, question, problem


def _fewer_rows(data: Callable[[], pa.Table], attempt: Callable[[pa.Table], bool]) -> bool:
    progress = False
    size = max(1, data().num_rows // 2)
    while size >= 1:
        start = 0
        while start < data().num_rows:
            whole = data()
            rest = pa.concat_tables([whole.slice(0, start), whole.slice(start + size)])
            if rest.num_rows < whole.num_rows and attempt(rest):
                progress = True
            else:
                start += size
        if size == 1:
            break
        size //= 2
    return progress


def simpler_questions(question: Question) -> Iterator[Question]:
    """Questions with one part removed or simplified."""
    if isinstance(question, SearchCase):
        if (question.since, question.until) != (None, None):
            yield replace(question, since=None, until=None)
        for predicate in simpler(question.predicate):
            yield replace(question, predicate=predicate)
        return
    for number in range(len(question.steps)):
        yield replace(question, steps=question.steps[:number] + question.steps[number + 1 :])
    if question.end != "ids":
        yield replace(question, end="ids")


def simpler(predicate: Predicate) -> Iterator[Predicate]:
    """Predicates with one part removed or simplified."""
    if isinstance(predicate, Not):
        yield predicate.part
        yield from (Not(part) for part in simpler(predicate.part))
    elif isinstance(predicate, And | Or):
        kind = type(predicate)
        yield from predicate.parts
        for number, part in enumerate(predicate.parts):
            before, after = predicate.parts[:number], predicate.parts[number + 1 :]
            yield kind((*before, *after))
            yield from (kind((*before, other, *after)) for other in simpler(part))
    elif isinstance(predicate, OneOf):
        for number in range(len(predicate.values)):
            yield replace(predicate, values=predicate.values[:number] + predicate.values[number + 1 :])
