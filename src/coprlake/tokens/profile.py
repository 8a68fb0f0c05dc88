"""What the index of a segment covers: which fields are indexed, and how.

A segment's writer makes a profile, its sidecar keeps it, and a search is narrowed only by tokens that the profile says
were looked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from coprlake.config import RuleSet
from coprlake.records import DAY, TIMESTAMP


class Indexed(NamedTuple):
    """How the text of a field was indexed.

    Attributes:
        rules: the rule set; None if the field is indexed by whole words only.
        whole_values: whether each value is also one token.
    """

    rules: RuleSet | None
    whole_values: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """What the index of a segment knows about its fields, both columns and keys of attributes.

    Attributes:
        fields: how the text of each field is indexed; None if some of it is not.
        complete: whether `fields` and `typed` list every field that has a value in this segment.
        typed: fields with values that are not text, such as numbers and times, which are not indexed. A field may
            also be in `fields`, for its values that are text. All text inside a nested column is indexed under the
            name of the column.
    """

    fields: Mapping[str, Indexed | None]
    complete: bool
    typed: frozenset[str] = frozenset({TIMESTAMP, DAY})

    _hash: int = field(init=False, repr=False, compare=False)  # computed once: every search looks profiles up

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((frozenset(self.fields.items()), self.complete, self.typed)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["Profile"], tuple[object, ...]]:
        return Profile, (self.fields, self.complete, self.typed)  # another process hashes text differently
