"""The text of a batch as stored in the data file: decompressed, not decoded.

Most batches that a scan opens have no match. The bytes of the page are enough to find that out: in plain encoding the
bytes of a value are contiguous, after its length. Decoding them into an Arrow array adds half the time of decompressing
them, so we decode only where something may match.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from coprlake.kernel import U8Array
from coprlake.segment.column_chunks import UNKNOWN

_FRAME_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_LONGEST_HEADER_BYTES: Final = 256
_LARGEST_PAGE_BYTES: Final = (1 << 31) - 1
"""A page states its size as a signed 32-bit number."""
_CODEC: Final = pa.Codec("zstd")
_ZSTD: Final = 6
_PLAIN: Final = {0b0001, 0b1001}
"""Plain values, with or without levels (encoding 3)."""


def page_bytes(source: pa.NativeFile, chunk: np.void) -> U8Array | None:
    """The decompressed page of a column chunk that consists of one plain page; None if it does not, or might not.

    To skip the page's header, we look for the compressor's frame after it. Anything unexpected gives None, never wrong
    bytes: the frame must fill the chunk, and its content must have the size that the footer states.
    """
    if chunk["codec"] != _ZSTD or chunk["dictionary_page_offset"] != UNKNOWN or chunk["encodings"] not in _PLAIN:
        return None
    offset, size = int(chunk["data_page_offset"]), int(chunk["compressed_bytes"])
    uncompressed = int(chunk["uncompressed_bytes"])
    if not 0 <= offset <= offset + size <= source.size():
        return None  # damaged; reading allocates `size` bytes first
    source.seek(offset)
    stored = source.read_buffer(size)
    header_bytes = bytes(stored[:_LONGEST_HEADER_BYTES]).find(_FRAME_MAGIC)
    if header_bytes < 0:
        return None
    if not 0 < uncompressed - header_bytes <= _LARGEST_PAGE_BYTES:
        return None
    try:
        page = _CODEC.decompress(stored[header_bytes:], uncompressed - header_bytes)
    except (OSError, pa.ArrowException, ValueError):
        return None  # several pages, or damage: Arrow's reader will tell
    return np.frombuffer(memoryview(page), np.uint8)
