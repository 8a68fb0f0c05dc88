"""All stores that are compared find the same lines: those that plain Python finds."""

import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.stores import csc
from benchmarks.stores.base import Answer, Reader, Setting, Store
from benchmarks.stores.bloom import BloomStore
from benchmarks.stores.catalog import ALL, load, stores
from benchmarks.stores.dictionary import groups
from benchmarks.stores.dictionary.asking import Question
from benchmarks.stores.dictionary.parsing import MARK, MOST_BYTES, MOST_VARIABLES
from benchmarks.stores.dictionary.reading import Group, OpenGroup
from coprlake.generator import generate
from coprlake.testing.naive import contains, matches_term

pytestmark = pytest.mark.slow

QUICK = ("ScanStore", "CoprStore", "CscStore", "CscTwoStore", "BloomStore", "DictionaryStore")
"""Stores of which a new one costs nothing: they are tried with more."""
ODD_SIZES = (1, 777, 3, 2048, 1, 1, 4999)

every_store = pytest.mark.parametrize("place", ALL, ids=lambda place: place.partition(":")[2])


@pytest.fixture(scope="module", autouse=True)
def _no_session_is_left() -> Iterator[None]:
    yield
    if "benchmarks.stores.spark" in sys.modules:
        sys.modules["benchmarks.stores.spark"].SparkStore.end()


def usable(place: str) -> type[Store]:
    try:
        kind = load(place)
    except ImportError as error:
        pytest.skip(str(error))
    reason = kind.missing()
    if reason is not None:
        pytest.skip(reason)
    return kind


def filled(kind: type[Store], setting: Setting, content: pa.Array, source: pa.Array) -> Store:
    store = kind(setting)
    first = 0
    for size in cycle(ODD_SIZES):
        if first >= len(content):
            break
        store.ingest(content.slice(first, size), source.slice(first, size))
        first += size
    store.finish_index()
    store.finish_data()
    return store


def check(answer: Answer, expected: list[str], text: str) -> None:
    assert answer.lines.type == pa.string()
    assert sorted(answer.lines.to_pylist()) == sorted(expected), text
    assert answer.error_rate >= 0
    assert 0 <= answer.matching <= answer.opened <= answer.batches or answer.batches == 0
    assert answer.batches == 0 or bool(answer.matching) == bool(expected)


