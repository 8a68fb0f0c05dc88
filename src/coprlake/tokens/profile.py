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
"""For `Profile.any_value`: some values may not be indexed together with the others, as in files of earlier builds."""


class Indexed(NamedTuple):
    """How the text of a field was indexed.

    Attributes:
        rules: the rule set; None if the field is indexed by whole words only.
        whole_values: whether each value is also one token.
        with_content: whether its tokens are among those of the content, and not under the field's own name.
    """

    rules: RuleSet | None
    whole_values: bool
    with_content: bool = False

    def place(self, field: str) -> str:
        """The field that the tokens of `field` are scoped to."""
        return CONTENT if self.with_content else field


@dataclass(frozen=True, slots=True)
class Profile:
    """What the index of a segment knows about its fields, both columns and keys of attributes.

    Attributes:
        fields: how the text of each field is indexed; None if some of it is not.
        complete: whether `fields` and `typed` list every field that has a value in this segment.
        typed: fields with values that are not text, such as numbers and times, which are not indexed. A field may
            also be in `fields`, for its values that are text. All text inside a nested column is indexed under the
            name of the column.
        any_value: the name of the rules by which the values that a plain search looks at are indexed, all together
            and under the name of the content; `NOT_TOGETHER` if that is not certain.
        all_in_content: whether each of these values is a part of the content of its record.
    """

    fields: Mapping[str, Indexed | None]
    complete: bool
    typed: frozenset[str] = frozenset({TIMESTAMP, DAY})
    any_value: str = NOT_TOGETHER
    all_in_content: bool = False

    only_content: bool = field(init=False, repr=False, compare=False)
    """Whether a plain search has nothing to look at but the content."""
    _hash: int = field(init=False, repr=False, compare=False)  # computed once: every search looks profiles up

    def __post_init__(self) -> None:
        object.__setattr__(self, "only_content", self.complete and not other_fields(self.fields, self.typed))
        parts = frozenset(self.fields.items()), self.complete, self.typed, self.any_value, self.all_in_content
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["Profile"], tuple[object, ...]]:
        parts = self.fields, self.complete, self.typed, self.any_value, self.all_in_content
        return Profile, parts  # another process hashes text differently


NOT_SEARCHED: Final = frozenset({TIMESTAMP, SOURCE, LOGLEVEL}) | HIDDEN
"""The fields that a plain search does not look at, whatever they hold. Nor does it at a `DAY` that is not text."""
OWN_TOKENS: Final = NOT_SEARCHED | {DAY}
"""The fields whose tokens are never among those of the content."""
_NOT_OTHERS: Final = NOT_SEARCHED | {CONTENT}


def other_fields(fields: Iterable[str], typed: Iterable[str]) -> bool:
    """Whether there are fields besides the content that may have values a plain search looks at."""
    return not (_NOT_OTHERS.issuperset(fields) and OWN_TOKENS.issuperset(typed))
