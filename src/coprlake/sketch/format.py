"""The sketch file, format versions 1.0 to 1.2: the only place that knows the layout.

A header, then the sections, then a footer. All numbers are little-endian; the header and every section are a multiple
of 8 bytes long, so that the mapped file is one array of 64-bit words and opening it builds nothing.
`docs/format/sketch.md` has the same layout as a table, and a test compares the two.

The first 24 bytes (`PREFIX`) keep their place and meaning in all future versions, so that a damaged file can always be
told from one that is too new.

Format 1.1 stores no rank for a token whose list is its own (`coprlake.sketch.ranks`); a 1.0 file reads as a 1.1 file
without own lists: its `own_list_count` is 0, which gives every section the layout of 1.0.

Format 1.2 has no padding: the header is as long as its numbers, and each section starts where the one before it ends.
In 1.0 and 1.1, the header takes a page and sections start at multiples of 64 bytes: several times what a few records
need.
"""

import zlib
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Any, Final

import numpy as np

from coprlake.bits.prefix_code import TABLE_SIZE
from coprlake.bits.prefix_sums import sample_words
from coprlake.bits.sequence import position_width, words_for
from coprlake.config import FULL_SIGNATURE_BITS, POSTING_LIMIT, RuleSet
from coprlake.errors import CorruptSketchError, SketchTooNewError, SketchTooOldError
from coprlake.kernel import U64Array
from coprlake.sketch.bbhash import LEVEL_LIMIT, RANK_BITS, RANK_WORDS

MAGIC: Final = b"COPRSKT\n"
FOOTER_MAGIC: Final = b"COPREND\n"
MAJOR: Final = 1
MINOR: Final = 2
TIGHT_MINOR: Final = 2
"""The first minor version without padding."""
PAGE_BYTES: Final = 4096
"""The most that a header takes, in any version; all of them take it before `TIGHT_MINOR`."""
FOOTER_BYTES: Final = 16
ALIGNMENT_BYTES: Final = 64
"""Where sections started before `TIGHT_MINOR`."""

RULES_VERSIONS: Final = {RuleSet.PAPER: 1, RuleSet.WINNOWED: 2}
"""The number of each rule set in the header. A change of rules, symbols or fingerprints needs a new rule set with a new
number; the older stay readable."""
NEWEST_RULES_VERSION: Final = max(RULES_VERSIONS.values())

LIST_INTERVAL: Final = 8
"""The file stores the offset of every LIST_INTERVAL-th list; skipping the lists in between means reading them, which
takes well under a microsecond. Storing every offset would take 0.6 bits more per token."""

SECTIONS: Final = (
    "levels",  # BBHash bit vectors, level after level
    "level_ranks",  # ones before every RANK_WORDS words of them
    "fallback",  # fingerprints that no level took, sorted
    "signatures",  # signature_bits of each token, by minimal hash
    "width_samples",  # prefix sums over the widths of the ranks, and over the tokens with own lists
    "width_codes",
    "width_table",
    "ranks",  # the rank of each token's list, by minimal hash
    "list_offsets",  # where in `lists` every LIST_INTERVAL-th list starts, by rank
    "lists",  # the posting lists
)

PREFIX: Final = np.dtype(
    [
        ("magic", "S8"),
        ("major", "<u2"),
        ("minor", "<u2"),
        ("header_bytes", "<u4"),
        ("header_crc", "<u4"),
        ("zero", "<u4"),
    ]
)
_COUNTS: Final = (
    "rules_version",
    "signature_bits",
    "token_count",
    "list_count",
    "posting_count",
    "level_count",
    "fallback_count",
)
_SHARED: Final = [
    *((name, PREFIX[name]) for name in PREFIX.names or ()),
    ("file_bytes", "<u8"),
    ("object_id", "V16"),
    *((name, "<u8") for name in _COUNTS),
]
SECTION: Final = np.dtype([("start", "<u4"), ("crc", "<u4")])
"""A section since 1.2: the 64-bit word at which it starts. It ends where the next one starts."""
HEADER: Final = np.dtype([*_SHARED, ("own_list_count", "<u8"), ("sections", SECTION, (len(SECTIONS) + 1,))])
"""The header since 1.2; the level starts follow. The last row of the sections is their end."""

