"""coprlake: log storage and search for the open lakehouse, on the COPR index.

The public names are listed here and loaded when they are first used, so that ``import coprlake`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coprlake.errors import (
        ConflictError,
        CoprlakeError,
        CorruptSketchError,
        FormatError,
        NotFoundError,
        SketchTooNewError,
        SketchTooOldError,
        UnreadableSketchError,
        UsageError,
    )
    from coprlake.sketch.algebra import ANYTHING, NOTHING, all_of, all_tokens, any_of
    from coprlake.sketch.immutable import SealedSketch
    from coprlake.sketch.mutable import MutableSketch
    from coprlake.sketch.spilling import SketchWriter
    from coprlake.tokens.fingerprint import fingerprint
    from coprlake.tokens.query import contains_tokens, term_tokens
    from coprlake.tokens.scanner import BatchScanner

__version__ = "0.1.0"

_HOMES = {
    "coprlake.errors": (
        "ConflictError",
        "CoprlakeError",
        "CorruptSketchError",
        "FormatError",
        "NotFoundError",
        "SketchTooNewError",
        "SketchTooOldError",
        "UnreadableSketchError",
        "UsageError",
    ),
    "coprlake.sketch.algebra": ("ANYTHING", "NOTHING", "all_of", "all_tokens", "any_of"),
    "coprlake.sketch.immutable": ("SealedSketch",),
    "coprlake.sketch.mutable": ("MutableSketch",),
    "coprlake.sketch.spilling": ("SketchWriter",),
    "coprlake.tokens.fingerprint": ("fingerprint",),
    "coprlake.tokens.query": ("contains_tokens", "term_tokens"),
    "coprlake.tokens.scanner": ("BatchScanner",),
}

__all__ = [
    "ANYTHING",
    "NOTHING",
    "BatchScanner",
    "ConflictError",
    "CoprlakeError",
    "CorruptSketchError",
    "FormatError",
    "MutableSketch",
    "NotFoundError",
    "SealedSketch",
    "SketchTooNewError",
    "SketchTooOldError",
    "SketchWriter",
    "UnreadableSketchError",
    "UsageError",
    "all_of",
    "all_tokens",
    "any_of",
    "contains_tokens",
    "fingerprint",
    "term_tokens",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'coprlake' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
