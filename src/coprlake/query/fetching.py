"""Which tables a query may open besides its own: the embedding program decides; by default none.

Paths are compared after all links and ``..`` are resolved. The URI of an object store is compared as text and must be
plain: without ``..``, without parameters, which could name another server, and without escapes.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from coprlake.errors import UsageError
from coprlake.files import Folder
from coprlake.language.table_facts import LOGS

Place: TypeAlias = str | os.PathLike[str]


class AnyTable:
    """The type of `ANY_TABLE`, which allows a query to open every table that this process can."""

    def __repr__(self) -> str:
        return "ANY_TABLE"


ANY_TABLE: Final = AnyTable()

Fetchable: TypeAlias = Mapping[str, Place] | Collection[Place] | AnyTable


class Fetching:
    """Decides what ``fetch "..."`` opens.

    Args:
        tables: a mapping from names to tables; or tables, and folders of tables, that may be opened by path; or
            `ANY_TABLE`.

    Raises:
        UsageError: a name or place in `tables` is not valid.
    """

    def __init__(self, tables: Fetchable = ()) -> None:
        if isinstance(tables, str | os.PathLike):
            tables = (tables,)
        self._is_any = isinstance(tables, AnyTable)
        self._names: dict[str, str] = {}
        self._places: list[str] = []
        if isinstance(tables, AnyTable):
            return
        if isinstance(tables, Mapping):
            self._names = {name: os.fspath(place) for name, place in tables.items()}
            taken = next((name for name in self._names if name.lower() == LOGS), None)
            if taken is not None:
                raise UsageError(f"{taken} is the name of the queried table; choose another name")
        else:
            self._places = [_plain(os.fspath(place)) for place in tables]

    def place(self, name: str) -> str:
        """The location of the table that a query refers to by this name.

        Raises:
            UsageError: the query may not open it. The message does not reveal whether the table exists.
        """
        if self._is_any:
            return name
        if name in self._names:
            return self._names[name]
        if self._places:
            try:
                found = _plain(name)
            except UsageError:
                found = ""
            if found and any(_is_within(found, place) for place in self._places):
                return found
        raise UsageError(
            f"the query may not open {name!r}: besides {LOGS} it may open {self._allowed()}; to allow more, name it in "
            "the argument tables of query()"
        )

    def _allowed(self) -> str:
        if self._names:
            return ", ".join(sorted(self._names))
        return "what the program allows" if self._places else "no table"


def _is_within(found: str, place: str) -> bool:
    return found == place or found.startswith(place if place.endswith("/") else f"{place}/")


def _plain(place: str) -> str:
    """The canonical form of a place: a real path, or the URI of a folder in a store.

    Raises:
        UsageError: the URI has parts that could lead elsewhere.
    """
    if "\0" in place:
        raise UsageError("a path must not contain zero bytes")
    if "://" not in place or place.lower().startswith("file:"):
        folder = Folder.of(place)
        if not folder.is_local:
            raise UsageError(f"{place}: not a path on this machine")
        return os.path.realpath(Path(folder.root))
    scheme, _, rest = place.partition("://")
    parts = rest.rstrip("/").split("/")
    if not scheme.isalnum() or any(part in ("", ".", "..") for part in parts) or set(rest) & set("?#%\\"):
        raise UsageError(f"{place}: not a plain URI; write it without .., %, ? and #")
    return f"{scheme}://{'/'.join(parts)}"
