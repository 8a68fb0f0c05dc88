"""Defaults, with their units and the reason for each."""

from enum import StrEnum
from typing import Final

BATCH_BYTES: Final = 512 * 1024
"""Raw text of a batch: large enough to compress well, small enough that opening one for nothing hurts little."""

MEMORY_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""What a mutable sketch may use before it spills (paper 5.1.1)."""

POSTING_LIMIT: Final = 1 << 16
"""Postings are 0 to 65,535: they are kept in 2 bytes (paper 4.1)."""

SHORT_LIST_POSTINGS: Final = 128
"""Longest posting list that is kept as sorted 2-byte numbers: half the work of copying a 512-byte bitset."""


class RuleSet(StrEnum):
    """How text is split into tokens. Each member equals its name, which is what tables and command lines say."""

    WINNOWED = "winnowed"
    """The rules of the paper, less the tokens that winnowed grams replace, and winnowed grams."""
    PAPER = "paper"
    """The eight rules of the paper."""


RULES: Final = RuleSet.WINNOWED
"""The rule set of new tables; see docs/decisions/0016-winnowed-grams.md."""

SIGNATURE_BITS: Final = 6
"""Bits that tell a token that was never added from one that was. With rule set 2 nearly every search asks for several
tokens, each of which has to pass; see docs/decisions/0016-winnowed-grams.md."""

PAPER_SIGNATURE_BITS: Final = 8
"""The same for the rules of the paper; see docs/decisions/0003-signature-bits.md."""

FULL_SIGNATURE_BITS: Final = 32
"""A signature that is the whole fingerprint: such a sketch can be merged with others (paper 4.3)."""

SLOT_COUNT: Final = 32
"""Batches that are open at a time in a segment; with the size of a batch this bounds what waits in memory."""

SEGMENT_BYTES: Final = 512 * 1024 * 1024
"""Raw text of a segment: sealed when it has so much. Sealing takes memory by the number of tokens: with segments of
this size an ingest stays within 600 MB, with twice as much it does not."""

OPTIMIZED_SEGMENT_BYTES: Final = 1024 * 1024 * 1024
"""Raw text of a segment that `optimize` makes: a file of some 120 MB, as lakehouse engines like them."""

OPEN_SEGMENTS: Final = 64
"""Partitions that a writer keeps open at a time; one more, and the one that waited longest is sealed."""

MERGEABLE_BYTES: Final = 4 * 1024 * 1024
"""A segment with less raw text keeps whole fingerprints, so that `optimize` can merge it without the logs."""

DATA_LEVEL: Final = 3
"""Zstandard level of data as it comes in."""

OPTIMIZED_LEVEL: Final = 9
"""Zstandard level of data that `optimize` writes."""

WRITER_MEMORY_BYTES: Final = 160 * 1024 * 1024
"""What the sketches and open batches of all segments of a writer may take before the largest is sealed."""

VACUUM_HOURS: Final = 168
"""Files that left the table longer ago than this are removed by `vacuum`: a week, as Delta has it."""
