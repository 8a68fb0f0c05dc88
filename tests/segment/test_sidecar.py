"""The sidecar: its layout is documented and kept, its checksum finds every change, its description is not believed."""

import json
import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coprlake import CorruptSidecarError, MutableSketch
from coprlake.config import RuleSet
from coprlake.segment.checksum import checksum
from coprlake.segment.sidecar import (
    MAJOR,
    MINOR,
    TRAILER,
    Description,
    Sidecar,
    encode_sidecar,
    joined_kinds,
    profile_of,
)
from coprlake.sketch.sealing import encode
from coprlake.tokens.profile import Indexed

pytestmark = pytest.mark.kernels

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "sketch" / "golden"
DESCRIBED = Description("x.parquet", 4711, 30, 3, 4096, {"content": "grams", "source": "values"}, ["timestamp"])


def sidecar_bytes(description: Description = DESCRIBED, rules: RuleSet = RuleSet.WINNOWED) -> bytes:
    sketch = MutableSketch(None)
    for posting in range(3):
        sketch.insert(np.array([7, 11 + posting, 1000], np.uint32), posting)
    pieces, _ = encode(sketch, signature_bits=32, rules=rules)
    return b"".join(encode_sidecar(pieces, description))


def naive_checksum(words: list[int]) -> int:
    """The documented sum, word by word."""
    prime, modulus = 0x9E3779B185EBCA87, 1 << 64
    lanes = [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89]
    whole = len(words) // 4 * 4
    for i, word in enumerate(words):
        lane = i % 4 if i < whole else 0
        lanes[lane] = (lanes[lane] ^ word) * prime % modulus
    mixed = lanes[0]
    for other in (*lanes[1:], len(words)):
        mixed = (mixed ^ (mixed >> 29) ^ other) * prime % modulus
    return mixed


@given(st.lists(st.integers(0, 2**64 - 1), max_size=11), st.integers(0, 2**64 - 1), st.data())
def test_the_checksum_is_as_documented_and_tells_any_change_of_a_word(
    words: list[int], other: int, data: st.DataObject
) -> None:
    array = np.array(words, np.uint64)
    found = int(checksum(array))
    assert found == naive_checksum(words)
    if words:
        at = data.draw(st.integers(0, len(words) - 1))
        array[at] = other
        assert (int(checksum(array)) == found) == (other == words[at])


def test_what_was_written_is_read() -> None:
    with Sidecar(sidecar_bytes(), "x.copr") as sidecar:
        assert sidecar.description == DESCRIBED
        assert sidecar.profile.fields == {"content": Indexed(RuleSet.PAPER, False), "source": Indexed(None, True)}
        assert sidecar.profile.typed == {"timestamp"}
        assert sidecar.sketch.decode(int(sidecar.sketch.list_ids(np.array([1000], np.uint32))[0])).tolist() == [0, 1, 2]
        sidecar.check_belongs_to("day=2026-11-16/x.parquet", 4711)
        for name, size, modified in (("y.parquet", 4711, 0), ("x.parquet", 4712, 0), ("x.parquet", 4711, 5)):
            with pytest.raises(CorruptSidecarError):
                sidecar.check_belongs_to(name, size, modified)


@pytest.mark.parametrize(("version", "rules"), [("1.0", RuleSet.PAPER), ("2.0", RuleSet.WINNOWED)])
def test_golden_bytes_of_every_version_are_still_read(version: str, rules: RuleSet) -> None:
    golden = (GOLDEN / f"sidecar-{version}.copr").read_bytes()
    with Sidecar(golden, "golden") as sidecar:
        assert sidecar.description == DESCRIBED
        sidecar.sketch.verify()
    today = sidecar_bytes(rules=rules)
    sketch_bytes = sidecar.sketch.header.file_bytes
    assert golden[:sketch_bytes] == today[:sketch_bytes]
    assert golden[-16:-12] == today[-16:-12], "major and minor version"


def test_the_golden_sidecar_of_the_latest_version_is_what_today_s_code_writes() -> None:
    assert (GOLDEN / f"sidecar-{MAJOR}.{MINOR}.copr").read_bytes() == sidecar_bytes()


