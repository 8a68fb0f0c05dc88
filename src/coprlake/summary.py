"""Objects that show what they are: a line in a terminal, a small table in a notebook.

Showing an object must not read data or run anything, so it is made of facts that are in memory.
"""

import html
import reprlib
from collections.abc import Mapping
from dataclasses import fields
from itertools import islice
from typing import Any, ClassVar, Final

_MOST_CHARACTERS: Final = 1000
_MOST_LINES: Final = 20


class _Short(reprlib.Repr):
    """Values as Python writes them, but no longer than a reader wants."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 120
        self.maxlist = self.maxtuple = 3
        self.maxdict = 6

    def repr_float(self, value: float, level: int) -> str:
        """Four digits."""
        return f"{value:.4g}"


_short: Final = _Short()


class Summarized:
    """A base for classes whose objects are shown by a few facts."""

    def _facts(self) -> Mapping[str, Any]:
        """What to show, by name."""
        raise NotImplementedError

    def _details(self) -> Mapping[str, Any]:
        """What to show where there is more room."""
        return self._facts()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short.repr(value)}" for name, value in self._facts().items())
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = "".join(
            f'<tr><th style="text-align: left">{html.escape(name.replace("_", " "))}</th>'
            f'<td style="text-align: left">{"<br>".join(map(html.escape, _lines(value)))}</td></tr>'
            for name, value in self._details().items()
        )
        return f"<table><caption>{html.escape(type(self).__name__)}</caption><tbody>{rows}</tbody></table>"


class Report(Summarized):
    """A base for dataclasses with figures; declare them with ``@dataclass(repr=False)``.

    Figures that are zero and lists that are empty are left out, except for those in `always_shown`.
    """

    always_shown: ClassVar[tuple[str, ...]] = ()

    def _facts(self) -> Mapping[str, Any]:
        shown = {field.name: getattr(self, field.name) for field in fields(self) if field.repr}  # type: ignore[arg-type]
        return {
            name: _counted(value)
            for name, value in shown.items()
            if name in self.always_shown or (value is not None and value is not False and value not in (0, "", [], {}))
        }


def text_of(value: object) -> str:
    """The text of a value, which may be nested too deeply to have one."""
    try:
        return str(value)
    except RecursionError:
        return f"{type(value).__name__}(...)"


def _counted(value: Any) -> Any:
    """Reports in a list are only counted; lists that may still grow are copied."""
    if isinstance(value, list):
        return len(value) if value and isinstance(value[0], Summarized) else list(value)
    return dict(value) if isinstance(value, dict) else value


def _lines(value: Any) -> list[str]:
    """A value as lines of text."""
    if isinstance(value, Mapping):
        parts = [f"{name}: {_cell(one)}" for name, one in islice(value.items(), _MOST_LINES)]
    elif isinstance(value, list | tuple):
        parts = [_cell(one) for one in value[:_MOST_LINES]]
    else:
        return _cell(value).splitlines() or [""]
    return [*parts, f"and {len(value) - _MOST_LINES:,} more"] if len(value) > _MOST_LINES else parts


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = f"{value:,.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
