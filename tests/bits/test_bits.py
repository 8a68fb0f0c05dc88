"""Words, bit sequences, prefix codes and prefix sums, against lists of Python integers."""

import random
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import config, njit

from coprlake.bits.prefix_code import LONGEST_CODE_BITS, build_prefix_code, decode_symbol
from coprlake.bits.prefix_sums import INTERVAL, MARK, PrefixSums, build_prefix_sums, find_span, sample_words
from coprlake.bits.sequence import low_mask, position_width, read_bits, words_for, write_bits
from coprlake.bits.words import bit_length, count_ones
from coprlake.kernel import U8Array, U64Array, word_of, words_at

pytestmark = pytest.mark.kernels
few = settings(max_examples=6 if config.DISABLE_JIT else 60)

# All numbers of 64 bits, but mostly those at the edges: single bits, runs of ones, and both ends.
WORDS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 63).map(lambda bit: 1 << bit),
    st.integers(0, 64).map(lambda width: (1 << width) - 1),
    st.integers(0, 64).map(lambda width: 2**64 - (1 << width)),
)


def as_integer(words: U64Array) -> int:
    """A bit sequence as one large number, whose bit ``i`` is bit ``i`` of the sequence."""
    return int.from_bytes(words.tobytes(), "little")


# Words.


@given(WORDS)
@example(0)
@example(2**64 - 1)
def test_count_ones_and_bit_length_equal_those_of_integers(number: int) -> None:
    assert count_ones(np.uint64(number)) == number.bit_count()
    assert bit_length(np.uint64(number)) == number.bit_length()
    assert _bit_length_in_kernel(np.uint64(number)) == number.bit_length()


@given(st.binary(min_size=8, max_size=24), st.data())
def test_word_of_is_eight_bytes_at_any_offset(data: bytes, drawn: st.DataObject) -> None:
    offset = drawn.draw(st.integers(0, len(data) - 8))
    expected = int.from_bytes(data[offset : offset + 8], "little")
    array = np.frombuffer(data, np.uint8)
    assert int(word_of(array, offset)) == expected
    assert int(_word_in_kernel(array, offset)) == expected


@given(st.lists(WORDS, min_size=1, max_size=5), st.data())
def test_words_at_looks_at_the_memory_itself(numbers: list[int], drawn: st.DataObject) -> None:
    array = np.array(numbers, np.uint64)
    start = drawn.draw(st.integers(0, len(numbers) - 1))
    address = array.ctypes.data + 8 * start
    count = len(numbers) - start
    out = np.zeros(count, np.uint64)
    _copy_in_kernel(address, count, out)
    assert out.tolist() == numbers[start:]
    array[start] ^= np.uint64(1)
    _copy_in_kernel(address, 1, out)
    assert out.tolist() == [numbers[start] ^ 1, *numbers[start + 1 :]]


def _bit_length(word: np.uint64) -> int:
    return bit_length(word)


def _word(data: U8Array, offset: int) -> np.uint64:
    return word_of(data, offset)


def _copy(address: int, word_count: int, out: U64Array) -> None:
    words = words_at(address, word_count)
    for i in range(len(words)):
        out[i] = words[i]


# What Python calls and what kernels contain are two functions for each of these.
_bit_length_in_kernel = njit(_bit_length)
_word_in_kernel = njit(_word)
_copy_in_kernel = njit(_copy)


# Bit sequences.


@pytest.mark.parametrize("width", range(65))
def test_low_mask_has_so_many_ones(width: int) -> None:
    assert int(low_mask(width)) == (1 << width) - 1


@given(st.lists(st.integers(0, 64).flatmap(lambda width: st.tuples(st.just(width), WORDS)), max_size=12))
@example([(64, 2**64 - 1), (0, 2**64 - 1), (64, 2**64 - 1)])  # whole words, with nothing in between
@example([(1, 1), (64, 2**64 - 1), (63, 2**64 - 1)])  # across a border, and to the very end
def test_numbers_of_any_width_are_read_as_written(numbers: list[tuple[int, int]]) -> None:
    starts = list(accumulate((width for width, _ in numbers), initial=0))
    words = np.zeros(words_for(starts[-1]), np.uint64)
    for (width, number), start in zip(numbers, starts, strict=False):
        write_bits(words, start, width, np.uint64(number))  # only its low bits
    for (width, number), start in zip(numbers, starts, strict=False):
        assert int(read_bits(words, start, width)) == number % 2**width
    assert as_integer(words) == sum(
        number % 2**width << start for (width, number), start in zip(numbers, starts, strict=False)
    )


