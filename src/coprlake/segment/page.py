"""The text of a batch as it lies in the data file: decompressed, not decoded.

Most batches that a scan opens hold no match. To find that out, the bytes of the page are enough: in plain encoding the
bytes of a value stand together, with its length before it. Decoding them into an Arrow array takes half as long again
as decompressing them, so it is left until there is something to decode.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from coprlake.kernel import U8Array
from coprlake.segment.column_chunks import UNKNOWN

_FRAME_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_LONGEST_HEADER_BYTES: Final = 256
_LARGEST_PAGE_BYTES: Final = (1 << 31) - 1
"""A page states its size in 32 bits with a sign."""
_CODEC: Final = pa.Codec("zstd")
_ZSTD: Final = 6
_PLAIN: Final = {0b0001, 0b1001}
"""Plain values, and levels (encoding 3) or none."""


def page_bytes(source: pa.NativeFile, chunk: np.void) -> U8Array | None:
    """The decompressed page of a column chunk that consists of one plain page; None if it does not, or may not.

    The page's header is skipped by looking for the frame of the compressor behind it. Whatever is not as expected gives
    None, never wrong bytes: the frame must fill the chunk, and its content the size that the footer states.
    """
    if chunk["codec"] != _ZSTD or chunk["dictionary_page_offset"] != UNKNOWN or chunk["encodings"] not in _PLAIN:
        return None
    offset, size = int(chunk["data_page_offset"]), int(chunk["compressed_bytes"])
    uncompressed = int(chunk["uncompressed_bytes"])
    if not 0 <= offset <= offset + size <= source.size():
        return None  # damage; memory is taken for `size` before anything is read
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
        return None  # several pages, or damage: the reader of the library will tell
    return np.frombuffer(page, np.uint8)
