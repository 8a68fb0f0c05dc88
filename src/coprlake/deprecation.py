"""Old names of attributes and methods, which work with a warning until the next release."""

import warnings
from typing import Any


class Renamed:
    """An attribute or method under its old name: reading it warns, and gives what the new name gives.

    ``to_arrow = Renamed("arrow")`` in the body of a class is all that is needed.
    """

    def __init__(self, new: str) -> None:
        self.new = new
        self.old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        warnings.warn(
            f"{type(instance).__name__}.{self.old} is deprecated, use {self.new}", DeprecationWarning, stacklevel=2
        )
        return getattr(instance, self.new)


def old_names(kind: type) -> dict[str, str]:
    """The old names that a class still has, and what each is called now."""
    members = [member for one in kind.__mro__ for member in vars(one).values()]
    return {member.old: member.new for member in members if isinstance(member, Renamed)}
