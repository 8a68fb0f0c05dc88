"""What the index of a segment covers: which fields are indexed, and how.

A segment's writer makes a profile, its sidecar keeps it, and a search is narrowed only by tokens that the profile says
were looked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from coprlake.config import RuleSet
from coprlake.records import CONTENT, DAY, HIDDEN, LOGLEVEL, SOURCE, TIMESTAMP

NOT_TOGETHER: Final = "no"
"""For `Profile.values`: the values of all fields together are not indexed, as in segments of earlier builds."""
IN_CONTENT: Final = "content"
"""For `Profile.values`: every value of a record is in its content, so that the tokens of the content suffice."""
VALUES_FIELD: Final = "any value"
"""The field that tokens of all values together are scoped to."""


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
        values: how the values that a plain search looks at are indexed together: every one of them is in the content
            of its record, or its tokens by the rules of this name are under `VALUES_FIELD`. `IN_CONTENT` if there are
            none of the second kind, `NOT_TOGETHER` if neither is certain.
    """

    fields: Mapping[str, Indexed | None]
    complete: bool
    typed: frozenset[str] = frozenset({TIMESTAMP, DAY})
    values: str = NOT_TOGETHER

    only_content: bool = field(init=False, repr=False, compare=False)
    """Whether a plain search has nothing to look at but the content."""
    _hash: int = field(init=False, repr=False, compare=False)  # computed once: every search looks profiles up

    def __post_init__(self) -> None:
        object.__setattr__(self, "only_content", self.complete and not other_fields(self.fields, self.typed))
        object.__setattr__(
            self, "_hash", hash((frozenset(self.fields.items()), self.complete, self.typed, self.values))
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["Profile"], tuple[object, ...]]:
        return Profile, (self.fields, self.complete, self.typed, self.values)  # another process hashes text differently


NOT_SEARCHED: Final = frozenset({TIMESTAMP, SOURCE, LOGLEVEL}) | HIDDEN
"""The fields that a plain search does not look at, whatever they hold. Nor does it at a `DAY` that is not text."""
_NOT_OTHERS: Final = NOT_SEARCHED | {CONTENT}
_NOT_SEARCHED_TYPED: Final = NOT_SEARCHED | {DAY}


def other_fields(fields: Iterable[str], typed: Iterable[str]) -> bool:
    """Whether there are fields besides the content that may have values a plain search looks at."""
    return not (_NOT_OTHERS.issuperset(fields) and _NOT_SEARCHED_TYPED.issuperset(typed))
