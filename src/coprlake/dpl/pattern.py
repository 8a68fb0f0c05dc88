"""Patterns, compiled.

The language is that of Dynatrace's pattern language as far as it is documented, with these decisions where it is not:

* A match begins at the beginning of the text and need not reach its end. Nothing is tried in two ways: a matcher takes
  what it takes, and if the next one does not match behind it, the whole does not.
* LD and DATA end where the next non-optional matcher first matches; LD in front of LD takes the least it may. At the
  end of a group they look at what follows the group, at the end of what is repeated at nothing: they take the line.
* Named classes of characters are greedy, as the product is; classes in brackets are one character unless quantified.
* A repetition that takes nothing ends its group and counts as enough. An export in a repeated group has the last value.
* Nothing is longer than 4096 characters or repetitions, a quoted string or JSON value than 128000 bytes.
* A timestamp without a year is the latest that lies at most a day after now, as in `coprlake.intake`; one without a
  date is of 1970-01-01.
"""

from functools import lru_cache

from coprlake.dpl.compiling.exports import Export
from coprlake.dpl.compiling.program import Program, compile_tree
from coprlake.dpl.syntax.pattern_syntax import read_pattern


class Pattern:
    """A pattern that can be run; equal to every other with the same text, and pickled as its text.

    Attributes:
        text: as it was written.
        exports: what it exports, in order of first appearance.
        program: what the machine runs.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.program: Program = compile_tree(read_pattern(text))
        self.exports = tuple(Export(column.name, column.type) for column in self.program.columns)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[object, ...]:
        return compile_pattern, (self.text,)


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Pattern:
    """The pattern with this text; raises `PatternError`."""
    return Pattern(text)
