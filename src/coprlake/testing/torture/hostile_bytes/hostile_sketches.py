"""Hostile sketches and sidecars: checksums must find damage, and bytes that pass them must do no harm."""

import json
import random
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from coprlake.config import RuleSet
from coprlake.errors import CoprlakeError
from coprlake.files import Folder
from coprlake.kernel import U32Array
from coprlake.predicate.build import contains
from coprlake.predicate.narrowing.required import required_tokens
from coprlake.segment.checksum import checksum
from coprlake.segment.sealed import SealedSegment, SegmentEntry
from coprlake.segment.sidecar import TRAILER, sidecar_name
from coprlake.sketch.algebra import TokenProgram, compile_all_tokens, compile_expression
from coprlake.sketch.format import (
    FOOTER,
    FOOTER_BYTES,
    HEADER,
    PAGE_BYTES,
    PAGE_HEADER,
    PAGE_SECTION,
    PREFIX,
    SECTION,
    SECTIONS,
    TIGHT_MINOR,
    minor_of,
)
from coprlake.sketch.immutable import SealedSketch, may_match_any
from coprlake.sketch.merge import add_sealed
from coprlake.sketch.mutable import MutableSketch
from coprlake.sketch.sealing import encode
from coprlake.testing.torture.hostile_bytes.hostile import Case, Kind, small_table
from coprlake.testing.torture.hostile_bytes.mutating import Edit, edited, random_edits

_FIELDS: Final = [name for name in PAGE_HEADER.names or () if name not in (PREFIX.names or ()) and name != "object_id"]
_ODD: Final = (0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 65, 255, 4096, 65535, 65536, 1 << 31, (1 << 32) - 1, 1 << 62)


def _header_bytes(data: bytes) -> int:
    """Where the sections of a sketch start, as its header says."""
    return int(np.frombuffer(data, PREFIX, 1)[0]["header_bytes"])


def _layout(data: bytes) -> np.dtype[np.void]:
    return HEADER if minor_of(data) >= TIGHT_MINOR else PAGE_HEADER


def with_checksums(data: bytes) -> bytes:
    """Give a sketch valid checksums in header, sections and footer, whatever else is wrong with it."""
    if len(data) < PREFIX.itemsize + FOOTER_BYTES:
        return data
    layout, header_bytes = _layout(data), _header_bytes(data)
    if not layout.itemsize <= header_bytes <= min(PAGE_BYTES, len(data) - FOOTER_BYTES):
        return data
    page = np.frombuffer(data[: layout.itemsize], layout).copy()
    row = page[0]
    if layout is HEADER:
        spans = [(8 * int(one["start"]), 8 * int(end["start"])) for one, end in pairwise(row["sections"])]
    else:
        spans = [(int(one["offset"]), int(one["offset"]) + int(one["size"])) for one in row["sections"]]
    for section, (first, end) in zip(row["sections"], spans, strict=False):
        if first <= end <= len(data):
            section["crc"] = zlib.crc32(data[first:end])
    row["header_crc"] = 0
    crc = zlib.crc32(page.tobytes() + data[layout.itemsize : header_bytes])
    row["header_crc"] = crc
    footer = np.array((crc, 0, b"COPREND\n"), FOOTER).tobytes()
    return page.tobytes() + data[layout.itemsize : -FOOTER_BYTES] + footer


