"""All functions. Importing this module registers them."""

from coprlake.language.functions.collections import aggregates, arrays, json_members  # noqa: F401
from coprlake.language.functions.moments import calendar, time  # noqa: F401
from coprlake.language.functions.registry import FUNCTIONS
from coprlake.language.functions.text import hashing, pattern_functions, strings, text_matching  # noqa: F401
from coprlake.language.functions.values import bit_functions, conversion, net, nulls, numbers  # noqa: F401

__all__ = ["FUNCTIONS"]
