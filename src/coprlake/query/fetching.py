"""Which tables a query may open besides its own: whoever embeds the language decides, and nothing is open by default.

A path is compared after all links and ``..`` in it are resolved. An address of an object store is compared as text, and
must be plain: it has no ``..``, no parameters, which could name another server, and no escapes.
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
    """The mark for a query of somebody who may open what this process may open."""

    def __repr__(self) -> str:
        return "ANY_TABLE"


ANY_TABLE: Final = AnyTable()

Fetchable: TypeAlias = Mapping[str, Place] | Collection[Place] | AnyTable


class Fetching:
    """Decides what ``fetch "..."`` opens.

    Args:
        tables: names and the tables that they stand for; or tables, and folders of tables, that may be opened by their
            path; or `ANY_TABLE`.

    Raises:
        UsageError: `tables` names no tables.
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
                raise UsageError(f"{taken} is the name of the table that is asked; choose another name")
        else:
            self._places = [_plain(os.fspath(place)) for place in tables]

    def place(self, name: str) -> str:
        """Where the table is that a query calls by this name.

        Raises:
            UsageError: the query may not open it. Whether there is such a table is not told.
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
    """A place with one spelling: a real path, or the address of a folder in a store.

    Raises:
        UsageError: an address with parts that could lead elsewhere.
    """
    if "\0" in place:
        raise UsageError("a path has no zero bytes")
    if "://" not in place or place.lower().startswith("file:"):
        folder = Folder.of(place)
        if not folder.is_local:
            raise UsageError(f"{place}: not a path on this machine")
        return os.path.realpath(Path(folder.root))
    scheme, _, rest = place.partition("://")
    parts = rest.rstrip("/").split("/")
    if not scheme.isalnum() or any(part in ("", ".", "..") for part in parts) or set(rest) & set("?#%\\"):
        raise UsageError(f"{place}: an address with .., %, ? or # in it is not compared; write it plainly")
    return f"{scheme}://{'/'.join(parts)}"