PAGE_SECTION: Final = np.dtype([("offset", "<u8"), ("size", "<u8"), ("crc", "<u4"), ("reserved", "<u4")])
PAGE_HEADER: Final = np.dtype(
    [
        *_SHARED,
        ("sections", PAGE_SECTION, (len(SECTIONS),)),
        ("level_starts", "<u8", (LEVEL_LIMIT + 1,)),
        ("own_list_count", "<u8"),  # since 1.1
    ]
)
"""The header in 1.0 and 1.1; zeros fill its page."""
FOOTER: Final = np.dtype([("header_crc", "<u4"), ("zero", "<u4"), ("magic", "S8")])

_REBUILD: Final = "the data is not affected: build the sketch again from its data file"
_NO_SKETCH: Final = "this is not a complete sketch: check the path, or build the sketch again from its data file"
_CRC_AT: Final = PREFIX.fields["header_crc"][1]  # type: ignore[index]


def header_word(name: str, layout: np.dtype[np.void] = HEADER) -> int:
    """The index of the 64-bit word that holds a header field."""
    assert layout.fields is not None
    offset = int(layout.fields[name][1])
    assert offset % 8 == 0
    return offset // 8


@dataclass(frozen=True)
class Header:
    """What a reader needs; every number has been checked against the file and against the others."""

    minor: int
    header_bytes: int
    object_id: bytes
    rules_version: int
    signature_bits: int
    token_count: int
    list_count: int
    posting_count: int
    level_count: int
    fallback_count: int
    sections: dict[str, tuple[int, int, int]]
    level_starts: tuple[int, ...]
    own_list_count: int  # 0 in format 1.0
    file_bytes: int
    crc: int


def crc_of(data: bytes) -> int:
    """The checksum that all parts of the file use: CRC-32."""
    return zlib.crc32(data)


def _header_crc(header: bytes) -> int:
    """The checksum of a whole header, with zeros in place of the checksum itself."""
    return crc_of(header[:_CRC_AT] + bytes(4) + header[_CRC_AT + 4 :])