class Oracle:
    """Plain Python."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._folded = [line.encode().lower() for line in lines]

    def contains(self, text: str) -> list[str]:
        return [line for line, own in zip(self.lines, self._folded, strict=True) if text.encode().lower() in own]

    def term(self, text: str) -> list[str]:
        return [line for line in self.contains(text) if matches_term(line.encode(), text)]


def check_both(reader: Reader, oracle: Oracle, text: str) -> None:
    check(reader.contains(text), oracle.contains(text), text)
    check(reader.term(text), oracle.term(text), text)


def test_the_catalog_names_every_store_once() -> None:
    kinds = stores()
    assert len({kind.name for kind in kinds}) == len(kinds) == len(ALL)
    assert all(kind.title and kind.settings for kind in kinds)


# --- generated logs ---


@dataclass
class Logs:
    content: pa.Array
    source: pa.Array
    oracle: Oracle


@pytest.fixture(scope="module")
def logs() -> Logs:
    made = generate(megabytes=2)
    content, source = made.content.cast(pa.string()), made.source.cast(pa.string())
    own = [
        "",
        "",
        "Käse über Brücke 12",
        "日本語のログ行 42",
        "mark \x11 inside 7",
        "MiXeD CaSe 0xDEADbeef",
        " ",
        "$${{ x=1",
    ]
    content = pa.concat_arrays([content, pa.array(own, pa.string())])
    source = pa.concat_arrays([source, pa.array(["own"] * len(own), pa.string())])
    return Logs(content, source, Oracle(content.to_pylist()))


@pytest.fixture(scope="module", params=ALL, ids=lambda place: place.partition(":")[2])
def generated(request: pytest.FixtureRequest, logs: Logs) -> Iterator[tuple[Store, Reader]]:
    kind = usable(request.param)
    with TemporaryDirectory() as folder:
        setting = Setting(Path(folder), batch_bytes=64 * 1024, copr_index_bytes=80_000)
        store = filled(kind, setting, logs.content, logs.source)
        reader = store.reader()
        yield store, reader
        reader.close()
        store.close()


def texts_of(lines: list[str]) -> dict[str, list[str]]:
    rng = random.Random(3)
    some = [line for line in rng.sample(lines, 60) if len(line) > 30]
    words = [rng.choice(re.findall(r"[A-Za-z0-9]+", line)) for line in some]
    cuts = [(line, rng.randrange(len(line) - 20)) for line in some]
    return {
        "present words": words[:15],
        "absent words": ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=16)) for _ in range(5)]
        + ["99999999999999"],
        "partial addresses": ["10.4.9", "192.130.100", "10.0.0.1"],
        "inside of words": [word[1:-1] for word in words[15:22] if len(word) > 3],
        "across borders": [line[at : at + rng.randint(5, 20)] for line, at in cuts[:20]],
        "begins and ends of lines": [some[0][:9], some[1][-9:], some[2], some[3][:40], some[4][-40:]],
        "short": ["e", "1", "7", " ", ":", "ab", "4-", "][", "err", "1.1", "é", "z"],
        "upper case": [word.upper() for word in words[22:28]] + ["ERROR", "eRRoR", "MIXED case"],
        "not ASCII": ["Käse", "käse", "ä", "über brücke", "ログ", "のログ行 4", "行", "Ü", "café", "ß"],
        "odd": [
            "mark \x11 inside",
            "\x11",
            "$${{",
            "{{ x=",
            "0xdeadBEEF",
            "'; --",
            '"',
            "\\",
            "%",
            "_",
            "*",
            "?",
            "a%b",
        ],
    }


@pytest.mark.parametrize("kind", texts_of(["x" * 40] * 60))
def test_finds_what_plain_python_finds(generated: tuple[Store, Reader], logs: Logs, kind: str) -> None:
    _, reader = generated
    for text in texts_of(logs.oracle.lines)[kind]:
        check_both(reader, logs.oracle, text)


def test_sizes_are_those_of_the_files(generated: tuple[Store, Reader]) -> None:
    store, _ = generated
    sizes = store.sizes()
    assert sizes.data > 0
    assert sizes.index >= 0
    assert sizes.data + sizes.index == sum(path.stat().st_size for path in store.files())


@every_store
def test_an_empty_store_finds_nothing(place: str, tmp_path: Path) -> None:
    nothing = pa.array([], pa.string())
    for number, copr_index_bytes in enumerate((None, 0)):
        folder = tmp_path / str(number)
        folder.mkdir()
        store = usable(place)(Setting(folder, copr_index_bytes=copr_index_bytes))
        if number:
            store.ingest(nothing, nothing)
        store.finish_index()
        store.finish_data()
        reader = store.reader()
        for text in ("a", "absent", "10.2.3"):
            check_both(reader, Oracle([]), text)
        reader.close()
        store.close()


# --- random lines ---

ALPHABET = 'abAB01 .:-/=_"é日\x11\t'
lines_of_letters = st.lists(st.text(ALPHABET, max_size=14), max_size=30)
texts = st.lists(st.text(ALPHABET, min_size=1, max_size=6), min_size=1, max_size=5)


@every_store
def test_finds_what_plain_python_finds_in_random_lines(place: str) -> None:
    kind = usable(place)

    @settings(max_examples=40 if kind.__name__ in QUICK else 4)
    @given(lines_of_letters, texts, st.sampled_from([None, 100]))
    def run(lines: list[str], texts: list[str], copr_index_bytes: int | None) -> None:
        with TemporaryDirectory() as folder:
            content, source = (
                pa.array(lines, pa.string()),
                pa.array([str(len(line) % 3) for line in lines], pa.string()),
            )
            setting = Setting(Path(folder), batch_bytes=60, copr_index_bytes=copr_index_bytes)
            store = filled(kind, setting, content, source)
            reader = store.reader()
            for text in [*texts, *(line[1:4] for line in lines[:4] if line[1:4])]:
                check_both(reader, Oracle(lines), text)
            reader.close()
            store.close()

    run()


# --- CSC and Bloom filters ---


@pytest.mark.parametrize("kind", [csc.CscStore, csc.CscTwoStore, BloomStore])
@pytest.mark.parametrize("copr_index_bytes", [None, 100_000])
def test_an_index_is_as_large_as_it_says(
    kind: type[Store], copr_index_bytes: int | None, logs: Logs, tmp_path: Path
) -> None:
    setting = Setting(tmp_path, batch_bytes=64 * 1024, copr_index_bytes=copr_index_bytes)
    store = filled(kind, setting, logs.content, logs.source)
    bits = 8 * (tmp_path / "index.bits").stat().st_size
    if issubclass(kind, csc.CscStore):
        assert bits == 1 << bits.bit_length() - 1
        assert bits // 2 <= 8 * (copr_index_bytes or 0.03 * 2e6) * 1.02 <= bits
    elif copr_index_bytes is not None:
        assert bits == pytest.approx(8 * copr_index_bytes, rel=0.03)
    assert not (tmp_path / "tokens.tmp").exists()
    assert sum(path.stat().st_size for path in store.files()) == sum(vars(store.sizes()).values())


@pytest.mark.parametrize("partition_count", [4, 64, 1024])
def test_batches_share_no_partition_in_both_repetitions(partition_count: int) -> None:
    batches = range(min(partition_count**2, 5000))
    pairs = {tuple(csc.partition_of(batch, repetition, partition_count) for repetition in (0, 1)) for batch in batches}
    assert len(pairs) == len(batches)


@pytest.mark.kernels
def test_the_bits_of_a_token_go_around_the_end() -> None:
    words, rng = np.zeros(128, np.uint64), np.random.default_rng(1)
    lists = {int(token): set(rng.integers(0, 200, 5).tolist()) for token in rng.integers(1, 2**32, 40)}
    for token, batches in lists.items():
        for batch in batches:
            csc.add_tokens(words, 0, 4, batch, np.array([token], np.uint32))
    for token, batches in lists.items():
        out = np.full(4, 2**64 - 1, np.uint64)
        csc.intersect(words, 0, 4, np.array([token], np.uint32), out)
        assert batches <= set(np.flatnonzero(np.unpackbits(out.view(np.uint8), bitorder="little")).tolist())


# --- the dictionary ---

values = st.one_of(
    st.integers(0, 3).map(str), st.text("abAB0é", min_size=1, max_size=3), st.sampled_from(["x" * 300 + "1", "7" * 260])
)
shapes = st.sampled_from(
    ["user %s at %s", "%s", "", "a=%s;b=%s ", "é%s.%s\x00\n%s", "no variable", "x \x11 %s", "A a %s"]
)


@st.composite
def logged(draw: st.DrawFn) -> list[str]:
    """Lines of few templates, so that templates have lines."""
    chosen = draw(st.lists(shapes, min_size=1, max_size=25))
    return [shape % tuple(draw(values) for _ in range(shape.count("%s"))) for shape in chosen]


def decoded(lines: list[bytes]) -> list[bytes]:
    group = Group(memoryview(groups.encode_group(pa.array(lines, pa.binary()).view(pa.string()))))
    opened = OpenGroup(group)
    arrays = [opened.lines(np.ones(group.line_count, np.bool_)), opened.others()]
    return [line for array in arrays for line in array.view(pa.binary()).to_pylist()]


@pytest.fixture
def _any_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few lines are enough for a template, and few bytes for a block."""
    monkeypatch.setattr(groups, "LEAST_LINES", 1)
    monkeypatch.setattr(groups, "BLOCK_BYTES", 16)


