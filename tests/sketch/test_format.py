"""The sketch file: what today's code reads and writes, and what it says of files that are not in order.

Run as a script it is the child process in which damaged files are queried: a crash there is a failing test here.
"""

import faulthandler
import json
import os
import pickle
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numba import config

from coprlake import (
    ConflictError,
    CoprlakeError,
    CorruptSketchError,
    FormatError,
    NotFoundError,
    SealedSketch,
    SketchTooNewError,
    SketchTooOldError,
    UnreadableSketchError,
    UsageError,
)
from coprlake.config import RuleSet
from coprlake.sketch.bbhash import LEVEL_LIMIT, build_perfect_hash
from coprlake.sketch.format import (
    FOOTER,
    FOOTER_BYTES,
    HEADER,
    MINOR,
    NEWEST_RULES_VERSION,
    PAGE_BYTES,
    PAGE_HEADER,
    PAGE_SECTION,
    PREFIX,
    RULES_VERSIONS,
    SECTION,
    SECTIONS,
    TIGHT_MINOR,
    minor_of,
)
from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.sealing import encode
from coprlake.tokens.fingerprint import fingerprint

pytestmark = pytest.mark.kernels

HERE = Path(__file__).parent
GOLDEN = runpy.run_path(str(HERE / "golden" / "make.py"))
DOCUMENT = (HERE.parent.parent / "docs" / "format" / "sketch.md").read_text()
CHILD_SECONDS = 100


def expected() -> dict[int, set[int]]:
    """What the golden sketch has to answer."""
    postings_of: dict[int, set[int]] = GOLDEN["expected"]()
    return postings_of


LATEST = f"1.{MINOR}"
PAGED = ("1.0", "1.1")
"""The versions with a page of header and aligned sections."""


def sound(version: str = LATEST) -> bytes:
    """A small sketch that is in order; in all formats but 1.0 it has some own lists."""
    data: bytes = GOLDEN["make"](version, GOLDEN["SMALL"])
    return data


@pytest.fixture(params=GOLDEN["FILES"])
def version(request: pytest.FixtureRequest) -> str:
    """Each format that is read: what holds for one has to hold for the others."""
    given: str = request.param
    return given


def header_bytes_of(data: bytes) -> int:
    return int(np.frombuffer(data, PREFIX, 1)[0]["header_bytes"])


def layout_in(data: bytes) -> np.dtype[Any]:
    return PAGE_HEADER if minor_of(data) < TIGHT_MINOR else HEADER


def with_header(data: bytes, **fields: Any) -> bytes:
    """The file with other numbers in its header, and the checksums that fit them: damage that a checksum won't tell."""
    page = bytearray(data[: header_bytes_of(data)])
    header = np.frombuffer(page, layout_in(data), 1)[0]
    for name, value in fields.items():
        if name == "level_starts" and name not in (header.dtype.names or ()):
            starts = np.frombuffer(page, "<u8", offset=HEADER.itemsize)
            starts[:] = value[: len(starts)]
        else:
            header[name] = value
    return _with_checksum(page, data)


def with_section(data: bytes, number: int, **fields: int) -> bytes:
    page = bytearray(data[: header_bytes_of(data)])
    row = np.frombuffer(page, layout_in(data), 1)[0]["sections"][number]
    for name, value in fields.items():
        row[name] = value
    return _with_checksum(page, data)


def _with_checksum(page: bytearray, data: bytes) -> bytes:
    page[16:20] = bytes(4)
    crc = zlib.crc32(page).to_bytes(4, "little")
    page[16:20] = crc
    return bytes(page) + data[len(page) : -FOOTER_BYTES] + crc + data[-FOOTER_BYTES + 4 :]


def section_of(data: bytes, name: str) -> tuple[int, int]:
    offset, size, _ = SealedSketch(data).header.sections[name]
    return offset, size


