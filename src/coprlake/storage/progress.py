"""How long-running jobs report progress."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of bytes of data processed since the last call."""