@pytest.mark.kernels
@pytest.mark.usefixtures("_any_template")
def test_a_group_gives_back_its_lines() -> None:
    @given(st.one_of(logged(), st.lists(st.text(max_size=20), max_size=20)))
    @example([])
    @example([""])
    @example(["", "", "\x11", "\x11\x11 1", "ä", "1ä", "\n"])
    def run(lines: list[str]) -> None:
        encoded = [line.encode() for line in lines]
        assert sorted(decoded(encoded)) == sorted(encoded)

    run()


@pytest.mark.usefixtures("_any_template")
def test_a_group_gives_back_any_bytes() -> None:
    rng = random.Random(4)
    lines = [bytes(rng.choices(range(256), k=rng.randint(0, 40))) for _ in range(500)]
    lines += [b"a%d" % i + bytes([MARK, 0xFF]) for i in range(50)]
    lines += [b"1" * size for size in (255, 256, MOST_BYTES, MOST_BYTES + 1)]
    lines += [b"1 " * count for count in (MOST_VARIABLES, MOST_VARIABLES + 1)]
    lines += [b"value %d of %d" % (i, i % 300) for i in range(1000)]
    assert sorted(decoded(lines)) == sorted(lines)


def test_most_lines_of_logs_have_a_template(logs: Logs) -> None:
    encoded = [line.encode() for line in logs.oracle.lines]
    group = Group(memoryview(groups.encode_group(logs.content)))
    assert group.other_count < 0.25 * len(encoded)
    assert sorted(decoded(encoded)) == sorted(encoded)


@pytest.mark.kernels
@pytest.mark.usefixtures("_any_template")
def test_alignments_find_exactly_the_lines_that_contain_a_text() -> None:
    @given(logged(), st.data())
    def run(lines: list[str], data: st.DataObject) -> None:
        line = data.draw(st.sampled_from(lines))
        first = data.draw(st.integers(0, len(line)))
        text = data.draw(st.one_of(st.just(line[first : first + 9]), st.text("abA01 .=é\x11", max_size=5)))
        content = pa.array(lines, pa.string())
        group = Group(memoryview(groups.encode_group(content)))
        found = [line for array in Question(text).lines(OpenGroup(group)) for line in array.to_pylist()]
        with_mark = [line for line in lines if chr(MARK) in line]  # kept as they are, and always looked through
        expected = [line for line in lines if contains(line.encode(), text) and line not in with_mark]
        assert sorted(line for line in found if line not in with_mark) == sorted(expected)

    run()
