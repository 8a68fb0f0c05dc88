"""coprlake: log storage and search for the open lakehouse, on the COPR index.

The public names are listed here and loaded when they are first used, so that ``import coprlake`` costs nothing. Their
types are in ``__init__.pyi``. The names are not read from that file, because a package that Spark ships to its workers
as a zip archive has no files to read.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["RuleSet"],
        "errors": [
            "ConflictError",
            "CoprlakeError",
            "CorruptSidecarError",
            "CorruptSketchError",
            "FormatError",
            "NotFoundError",
            "NotInstalledError",
            "PatternError",
            "QueryError",
            "QueryLimitError",
            "SearchWarning",
            "SketchTooNewError",
            "SketchTooOldError",
            "StorageError",
            "UnreadableDataError",
            "UnreadableSketchError",
            "UnreadableTableError",
            "UsageError",
        ],
        "ingestion": ["IngestReport", "ingest"],
        "intake.reading": ["Intake", "ReadOptions"],
        "predicate.build": [
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
        ],
        "predicate.predicates": ["ALL_FIELDS", "EVERYTHING"],
        "query.fetching": ["ANY_TABLE"],
        "query.limits": ["Limits"],
        "query.querying": ["Query"],
        "query.searching": ["Search"],
        "segment.mutable": ["SegmentOptions"],
        "sketch.algebra": ["ANYTHING", "NOTHING", "all_tokens", "batches_in_all", "batches_in_any"],
        "sketch.immutable": ["SealedSketch"],
        "sketch.mutable": ["MutableSketch"],
        "sketch.spilling": ["SketchWriter"],
        "storage.writer": ["TableWriter"],
        "table": ["Table", "create_table", "open_table", "table_exists"],
        "tokens.fingerprint": ["fingerprint"],
        "tokens.required_tokens": ["contains_tokens", "term_tokens"],
        "tokens.scanner": ["BatchScanner"],
    },
)
