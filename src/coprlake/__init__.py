"""coprlake: log storage and search for the open lakehouse, on the COPR index.

The public names are listed here and loaded when they are first used, so that ``import coprlake`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coprlake.config import RuleSet
    from coprlake.errors import (
        ConflictError,
        CoprlakeError,
        CorruptSidecarError,
        CorruptSketchError,
        FormatError,
        NotFoundError,
        PatternError,
        QueryError,
        QueryLimitError,
        SketchTooNewError,
        SketchTooOldError,
        StorageError,
        UnreadableDataError,
        UnreadableSketchError,
        UnreadableTableError,
        UsageError,
    )
    from coprlake.ingestion import ingest
    from coprlake.intake.reading import Intake, ReadOptions
    from coprlake.predicate.build import (
        all_of,
        any_of,
        at_least,
        at_most,
        compare,
        contains,
        equals,
        exists,
        less_than,
        more_than,
        one_of,
        phrase,
        prefix,
        regex,
        suffix,
        term,
        wildcard,
    )
    from coprlake.predicate.predicates import ALL_FIELDS, EVERYTHING
    from coprlake.query.fetching import ANY_TABLE
    from coprlake.query.limits import Limits
    from coprlake.query.querying import Query
    from coprlake.query.searching import Search
    from coprlake.segment.mutable import SegmentOptions
    from coprlake.sketch.algebra import ANYTHING, NOTHING, all_tokens, batches_in_all, batches_in_any
    from coprlake.sketch.immutable import SealedSketch
    from coprlake.sketch.mutable import MutableSketch
    from coprlake.sketch.spilling import SketchWriter
    from coprlake.storage.writer import TableWriter
    from coprlake.table import Table, create_table, open_table, table_exists
    from coprlake.tokens.fingerprint import fingerprint
    from coprlake.tokens.required_tokens import contains_tokens, term_tokens
    from coprlake.tokens.scanner import BatchScanner

__version__ = "0.2.0"

_HOMES = {
    "coprlake.config": ("RuleSet",),
    "coprlake.errors": (
        "ConflictError",
        "CoprlakeError",
        "CorruptSidecarError",
        "CorruptSketchError",
        "FormatError",
        "NotFoundError",
        "PatternError",
        "QueryError",
        "QueryLimitError",
        "SketchTooNewError",
        "SketchTooOldError",
        "StorageError",
        "UnreadableDataError",
        "UnreadableSketchError",
        "UnreadableTableError",
        "UsageError",
    ),
    "coprlake.ingestion": ("ingest",),
    "coprlake.intake.reading": (
        "Intake",
        "ReadOptions",
    ),
    "coprlake.predicate.build": (
        "all_of",
        "any_of",
        "at_least",
        "at_most",
        "compare",
        "contains",
        "equals",
        "exists",
        "less_than",
        "more_than",
        "one_of",
        "phrase",
        "prefix",
        "regex",
        "suffix",
        "term",
        "wildcard",
    ),
    "coprlake.predicate.predicates": (
        "ALL_FIELDS",
        "EVERYTHING",
    ),
    "coprlake.query.fetching": ("ANY_TABLE",),
    "coprlake.query.limits": ("Limits",),
    "coprlake.query.querying": ("Query",),
    "coprlake.query.searching": ("Search",),
    "coprlake.segment.mutable": ("SegmentOptions",),
    "coprlake.sketch.algebra": (
        "ANYTHING",
        "NOTHING",
        "all_tokens",
        "batches_in_all",
        "batches_in_any",
    ),
    "coprlake.sketch.immutable": ("SealedSketch",),
    "coprlake.sketch.mutable": ("MutableSketch",),
    "coprlake.sketch.spilling": ("SketchWriter",),
    "coprlake.table": (
        "Table",
        "create_table",
        "open_table",
        "table_exists",
    ),
    "coprlake.storage.writer": ("TableWriter",),
    "coprlake.tokens.fingerprint": ("fingerprint",),
    "coprlake.tokens.required_tokens": (
        "contains_tokens",
        "term_tokens",
    ),
    "coprlake.tokens.scanner": ("BatchScanner",),
}

__all__ = [
    "ALL_FIELDS",
    "ANYTHING",
    "ANY_TABLE",
    "EVERYTHING",
    "NOTHING",
    "BatchScanner",
    "ConflictError",
    "CoprlakeError",
    "CorruptSidecarError",
    "CorruptSketchError",
    "FormatError",
    "Intake",
    "Limits",
    "MutableSketch",
    "NotFoundError",
    "PatternError",
    "Query",
    "QueryError",
    "QueryLimitError",
    "ReadOptions",
    "RuleSet",
    "SealedSketch",
    "Search",
    "SegmentOptions",
    "SketchTooNewError",
    "SketchTooOldError",
    "SketchWriter",
    "StorageError",
    "Table",
    "TableWriter",
    "UnreadableDataError",
    "UnreadableSketchError",
    "UnreadableTableError",
    "UsageError",
    "all_of",
    "all_tokens",
    "any_of",
    "at_least",
    "at_most",
    "batches_in_all",
    "batches_in_any",
    "compare",
    "contains",
    "contains_tokens",
    "create_table",
    "equals",
    "exists",
    "fingerprint",
    "ingest",
    "less_than",
    "more_than",
    "one_of",
    "open_table",
    "phrase",
    "prefix",
    "regex",
    "suffix",
    "table_exists",
    "term",
    "term_tokens",
    "wildcard",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'coprlake' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
