"""Sealing, the sealed sketch and its codes, spilling and merging, against a dict of sets."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from coprlake import (
    ANYTHING,
    CorruptSketchError,
    MutableSketch,
    NotFoundError,
    SealedSketch,
    SketchWriter,
    UsageError,
    batches_in_all,
    batches_in_any,
)
from coprlake.config import RuleSet
from coprlake.kernel import I64Array, U16Array, U32Array, U64Array
from coprlake.sketch import interpolative
from coprlake.sketch.algebra import Expression, Token, compile_expression
from coprlake.sketch.asking import Sketch
from coprlake.sketch.bbhash import LEVEL_LIMIT, PerfectHash, build_perfect_hash, find_index
from coprlake.sketch.immutable import CANNOT, DAMAGED, MIGHT, may_match_any
from coprlake.sketch.merge import add_sealed
from coprlake.sketch.postings_hash import postings_hash
from coprlake.sketch.ranks import rank_width
from coprlake.sketch.sealing import encode, seal

pytestmark = pytest.mark.kernels

SLOWDOWN = 100 if config.DISABLE_JIT else 1
"""By how much sizes are divided where kernels run as plain Python."""
LAST_POSTING = 65535
BITS = (1, 8, 10, 32)
RULES = (RuleSet.PAPER, RuleSet.WINNOWED)
"""Of the formats 1.0 and 1.2."""

Model = dict[int, set[int]]

models = st.dictionaries(
    st.integers(1, 0xFFFFFFFF) | st.integers(1, 5), st.sets(st.integers(0, 40), min_size=1, max_size=8), max_size=30
)


def array_of(fingerprints: list[int] | range) -> U32Array:
    return np.array(fingerprints, np.uint32)


def mutable_of(model: Model) -> MutableSketch:
    sketch = MutableSketch(None)
    for posting in sorted(set().union(*model.values())):
        sketch.insert(array_of([token for token, postings in model.items() if posting in postings]), posting)
    return sketch


def bytes_of(sketch: MutableSketch, signature_bits: int = 32, rules: RuleSet = RuleSet.WINNOWED) -> bytes:
    return b"".join(encode(sketch, signature_bits=signature_bits, rules=rules)[0])


def sealed_of(model: Model, signature_bits: int = 32, rules: RuleSet = RuleSet.WINNOWED) -> SealedSketch:
    return SealedSketch(bytes_of(mutable_of(model), signature_bits, rules))


def answers(sketch: Sketch, tokens: list[int]) -> Model:
    list_ids = sketch.list_ids(array_of(tokens)).tolist()
    return {t: set(sketch.decode(i).tolist()) for t, i in zip(tokens, list_ids, strict=True) if i >= 0}


def random_tokens(seed: int, count: int) -> U32Array:
    """Distinct fingerprints, none of them 0."""
    drawn = np.random.default_rng(seed).integers(1, 1 << 32, count + count // 100 + 10, np.uint32)
    return np.unique(drawn)[:count].astype(np.uint32)


# Answers


@given(models, st.sampled_from(BITS), st.sampled_from(RULES))
def test_every_token_is_found_with_exactly_its_postings(model: Model, signature_bits: int, rules: RuleSet) -> None:
    sketch = sealed_of(model, signature_bits, rules)
    assert answers(sketch, list(model)) == model
    assert sketch.token_count == len(model)
    assert sketch.list_count == len({frozenset(postings) for postings in model.values()})
    assert sketch.posting_count == max((max(postings) + 1 for postings in model.values()), default=0)
    assert sketch.signature_bits == signature_bits
    assert sketch.rules is rules
    sketch.verify()


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("signature_bits", BITS)
def test_50000_tokens_with_lists_of_every_length_are_found(signature_bits: int, rules: RuleSet) -> None:
    random = np.random.default_rng(signature_bits)
    tokens = random_tokens(signature_bits, 50_000 // SLOWDOWN)
    sketch = MutableSketch(None)
    expected = np.zeros((len(tokens), 300), bool)
    for posting in range(300):  # of a few tokens to all of them, neighbours together: short lists, long ones, runs
        first, last = sorted(random.integers(0, len(tokens) + 1, 2).tolist())
        share = random.choice([0.001, 0.1, 1.0])
        members = np.arange(first, last)[random.random(last - first) < share]
        expected[members, posting] = True
        sketch.insert(tokens[members], posting)
    sealed = SealedSketch(bytes_of(sketch, signature_bits, rules))
    present = expected.any(axis=1)
    list_ids = sealed.list_ids(tokens[present])
    assert sorted(list_ids.tolist()) == sorted(sealed.tokens()[1].tolist())  # one by one, and all in one pass
    found = np.zeros((sealed.list_count, 300), bool)
    for rank in range(sealed.list_count):
        found[rank, sealed.decode(rank)] = True
    assert sealed.list_count > 50
    assert (list_ids >= 0).all()
    assert np.array_equal(found[list_ids], expected[present])
    assert sealed.token_count == np.count_nonzero(present)
    postings, starts = sealed.lists()
    assert starts[-1] == np.count_nonzero(found)
    assert np.array_equal(postings, np.nonzero(found)[1])


def test_a_token_in_all_65536_postings_is_found_in_all() -> None:
    sketch = MutableSketch(None)
    everywhere = np.arange(LAST_POSTING + 1, dtype=np.uint16)
    starts = np.array([0, 1], np.int64)
    assert sketch.insert_lists(array_of([7]), starts, everywhere, np.array([0, len(everywhere)]), 1 << 16)
    sketch.insert(array_of([8]), LAST_POSTING)
    sealed = SealedSketch(bytes_of(sketch))
    sealed.verify()
    assert sealed.posting_count == 65536
    seven, eight = sealed.list_ids(array_of([7, 8])).tolist()
    assert np.array_equal(sealed.decode(seven), everywhere)
    assert sealed.decode(eight).tolist() == [LAST_POSTING]


@pytest.mark.parametrize("rules", RULES)
def test_an_empty_sketch_has_no_token_and_no_posting(rules: RuleSet) -> None:
    sketch = sealed_of({}, rules=rules)
    assert sketch.header.own_list_count == 0
    assert (sketch.token_count, sketch.list_count, sketch.posting_count) == (0, 0, 0)
    assert (sketch.list_ids(random_tokens(1, 100)) == -1).all()
    assert sketch.candidates(ANYTHING).tolist() == []
    sketch.verify()


@pytest.mark.parametrize("token", [1, 0x80000000, 0xFFFFFFFF])
def test_a_single_token_is_found(token: int) -> None:
    sketch = sealed_of({token: {3}})
    assert answers(sketch, [token, 77]) == {token: {3}}
    assert sketch.list_count == 1
    sketch.verify()


def test_a_sketch_of_empty_batches_keeps_their_number() -> None:
    mutable = MutableSketch()
    mutable.insert(array_of([]), 2)
    sketch = SealedSketch(bytes_of(mutable))
    assert sketch.candidates(ANYTHING).tolist() == [0, 1, 2]


def test_fingerprint_0_is_never_present() -> None:
    sketch = sealed_of({token: {0} for token in range(1, 200)}, signature_bits=1)
    assert sketch.list_ids(array_of([0])).tolist() == [-1]


def test_sealing_leaves_the_mutable_sketch_as_it_was() -> None:
    model = {token: {token % 3, token % 5} for token in range(1, 100)}
    mutable = mutable_of(model)
    first = bytes_of(mutable)
    assert bytes_of(mutable) == first
    assert answers(mutable, list(model)) == model
    mutable.insert(array_of([500]), 9)
    assert answers(mutable, [500]) == {500: {9}}


@given(models, st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_same_content_gives_the_same_bytes_in_whatever_order_it_came(model: Model, random: object) -> None:
    pairs = [(token, posting) for token, postings in model.items() for posting in postings]
    random.shuffle(pairs)  # type: ignore[attr-defined]
    shuffled = MutableSketch(None)
    for token, posting in pairs:
        shuffled.insert(array_of([token]), posting)
    for rules in RULES:
        assert bytes_of(shuffled, rules=rules) == bytes_of(mutable_of(model), rules=rules)


def lists_of_equal_hash() -> tuple[set[int], set[int]]:
    """Two different sets of postings with the same postings hash: 33 numbers of 32 bits depend on each other."""
    basis: dict[int, tuple[int, int]] = {}
    for posting in range(33):
        number, members = int(postings_hash(np.array([posting], np.uint16))), 1 << posting
        while number and number.bit_length() in basis:
            other, others = basis[number.bit_length()]
            number, members = number ^ other, members ^ others
        if number == 0:
            dependent = [p for p in range(33) if members >> p & 1]
            return set(dependent[:2]), set(dependent[2:])
        basis[number.bit_length()] = number, members
    raise AssertionError("33 numbers of 32 bits cannot be independent")


def test_lists_of_equal_hash_do_not_let_the_order_of_insertion_show_in_the_bytes() -> None:
    a, b = lists_of_equal_hash()
    assert postings_hash(np.array(sorted(a), np.uint16)) == postings_hash(np.array(sorted(b), np.uint16))
    files = []
    for tokens in ([1, 2, 3, 4], [4, 2, 3, 1]):  # two tokens each: the order of shared lists must not show in 1.1
        sketch = MutableSketch()
        for token in tokens:
            for posting in sorted(a if token % 2 else b):
                sketch.insert(array_of([token]), posting)
        assert answers(sketch, [1, 2, 3, 4]) == {1: a, 2: b, 3: a, 4: b}
        files.append([bytes_of(sketch, rules=rules) for rules in RULES])
    assert files[0] == files[1]


@pytest.mark.parametrize("rules", RULES)
def test_own_lists_of_equal_hash_do_not_let_the_order_of_insertion_show_either(rules: RuleSet) -> None:
    a, b = lists_of_equal_hash()
    files = []
    for tokens in ([1, 2], [2, 1]):
        sketch = MutableSketch()
        for token in tokens:
            for posting in sorted(a if token == 1 else b):
                sketch.insert(array_of([token]), posting)
        files.append(bytes_of(sketch, rules=rules))
    assert files[0] == files[1]
    assert answers(SealedSketch(files[0]), [1, 2]) == {1: a, 2: b}


# Absent tokens


def share_that_finds_an_index(sketch: SealedSketch) -> float:
    """A stranger falls through a level where its bit is 0; one that falls through all is absent without a signature."""
    offset, size, _ = sketch.header.sections["levels"]
    bits = np.unpackbits(sketch.words.view(np.uint8)[offset : offset + size])
    starts = sketch.header.level_starts[: sketch.header.level_count + 1]
    return float(1 - np.prod([1 - bits[start:end].mean() for start, end in pairwise(starts)]))


@pytest.mark.parametrize("signature_bits", [1, 4, 8, 12])
def test_an_absent_token_passes_with_a_chance_of_2_to_the_minus_b(signature_bits: int) -> None:
    """Within six sigma of it, or rather of the part of it that strangers without an index leave."""
    tokens = random_tokens(1, 20_000 // SLOWDOWN)
    sketch = MutableSketch(None)
    sketch.insert(tokens, 0)
    sealed = SealedSketch(bytes_of(sketch, signature_bits))
    strangers = np.setdiff1d(random_tokens(2, 500_000 // SLOWDOWN), tokens)
    passed = np.count_nonzero(sealed.list_ids(strangers) >= 0)
    share = share_that_finds_an_index(sealed)
    chance = share * 2.0**-signature_bits
    sigma = sqrt(len(strangers) * chance * (1 - chance))
    assert share > (0.5 if config.DISABLE_JIT else 0.98)  # with few tokens there are few levels
    assert abs(passed - len(strangers) * chance) <= 6 * sigma


def test_whole_fingerprints_let_no_absent_token_pass() -> None:
    tokens = random_tokens(3, 20_000 // SLOWDOWN)
    sketch = MutableSketch(None)
    sketch.insert(tokens, 0)
    sealed = SealedSketch(bytes_of(sketch, 32))
    strangers = np.setdiff1d(random_tokens(4, 500_000 // SLOWDOWN), tokens)
    assert (sealed.list_ids(strangers) == -1).all()


# Sizes and owners


@pytest.mark.parametrize("signature_bits", [-1, 0, 33])
def test_signature_bits_outside_1_to_32_are_refused(signature_bits: int) -> None:
    with pytest.raises(UsageError, match=f"signature bits must be 1 to 32, not {signature_bits}"):
        encode(MutableSketch(), signature_bits=signature_bits)


@pytest.mark.parametrize("rules", ["", "2", "words"])
def test_rules_that_do_not_exist_are_refused_and_nothing_is_written(rules: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"there are no token rules {rules!r}; expected winnowed or paper"):
        seal(MutableSketch(), tmp_path / "s.copr", rules=rules)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [0, 15, 17])
def test_an_object_id_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(UsageError, match=f"an object id has 16 bytes, not {length}"):
        encode(MutableSketch(), object_id=bytes(length))


@pytest.mark.parametrize("object_id", [bytes(range(16)), bytes(16), b"\xff" * 16, b"ends with zeros\0"])
def test_the_object_id_is_kept(object_id: bytes, tmp_path: Path) -> None:
    seal(mutable_of({1: {0}}), tmp_path / "s.copr", object_id=object_id)
    with SealedSketch.open(tmp_path / "s.copr") as sketch:
        assert sketch.header.object_id == object_id
        sketch.verify()


def test_the_parts_add_up_to_the_file(tmp_path: Path) -> None:
    report = seal(mutable_of({token: {token % 7} for token in range(1, 300)}), tmp_path / "s.copr", signature_bits=8)
    size = (tmp_path / "s.copr").stat().st_size
    with SealedSketch.open(tmp_path / "s.copr") as sketch:
        assert sketch.bytes_by_part() == report.bytes_by_part
        assert sum(report.bytes_by_part.values()) == report.file_bytes == size
    assert report.bytes_by_part["signatures"] == 8 * -(-299 * 8 // 64)
    assert report.seconds == sum(report.seconds_by_phase.values()) > 0


def test_sealing_into_a_missing_folder_fails_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        seal(mutable_of({1: {0}}), tmp_path / "missing" / "s.copr")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_leaves_no_unfinished_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("coprlake.sketch.sealing.os.fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        seal(mutable_of({1: {0}}), tmp_path / "s.copr")
    assert list(tmp_path.iterdir()) == []


def test_sealing_again_replaces_the_file_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.copr"
    seal(mutable_of({1: {0}}), path)
    with SealedSketch.open(path) as old:
        seal(mutable_of({2: {5}}), path)
        assert answers(old, [1]) == {1: {0}}  # a reader keeps what it opened
    with SealedSketch.open(path) as new:
        assert answers(new, [2]) == {2: {5}}
    assert [file.name for file in tmp_path.iterdir()] == ["s.copr"]


# BBHash


def perfect_hash_of(keys: U32Array, level_limit: int = LEVEL_LIMIT) -> tuple[PerfectHash, int]:
    """The function and the number of keys in its fallback; each key finds another index below the keys' number."""
    function, indexes = build_perfect_hash(keys, level_limit)
    level_count = len(function.level_starts) - 1
    fallback_count = len(keys) - int(np.bitwise_count(function.levels).sum())
    assert level_count <= level_limit
    assert np.array_equal(np.sort(indexes), np.arange(len(keys)))
    assert [find_index(function, level_count, fallback_count, key) for key in keys] == indexes.tolist()
    return function, fallback_count