def ask_everything(sketch: SealedSketch) -> int:
    """Every query there is; whatever the bytes are, each answers within bounds or raises CorruptSketchError.

    Returns:
        how many queries were asked.
    """
    tokens = np.array([*expected(), 1, 2, 3, 0xFFFFFFFF], np.uint32)
    with suppress(CorruptSketchError):
        assert (sketch.list_ids(tokens) < sketch.list_count).all()
    for rank in range(sketch.list_count):
        with suppress(CorruptSketchError):
            found = sketch.decode(rank).tolist()
            assert found == sorted(set(found))
            assert found[-1] < sketch.posting_count
    with suppress(CorruptSketchError):
        assert (sketch.tokens()[1] < sketch.list_count).all()
    with suppress(CorruptSketchError):
        postings, starts = sketch.lists()
        assert starts[-1] == len(postings)
        assert (np.diff(starts) > 0).all()
    return sketch.list_count + 3


# Golden bytes


@pytest.mark.parametrize("version", GOLDEN["FILES"])
def test_the_golden_sketch_of_every_version_opens_and_answers(version: str) -> None:
    golden = GOLDEN["FILES"][version]
    postings_of = GOLDEN["expected"](golden.content)
    with SealedSketch.open(golden.file) as sketch:
        sketch.verify()
        list_ids = sketch.list_ids(np.array(list(postings_of), np.uint32)).tolist()
        assert [set(sketch.decode(rank).tolist()) for rank in list_ids] == list(postings_of.values())
        assert sketch.candidate_postings("Error").tolist() == [0, 2]
        assert sketch.candidate_postings("10.0.0.1").tolist() == [4]
        assert sketch.candidate_postings("größe").tolist() == [0, 1, 2, 3, 4]
        assert not sketch.may_contain("absent")
        assert sketch.header.object_id == GOLDEN["OBJECT_ID"]
        assert sketch.token_count == len(postings_of)
        assert sketch.posting_count == golden.content.postings
        assert f"1.{sketch.header.minor}" == version
        assert sketch.rules == golden.rules


@pytest.mark.parametrize("version", GOLDEN["FILES"])
def test_the_golden_sketch_is_what_today_s_code_writes(version: str) -> None:
    golden = GOLDEN["FILES"][version]
    assert GOLDEN["make"](version) == golden.file.read_bytes()


def test_new_sketches_are_written_in_the_latest_version_but_those_by_the_paper_s_rules() -> None:
    sketch = MutableSketch()
    found = {rules: minor_of(encode(sketch, rules=rules)[0][0]) for rules in RuleSet}
    assert found == {RuleSet.PAPER: 0, RuleSet.WINNOWED: MINOR}


def test_a_sketch_of_a_few_tokens_takes_a_few_hundred_bytes() -> None:
    """In the versions with pages, this one took 4.9 kB."""
    sketch = MutableSketch()
    sketch.insert(np.array([1, 2, 3], np.uint32), 0)
    pieces, report = encode(sketch)
    assert sum(map(len, pieces)) < 320
    assert report.bytes_by_part["width_table"] == 8


@pytest.mark.parametrize("version", GOLDEN["FILES"])
def test_the_fingerprints_of_the_golden_sketch_are_those_of_today(version: str) -> None:
    with SealedSketch.open(GOLDEN["FILES"][version].file) as sketch:
        assert fingerprint("connection") in sketch.tokens()[0].tolist()


def test_the_latest_version_has_golden_bytes() -> None:
    assert list(GOLDEN["FILES"])[-1] == f"1.{MINOR}"
    assert f"format 1.{MINOR}\n" in DOCUMENT.splitlines(keepends=True)[0]


# The document


def rows_under(heading: str, table: int = 0) -> list[list[str]]:
    """The cells of a table of the document, without its head."""
    section = re.split(r"^## ", DOCUMENT, flags=re.MULTILINE)
    text = next(part for part in section if part.startswith(heading))
    tables = re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE)
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in tables[table].splitlines()[2:]]