@pytest.mark.parametrize("major", [0, 3, 65535])
def test_another_version_is_refused_with_advice(major: int) -> None:
    """Readers of version 1 say the same of version 2."""
    trailer = np.frombuffer(sidecar_bytes()[-TRAILER.itemsize :], TRAILER).copy()
    trailer["major"], trailer["trailer_crc"] = major, 0
    trailer["trailer_crc"] = zlib.crc32(trailer.tobytes())
    changed = sidecar_bytes()[: -TRAILER.itemsize] + trailer.tobytes()
    with pytest.raises(
        CorruptSidecarError, match=rf"version 1 or 2, found version {major}; upgrade coprlake to use it"
    ):
        Sidecar(changed, "x.copr")


def test_a_description_leaves_out_what_a_reader_assumes() -> None:
    least = Description("x.parquet", 1, 2, 3, 4)
    assert json.loads(least.encoded()).keys() == {"data_name", "data_bytes", "row_count", "batch_count", "raw_bytes"}
    assert Sidecar(sidecar_bytes(least), "x.copr").description == least
    changed = [
        {"fields": {"a": "no"}},
        {"typed": ["t"]},
        {"complete": False},
        {"modified_ns": 7},
        {"any_value": "winnowed"},
        {"all_in_content": True},
    ]
    for change in changed:
        described = replace(least, **change)  # type: ignore[arg-type]
        assert Sidecar(sidecar_bytes(described), "x.copr").description == described
    assert len(changed) + 5 == len(Description.__dataclass_fields__)


def test_the_fixed_cost_of_a_sidecar_is_a_few_hundred_bytes() -> None:
    """What is left for a segment of a few tokens: 0.3 kB of sketch, the description and the trailer."""
    assert len(sidecar_bytes()) - len(DESCRIBED.encoded()) < 400


def test_every_flipped_bit_and_every_truncation_is_found() -> None:
    whole = sidecar_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(Exception, match="expected") as caught:
            Sidecar(bytes(damaged), "x.copr")
        assert type(caught.value).__name__ in ("CorruptSidecarError", "CorruptSketchError")
    for size in range(len(whole)):
        with pytest.raises(CorruptSidecarError):
            Sidecar(whole[:size], "x.copr")


@pytest.mark.parametrize(
    "change",
    [{"row_count": "many"}, {"fields": 5}, {"fields": {"a": 5}}, {"typed": "abc"}, {"complete": 1}, {"data_bytes": -1}],
)
def test_a_description_of_another_shape_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(CorruptSidecarError, match="description"):
        Sidecar(sidecar_bytes(replace(DESCRIBED, **change)), "x.copr")  # type: ignore[arg-type]


def test_keys_of_later_versions_are_left_aside() -> None:
    class Later(Description):
        def encoded(self) -> bytes:
            return json.dumps(json.loads(super().encoded()) | {"new": [1]}).encode()

    later = Later(**{name: getattr(DESCRIBED, name) for name in DESCRIBED.__dataclass_fields__})
    assert Sidecar(sidecar_bytes(later), "x.copr").description == DESCRIBED


def test_a_merged_index_is_as_good_as_the_worst_of_its_parts() -> None:
    one = {"a": "grams", "b": "values", "c": "grams+values", "d": "no"}
    other = {"a": "values", "b": "grams+values", "c": "grams", "e": "values"}
    joined = {"a": "no", "b": "values", "c": "grams", "d": "no", "e": "values"}
    assert joined_kinds([replace(DESCRIBED, fields=one), replace(DESCRIBED, fields=other)]) == joined
    incomplete = replace(DESCRIBED, fields=one, complete=False)
    assert joined_kinds([incomplete, replace(DESCRIBED, fields=other)]) == joined | {"e": "no"}


def test_equal_fields_share_a_profile() -> None:
    assert profile_of({"a": "values", "b": "no"}, ["t"], True) is profile_of({"b": "no", "a": "values"}, ["t"], True)


def test_the_page_about_the_format_has_the_layout_of_the_code() -> None:
    text = (ROOT / "docs" / "format" / "sidecar.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\w+) \| `(\w+)` \|", text, re.MULTILINE)
    kinds = {"<u8": "u64", "<u4": "u32", "<u2": "u16", "|S8": "bytes"}
    assert TRAILER.fields is not None
    layout = [
        (str(offset), str(dtype.itemsize), kinds[dtype.str], name)
        for name, (dtype, offset, *_) in TRAILER.fields.items()
    ]
    assert rows == layout
    keys = set(re.findall(r"`(\w+)`", text[text.index("## The description") :]))
    assert set(Description.__dataclass_fields__) <= keys
