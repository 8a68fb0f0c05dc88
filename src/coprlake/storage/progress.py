"""How long jobs say how far they are."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int], None]
"""Told how many bytes of data were worked on since the last call."""