def layout_of(dtype: np.dtype[Any]) -> list[tuple[int, int, str]]:
    assert dtype.names is not None
    assert dtype.fields is not None
    return [(dtype.fields[name][1], dtype.fields[name][0].itemsize, name) for name in dtype.names]


@pytest.mark.parametrize(
    ("heading", "table", "dtype"),
    [
        ("Header", 0, HEADER),
        ("Header", 1, SECTION),
        ("Footer", 0, FOOTER),
        ("Formats 1.0 and 1.1", 0, PAGE_HEADER),
        ("Formats 1.0 and 1.1", 1, PAGE_SECTION),
    ],
)
def test_the_document_has_the_layout_of_the_code(heading: str, table: int, dtype: np.dtype[Any]) -> None:
    documented = [(int(offset), int(size), name) for offset, size, _, name, _ in rows_under(heading, table)]
    assert documented == layout_of(dtype)


@pytest.mark.parametrize(("heading", "layout"), [("Header", HEADER), ("Formats 1.0 and 1.1", PAGE_HEADER)])
def test_the_document_has_the_types_of_the_code(heading: str, layout: np.dtype[Any]) -> None:
    kinds = {row[3]: row[2] for row in rows_under(heading)}
    for name, kind in kinds.items():
        dtype = layout[name]
        if kind.startswith("u"):
            assert dtype == np.dtype(f"<u{int(kind[1:]) // 8}")
        elif kind.endswith(" rows") or " x " in kind:
            assert dtype.shape == (int(kind.split()[0]),)
        else:
            assert kind == "bytes"


def test_the_document_has_the_sections_of_the_code() -> None:
    assert [(int(number), name) for number, name, _ in rows_under("Sections")] == list(enumerate(SECTIONS))


def test_the_header_fits_its_page_and_begins_with_the_prefix() -> None:
    assert HEADER.itemsize + 8 * (LEVEL_LIMIT + 1) <= PAGE_BYTES
    assert PAGE_HEADER.itemsize <= PAGE_BYTES
    for layout in (HEADER, PAGE_HEADER):
        assert layout_of(layout)[: len(layout_of(PREFIX))] == layout_of(PREFIX)
    assert FOOTER.itemsize == FOOTER_BYTES


# Damaged headers and sizes


def test_a_file_cut_anywhere_is_refused(version: str) -> None:
    data = sound(version)
    for length in range(len(data)):
        with pytest.raises(CorruptSketchError):
            SealedSketch(data[:length])


