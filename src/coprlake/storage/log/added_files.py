"""Which data files of a commit hold records that the table did not have before."""

import json
from typing import Any, Final

from coprlake.errors import UnreadableTableError
from coprlake.files import Folder
from coprlake.storage.log.actions import name_of
from coprlake.storage.log.commits import NOTE, commit_name

_REWRITES: Final = frozenset({"DELETE", "OPTIMIZE", "UPDATE"})
"""Operations that write records again which the table has."""


def added_files(folder: Folder, version: int) -> frozenset[str]:
    """The names of the data files that a version adds, without those that only hold records of others.

    Raises:
        UnreadableTableError: the commit is gone or damaged.
    """
    name = commit_name(version)
    if not folder.exists(name):
        raise _unreadable(name, "no file")
    try:
        lines: list[dict[str, Any]] = [json.loads(line) for line in folder.read(name).splitlines() if line.strip()]
        added = [line["add"] for line in lines if "add" in line]
        if any("remove" in line for line in lines) and _operation(lines) in _REWRITES:
            return frozenset()
        return frozenset(name_of(action["path"]) for action in added if action.get("dataChange", True))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(name, "something else") from error


def _operation(lines: list[dict[str, Any]]) -> str:
    info: dict[str, Any] = next((line["commitInfo"] for line in lines if "commitInfo" in line), {})
    note = json.loads(info[NOTE]) if NOTE in info else {}
    return str(note.get("operation") or info.get("operation") or "").upper()


def _unreadable(name: str, found: str) -> UnreadableTableError:
    return UnreadableTableError(
        name,
        section="_delta_log",
        expected="a commit",
        found=found,
        advice="records that it added are not shown; a search without --follow finds them",
    )
