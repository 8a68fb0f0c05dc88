"""Compiled patterns.

The language is the Dynatrace Pattern Language as far as it is documented. Where it is not, we decided:

* A match starts at the start of the text and need not reach its end. There is no backtracking into a matcher: if the
  next one does not match after it, the sequence does not match.
* LD and DATA end where the next non-optional matcher first matches; LD before LD takes as little as it may. At the end
  of a group they look at what follows the group. At the end of a repeated group they look at nothing and take the rest
  of the line.
* Named character classes are greedy, as in Dynatrace; classes in brackets match one character unless quantified.
* An empty repetition ends its group and meets the minimum. An export in a repeated group has the last value.
* No matcher takes more than 4096 characters or repetitions, no quoted string or JSON value more than 128000 bytes.
* A timestamp without a year is the latest that is at most a day after now, as in `coprlake.intake`; one without a date
  is on 1970-01-01.
"""

from functools import lru_cache

from coprlake.dpl.compiling.exports import Export
from coprlake.dpl.compiling.program import PatternProgram, compile_tree
from coprlake.dpl.syntax.pattern_syntax import read_pattern


class Pattern:
    """A compiled pattern. Patterns with the same text are equal; a pattern is pickled as its text.

    Attributes:
        text: the source of the pattern.
        exports: its exports, in order of first appearance.
        program: the program that the machine runs.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.program: PatternProgram = compile_tree(read_pattern(text))
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
    """Compile a pattern, or return it from a cache; raises `PatternError`."""
    return Pattern(text)
