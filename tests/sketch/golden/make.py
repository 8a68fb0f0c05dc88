"""Writes the golden bytes of the sketch formats: ``python tests/sketch/golden/make.py``.

To be run only when a new format version begins, under a new file name: today's code must go on to open what this
script wrote then. `expected` is what the files have to answer for ever.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from coprlake.config import RuleSet
from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.sealing import encode
from coprlake.tokens.fingerprint import fingerprint

SIGNATURE_BITS = 32
OBJECT_ID = bytes(range(16))


class Content(NamedTuple):
    """How much a golden sketch holds: random tokens beside a few words, in so many batches."""

    tokens: int
    postings: int


class Golden(NamedTuple):
    """A file, the token rules that stand in it, its minor version, and what it holds."""

    file: Path
    rules: RuleSet
    minor: int
    content: Content


SMALL = Content(40, 5)
OF_SEVERAL_SAMPLES = Content(300, 12)  # more tokens than one sample of the widths spans, most with lists of their own
FILES = {
    "1.0": Golden(Path(__file__).with_name("sketch-1.0.copr"), RuleSet.PAPER, 0, SMALL),
    "1.1": Golden(Path(__file__).with_name("sketch-1.1.copr"), RuleSet.WINNOWED, 1, OF_SEVERAL_SAMPLES),
    "1.2": Golden(Path(__file__).with_name("sketch-1.2.copr"), RuleSet.WINNOWED, 2, OF_SEVERAL_SAMPLES),
}


@cache
def expected(content: Content = SMALL) -> dict[int, set[int]]:
    """The postings of each fingerprint."""
    random = np.random.default_rng(1)
    postings_of = {
        int(token): set(random.choice(content.postings, int(random.integers(1, 6)), replace=False).tolist())
        for token in random.integers(1, 1 << 32, content.tokens, np.uint32)
    }
    words = {"error": {0, 2}, "info": {0, 1, 3}, "connection": {0, 2}, "10.0.0.1": {4}, "größe": {0, 1, 2, 3, 4}}
    return postings_of | {fingerprint(word): postings for word, postings in words.items()}


def make(version: str, content: Content | None = None) -> bytes:
    """The bytes of a sketch of any version, also of those that are no longer written; by default the golden one."""
    golden = FILES[version]
    content = content or golden.content
    sketch = MutableSketch()
    for posting in range(content.postings):
        tokens = [token for token, postings in expected(content).items() if posting in postings]
        sketch.insert(np.array(tokens, np.uint32), posting)
    with patch("coprlake.sketch.sealing.minor_for", return_value=golden.minor):
        return b"".join(encode(sketch, signature_bits=SIGNATURE_BITS, object_id=OBJECT_ID, rules=golden.rules)[0])


if __name__ == "__main__":
    for name, golden in FILES.items():
        golden.file.write_bytes(make(name))
