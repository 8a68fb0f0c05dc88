"""Recursion that keeps its own stack.

Each command of a pipeline is a level of the plan, and Python stops at a thousand nested calls. A recursive computation
over plans is therefore a generator that yields each call instead of making it.
"""

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

ResultT = TypeVar("ResultT")
Steps: TypeAlias = Generator[Any, Any, ResultT]
"""A computation that yields other `Steps`, is sent the result of each, and returns its own."""


def run(steps: Steps[ResultT]) -> ResultT:
    """The result of a recursive computation, however deep it goes."""
    stack: list[Steps[Any]] = [steps]
    result: Any = None
    while stack:
        try:
            call = stack[-1].send(result)
        except StopIteration as end:
            stack.pop()
            result = end.value
        else:
            stack.append(call)
            result = None
    return result
