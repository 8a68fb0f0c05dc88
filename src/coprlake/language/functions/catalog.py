"""All functions: whoever imports from here has every one of them."""

from coprlake.language.functions import (  # noqa: F401
    aggregates,
    arrays,
    bits,
    calendar,
    conversion,
    documents,
    hashing,
    matching,
    net,
    nulls,
    numbers,
    patterns,
    strings,
    time,
)
from coprlake.language.functions.registry import FUNCTIONS

__all__ = ["FUNCTIONS"]
