"""All functions: whoever imports from here has every one of them."""

from coprlake.language.functions import (  # noqa: F401
    aggregates,
    bits,
    conversion,
    documents,
    hashing,
    matching,
    nulls,
    numbers,
    strings,
    time,
)
from coprlake.language.functions.registry import FUNCTIONS

__all__ = ["FUNCTIONS"]