def test_a_file_on_disk_that_was_cut_is_refused(version: str, tmp_path: Path) -> None:
    path = tmp_path / "cut.copr"
    data = sound(version)
    header_bytes = header_bytes_of(data)
    for length in (0, 1, 8, 23, 24, 40, header_bytes - 1, header_bytes, header_bytes + FOOTER_BYTES, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(CorruptSketchError, match=re.escape(str(path))):
            SealedSketch.open(path)


@pytest.mark.parametrize("more", [b"\0", bytes(8), bytes(64), b"COPREND\n"])
def test_a_file_with_something_behind_is_refused(more: bytes) -> None:
    with pytest.raises(CorruptSketchError, match="a file of"):
        SealedSketch(sound() + more)


def test_every_flipped_bit_of_the_header_is_found(version: str) -> None:
    data = sound(version)
    page = bytearray(data[: header_bytes_of(data)])
    rest = data[len(page) :]
    for index in range(len(page)):
        for bit in range(8):
            page[index] ^= 1 << bit
            with pytest.raises(CorruptSketchError):
                SealedSketch(bytes(page) + rest)
            page[index] ^= 1 << bit
    SealedSketch(bytes(page) + rest).verify()


@pytest.mark.parametrize("other", [b"", b"PAR1", b"\x89PNG\r\n\x1a\n", b"COPRSKT\r", bytes(8)])
def test_another_kind_of_file_is_refused(other: bytes) -> None:
    with pytest.raises(CorruptSketchError, match=r"magic|at least"):
        SealedSketch(other.ljust(5000 if other else 0, b"x"))


# Headers that contradict themselves although their checksum is right


def test_a_header_with_a_new_checksum_is_otherwise_as_before(version: str) -> None:
    """What the tests below rely on."""
    assert with_header(sound(version)) == sound(version)


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("field", ["offset", "size"])
@pytest.mark.parametrize("change", [-64, -8, -1, 1, 7, 8, 64, 1 << 20, 1 << 40, (1 << 63) - 8192, (1 << 64) - 8192])
@pytest.mark.parametrize("version", PAGED)
def test_a_section_elsewhere_or_of_another_size_is_refused(section: str, field: str, change: int, version: str) -> None:
    data = sound(version)
    value = section_of(data, section)[field == "size"]
    if value + change < 0:
        change = -value or 8
    changed = with_section(data, SECTIONS.index(section), **{field: value + change})
    if (section, field) in {("width_codes", "size"), ("ranks", "size")} and abs(change) == 8 and value + change:
        # such a size fits all that the header says: the content has to tell
        ask_everything(SealedSketch(changed))
        with pytest.raises(CorruptSketchError, match="checksum"):
            SealedSketch(changed).verify()
        return
    with pytest.raises(CorruptSketchError):
        SealedSketch(changed)


@pytest.mark.parametrize("number", range(len(SECTIONS) + 1))
@pytest.mark.parametrize("change", [-(1 << 31), -8, -2, -1, 1, 2, 7, 8, 64, 1 << 20, 1 << 29, 1 << 31])
def test_a_section_that_starts_at_another_word_is_refused_or_found_by_verify(number: int, change: int) -> None:
    """Since 1.2, the start of a section is also the end of the one before it; sizes that fit are left to checksums."""
    for data in (sound(), with_fallback(), GOLDEN["make"](LATEST)):
        start = int(np.frombuffer(data, HEADER, 1)[0]["sections"][number]["start"])
        changed = with_section(data, number, start=(start + change) % (1 << 32))
        with pytest.raises(CorruptSketchError):
            ask_and_verify(changed)


def ask_and_verify(data: bytes) -> None:
    sketch = SealedSketch(data)
    ask_everything(sketch)
    sketch.verify()


@pytest.mark.parametrize("words", [0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 63, 64, 65, 128])
def test_a_table_of_codes_has_a_power_of_two_of_words_and_at_most_64(words: int) -> None:
    """The table in another size, with checksums that fit it."""
    sketch = MutableSketch()
    for posting in range(5):
        sketch.insert(np.array([token for token in expected() if posting in expected()[token]], np.uint32), posting)
    with patch("coprlake.sketch.sealing.shortest_table", lambda table: np.resize(table, words)):
        data = b"".join(encode(sketch, signature_bits=32)[0])
    if words in (1, 2, 4, 8, 16, 32, 64):
        ask_everything(SealedSketch(data))
    else:
        with pytest.raises(CorruptSketchError) as caught:
            SealedSketch(data)
        assert caught.value.section == "width_table"


def test_the_end_of_the_sections_is_the_footer(version: str) -> None:
    header = SealedSketch(sound(version)).header
    offset, size, _ = header.sections[SECTIONS[-1]]
    assert offset + size == header.file_bytes - FOOTER_BYTES


@pytest.mark.parametrize("version", PAGED)
@pytest.mark.parametrize("section", SECTIONS[1:])
def test_overlapping_sections_are_refused(section: str, version: str) -> None:
    data = sound(version)
    offset, _ = section_of(data, SECTIONS[SECTIONS.index(section) - 1])
    own, _ = section_of(data, section)
    if own == offset:  # the one before is empty
        offset -= 64
    with pytest.raises(CorruptSketchError) as caught:
        SealedSketch(with_section(data, SECTIONS.index(section), offset=offset))
    assert caught.value.section == section


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("file_bytes", 0),
        ("file_bytes", 1 << 40),
        ("signature_bits", 0),
        ("signature_bits", 8),
        ("signature_bits", 33),
        ("signature_bits", (1 << 64) - 1),
        ("token_count", 0),
        ("token_count", 20),
        ("token_count", 1000),
        ("token_count", 1 << 32),
        ("token_count", (1 << 64) - 1),
        ("list_count", 46),
        ("list_count", (1 << 64) - 1),
        ("posting_count", 65537),
        ("posting_count", (1 << 64) - 1),
        ("level_count", 0),
        ("level_count", 1),
        ("level_count", 4),
        ("level_count", 49),
        ("level_count", (1 << 64) - 1),
        ("fallback_count", 1),
        ("fallback_count", (1 << 64) - 1),
        ("own_list_count", 25),
        ("own_list_count", (1 << 64) - 1),
    ],
)
def test_counts_that_contradict_the_rest_are_refused(field: str, value: int, version: str) -> None:
    with pytest.raises(CorruptSketchError):
        SealedSketch(with_header(sound(version), **{field: value}))


