"""The words of the machine that runs patterns: a program is a table of integers, a row for each instruction.

Control instructions work as in a parsing machine for PEGs: what may fail without failing the whole leaves a frame on a
stack before it begins. Leaves are matched by one call and leave no frame.
"""

from typing import Final

(
    END,  # all matched
    FAIL_TWICE,  # what may not match did: drop the frame of CHOICE, then fail
    LEAF,  # one matcher
    CHOICE,  # if what follows fails, go on at A
    COMMIT,  # it did not fail: drop the frame and go on at A
    CALL,  # go on at A until RETURN
    RETURN,
    REPEAT,  # what follows up to REPEAT_END, A to B times, then go on at C
    REPEAT_END,
    MARK,  # remember the place
    MARK_END,  # export what lies between the mark and here
    EMIT,  # a row of the table of an array begins
    LOOK_END,  # go back to the mark and forget what was exported since
    BEHIND,  # what follows up to BEHIND_END must match before here and end here
    BEHIND_END,
    SCAN,  # LD or DATA: find where what follows up to SCAN_END matches
    SCAN_END,
    SCAN_LEAF,  # the same if it is the leaf at E
    OBJECT,  # a JSON object, to be looked into up to OBJECT_END
    MEMBER,  # what follows up to MEMBER_END must be the member with the name at A in the pool, B bytes
    MEMBER_END,
    OBJECT_END,
) = range(22)

OP, SITE, OPTIONAL, KIND, A, B, C, D, E = range(9)
"""The columns of the table. SITE is -1 for what exports nothing; OPTIONAL is 1 for a leaf that may be absent."""
WIDTH: Final = 9

(
    LITERAL,  # A: offset in the pool, B: bytes, C: least, D: most times
    CHARS,  # A: table, B: least, C: most, D: begin, E: end of its ranges beyond ASCII
    REST,  # A: least, B: most, C: 1 to go over lines
    INTEGER,  # A: low, B: high
    HEX,  # A: low, B: high, C: most digits
    REAL,  # A: low, B: high as bits, C: the byte between whole part and fraction
    BOOLEAN,
    ADDRESS,  # A: IPv4, B: IPv6
    MOMENT,  # A: first row of its fields, B: how many; C: 1 if it has a date
    QUOTED,  # A: quote, B: another, C: 1 if quotes are doubled inside
    ANCHOR,  # A: one of the places below
    ENUM,  # A: first row of its entries, B: how many, C: 1 to ignore case
    UUID,
    CARD,
    JSON,  # A: one of the forms below, B: most bytes
) = range(15)
"""The kinds of leaves."""

PLACES: Final = {"BOS": 0, "MOS": 1, "EOS": 2}
FORMS: Final = {"value": 0, "object": 1, "array": 2}

AS_IS, UNESCAPED, SINGLE_DOUBLED, DOUBLE_DOUBLED, LOWER = range(5)
"""How the text of a site becomes its value."""

TABLE_WIDTH: Final = 257
"""For each byte, and for the end of the text."""
MAY_MATCH, LINE_END = 1, 2
"""What a table says of a byte: a match may begin with it; LD stops here."""

FRAME_WIDTH: Final = 8
MOST_FRAMES: Final = 1024
FUEL: Final = 1 << 22
"""How many steps a text may take; beyond that, and beyond the frames, it does not match."""