@given(st.lists(WORDS, max_size=3), st.integers(-70, 260), st.integers(0, 64))
@example([2**64 - 1], 0, 64)
@example([2**64 - 1], 1, 64)  # one bit too far
@example([2**64 - 1], 64, 1)
@example([2**64 - 1], 64, 0)
@example([2**64 - 1], -1, 1)
@example([], 0, 1)
def test_reading_gives_the_bits_inside_and_zero_unless_all_are_inside(
    numbers: list[int], position: int, width: int
) -> None:
    words = np.array(numbers, np.uint64)
    is_inside = position >= 0 and position + width <= 64 * len(numbers)
    expected = as_integer(words) >> position & (1 << width) - 1 if is_inside else 0
    assert int(read_bits(words, position, width)) == expected


@pytest.mark.parametrize(("bit_count", "word_count"), [(0, 0), (1, 1), (63, 1), (64, 1), (65, 2), (128, 2)])
def test_words_for_rounds_up(bit_count: int, word_count: int) -> None:
    assert words_for(bit_count) == word_count


@pytest.mark.parametrize(("word_count", "width"), [(0, 0), (1, 7), (2, 8), (3, 8), (4, 9), (2**26, 33), (2**40, 47)])
def test_position_width_is_enough_for_the_position_of_the_end(word_count: int, width: int) -> None:
    assert position_width(word_count) == width == (64 * word_count).bit_length()


# Prefix codes.

COUNTS = st.one_of(
    st.lists(st.integers(0, 50), min_size=1, max_size=40),
    st.lists(st.integers(0, 3), min_size=200, max_size=256),  # near the limit of what eight bits can tell apart
    st.lists(st.integers(0, 45).map(lambda power: 2**power), min_size=1, max_size=40),  # Huffman alone gets too long
)


def fibonacci(count: int) -> list[int]:
    """The counts that make Huffman's longest code as long as it can be."""
    numbers = [1, 1]
    while len(numbers) < count:
        numbers.append(numbers[-1] + numbers[-2])
    return numbers


def huffman_bits(counts: list[int]) -> int:
    """The total length of the best code without a limit: the sum of all inner nodes of Huffman's tree."""
    weights = sorted(count for count in counts if count)
    total = 0
    while len(weights) > 1:
        total += weights[0] + weights[1]
        weights = sorted([*weights[2:], weights[0] + weights[1]])
    return total


@settings(max_examples=40)
@given(COUNTS)
@example(fibonacci(40))
@example([1] * 256)
@example([2**40, *[1] * 255])
@example([0])
def test_code_lengths_make_a_complete_code_of_at_most_eight_bits(counts: list[int]) -> None:
    lengths = build_prefix_code(np.array(counts, np.int64)).lengths.tolist()
    assert [length > 0 for length in lengths] == [count > 0 for count in counts]
    assert max(lengths) <= LONGEST_CODE_BITS
    kraft = sum(2**-length for length in lengths if length)
    assert kraft == {0: 0, 1: 0.5}.get(sum(length > 0 for length in lengths), 1)


@settings(max_examples=40)
@given(st.lists(st.integers(1, 50), min_size=2, max_size=12))
def test_a_code_within_the_limit_is_as_short_as_huffmans(counts: list[int]) -> None:
    code = build_prefix_code(np.array(counts, np.int64))
    best = huffman_bits(counts)
    total = int(np.array(counts) @ code.lengths)
    assert total == best if code.lengths.max() < LONGEST_CODE_BITS else total >= best


def test_frequent_symbols_have_short_codes() -> None:
    assert build_prefix_code(np.array([1, 8, 2, 4, 1], np.int64)).lengths.tolist() == [4, 1, 3, 2, 4]


@settings(max_examples=40)
@given(COUNTS, st.integers(0, 99))
@example(fibonacci(40), 0)
@example([0, 0, 7], 0)
@example([1] * 256, 0)
def test_symbols_are_decoded_as_encoded(counts: list[int], seed: int) -> None:
    code = build_prefix_code(np.array(counts, np.int64))
    symbols = [symbol for symbol, count in enumerate(counts) for _ in range(min(count, 2))]
    random.Random(seed).shuffle(symbols)
    words = np.zeros(words_for(int(code.lengths[symbols].sum())), np.uint64)
    position = 0
    for symbol in symbols:
        write_bits(words, position, code.lengths[symbol], code.codes[symbol])
        position += int(code.lengths[symbol])
    position, decoded = 0, []
    for symbol in symbols:
        entry = decode_symbol(code.table.view(np.uint64), words, position)
        decoded.append(entry & 255)
        assert entry >> 8 == code.lengths[symbol]
        position += entry >> 8
    assert decoded == symbols