@pytest.mark.parametrize(
    "starts",
    [
        [64, 128, 192, 256],
        [0, 128, 64, 192],
        [0, 64, 64, 192],
        [0, 32, 128, 192],
        [0, 64, 128, 256],
        [0, 64, 1 << 63, 192],
    ],
)
def test_level_starts_that_do_not_rise_by_words_to_the_end_are_refused(starts: list[int], version: str) -> None:
    data = sound(version)
    level_starts = np.zeros(PAGE_HEADER["level_starts"].shape, np.uint64)
    level_starts[: len(starts)] = starts
    assert SealedSketch(data).header.level_starts[:4] == (0, 64, 128, 192)
    with pytest.raises(CorruptSketchError):
        SealedSketch(with_header(data, level_starts=level_starts))


@pytest.mark.parametrize(
    ("field", "value"),
    [("token_count", 44), ("token_count", 46), ("posting_count", 0), ("posting_count", 4), ("posting_count", 65536)]
    + [("list_count", count) for count in (1, 17, 23, 25, 45)]
    + [("own_list_count", count) for count in (1, 3, 11, 13, 24)],
)
def test_a_count_that_only_the_content_contradicts_gives_answers_within_bounds_or_an_error(
    field: str, value: int, version: str
) -> None:
    """No checksum and no size tells: the reader has to take care by itself."""
    try:
        sketch = SealedSketch(with_header(sound(version), **{field: value}))
    except CorruptSketchError:
        return
    assert getattr(sketch.header, field) == value
    ask_everything(sketch)


def test_own_lists_in_a_file_of_format_1_0_are_refused() -> None:
    with pytest.raises(CorruptSketchError, match="own_list_count of 0 to 0"):
        SealedSketch(with_header(sound("1.1"), minor=0))
    with pytest.raises(CorruptSketchError, match="own_list_count of 0 to 0"):
        SealedSketch(with_header(sound("1.0"), own_list_count=1))


def test_a_header_with_the_version_of_another_layout_is_refused() -> None:
    for version, minor in (("1.2", 0), ("1.2", 1), ("1.0", 2), ("1.1", 2)):
        with pytest.raises(CorruptSketchError, match="a header of"):
            SealedSketch(with_header(sound(version), minor=minor))


@pytest.mark.parametrize("header_bytes", [0, 23, 24, 200, 208, 224, 240, 4096, 4104, (1 << 32) - 1])
def test_a_header_of_another_size_is_refused_even_if_its_checksum_fits(header_bytes: int) -> None:
    data = sound()
    assert header_bytes_of(data) == 232
    changed = bytearray(data)
    changed[12:16] = header_bytes.to_bytes(4, "little")
    changed[16:20] = bytes(4)
    changed[16:20] = zlib.crc32(changed[: min(header_bytes, len(data))]).to_bytes(4, "little")
    with pytest.raises(CorruptSketchError, match="header"):
        SealedSketch(bytes(changed))


