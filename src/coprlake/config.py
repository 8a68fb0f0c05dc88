"""Default values, with their units and the reason for each."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Final

BATCH_BYTES: Final = 512 * 1024
"""Raw text in a batch: enough to compress well, but little enough that opening one for nothing is cheap."""

MEMORY_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""Memory that a mutable sketch may use before it spills to disk (paper 5.1.1)."""

POSTING_LIMIT: Final = 1 << 16
"""Postings are numbers from 0 to 65,535, stored in 2 bytes (paper 4.1)."""

SHORT_LIST_POSTINGS: Final = 128
"""Longest posting list stored as sorted 2-byte numbers; copying it is half the work of copying a 512-byte bitset."""


class RuleSet(StrEnum):
    """How text is split into tokens. Each member equals its name, which is what tables and command lines say."""

    WINNOWED = "winnowed"
    """The rules of the paper, less the tokens that winnowed grams replace, and winnowed grams."""
    PAPER = "paper"
    """The eight rules of the paper."""


RULES: Final = RuleSet.WINNOWED
"""The rule set of new tables; see docs/decisions/0016-winnowed-grams.md."""

SIGNATURE_BITS: Final = 6
"""Bits per token that reject tokens that were never added. With rule set 2, nearly every search looks up several
tokens, all of which must pass; see docs/decisions/0016-winnowed-grams.md."""

PAPER_SIGNATURE_BITS: Final = 8
"""The same for the rules of the paper; see docs/decisions/0003-signature-bits.md."""

FULL_SIGNATURE_BITS: Final = 32
"""The whole fingerprint as the signature, which allows a sketch to be merged with others (paper 4.3)."""

SLOT_COUNT: Final = 32
"""Batches that a segment keeps open; together with the size of a batch, this limits the memory of a segment."""

SEGMENT_BYTES: Final = 512 * 1024 * 1024
"""Raw text in a segment before it is sealed. Sealing needs memory in proportion to the number of tokens: with this
size, an ingest stays below 600 MB; with twice the size, it does not."""

OPTIMIZED_SEGMENT_BYTES: Final = 1024 * 1024 * 1024
"""Raw text in a segment that `optimize` writes: about 120 MB on disk, a size that suits lakehouse engines."""

OPEN_SEGMENTS: Final = 64
"""Partitions that a writer keeps open; to open another, it seals the least recently used one."""

MERGEABLE_BYTES: Final = 4 * 1024 * 1024
"""A segment with less raw text than this keeps whole fingerprints, so that `optimize` need not read its records."""

DATA_LEVEL: Final = 3
"""Zstandard level of newly written data."""

OPTIMIZED_LEVEL: Final = 9
"""Zstandard level of data that `optimize` writes."""

WRITER_MEMORY_BYTES: Final = 160 * 1024 * 1024
"""Memory that a writer's sketches and open batches may use before it seals the largest segment."""

VACUUM_HOURS: Final = 168
"""`vacuum` removes files that left the table longer ago than this: a week, the default of Delta Lake."""

LEVELS: Final = ("TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR", "FATAL")
"""The log levels that `ingest` recognises, in order of severity."""
OTHER_LEVEL_NAMES: Final = {
    **dict.fromkeys(("VERBOSE", "FINEST", "FINER"), "TRACE"),
    **dict.fromkeys(("FINE", "DBG"), "DEBUG"),
    "INF": "INFO",
    **dict.fromkeys(("WARNING", "WRN"), "WARN"),
    **dict.fromkeys(("ERR", "SEVERE"), "ERROR"),
    **dict.fromkeys(("CRITICAL", "CRIT", "EMERG", "ALERT", "PANIC"), "FATAL"),
}
"""Other names of levels, and the level that each one means."""


def cache_folder() -> Path:
    """Where fetched and computed files are kept: COPRLAKE_CACHE, or ``coprlake`` in the user's cache folder."""
    if named := os.environ.get("COPRLAKE_CACHE"):
        return Path(named).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("coprlake")