# Prefix sums.


def stored(widths: U8Array) -> tuple[PrefixSums, U64Array]:
    """The prefix sums of a sequence of elements of these widths, and that sequence."""
    elements = np.zeros(words_for(int(widths[widths != MARK].sum(dtype=np.int64))), np.uint64)
    return build_prefix_sums(widths, len(elements)), elements


def check_spans(widths: U8Array) -> None:
    sums, elements = stored(widths)
    marks = widths == MARK
    bits = np.where(marks, 0, widths)
    starts = np.cumsum(bits, dtype=np.int64) - bits
    marks_before = np.cumsum(marks) - marks
    found = [find_span(sums, elements, index) for index in range(len(widths))]
    assert found == list(zip(starts.tolist(), widths.tolist(), marks_before.tolist(), strict=True))
    assert sums.mark_count == np.count_nonzero(marks)


@pytest.mark.parametrize("size", [1, 2, *(n * INTERVAL + d for n in (1, 2, 3) for d in (-1, 0, 1))])
@pytest.mark.parametrize("widest", [0, 1, 20])
def test_spans_are_the_sums_of_the_widths_before(size: int, widest: int) -> None:
    rng = np.random.default_rng([size, widest])
    check_spans(np.minimum(rng.geometric(0.2, size) - 1, widest).astype(np.uint8))


@pytest.mark.parametrize("size", [1, INTERVAL - 1, INTERVAL, INTERVAL + 1, 3 * INTERVAL])
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_marked_elements_have_no_bits_and_are_counted(size: int, share: float) -> None:
    rng = np.random.default_rng(size)
    widths = np.minimum(rng.geometric(0.2, size) - 1, 20)
    check_spans(np.where(rng.random(size) < share, MARK, widths).astype(np.uint8))


@few
@given(st.lists(st.integers(0, 255) | st.just(MARK), max_size=300))
@example([*range(256), 255])  # every width there is
@example([0] * 300)  # elements of no bits at all
def test_spans_of_any_widths(widths: list[int]) -> None:
    check_spans(np.array(widths, np.uint8))


def test_a_sequence_without_widths_takes_no_samples_and_no_codes() -> None:
    sums, elements = stored(np.zeros(0, np.uint8))
    assert len(sums.samples) == len(sums.codes) == 0
    assert find_span(sums, elements, 0) == (0, 0, 0)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="too slow without the JIT")
def test_sums_may_pass_32_bits() -> None:
    size = 2**32 // 255 + 5 * INTERVAL
    sums, elements = stored(np.full(size, 255, np.uint8))
    assert find_span(sums, elements, size - 1) == (255 * (size - 1), 255, 0)
    assert 255 * (size - 1) > 2**32


@pytest.mark.parametrize("size", [0, 1, INTERVAL - 1, INTERVAL, INTERVAL + 1, 5 * INTERVAL])
def test_samples_are_one_for_each_interval_and_no_wider_than_their_positions_need(size: int) -> None:
    sums, elements = stored(np.full(size, 7, np.uint8))
    sample_bits = (64 * len(elements)).bit_length() + (64 * len(sums.codes)).bit_length()
    assert len(sums.samples) == sample_words(size, len(elements), len(sums.codes))
    assert len(sums.samples) == words_for((size + INTERVAL - 1) // INTERVAL * sample_bits)


@pytest.mark.parametrize("marked", [0, 1, 5, 2**20])
def test_a_sample_has_room_for_the_number_of_marks_and_none_without_any(marked: int) -> None:
    plain = sample_words(INTERVAL * 64, 3, 5)
    assert sample_words(INTERVAL * 64, 3, 5, marked) == plain + marked.bit_length()  # 64 samples


@pytest.mark.parametrize("index", [5, 127, 128, 10**6, 2**31])
def test_a_span_that_does_not_exist_is_still_three_numbers(index: int) -> None:
    sums, elements = stored(np.array([3, 1, MARK, 1, 5], np.uint8))
    start, width, marks = find_span(sums, elements, index)
    assert start >= 0
    assert 0 <= width <= 255
    assert marks >= 0


@few
@given(st.binary(min_size=64, max_size=64), st.integers(0, 2**32), st.integers(0, 400))
def test_any_bytes_give_three_numbers_that_are_not_negative(data: bytes, mark_count: int, index: int) -> None:
    words = np.frombuffer(data, np.uint64)
    start, width, marks = find_span(PrefixSums(words[:3], words[3:5], words[5:], mark_count), words, index)
    assert start >= 0
    assert 0 <= width <= 255
    assert 0 <= marks < 2**33 + INTERVAL
