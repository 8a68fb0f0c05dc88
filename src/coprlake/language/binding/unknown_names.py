"""Tells the user of a query about fields that no record has."""

from coprlake.language.binding.session import QuerySession
from coprlake.language.scope import Scope
from coprlake.text.nearest_words import hint


def is_missing(session: QuerySession, scope: Scope, name: str) -> bool:
    """Whether there is surely no field of this name, neither a column nor an attribute of any record."""
    if name in scope.fields:
        return False
    keys = _keys(session, scope)
    return scope.find(name) is None or (keys is not None and name not in keys)


def near(session: QuerySession, scope: Scope, name: str) -> str:
    """``; did you mean x?`` for a misspelt field, or an empty string."""
    return hint(name, [*scope.fields, *sorted((_keys(session, scope) or frozenset()).difference(scope.hidden))])


def warn_unknown(session: QuerySession, scope: Scope, name: str) -> None:
    """Warn about a field that no record has, or that may be an attribute but is nearly a column."""
    if is_missing(session, scope, name):
        session.warn(f"there is no field {name}, so it is null{near(session, scope, name)}")
    elif name not in scope.fields and _keys(session, scope) is None and hint(name, scope.fields):
        session.warn(f"{name} is no column, so it is looked for among the attributes{hint(name, scope.fields)}")


def _keys(session: QuerySession, scope: Scope) -> frozenset[str] | None:
    """All attributes of the records; None if they are not known."""
    return None if scope.scan is None else session.keys_of(scope.scan.table)