def test_fewer_own_lists_than_the_tokens_leave_are_refused() -> None:
    """Each other list has two tokens at least: with 40 lists of 45 tokens, 35 are own ones."""
    with pytest.raises(CorruptSketchError, match="own_list_count of 35 to 40"):
        SealedSketch(with_header(sound(), list_count=40, own_list_count=34))


@pytest.mark.parametrize("count", [8, 11, 13, 15])
def test_verify_counts_the_tokens_with_own_lists(count: int) -> None:
    """These numbers take as many bits as the right one, 12: no size tells."""
    sketch = SealedSketch(with_header(sound(), own_list_count=count))
    with pytest.raises(CorruptSketchError, match=f"{count} tokens with own lists, found 12") as caught:
        sketch.verify()
    assert caught.value.section == "width_codes"


# Versions


@pytest.mark.parametrize("major", [2, 3, 65535])
def test_a_newer_major_version_is_too_new(major: int) -> None:
    with pytest.raises(SketchTooNewError, match=rf"found version {major}\.7; upgrade"):
        SealedSketch(with_header(sound(), major=major, minor=7))


def test_a_newer_major_version_is_too_new_whatever_the_rest_of_the_page_says() -> None:
    data = with_header(sound(), major=2, file_bytes=1, token_count=(1 << 64) - 1, rules_version=99)
    with pytest.raises(SketchTooNewError, match=rf"format version 1\.0 to 1\.{MINOR}"):
        SealedSketch(data)


def test_major_version_0_is_too_old() -> None:
    with pytest.raises(SketchTooOldError, match="build the sketch again"):
        SealedSketch(with_header(sound(), major=0))


@pytest.mark.parametrize("minor", [MINOR + 1, 9, 65535])
def test_a_newer_minor_version_is_too_new_since_layouts_differ(minor: int) -> None:
    with pytest.raises(SketchTooNewError, match=rf"1\.0 to 1\.{MINOR}, found version 1\.{minor}; upgrade"):
        SealedSketch(with_header(sound(), minor=minor))


def test_the_rules_are_kept(version: str) -> None:
    sketch = SealedSketch(sound(version))
    rules = GOLDEN["FILES"][version].rules
    assert sketch.rules is rules
    assert sketch.rules_version == sketch.header.rules_version == RULES_VERSIONS[rules]


@pytest.mark.parametrize("number", [-1, 0, NEWEST_RULES_VERSION + 1])
def test_rules_that_do_not_exist_are_not_written(number: int) -> None:
    with pytest.raises(UsageError, match=f"there are no token rules {number}; expected winnowed or paper"):
        encode(MutableSketch(), rules=number)  # type: ignore[arg-type]


def test_rules_0_are_refused() -> None:
    with pytest.raises(CorruptSketchError, match="rules_version of 1 to"):
        SealedSketch(with_header(sound(), rules_version=0))


@pytest.mark.parametrize("rules_version", [NEWEST_RULES_VERSION + 1, (1 << 64) - 1])
def test_newer_token_rules_are_too_new(rules_version: int) -> None:
    with pytest.raises(SketchTooNewError, match=f"found rules {rules_version}"):
        SealedSketch(with_header(sound(), rules_version=rules_version))


def test_a_damaged_page_is_corrupt_even_if_its_version_looks_newer() -> None:
    data = bytearray(sound())
    data[8] = 2
    with pytest.raises(CorruptSketchError, match="checksum"):
        SealedSketch(bytes(data))


# Paths


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"missing\.copr: no such sketch file; check the path"):
        SealedSketch.open(tmp_path / "missing.copr")


def test_a_directory_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSketchError, match="found a directory"):
        SealedSketch.open(tmp_path)


def test_something_that_is_no_regular_file_is_unreadable() -> None:
    with pytest.raises(UnreadableSketchError, match="found something else"):
        SealedSketch.open("/dev/null")


