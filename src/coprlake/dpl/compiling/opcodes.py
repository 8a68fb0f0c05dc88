"""The instructions of the machine that runs patterns. A program is a table of integers with a row for each instruction.

Control instructions work as in a parsing machine for PEGs: a part that may fail without failing the whole pattern
pushes a frame onto a stack first. A leaf is matched by one call and pushes no frame.
"""

from typing import Final

(
    END,  # the pattern matched
    FAIL_TWICE,  # a negative lookaround matched: drop the frame of CHOICE, then fail
    LEAF,  # one matcher
    CHOICE,  # if what follows fails, continue at A
    COMMIT,  # it did not fail: drop the frame and continue at A
    CALL,  # continue at A until RETURN
    RETURN,
    REPEAT,  # run what follows up to REPEAT_END A to B times, then continue at C
    REPEAT_END,
    MARK,  # remember the position
    MARK_END,  # export the text between the mark and here
    EMIT,  # open a row in the table of an array
    LOOK_END,  # go back to the mark and discard the exports since
    BEHIND,  # what follows up to BEHIND_END must match text that ends here
    BEHIND_END,
    SCAN,  # LD or DATA: find where what follows up to SCAN_END matches
    SCAN_END,
    SCAN_LEAF,  # the same, for the leaf at E
    OBJECT,  # a JSON object; its members follow up to OBJECT_END
    MEMBER,  # what follows up to MEMBER_END matches the member whose name is at A in the pool, B bytes
    MEMBER_END,
    OBJECT_END,
) = range(22)

OP, SITE, OPTIONAL, KIND, A, B, C, D, E = range(9)
"""The columns of the table. SITE is -1 if nothing is exported; OPTIONAL is 1 for an optional leaf."""
WIDTH: Final = 9

(
    LITERAL,  # A: offset in the pool, B: bytes, C: least, D: most repetitions
    CHARS,  # A: table, B: least, C: most, D: start, E: end of its ranges beyond ASCII
    REST,  # A: least, B: most, C: 1 to cross line ends
    INTEGER,  # A: low, B: high
    HEX,  # A: low, B: high, C: most digits
    REAL,  # A: low, B: high as bits, C: the decimal separator
    BOOLEAN,
    ADDRESS,  # A: IPv4, B: IPv6
    MOMENT,  # A: first row of its fields, B: number of fields, C: 1 if it has a date
    QUOTED,  # A: a quote, B: another, C: 1 if quotes inside are doubled
    ANCHOR,  # A: one of the places below
    ENUM,  # A: first row of its entries, B: number of entries, C: 1 to ignore case
    UUID,
    CARD,
    JSON,  # A: one of the forms below, B: most bytes
) = range(15)
"""The kinds of leaves."""

PLACES: Final = {"BOS": 0, "MOS": 1, "EOS": 2}
FORMS: Final = {"value": 0, "object": 1, "array": 2}

AS_IS, UNESCAPED, SINGLE_DOUBLED, DOUBLE_DOUBLED, LOWER = range(5)
"""How to decode the text of a site."""

TABLE_WIDTH: Final = 257
"""An entry for each byte, and one for the end of the text."""
MAY_MATCH, LINE_END = 1, 2
"""The bits in a table: a match may start with this byte; LD stops at it."""

FRAME_WIDTH: Final = 8
MOST_FRAMES: Final = 1024
FUEL: Final = 1 << 22
"""The most steps for one text. A text that needs more steps or frames does not match."""
