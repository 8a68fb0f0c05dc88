"""Writes `sketch-1.0.copr`, the golden bytes of sketch format 1.0: ``python tests/golden/make.py``.

To be run only when a new format version begins, under a new file name: today's code must go on to open what this
script wrote then. `expected` is what the file has to answer for ever.
"""

from functools import cache
from pathlib import Path

import numpy as np

from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.sealing import encode
from coprlake.tokens.fingerprint import fingerprint

FILE = Path(__file__).with_name("sketch-1.0.copr")
SIGNATURE_BITS = 32
OBJECT_ID = bytes(range(16))


@cache
def expected() -> dict[int, set[int]]:
    """The postings of each fingerprint."""
    random = np.random.default_rng(1)
    postings_of = {
        int(token): set(random.choice(5, int(random.integers(1, 6)), replace=False).tolist())
        for token in random.integers(1, 1 << 32, 40, np.uint32)
    }
    words = {"error": {0, 2}, "info": {0, 1, 3}, "connection": {0, 2}, "10.0.0.1": {4}, "größe": {0, 1, 2, 3, 4}}
    return postings_of | {fingerprint(word): postings for word, postings in words.items()}


def make() -> bytes:
    """The bytes of the golden sketch."""
    sketch = MutableSketch()
    for posting in range(5):
        tokens = [token for token, postings in expected().items() if posting in postings]
        sketch.insert(np.array(tokens, np.uint32), posting)
    return b"".join(encode(sketch, signature_bits=SIGNATURE_BITS, object_id=OBJECT_ID)[0])


if __name__ == "__main__":
    FILE.write_bytes(make())