def _field_edit(chance: random.Random, data: bytes) -> Edit:
    """Set a header field to another number: an unusual one, or one close to its own."""
    layout = _layout(data)
    assert layout.fields is not None
    name = chance.choice(_FIELDS)
    offset, size = int(layout.fields[name][1]) if name in layout.fields else layout.itemsize, 8
    if name == "sections" and layout is HEADER:
        offset, size = offset + SECTION.itemsize * chance.randrange(len(SECTIONS) + 1), 4
    elif name == "sections":
        offset += PAGE_SECTION.itemsize * chance.randrange(len(SECTIONS)) + 8 * chance.randrange(2)
    elif name == "level_starts":
        offset += 8 * chance.randrange(6)
    own = int.from_bytes(data[offset : offset + size], "little")
    number = chance.choice((*_ODD, own + 1, own - 1, own + 8, own - 8, own + 64, own * 2, own // 2))
    return Edit(offset, size, (number % (1 << 8 * size)).to_bytes(size, "little"))


def sketch_edits(chance: random.Random, data: bytes, others: Sequence[bytes], *, keeps_size: bool) -> list[Edit]:
    """Edits of a sketch; with `keeps_size`, edits that pass the header checks more often."""
    if chance.random() < 0.3:
        return [_field_edit(chance, data) for _ in range(chance.choice((1, 1, 2)))]
    edits = random_edits(chance, data, others)
    if not keeps_size:
        return edits
    first = _header_bytes(data)
    places = [first + chance.randrange(len(data) - first) for _ in edits]
    return [Edit(at, len(edit.data), edit.data[: len(data) - at]) for at, edit in zip(places, edits, strict=True)]


def use_sketch(sketch: SealedSketch, fingerprints: U32Array) -> None:
    """Run every operation of a sketch; an error in one does not skip the others."""
    program = compile_all_tokens(fingerprints[:3])
    questions = (
        lambda: [sketch.decode(own) for own in set(sketch.list_ids(fingerprints).tolist()) if own >= 0],
        lambda: [sketch.run(compile_all_tokens(fingerprints[i : i + 1])) for i in range(4)],
        lambda: may_match_any([sketch], program),
        sketch.verify,
        lambda: _decode_all(sketch),
        lambda: add_sealed(MutableSketch(1 << 22), sketch),
    )
    for question in questions:
        try:
            question()
        except CoprlakeError:
            continue


def _decode_all(sketch: SealedSketch) -> None:
    sketch.tokens()
    budget = 1 << 22
    for _, postings, _ in sketch.list_runs():
        budget -= len(postings)
        if budget < 0:
            return


def base_sketches() -> list[tuple[str, bytes, U32Array]]:
    """Small sketches of every kind, with tokens, some of which are in them."""
    found = []
    for number, (bits, rules, batches) in enumerate(
        [
            (32, RuleSet.WINNOWED, 40),
            (8, RuleSet.WINNOWED, 9),
            (32, RuleSet.PAPER, 120),
            (3, RuleSet.PAPER, 1),
            (32, RuleSet.WINNOWED, 0),
        ]
    ):
        chance = np.random.default_rng(number)
        pool = chance.integers(1, 1 << 32, 600, dtype=np.uint32)
        sketch = MutableSketch(None)
        for batch in range(batches):
            sketch.insert(np.unique(chance.choice(pool, 60)), batch)
        data = b"".join(encode(sketch, signature_bits=bits, rules=rules)[0])
        found.append(
            (
                f"{bits} bits, rules {rules}, {batches} batches",
                data,
                np.concatenate([pool[:30], pool[:10] + np.uint32(1)]),
            )
        )
    return found


class Sketches(Kind):
    """Sketches in memory: `verify` must find changes without new checksums; those with new ones must do no harm."""

    name = "sketch"
    weight = 400

    def prepare(self, folder: Path) -> None:
        """Create the sketches."""
        self._bases = base_sketches()
        self._bytes = [data for _, data, _ in self._bases]

    def case(self, chance: random.Random) -> Case:
        """A sketch with a few edits, with or without new checksums."""
        name, data, fingerprints = chance.choice(self._bases)
        mends = chance.random() < 0.7
        edits = sketch_edits(chance, data, self._bytes, keeps_size=mends and chance.random() < 0.8)

        def check(some: Sequence[Edit]) -> str | None:
            changed = edited(data, some)
            sketch = SealedSketch(with_checksums(changed) if mends else changed)
            use_sketch(sketch, fingerprints)
            if not mends and changed != data:
                sketch.verify()
                return "verify found nothing wrong with a sketch that was changed"
            return None

        return Case(f"{name}{', new checksums' if mends else ''}", edits, check)


def sidecar_parts(data: bytes) -> tuple[bytes, bytes]:
    """Split a sidecar into the sketch and the description."""
    trailer = np.frombuffer(data[-TRAILER.itemsize :], TRAILER)[0]
    end = int(trailer["sketch_bytes"])
    return data[:end], data[end : -TRAILER.itemsize]


def joined_sidecar(sketch: bytes, description: bytes) -> bytes:
    """A sidecar of these parts, with valid checksums."""
    trailer = np.zeros(1, TRAILER)
    row = trailer[0]
    words = np.frombuffer(sketch[: len(sketch) // 8 * 8], np.uint64)
    row["sketch_checksum"] = checksum(words)
    row["sketch_bytes"], row["description_bytes"] = len(sketch), len(description)
    row["description_crc"] = zlib.crc32(description)
    row["major"], row["minor"], row["magic"] = 2, 0, b"COPRSIDE"
    row["trailer_crc"] = zlib.crc32(trailer.tobytes())
    return sketch + description + trailer.tobytes()


_JSON: Final = (
    b"null",
    b"-1",
    b"0",
    b"1e400",
    b"NaN",
    b'""',
    b"[]",
    b"{}",
    b"true",
    b"1" * 5000,
    b"[" * 100_000,
    b'"\\ud800"',
)
_COUNTS: Final = (b"1", b"65536", b"65537", b"4294967296", b"9" * 30)


def _description_edits(chance: random.Random, body: bytes) -> list[Edit]:
    """Replace the value of a key, or make any other change."""
    if chance.random() < 0.5:
        return random_edits(chance, body, ())
    values = json.loads(body)
    key = chance.choice(list(values)).encode()
    own = json.dumps(values[key.decode()], separators=(",", ":"), ensure_ascii=False).encode()
    at = body.index(b'"' + key + b'":') + len(key) + 3
    return [Edit(at, len(own), chance.choice(_COUNTS if chance.random() < 0.4 else _JSON))]


class Sidecars(Kind):
    """Sidecars of a segment: a sketch may leave too many batches, never too few."""

    name = "sidecar"
    weight = 330

    def prepare(self, folder: Path) -> None:
        """Write a segment, and find out which batches match which text."""
        small_table(folder / "table", 1)
        self._folder = Folder.of(folder / "table")
        names = [file.name for file in self._folder.list() if file.name.endswith(".parquet")]
        self._name = min(name for name in names if "/" not in name)
        self.sound_bytes = self._folder.read(sidecar_name(self._name))
        size = (folder / "table" / self._name).stat().st_size
        self._entry = SegmentEntry(self._name, size)
        sound = SealedSegment(self._folder, self._entry)
        self._questions: list[tuple[TokenProgram, set[int]]] = []
        texts = ("refused", "10.0.0.17", "käse", "id=", "took 77 ms", "nowhere")
        for text in texts:
            program = compile_expression(required_tokens(contains(text), sound.profile).expression)
            true = {
                batch
                for batch in range(sound.batch_count)
                if any(text.lower() in line.lower() for line in sound.read(batch, ["content"]).column(0).to_pylist())
            }
            self._questions.append((program, true))
        self._file = folder / "table" / sidecar_name(self._name)

    def case(self, chance: random.Random) -> Case:
        """A sidecar with a few edits, with or without new checksums."""
        sketch, body = sidecar_parts(self.sound_bytes)
        part = chance.choice(("whole", "whole", "sketch", "description"))
        if part == "whole":
            edits = random_edits(chance, self.sound_bytes, ())
        elif part == "sketch":
            edits = sketch_edits(chance, sketch, (), keeps_size=chance.random() < 0.8)
        else:
            edits = _description_edits(chance, body)

        def check(some: Sequence[Edit]) -> str | None:
            if part == "whole":
                return self._check_search(edited(self.sound_bytes, some), must_be_right=True)
            if part == "sketch":
                changed = joined_sidecar(with_checksums(edited(sketch, some)), body)
            else:
                changed = joined_sidecar(sketch, edited(body, some))
            return self._check_search(changed, must_be_right=changed == self.sound_bytes)

        return Case(f"sidecar, {part}{'' if part == 'whole' else ', new checksums'}", edits, check)

    def _check_search(self, data: bytes, *, must_be_right: bool) -> str | None:
        unfinished = self._file.with_suffix(".new")
        unfinished.write_bytes(data)
        unfinished.replace(self._file)
        segment = SealedSegment(self._folder, self._entry)
        for program, true in self._questions:
            left = set(segment.candidates(program).tolist())
            if must_be_right and not true <= left:
                return f"batches {sorted(true - left)} have a match and were ruled out"
        if must_be_right and data != self.sound_bytes and segment.sidecar_problem is None:
            return "nobody said that the sidecar is damaged"
        if segment.sidecar is not None:
            _ = segment.footer
        return None