@pytest.mark.parametrize("count", [0, 1, 2, 3, 63, 64, 65, 127, 128, 1000, 1024, 1025, 100_000 // SLOWDOWN])
def test_the_perfect_hash_gives_each_key_another_number_below_their_count(count: int) -> None:
    _, fallback_count = perfect_hash_of(random_tokens(count, count))
    assert fallback_count == 0


@pytest.mark.parametrize("level_limit", [0, 1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 65, 1000])
def test_keys_that_no_level_takes_stand_in_the_fallback(count: int, level_limit: int) -> None:
    function, fallback_count = perfect_hash_of(random_tokens(count, count), level_limit)
    assert fallback_count > 0 or count <= 2
    fallback = function.fallback.view(np.uint32)[:fallback_count].tolist()
    assert fallback == sorted(fallback)


def test_the_perfect_hash_does_not_depend_on_the_order_of_the_keys() -> None:
    keys = random_tokens(5, 3000 // SLOWDOWN)
    one, other = (build_perfect_hash(order, 2)[0] for order in (keys, keys[::-1].copy()))
    assert [part.tobytes() for part in one] == [part.tobytes() for part in other]


def test_neighbouring_fingerprints_are_spread() -> None:
    """Dense keys are no worse than random ones: about e bits a key, and a part of a word for each level."""
    keys = np.arange(1, 20_000 // SLOWDOWN + 1, dtype=np.uint32)
    function, _ = perfect_hash_of(keys)
    assert len(function.levels) * 64 < 2.9 * len(keys) + 64 * LEVEL_LIMIT


# Ranks


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4, 7, 8, 255, 256, 65535, (1 << 30) - 1])
def test_a_rank_takes_the_logarithm_of_its_successor(rank: int) -> None:
    assert rank_width(rank) == (rank + 1).bit_length() - 1


@pytest.mark.parametrize("list_count", [1, 2, 3, 8, 9, 127, 128, 129, 300])
def test_tokens_find_their_lists_however_many_there_are(list_count: int) -> None:
    """As many lists as a sample spans, one less and one more: where a block of samples begins or ends."""
    model = {token: {token % list_count, 1000 + token % list_count} for token in range(1, 2 * list_count + 1)}
    sketch = sealed_of(model)
    assert sketch.list_count == list_count
    assert answers(sketch, list(model)) == model


# Own lists (since format 1.1)


def sections_of(data: bytes) -> dict[str, bytes]:
    return {name: data[at : at + size] for name, (at, size, _) in SealedSketch(data).header.sections.items()}


def own_tokens(model: Model) -> set[int]:
    """The tokens whose postings no other token has."""
    counts = Counter(map(frozenset, model.values()))
    return {token for token, postings in model.items() if counts[frozenset(postings)] == 1}


@given(models, st.integers(0, 300))
@settings(max_examples=40)
def test_own_lists_come_last_in_the_order_of_their_tokens(model: Model, more: int) -> None:
    """More tokens than one sample of the widths spans, some sharing a list and some not, in both formats."""
    model |= {1_000_000 + token: {token % 40, token * token % 37} for token in range(more)}
    sketch = sealed_of(model)
    own = own_tokens(model)
    fingerprints, ranks = sketch.tokens()
    assert sketch.header.own_list_count == len(own)
    first_own = sketch.list_count - len(own)
    assert ranks[ranks >= first_own].tolist() == list(range(first_own, sketch.list_count))
    assert set(fingerprints[ranks >= first_own].tolist()) == own
    assert sketch.list_ids(fingerprints).tolist() == ranks.tolist()
    assert answers(sketch, list(model)) == model == answers(sealed_of(model, rules=RuleSet.PAPER), list(model))


@pytest.mark.parametrize("count", [1, 127, 128, 129, 1000])
def test_if_all_lists_are_own_no_rank_is_stored(count: int) -> None:
    model = {token: {token // 40, 100 + token % 40} for token in range(1, count + 1)}
    sketch = sealed_of(model)
    assert sketch.header.own_list_count == sketch.list_count == count
    assert sketch.bytes_by_part()["ranks"] == 0
    assert answers(sketch, list(model)) == model
    sketch.verify()


@pytest.mark.parametrize("count", [2, 128, 1000])
def test_if_no_list_is_own_the_formats_differ_in_the_header_and_the_padding_only(count: int) -> None:
    model = {token: {token // 2 % 50} for token in range(2 * (count // 2))}
    model = {token + 1: postings for token, postings in model.items()}
    files = [bytes_of(mutable_of(model), rules=rules) for rules in RULES]
    assert SealedSketch(files[1]).header.own_list_count == 0
    sections = [sections_of(file) for file in files]
    table = sections[1]["width_table"]
    assert sections[0].pop("width_table") == table * (512 // len(sections[1].pop("width_table")))
    assert sections[0] == sections[1]
    assert answers(SealedSketch(files[1]), list(model)) == model


def test_own_lists_make_the_file_smaller() -> None:
    """By the rank of each of the 1500 own tokens, less what counting them takes."""
    shared = {token: {token % 60} for token in range(1, 3001)}
    own = {10_000 + token: {token // 50, 100 + token % 50} for token in range(1500)}
    paper, latest = (sealed_of(shared | own, rules=rules) for rules in RULES)
    saved = {name: size - latest.bytes_by_part()[name] for name, size in paper.bytes_by_part().items()}
    assert latest.header.own_list_count == 1500
    assert 8 * saved["ranks"] == pytest.approx(sum(rank_width(rank) for rank in range(60, 1560)), abs=64)
    assert sum(saved.values()) > 1500
    assert saved["lists"] == saved["signatures"] == saved["levels"] == 0


@pytest.mark.parametrize("section", ["width_samples", "width_codes", "width_table"])
def test_damaged_counts_of_own_lists_give_ranks_that_exist_or_an_error(section: str) -> None:
    model = {token: {token // 40, 100 + token % 40} for token in range(1, 1000)}
    model |= {token: {token % 3} for token in range(1000, 1300)}
    data = bytes_of(mutable_of(model))
    offset, size, _ = SealedSketch(data).header.sections[section]
    for filler in (b"\x00", b"\xff", b"\x20", b"\x01\x20"):  # also: every code is that of an own list
        damaged = SealedSketch(data[:offset] + (filler * size)[:size] + data[offset + size :])
        with suppress(CorruptSketchError):
            assert (damaged.list_ids(array_of(list(model))) < damaged.list_count).all()
        with suppress(CorruptSketchError):
            assert (damaged.tokens()[1] < damaged.list_count).all()
        with pytest.raises(CorruptSketchError):
            damaged.verify()


# Interpolative coding


def stack() -> I64Array:
    return np.zeros(interpolative.STACK_SIZE, np.int64)


def encoded(postings: list[int], posting_count: int, position: int = 0) -> tuple[U64Array, int]:
    out = np.zeros((position + 18 * len(postings) + 40 + 63) // 64, np.uint64)
    return out, interpolative.encode(np.array(postings, np.uint16), posting_count, out, position, stack())


def decoded(words: U64Array, posting_count: int, position: int = 0) -> tuple[list[int] | None, int]:
    """The list and the position behind it; None if the bits are no list. What must not be touched is watched."""
    guarded: U16Array = np.full(posting_count + 64, 51966, np.uint16)
    count, end = interpolative.decode(words, position, posting_count, guarded[:posting_count], stack())
    assert (guarded[posting_count:] == 51966).all()
    return (None if count == interpolative.CORRUPT else guarded[:count].tolist()), int(end)


@given(st.sets(st.integers(0, 300), min_size=1) | st.sets(st.integers(0, LAST_POSTING), min_size=1), st.integers(0, 70))
def test_a_list_decodes_to_what_was_encoded(postings: set[int], position: int) -> None:
    """From any bit on, and also in a narrow range."""
    for posting_count in (max(postings) + 1, LAST_POSTING + 1):
        words, end = encoded(sorted(postings), posting_count, position)
        assert decoded(words, posting_count, position) == (sorted(postings), end)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 63, 64, 1000, 4096, 65535, 65536])
def test_a_run_of_all_postings_costs_its_length_only(count: int) -> None:
    if count > 10_000 and config.DISABLE_JIT:
        count = 10_000
    words, end = encoded(list(range(count)), count)
    assert end <= 2 * count.bit_length() + 2
    assert decoded(words, count) == (list(range(count)), end)


def test_a_run_inside_costs_a_fraction_of_a_bit_a_posting() -> None:
    """Two numbers of 12 bits and less for each time that the run can be cut in half, then nothing."""
    words, end = encoded(list(range(1000, 2000)), 4096)
    assert end < 2 * 12 * 10
    assert decoded(words, 4096) == (list(range(1000, 2000)), end)


@given(st.binary(min_size=8, max_size=64), st.integers(0, 600), st.integers(1, 3000))
def test_any_bits_give_a_list_within_bounds_or_corrupt(data: bytes, position: int, posting_count: int) -> None:
    words = np.frombuffer(data[: len(data) // 8 * 8], "<u8")
    postings, _ = decoded(words, posting_count, position)
    assert postings is None or (
        postings == sorted(set(postings)) and len(postings) > 0 and postings[-1] < posting_count
    )


@given(st.sets(st.integers(0, 2000), min_size=20, max_size=200), st.integers(0, 10))
def test_truncated_bits_give_a_list_within_bounds_or_corrupt(postings: set[int], kept: int) -> None:
    words, _ = encoded(sorted(postings), 2001)
    found, _ = decoded(words[:kept], 2001)
    assert found is None or (found == sorted(set(found)) and found[-1] <= 2000)
    assert kept > 0 or found is None


def test_a_list_longer_than_its_range_is_corrupt() -> None:
    words, _ = encoded(list(range(100)), 100)
    assert decoded(words, 99)[0] is None


# Many sketches at once


def verdicts(sketches: list[SealedSketch], expression: Expression) -> list[int]:
    return may_match_any(sketches, compile_expression(expression)).tolist()


def test_many_sketches_are_asked_at_once() -> None:
    sketches = [sealed_of(model) for model in ({1: {0}, 2: {1}}, {}, {2: {0}, 3: {4}}, {1: {0, 1}, 3: {0}})]
    one, two, three = Token(1), Token(2), Token(3)
    assert verdicts(sketches, one) == [MIGHT, CANNOT, CANNOT, MIGHT]
    assert verdicts(sketches, batches_in_all(two, three)) == [CANNOT, CANNOT, MIGHT, CANNOT]
    assert verdicts(sketches, batches_in_any(one, three)) == [MIGHT, CANNOT, MIGHT, MIGHT]
    assert verdicts(sketches, batches_in_all(batches_in_any(one, two), three)) == [CANNOT, CANNOT, MIGHT, MIGHT]
    assert verdicts(sketches, batches_in_any()) == [CANNOT] * 4
    assert verdicts(sketches, ANYTHING) == [MIGHT] * 4
    assert verdicts([], one) == []


def test_a_damaged_sketch_among_many_is_told_apart() -> None:
    sound = sealed_of({token: {token % 50} for token in range(1, 400)})
    data = bytearray(bytes_of(mutable_of({token: {token % 50} for token in range(1, 400)})))
    offset, size, _ = sound.header.sections["level_ranks"]
    data[offset : offset + size] = b"\xff" * size
    damaged = SealedSketch(bytes(data))
    program = batches_in_any(*(Token(token) for token in range(1, 400)))
    assert verdicts([sound, damaged, sound], program) == [MIGHT, DAMAGED, MIGHT]


# Merging


@given(models, models, st.integers(0, 100), st.sampled_from(RULES))
@settings(max_examples=30)
def test_merging_is_the_union_with_postings_rebased(a: Model, b: Model, base: int, rules: RuleSet) -> None:
    merged = mutable_of(a)
    assert add_sealed(merged, sealed_of(b, rules=rules), posting_base=base)
    expected = {token: set(postings) for token, postings in a.items()}
    for token, postings in b.items():
        expected.setdefault(token, set()).update(posting + base for posting in postings)
    assert answers(merged, [*a, *b]) == expected
    for written in RULES:
        assert bytes_of(merged, rules=written) == bytes_of(mutable_of(expected), rules=written)


def test_merging_keeps_batches_without_tokens() -> None:
    """A batch of blank lines has no token, yet "anything" must name it."""
    source = MutableSketch()
    source.insert(array_of([7]), 0)
    source.insert(array_of([]), 2)
    target = MutableSketch()
    add_sealed(target, SealedSketch(bytes_of(source)), posting_base=10)
    assert target.posting_count == 13
    assert target.candidates(ANYTHING).tolist() == list(range(13))


@pytest.mark.parametrize("signature_bits", [1, 8, 31])
def test_a_sketch_without_whole_fingerprints_cannot_be_merged(signature_bits: int) -> None:
    source = sealed_of({1: {0}}, signature_bits)
    with pytest.raises(UsageError, match=f"keeps {signature_bits} bits of each fingerprint"):
        add_sealed(MutableSketch(), source)


def test_postings_can_be_rebased_up_to_the_last() -> None:
    target = MutableSketch()
    assert add_sealed(target, sealed_of({1: {0, 5}}), posting_base=LAST_POSTING - 5)
    assert answers(target, [1]) == {1: {LAST_POSTING - 5, LAST_POSTING}}


@pytest.mark.parametrize("base", [-1, LAST_POSTING - 4, LAST_POSTING, 1 << 20])
def test_postings_cannot_be_rebased_outside_their_range(base: int) -> None:
    target = MutableSketch()
    with pytest.raises(UsageError, match=f"6 postings from {base} on do not fit"):
        add_sealed(target, sealed_of({1: {0, 5}}), posting_base=base)
    assert target.token_count == 0


def test_merging_into_a_full_sketch_says_so() -> None:
    wide = MutableSketch(None, short_list_postings=1)
    tokens = array_of(range(1, 301))
    for token in tokens.tolist():
        wide.insert(array_of([token]), token)
    wide.insert(tokens, LAST_POSTING)
    source = SealedSketch(bytes_of(wide))
    target = MutableSketch(2 << 20, short_list_postings=1)
    assert not add_sealed(target, source)
    assert target.peak_memory_bytes <= 2 << 20


# Spilling


def fill(writer: SketchWriter) -> Model:
    """Many long lists, so that the smallest writer has to spill several times; checked on the way."""
    random = np.random.default_rng(11)
    model: Model = {}
    for step in range(20 if config.DISABLE_JIT else 400):
        posting = LAST_POSTING if step == 0 else int(random.integers(LAST_POSTING))
        tokens = random.integers(1, 300, 60 if step else 2, np.uint32)
        writer.insert(tokens, posting)
        for token in tokens.tolist():
            model.setdefault(token, set()).add(posting)
        if step % 5 == 0:
            assert answers(writer, list(range(1, 301))) == model
    return model


@pytest.mark.parametrize("rules", RULES)
def test_a_writer_that_spills_answers_at_any_time_and_writes_the_same_bytes(tmp_path: Path, rules: RuleSet) -> None:
    spill_folder = tmp_path / "spill"
    spill_folder.mkdir()
    limit_bytes = 2 << 20
    with SketchWriter(limit_bytes, spill_folder=spill_folder, short_list_postings=1) as writer:
        model = fill(writer)
        assert writer.spill_count > 1
        assert writer.peak_memory_bytes <= limit_bytes
        assert writer.memory_bytes <= limit_bytes
        assert len(list(spill_folder.rglob("*.copr"))) == writer.spill_count
        assert writer.posting_count == LAST_POSTING + 1
        assert writer.token_count >= len(model)
        writer.seal(tmp_path / "spilled.copr", signature_bits=10, object_id=bytes(range(16)), rules=rules)
        assert list(spill_folder.iterdir()) == []
        assert writer.token_count == len(model)
        assert writer.peak_memory_bytes <= limit_bytes
        assert answers(writer, list(model)) == model
    with SketchWriter(1 << 30) as writer:
        fill(writer)
        assert writer.spill_count == 0
        writer.seal(tmp_path / "whole.copr", signature_bits=10, object_id=bytes(range(16)), rules=rules)
    assert (tmp_path / "spilled.copr").read_bytes() == (tmp_path / "whole.copr").read_bytes()
    with SealedSketch.open(tmp_path / "spilled.copr") as sketch:
        assert answers(sketch, list(model)) == model
        assert sketch.rules is rules


def test_closing_a_writer_removes_its_spilled_files(tmp_path: Path) -> None:
    with SketchWriter(2 << 20, spill_folder=tmp_path, short_list_postings=1) as writer:
        for token in range(1, 150):
            writer.insert(array_of([token]), token)
        writer.insert(array_of(range(1, 150)), LAST_POSTING)
        assert writer.spill_count > 0
        assert list(tmp_path.rglob("*.copr"))
    assert list(tmp_path.iterdir()) == []


def test_a_writer_can_go_on_after_sealing(tmp_path: Path) -> None:
    with SketchWriter() as writer:
        writer.insert(array_of([1]), 0)
        writer.seal(tmp_path / "first.copr")
        writer.insert(array_of([1]), 4)
        writer.seal(tmp_path / "second.copr")
    with SealedSketch.open(tmp_path / "first.copr") as first, SealedSketch.open(tmp_path / "second.copr") as second:
        assert answers(first, [1]) == {1: {0}}
        assert answers(second, [1]) == {1: {0, 4}}


def test_a_writer_without_anything_has_no_token_and_seals(tmp_path: Path) -> None:
    with SketchWriter() as writer:
        assert writer.list_ids(array_of([1, 2])).tolist() == [-1, -1]
        assert writer.list_ids(array_of([])).tolist() == []
        writer.seal(tmp_path / "s.copr")
    with SealedSketch.open(tmp_path / "s.copr") as sketch:
        assert sketch.token_count == 0


TOKENS_BEYOND_THE_LIMIT = 150_000


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="too slow without the JIT")
def test_a_writer_that_was_sealed_goes_on_within_its_limit(tmp_path: Path) -> None:
    limit = 2 << 20
    random = np.random.default_rng(3)
    with SketchWriter(limit, spill_folder=tmp_path) as writer:
        tokens = random.integers(1, 1 << 32, TOKENS_BEYOND_THE_LIMIT, dtype=np.uint32)
        for posting in range(3):
            writer.insert(tokens[posting::3], posting)
        writer.seal(tmp_path / "first.copr")
        more = random.integers(1, 1 << 32, TOKENS_BEYOND_THE_LIMIT, dtype=np.uint32)
        writer.insert(more, 3)
        writer.seal(tmp_path / "second.copr")
        assert writer.peak_memory_bytes <= limit
        assert writer.spill_count >= 2
    with SealedSketch.open(tmp_path / "second.copr") as sketch:
        assert (sketch.list_ids(tokens) >= 0).all()
        assert (sketch.list_ids(more) >= 0).all()


def test_a_closed_writer_and_a_closed_sketch_refuse(tmp_path: Path) -> None:
    writer = SketchWriter(spill_folder=tmp_path)
    writer.insert(np.array([5], np.uint32), 0)
    writer.seal(tmp_path / "a.copr")
    writer.close()
    sketch = SealedSketch.open(tmp_path / "a.copr")
    sketch.close()
    with pytest.raises(UsageError, match="closed"):
        writer.insert(np.array([6], np.uint32), 1)
    for asked in (writer, sketch):
        with pytest.raises(UsageError, match="closed"):
            asked.may_contain("error")
    with pytest.raises(UsageError, match="closed"):
        may_match_any([sketch], compile_expression(Token(5)))


BATCHES_TO_SHARE = 20 if config.DISABLE_JIT else 300


def test_several_threads_may_ask_one_sketch(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    with SketchWriter() as writer:
        for posting in range(BATCHES_TO_SHARE):
            writer.insert(random.integers(1, 400, 200, dtype=np.uint32), posting)
        writer.seal(tmp_path / "a.copr")
    with SealedSketch.open(tmp_path / "a.copr") as sketch, ThreadPoolExecutor(4) as threads:
        tokens = np.arange(1, BATCHES_TO_SHARE, dtype=np.uint32)
        expected = [sketch.decode(int(list_id)).tolist() for list_id in sketch.list_ids(tokens)]

        def ask(_: int) -> bool:
            return [sketch.decode(int(list_id)).tolist() for list_id in sketch.list_ids(tokens)] == expected

        assert all(threads.map(ask, range(16)))


def test_a_sketch_may_be_closed_while_it_is_asked(tmp_path: Path) -> None:
    with SketchWriter() as writer:
        writer.insert(np.arange(1, 50, dtype=np.uint32), 0)
        writer.seal(tmp_path / "a.copr")
    program = compile_expression(Token(5))

    def ask(sketch: SealedSketch) -> bool:
        try:
            return bool(may_match_any([sketch], program)[0] == MIGHT)
        except UsageError:
            return True  # closed before it could be asked

    with ThreadPoolExecutor(3) as threads:
        for _ in range(20 if config.DISABLE_JIT else 300):
            sketch = SealedSketch.open(tmp_path / "a.copr")
            asked = [threads.submit(ask, sketch) for _ in range(2)]
            threads.submit(sketch.close).result()
            assert all(answer.result() for answer in asked)


def test_closing_does_not_mind_that_somebody_holds_the_words(tmp_path: Path) -> None:
    seal(MutableSketch(), tmp_path / "a.copr")
    sketch = SealedSketch.open(tmp_path / "a.copr")
    words = sketch.words
    sketch.close()
    assert words[0] != 0
    with pytest.raises(UsageError, match="closed"):
        sketch.verify()


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="too slow without the JIT")
def test_a_batch_without_tokens_is_a_batch_also_when_memory_is_full(tmp_path: Path) -> None:
    limit = 2 << 20
    with SketchWriter(limit, spill_folder=tmp_path) as writer:
        tokens = np.arange(1, 60_000, dtype=np.uint32) * np.uint32(2654435761)
        writer.insert(tokens, 0)
        numbers = np.arange(1 << 12)
        for bit in range(12):  # a list for every token
            writer.insert(tokens[numbers[numbers >> bit & 1 == 1]], 1 + bit)
        room_for_all_postings = 12 << 16
        assert writer.spill_count == 0
        assert writer.memory_bytes + room_for_all_postings > limit
        writer.insert(np.zeros(0, np.uint32), LAST_POSTING)
        assert writer.spill_count == 1
        assert writer.posting_count == LAST_POSTING + 1
        assert writer.candidates(ANYTHING)[-1] == LAST_POSTING


def test_damage_is_not_merged(tmp_path: Path) -> None:
    source = MutableSketch()
    source.insert(np.arange(1, 100, dtype=np.uint32), 0)
    seal(source, tmp_path / "a.copr", signature_bits=32)
    data = bytearray((tmp_path / "a.copr").read_bytes())
    with SealedSketch.open(tmp_path / "a.copr") as sound:
        data[sound.header.sections["signatures"][0]] ^= 1
    target = MutableSketch()
    with pytest.raises(CorruptSketchError, match="signatures"):
        add_sealed(target, SealedSketch(bytes(data)))
    assert target.token_count == 0


def test_numbers_of_numpy_are_postings_and_other_arrays_are_no_fingerprints(tmp_path: Path) -> None:
    sketch = MutableSketch()
    assert sketch.insert(np.array([5], np.uint32), np.int64(1000)) == 1  # type: ignore[arg-type]
    assert sketch.decode(int(sketch.list_ids(np.array([5], np.uint32))[0])).tolist() == [1000]
    seal(sketch, tmp_path / "a.copr")
    with SealedSketch.open(tmp_path / "a.copr") as sealed:
        for asked in (sketch, sealed):
            with pytest.raises(UsageError, match="uint32, not int64"):
                asked.list_ids(np.array([5]))
        with pytest.raises(UsageError, match="not one of the 1 lists"):
            sealed.decode(1)
    with pytest.raises(TypeError):
        sketch.insert(np.array([5], np.uint32), 1.0)  # type: ignore[arg-type]


def test_sealing_into_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such folder"):
        seal(MutableSketch(), tmp_path / "nowhere" / "a.copr")
    with pytest.raises(UsageError, match="is a folder"):
        seal(MutableSketch(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_rules_given_to_a_writer_as_a_number_still_work_and_warn(tmp_path: Path) -> None:
    for number, rules in ((1, RuleSet.PAPER), (2, RuleSet.WINNOWED)):
        with SketchWriter() as writer, pytest.warns(DeprecationWarning, match=f"use rules='{rules}'"):
            writer.seal(tmp_path / "s.copr", rules=number)
        with SealedSketch.open(tmp_path / "s.copr") as sketch:
            assert sketch.rules is rules
    with SketchWriter() as writer, pytest.raises(UsageError, match="there are no token rules 3; expected winnowed or"):
        writer.seal(tmp_path / "s.copr", rules=3)
