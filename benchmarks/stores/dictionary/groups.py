"""Writing a group of lines: templates and stamps, dictionaries, data, and the lines that fit no template.

A group is one piece of a file: a *head* (the texts of templates, how many lines each has, and of each column its fields
and stamp), then blocks. A block holds the dictionary parts or the data parts of some columns that follow each other;
the last block holds the other lines. All are compressed with zstd, each on its own, so that a question opens what it
needs.
"""

from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.stores.batches import LEVEL
from benchmarks.stores.dictionary.columns import (
    DATA,
    DICTIONARY,
    FIELD_COUNT,
    Columns,
    encode_columns,
    new_columns,
    new_scratch,
)
from benchmarks.stores.dictionary.parsing import (
    MARK,
    NO_TEMPLATE,
    POOL_BYTES,
    TEMPLATE_COUNT,
    VARIABLE_COUNT,
    Parsed,
    parse,
)
from coprlake.kernel import I64Array, U8Array
from coprlake.text.arrow_strings import occurring_strings, string_buffers

LEAST_LINES: Final = 12
"""A template with fewer lines in a group is none: what is said of its columns would be longer than they are."""
BLOCK_BYTES: Final = 128 * 1024
"""A block is closed by the column that brings it to this size."""
_CODEC: Final = pa.Codec("zstd", compression_level=LEVEL)


def _packed(data: bytes | U8Array | memoryview) -> bytes:
    return bytes(_CODEC.compress(pa.py_buffer(data), asbytes=True))


def _cuts(sizes: I64Array) -> list[int]:
    """The columns at which blocks begin, and the number of columns."""
    ends = np.cumsum(sizes)
    cuts, done = [0], 0
    while cuts[-1] < len(sizes):
        last = min(int(np.searchsorted(ends, done + BLOCK_BYTES)) + 1, len(sizes))
        done = int(ends[last - 1])
        cuts.append(last)
    return cuts


class _HeadWriter:
    """Arrays one after the other, each with its length."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def add(self, values: object, dtype: type[np.generic]) -> None:
        array = np.ascontiguousarray(values, dtype)
        self._parts += [len(array).to_bytes(8, "little"), array.tobytes()]

    def bytes(self) -> bytes:
        return b"".join(self._parts)


def _blocks(parts: U8Array, sizes: I64Array) -> tuple[list[int], list[bytes]]:
    """The columns at which blocks begin, and the blocks."""
    cuts = _cuts(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    blocks = [
        _packed(parts[offsets[first] : offsets[last]]) if offsets[last] > offsets[first] else b""
        for first, last in pairwise(cuts)
    ]
    return cuts, blocks


def encode_group(lines: pa.Array) -> bytes:
    """The bytes of a group with these lines."""
    data, starts = string_buffers(occurring_strings(lines))
    parsed = parse(data, starts)
    chosen, order, ends = _chosen_templates(parsed, len(lines))
    variable_counts = [int(np.count_nonzero(_template_text(parsed, template) == MARK)) for template in chosen]
    columns = new_columns(sum(variable_counts), int(parsed.sizes[VARIABLE_COUNT]), int(starts[-1] - starts[0]))
    scratch = new_scratch(len(lines))
    for i, variable_count in enumerate(variable_counts):
        encode_columns(data, parsed, order[ends[i] : ends[i + 1]], variable_count, scratch, columns)
    texts = [_template_text(parsed, template) for template in chosen]
    others = lines.take(pa.array(order[ends[-1] :]))
    return _written(texts, np.diff(ends), columns, others)


def _template_text(parsed: Parsed, template: int) -> U8Array:
    return parsed.pool[parsed.template_starts[template] : parsed.template_starts[template + 1]]


def _chosen_templates(parsed: Parsed, line_count: int) -> tuple[list[int], I64Array, I64Array]:
    """The templates with enough lines, most first; the lines in their order, others last; where those of each end."""
    template_count = int(parsed.sizes[TEMPLATE_COUNT])
    assert parsed.sizes[POOL_BYTES] == parsed.template_starts[template_count]
    counts = np.bincount(parsed.templates[parsed.templates != NO_TEMPLATE], minlength=template_count)
    by_count = np.argsort(-counts, kind="stable")
    chosen = by_count[: int(np.count_nonzero(counts >= LEAST_LINES))]
    ranks = np.full(template_count + 1, len(chosen), np.int32)  # the last one is for NO_TEMPLATE
    ranks[chosen] = np.arange(len(chosen))
    order = np.argsort(ranks[parsed.templates], kind="stable")
    ends = np.concatenate([[0], np.cumsum(counts[chosen])]).astype(np.int64)
    assert len(order) == line_count
    return chosen.tolist(), order, ends


def _written(texts: list[U8Array], line_counts: I64Array, columns: Columns, others: pa.Array) -> bytes:
    other_data, other_starts = string_buffers(occurring_strings(others))
    other_sizes = np.diff(other_starts).astype(np.uint32).view(np.uint8)
    other_block = np.concatenate([other_sizes, other_data[other_starts[0] : other_starts[-1]]])
    dictionary_cuts, dictionary_blocks = _blocks(columns.dictionary, columns.fields[:, DICTIONARY])
    data_cuts, data_blocks = _blocks(columns.data, columns.fields[:, DATA])
    blocks = [*dictionary_blocks, *data_blocks, _packed(other_block) if len(others) else b""]
    head = _HeadWriter()
    head.add(np.concatenate([*texts, np.zeros(0, np.uint8)]), np.uint8)
    head.add([len(text) for text in texts], np.uint32)
    head.add(line_counts, np.uint32)
    for field in range(FIELD_COUNT):
        head.add(columns.fields[:, field], np.uint32)
    head.add(columns.masks.T.reshape(-1), np.uint64)
    head.add(dictionary_cuts, np.uint32)
    head.add(data_cuts, np.uint32)
    head.add([len(block) for block in blocks], np.uint32)
    head.add([len(others), len(other_block)], np.uint32)
    raw = head.bytes()
    packed = _packed(raw)
    sizes = len(raw).to_bytes(4, "little") + len(packed).to_bytes(4, "little")
    return b"".join([sizes, packed, *blocks])