def test_a_path_through_a_file_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UnreadableSketchError, match="Not a directory"):
        SealedSketch.open(tmp_path / "file" / "s.copr")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, other than `tmp_path`."""
    folder = Path(tempfile.mkdtemp(prefix="coprlake-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_file_without_permission_is_unreadable(open_folder: Path) -> None:
    path = open_folder / "s.copr"
    path.write_bytes(sound())
    path.chmod(0o600 if os.getuid() == 0 else 0)
    script = (
        "import os, sys\n"
        "from coprlake.errors import UnreadableSketchError\n"
        "from coprlake.sketch.immutable import SealedSketch\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "try: SealedSketch.open(sys.argv[1])\n"
        "except UnreadableSketchError as error: print(error.found)\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=CHILD_SECONDS, check=False
    )
    assert (child.stdout, child.stderr, child.returncode) == ("Permission denied\n", "", 0)


def test_a_closed_sketch_lets_go_of_its_file_and_an_open_one_can_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "s.copr"
    path.write_bytes(sound())
    sketch = SealedSketch.open(path)
    path.unlink()
    assert sketch.candidate_postings("error").tolist() == [0, 2]
    sketch.close()
    sketch.close()


# What errors say


def format_errors() -> list[FormatError]:
    errors = []
    data = sound()
    for damaged in (
        data[:100],
        with_header(data, major=2),
        with_header(data, major=0),
        with_header(data, token_count=0),
    ):
        with pytest.raises(FormatError) as caught:
            SealedSketch(damaged, "some/file.copr")
        errors.append(caught.value)
    with pytest.raises(FormatError) as caught:
        SealedSketch.open(HERE)
    return [*errors, caught.value]


def test_a_format_error_says_what_and_where_and_what_to_do() -> None:
    for error in format_errors():
        for name in ("file", "section", "expected", "found", "advice"):
            value = getattr(error, name)
            assert isinstance(value, str)
            assert value
            assert value in str(error)
        assert not str(error).endswith(".")


def test_errors_survive_pickling() -> None:
    errors: list[CoprlakeError] = [*format_errors(), UsageError("a"), NotFoundError("b"), ConflictError("c")]
    for error in errors:
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == str(error)
        assert copy.__dict__ == error.__dict__


def test_one_class_catches_all_errors_and_python_s_own_classes_fit() -> None:
    kinds: list[type] = [UsageError, NotFoundError, ConflictError, *(type(error) for error in format_errors())]
    assert all(issubclass(kind, CoprlakeError) for kind in kinds)
    assert issubclass(UsageError, ValueError)
    assert issubclass(NotFoundError, FileNotFoundError)
    assert len({CorruptSketchError, SketchTooNewError, SketchTooOldError, UnreadableSketchError} & set(kinds)) == 4


# Damaged sections


@pytest.mark.parametrize("section", SECTIONS)
def test_verify_names_the_section_that_is_damaged(section: str, version: str) -> None:
    data = bytearray(with_fallback(version))
    offset, size = section_of(bytes(data), section)
    data[offset + size // 2] ^= 0x10
    with pytest.raises(CorruptSketchError, match="checksum") as caught:
        SealedSketch(bytes(data)).verify()
    assert caught.value.section == section


def test_verify_finds_a_byte_between_sections() -> None:
    data = bytearray(sound("1.1"))
    offset, size = section_of(bytes(data), "levels")
    assert size % 64
    data[offset + size] = 1
    with pytest.raises(CorruptSketchError, match="zeros in front"):
        SealedSketch(bytes(data)).verify()


@pytest.mark.parametrize("index", range(-FOOTER_BYTES, 0))
def test_verify_finds_every_damaged_byte_of_the_footer(index: int, version: str) -> None:
    data = bytearray(sound(version))
    data[index] ^= 0x01
    with pytest.raises(CorruptSketchError) as caught:
        SealedSketch(bytes(data)).verify()
    assert caught.value.section == "footer"


@pytest.mark.parametrize("filler", [0x00, 0xFF, 0x55, 0xAA])
@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_overwritten_as_a_whole_gives_answers_within_bounds_or_an_error(
    section: str, filler: int, version: str
) -> None:
    data = bytearray(with_fallback(version))
    offset, size = section_of(bytes(data), section)
    data[offset : offset + size] = bytes([filler]) * size
    assert ask_everything(SealedSketch(bytes(data))) > 3


def with_fallback(version: str = LATEST) -> bytes:
    """The same sketch with a perfect hash of one level only, so that the section `fallback` is in use."""
    with patch("coprlake.sketch.sealing.build_perfect_hash", partial(build_perfect_hash, level_limit=1)):
        return sound(version)


def test_tokens_in_the_fallback_are_found(version: str) -> None:
    sketch = SealedSketch(with_fallback(version))
    assert sketch.header.fallback_count > 5
    list_ids = sketch.list_ids(np.array(list(expected()), np.uint32)).tolist()
    assert [set(sketch.decode(rank).tolist()) for rank in list_ids] == list(expected().values())
    assert not sketch.may_contain("absent")
    sketch.verify()


@pytest.mark.parametrize("section", ["width_samples", "width_codes", "width_table", "ranks"])
@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_random_bytes_in_the_ranks_of_several_samples_give_answers_within_bounds_or_an_error(
    section: str, version: str
) -> None:
    golden = GOLDEN["FILES"][version]
    data = golden.file.read_bytes()
    offset, size = section_of(data, section)
    random = np.random.default_rng(2)
    tokens = np.array(list(GOLDEN["expected"](golden.content)), np.uint32)
    for _ in range(3 if config.DISABLE_JIT else 100):
        damaged = data[:offset] + random.bytes(size) + data[offset + size :]
        sketch = SealedSketch(damaged)
        with suppress(CorruptSketchError):
            assert (sketch.list_ids(tokens) < sketch.list_count).all()
        with suppress(CorruptSketchError):
            assert (sketch.tokens()[1] < sketch.list_count).all()
        with pytest.raises(CorruptSketchError, match="checksum"):
            sketch.verify()


def damaged_files() -> Iterator[tuple[str, bytes]]:
    """Every byte behind the header inverted, and each of its bits; a seeded sample without the JIT."""
    random = np.random.default_rng(1)
    files = {
        f"{made.__name__} {version}": made(version) for made in (sound, with_fallback) for version in GOLDEN["FILES"]
    }
    for name, data in files.items():
        for index in range(header_bytes_of(data), len(data)):
            for mask in (0xFF, *(1 << bit for bit in range(8))):
                if config.DISABLE_JIT and random.random() > 0.02:
                    continue
                damaged = bytearray(data)
                damaged[index] ^= mask
                yield f"{name}: byte {index} ^ {mask:#x}", bytes(damaged)


def query_damaged_files() -> None:
    """What the child process does; prints what went wrong, as JSON."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(CHILD_SECONDS - 5, exit=True)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)  # as in conftest.py
    failures: dict[str, str] = {}
    count = 0
    for what, data in damaged_files():
        count += 1
        try:
            sketch = SealedSketch(data)
            ask_everything(sketch)
        except Exception as error:
            failures[what] = repr(error)
            continue
        try:
            sketch.verify()
            failures[what] = "verify found nothing"
        except CorruptSketchError:
            pass
        except Exception as error:
            failures[what] = f"verify: {error!r}"
    print(json.dumps({"count": count, "failures": failures}))


@pytest.mark.slow
def test_a_damaged_file_gives_answers_or_errors_never_a_crash_and_verify_finds_every_flip() -> None:
    child = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, timeout=CHILD_SECONDS, check=False
    )
    assert child.returncode == 0, child.stderr
    result = json.loads(child.stdout)
    assert result["count"] > (400 if config.DISABLE_JIT else 30_000)
    assert result["failures"] == {}


if __name__ == "__main__":
    query_damaged_files()


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableSketchError, match="something else"):
        SealedSketch.open(tmp_path / "pipe")


def test_a_path_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(UnreadableSketchError, match="null"):
        SealedSketch.open("a\0b")
