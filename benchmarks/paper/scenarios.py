"""The paper's five query scenarios (5.2), from fixed seeds, as many queries as somebody wants."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
SCENARIOS = ("term(ID)", "contains(ID)", "term(IP)", "contains(IP)", "term(extracted)")


@dataclass(frozen=True)
class Query:
    """A question to a store."""

    kind: str
    text: str


def queries(scenario: str, extracted: list[str], seed: int = 1) -> Iterator[Query]:
    """The queries of a scenario, without end: 16 random letters, three random groups of three digits, or words."""
    kind = scenario.partition("(")[0]
    random = np.random.default_rng([seed, 1 + SCENARIOS.index(scenario) // 2])
    while True:
        if "ID" in scenario:
            yield Query(kind, "".join(random.choice(LETTERS, 16)))
        elif "IP" in scenario:
            yield Query(kind, ".".join(map(str, random.integers(100, 1000, 3))))
        else:
            yield Query(kind, extracted[int(random.integers(len(extracted)))])


def long_words(content: pa.ChunkedArray, count: int = 200, seed: int = 1) -> list[str]:
    """Some of the distinct words of more than eight letters and digits, each as likely as any other.

    So most are rare, as in the paper, where such a term is in 0.4 to 4.8 % of the batches.
    """
    ordered = _words(content, 9) or _words(content, 1) or [b"nothing"]
    random = np.random.default_rng([seed, 9])
    chosen = random.choice(len(ordered), min(count, len(ordered)), replace=False)
    return [ordered[number].decode() for number in chosen]


def _words(content: pa.ChunkedArray, shortest: int) -> list[bytes]:
    words: set[bytes] = set()
    for chunk in content.chunks:
        together = pa.ListArray.from_arrays(pa.array([0, len(chunk)], pa.int32()), chunk.cast(pa.binary()))
        text = pc.binary_join(together, b"\n")[0].as_py()
        words.update(re.findall(rb"[0-9A-Za-z]{%d,}" % shortest, text))
    return sorted(words)