def section_start(end: int, minor: int) -> int:
    """Where the section starts that follows the byte `end`."""
    return end if minor >= TIGHT_MINOR else -(-end // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def header_size(minor: int, level_count: int) -> int:
    """The size of a header in bytes."""
    return HEADER.itemsize + 8 * (level_count + 1) if minor >= TIGHT_MINOR else PAGE_BYTES


def minor_of(sketch: bytes) -> int:
    """The minor version of a sketch that starts with these bytes."""
    return int(np.frombuffer(sketch, PREFIX, 1)[0]["minor"])


def rules_of_version(number: int) -> RuleSet:
    """The rule set that a header names by this number."""
    return next(rules for rules, own in RULES_VERSIONS.items() if own == number)


def minor_for(rules: RuleSet) -> int:
    """The minor version in which a sketch with tokens by these rules is written.

    Readers of 1.0 accept any minor version. They reject later ones because they do not know their token rules, so the
    paper's rules, which they do know, are always written in 1.0.
    """
    return 0 if rules is RuleSet.PAPER else MINOR


def assemble(
    rules: RuleSet,
    minor: int,
    counts: dict[str, int],
    level_starts: U64Array,
    sections: dict[str, U64Array],
    object_id: bytes,
) -> list[bytes]:
    """The pieces of a whole file, in order, from its sections and the header's numbers."""
    header_bytes = header_size(minor, len(level_starts) - 1)
    end = header_bytes
    pieces: list[bytes] = []
    rows: list[tuple[int, int, int]] = []
    for name in SECTIONS:
        body = sections[name].astype("<u8", copy=False).tobytes()
        start = section_start(end, minor)
        pieces += [bytes(start - end), body]
        rows.append((start, len(body), crc_of(body)))
        end = start + len(body)
    header = np.zeros(1, HEADER if minor >= TIGHT_MINOR else PAGE_HEADER)[0]
    header["magic"], header["major"], header["minor"], header["header_bytes"] = MAGIC, MAJOR, minor, header_bytes
    header["file_bytes"] = end + FOOTER_BYTES
    header["object_id"] = object_id
    header["rules_version"] = RULES_VERSIONS[rules]
    for name, number in counts.items():
        header[name] = number
    if minor >= TIGHT_MINOR:
        header["sections"] = [*((start // 8, crc) for start, _, crc in rows), (end // 8, 0)]
        page = header.tobytes() + level_starts.astype("<u8", copy=False).tobytes()
    else:
        header["sections"] = [(*row, 0) for row in rows]
        header["level_starts"][: len(level_starts)] = level_starts
        page = header.tobytes().ljust(PAGE_BYTES, b"\0")
    crc = _header_crc(page)
    page = page[:_CRC_AT] + crc.to_bytes(4, "little") + page[_CRC_AT + 4 :]
    footer = np.array((crc, 0, FOOTER_MAGIC), FOOTER).tobytes()
    return [page, *pieces, footer]


def read_header(page: bytes, file_bytes: int, file: str | PathLike[str]) -> Header:
    """Check and parse the header in a file's first page; every open does this cheap check.

    Raises:
        CorruptSketchError: the header contradicts itself, its checksum or the file's size.
        SketchTooNewError: the header is sound, but has a later format or rule set.
        SketchTooOldError: the header is sound, but has a format that is no longer supported.
    """
    if file_bytes < PREFIX.itemsize + FOOTER_BYTES:
        least = PREFIX.itemsize + FOOTER_BYTES
        _refuse(file, "header", f"at least {least} bytes", f"{file_bytes} bytes", _NO_SKETCH)
    magic, major, minor, header_bytes, stated_crc, _ = np.frombuffer(page, PREFIX, 1)[0].item()
    if magic != MAGIC:
        _refuse(file, "header", f"magic {MAGIC!r}", repr(page[:8]), _NO_SKETCH)
    most = min(len(page), file_bytes - FOOTER_BYTES)
    if not PREFIX.itemsize <= header_bytes <= most:
        _refuse(file, "header", f"{PREFIX.itemsize} to {most} bytes", f"{header_bytes} bytes", _NO_SKETCH)
    crc = _header_crc(page[:header_bytes])
    if crc != stated_crc:
        _refuse(file, "header", f"checksum {stated_crc:08x}", f"{crc:08x}")
    _check_version(major, minor, file)
    values = _header_values(page[:header_bytes], minor, file)
    if values["rules_version"] > NEWEST_RULES_VERSION:
        raise SketchTooNewError(
            file,
            section="header",
            expected=f"token rules up to {NEWEST_RULES_VERSION}",
            found=f"rules {values['rules_version']}",
            advice="upgrade coprlake to read it",
        )
    header = Header(
        minor=minor,
        header_bytes=header_bytes,
        crc=stated_crc,
        object_id=bytes(values["object_id"]),
        **{name: values[name] for name in (*_COUNTS, "file_bytes", "own_list_count", "sections", "level_starts")},
    )
    _check_numbers(header, file_bytes, file)
    _check_sections(header, file)
    return header


def _header_values(header: bytes, minor: int, file: str | PathLike[str]) -> dict[str, Any]:
    """The numbers of a header in either layout, with places and sizes of sections in bytes."""
    layout = HEADER if minor >= TIGHT_MINOR else PAGE_HEADER
    values: dict[str, Any] = {"level_count": 0}
    if len(header) >= layout.itemsize:
        values = dict(zip(layout.names or (), np.frombuffer(header, layout, 1)[0].item(), strict=True))
    expected = header_size(minor, min(values["level_count"], LEVEL_LIMIT))
    if len(header) != expected:
        _refuse(file, "header", f"a header of {expected} bytes", f"{len(header)} bytes")
    rows = values["sections"].tolist()
    if minor >= TIGHT_MINOR:
        spans = [(8 * start, 8 * (end - start), crc) for (start, crc), (end, _) in pairwise(rows)]
        values["level_starts"] = np.frombuffer(header, "<u8", offset=layout.itemsize)
    else:
        spans = [(offset, size, crc) for offset, size, crc, _ in rows]
    values["sections"] = dict(zip(SECTIONS, spans, strict=True))
    values["level_starts"] = tuple(values["level_starts"].tolist())
    return values


def _check_version(major: int, minor: int, file: str | PathLike[str]) -> None:
    known = f"format version {MAJOR}.0 to {MAJOR}.{MINOR}"
    versions = {"section": "header", "expected": known, "found": f"version {major}.{minor}"}
    if (major, minor) > (MAJOR, MINOR):
        raise SketchTooNewError(file, **versions, advice="upgrade coprlake to read it")
    if major < MAJOR:
        raise SketchTooOldError(file, **versions, advice="build the sketch again from its data file")


def check_footer(footer: bytes, header: Header, file: str | PathLike[str]) -> None:
    """Check the last bytes of the file against its header."""
    row = np.frombuffer(footer, FOOTER, 1)[0]
    if row["magic"] != FOOTER_MAGIC or row["header_crc"] != header.crc or row["zero"] != 0:
        _refuse(file, "footer", f"magic {FOOTER_MAGIC!r} and checksum {header.crc:08x}", repr(footer))


def _refuse(file: str | PathLike[str], section: str, expected: str, found: str, advice: str = _REBUILD) -> None:
    raise CorruptSketchError(file, section=section, expected=expected, found=found, advice=advice)


def _check_numbers(header: Header, file_bytes: int, file: str | PathLike[str]) -> None:
    if header.file_bytes != file_bytes:
        _refuse(file, "header", f"a file of {header.file_bytes} bytes", f"{file_bytes} bytes")
    least_own, most_own = 0, 0
    if header.minor > 0:  # each of the other lists has two or more tokens
        least_own, most_own = max(2 * header.list_count - header.token_count, 0), header.list_count
    bounds = {
        "rules_version": (1, NEWEST_RULES_VERSION),
        "signature_bits": (1, FULL_SIGNATURE_BITS),
        "token_count": (0, 1 << FULL_SIGNATURE_BITS),
        "list_count": (0, header.token_count),
        "posting_count": (0, POSTING_LIMIT),
        "level_count": (0, LEVEL_LIMIT),
        "fallback_count": (0, header.token_count),
        "own_list_count": (least_own, most_own),
    }
    for name, (low, high) in bounds.items():
        if not low <= getattr(header, name) <= high:
            _refuse(file, "header", f"{name} of {low} to {high}", str(getattr(header, name)))
    starts = header.level_starts[: header.level_count + 1]
    rising = all(a < b for a, b in pairwise(starts))
    if starts[0] != 0 or not rising or any(start % 64 for start in starts):
        _refuse(file, "header", "level starts that increase from 0 by whole words", str(starts))


def section_sizes(header: Header) -> dict[str, tuple[int, int]]:
    """The smallest and largest size in bytes of each section, given the header's numbers."""
    level_words = header.level_starts[header.level_count] // 64
    words = {name: size // 8 for name, (_, size, _) in header.sections.items()}
    anything = (0, header.file_bytes)
    exact_words = {
        "levels": level_words,
        "level_ranks": words_for(RANK_BITS * (level_words // RANK_WORDS + 2)),
        "fallback": words_for(32 * header.fallback_count),
        "signatures": words_for(header.signature_bits * header.token_count),
        "width_samples": sample_words(header.token_count, words["ranks"], words["width_codes"], header.own_list_count),
        "width_table": _table_words(words["width_table"], header.minor),
        "list_offsets": words_for(-(-header.list_count // LIST_INTERVAL) * position_width(words["lists"])),
    }
    return {name: (8 * exact_words[name],) * 2 if name in exact_words else anything for name in SECTIONS}


def _table_words(words: int, minor: int) -> int:
    """How many words a table of codes has that has about so many: a power of two since 1.2."""
    most = TABLE_SIZE // 4
    return min(1 << (words - 1).bit_length(), most) if minor >= TIGHT_MINOR and words else most


def _check_sections(header: Header, file: str | PathLike[str]) -> None:
    end = header.header_bytes
    for name in SECTIONS:
        offset, size, _ = header.sections[name]
        start = section_start(end, header.minor)
        if offset != start or size < 0 or offset + size > header.file_bytes - FOOTER_BYTES or size % 8:
            _refuse(file, name, f"whole words from byte {start} on, inside the file", f"{size} bytes at {offset}")
        end = offset + size
    if end != header.file_bytes - FOOTER_BYTES:
        _refuse(file, "footer", f"at byte {end}", f"at byte {header.file_bytes - FOOTER_BYTES}")
    for name, (least, most) in section_sizes(header).items():
        size = header.sections[name][1]
        if not least <= size <= most:
            _refuse(file, name, f"{least} bytes" if least == most else f"{least} to {most} bytes", f"{size} bytes")
