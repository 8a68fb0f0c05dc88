"""Defaults, with their units and the reason for each."""

from typing import Final

BATCH_BYTES: Final = 512 * 1024
"""Raw text of a batch: large enough to compress well, small enough that opening one for nothing hurts little."""

MEMORY_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""What a mutable sketch may use before it spills (paper 5.1.1)."""

POSTING_LIMIT: Final = 1 << 16
"""Postings are 0 to 65,535: they are kept in 2 bytes (paper 4.1)."""

SHORT_LIST_POSTINGS: Final = 128
"""Longest posting list that is kept as sorted 2-byte numbers: half the work of copying a 512-byte bitset."""

SIGNATURE_BITS: Final = 8
"""Bits that tell a token that was never added from one that was; see docs/decisions/0003-signature-bits.md."""

FULL_SIGNATURE_BITS: Final = 32
"""A signature that is the whole fingerprint: such a sketch can be merged with others (paper 4.3)."""
