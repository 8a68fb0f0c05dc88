"""The functions of `pyarrow.compute`: all of them, but without `options` and `memory_pool`, which we do not use.

A function of one shape is an object with a call signature (`_Unary`, `_Binary`, ...), so that the overloads exist once.
"""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
from pyarrow.lib import (
    Array,
    BooleanArray,
    ChunkedArray,
    DataType,
    DictionaryArray,
    RecordBatch,
    Scalar,
    StructArray,
    StructScalar,
    Table,
    _AnyType,
    _Indices,
    _Mask,
    _Order,
)

_Plain: TypeAlias = bool | int | float | str | bytes | date | datetime | time | timedelta | Decimal | np.generic | None
_AnyDatum: TypeAlias = Array | ChunkedArray | Scalar | _Plain | Sequence[Any] | npt.NDArray[Any]
_Flat: TypeAlias = Array | Scalar | _Plain | Sequence[Any] | npt.NDArray[Any]
_Datum = TypeVar("_Datum", Array, ChunkedArray, Scalar, Array | ChunkedArray)
_Table = TypeVar("_Table", Array, ChunkedArray, RecordBatch, Table, Array | ChunkedArray)

class FunctionOptions: ...

class _OfColumn(Protocol):
    @overload
    def __call__(self, x: Array, /) -> Array: ...
    @overload
    def __call__(self, x: ChunkedArray, /) -> ChunkedArray: ...

class _Unary(Protocol):
    @overload
    def __call__(self, x: Array, /) -> Array: ...
    @overload
    def __call__(self, x: ChunkedArray, /) -> ChunkedArray: ...
    @overload
    def __call__(self, x: Scalar | _Plain, /) -> Scalar: ...

class _UnaryTest(Protocol):
    @overload
    def __call__(self, x: Array, /) -> BooleanArray: ...
    @overload
    def __call__(self, x: ChunkedArray, /) -> ChunkedArray: ...
    @overload
    def __call__(self, x: Scalar | _Plain, /) -> Scalar: ...

class _Binary(Protocol):
    @overload
    def __call__(self, x: Array, y: _Flat, /) -> Array: ...
    @overload
    def __call__(self, x: ChunkedArray, y: _AnyDatum, /) -> ChunkedArray: ...
    @overload
    def __call__(self, x: _AnyDatum, y: ChunkedArray, /) -> ChunkedArray: ...
    @overload
    def __call__(self, x: _Flat, y: Array, /) -> Array: ...
    @overload
    def __call__(self, x: Scalar | _Plain, y: Scalar | _Plain, /) -> Scalar: ...

class _BinaryTest(Protocol):
    @overload
    def __call__(self, x: Array, y: _Flat, /) -> BooleanArray: ...
    @overload
    def __call__(self, x: ChunkedArray, y: _AnyDatum, /) -> ChunkedArray: ...
    @overload
    def __call__(self, x: _AnyDatum, y: ChunkedArray, /) -> ChunkedArray: ...
    @overload
    def __call__(self, x: _Flat, y: Array, /) -> BooleanArray: ...
    @overload
    def __call__(self, x: Scalar | _Plain, y: Scalar | _Plain, /) -> Scalar: ...

# Functions of one shape

dictionary_decode: _OfColumn
fill_null_backward: _OfColumn
fill_null_forward: _OfColumn
run_end_decode: _OfColumn
ascii_is_alnum: _UnaryTest
ascii_is_alpha: _UnaryTest
ascii_is_decimal: _UnaryTest
ascii_is_lower: _UnaryTest
ascii_is_printable: _UnaryTest
ascii_is_space: _UnaryTest
ascii_is_title: _UnaryTest
ascii_is_upper: _UnaryTest
invert: _UnaryTest
is_dst: _UnaryTest
is_finite: _UnaryTest
is_inf: _UnaryTest
is_leap_year: _UnaryTest
is_nan: _UnaryTest
is_valid: _UnaryTest
string_is_ascii: _UnaryTest
true_unless_null: _UnaryTest
utf8_is_alnum: _UnaryTest
utf8_is_alpha: _UnaryTest
utf8_is_decimal: _UnaryTest
utf8_is_digit: _UnaryTest
utf8_is_lower: _UnaryTest
utf8_is_numeric: _UnaryTest
utf8_is_printable: _UnaryTest
utf8_is_space: _UnaryTest
utf8_is_title: _UnaryTest
utf8_is_upper: _UnaryTest
and_: _BinaryTest
and_kleene: _BinaryTest
and_not: _BinaryTest
and_not_kleene: _BinaryTest
equal: _BinaryTest
greater: _BinaryTest
greater_equal: _BinaryTest
less: _BinaryTest
less_equal: _BinaryTest
not_equal: _BinaryTest
or_: _BinaryTest
or_kleene: _BinaryTest
xor: _BinaryTest
abs: _Unary
abs_checked: _Unary
acos: _Unary
acos_checked: _Unary
acosh: _Unary
acosh_checked: _Unary
ascii_capitalize: _Unary
ascii_lower: _Unary
ascii_ltrim_whitespace: _Unary
ascii_reverse: _Unary
ascii_rtrim_whitespace: _Unary
ascii_swapcase: _Unary
ascii_title: _Unary
ascii_trim_whitespace: _Unary
ascii_upper: _Unary
asin: _Unary
asin_checked: _Unary
asinh: _Unary
atan: _Unary
atanh: _Unary
atanh_checked: _Unary
binary_length: _Unary
binary_reverse: _Unary
bit_wise_not: _Unary
ceil: _Unary
cos: _Unary
cos_checked: _Unary
cosh: _Unary
day: _Unary
day_of_year: _Unary
exp: _Unary
expm1: _Unary
floor: _Unary
hour: _Unary
iso_calendar: _Unary
iso_week: _Unary
iso_year: _Unary
list_value_length: _Unary
ln: _Unary
ln_checked: _Unary
local_timestamp: _Unary
log10: _Unary
log10_checked: _Unary
log1p: _Unary
log1p_checked: _Unary
log2: _Unary
log2_checked: _Unary
microsecond: _Unary
millisecond: _Unary
minute: _Unary
month: _Unary
nanosecond: _Unary
negate: _Unary
negate_checked: _Unary
quarter: _Unary
second: _Unary
sign: _Unary
sin: _Unary
sin_checked: _Unary
sinh: _Unary
sqrt: _Unary
sqrt_checked: _Unary
subsecond: _Unary
tan: _Unary
tan_checked: _Unary
tanh: _Unary
trunc: _Unary
us_week: _Unary
us_year: _Unary
utf8_capitalize: _Unary
utf8_length: _Unary
utf8_lower: _Unary
utf8_ltrim_whitespace: _Unary
utf8_reverse: _Unary
utf8_rtrim_whitespace: _Unary
utf8_swapcase: _Unary
utf8_title: _Unary
utf8_trim_whitespace: _Unary
utf8_upper: _Unary
year: _Unary
year_month_day: _Unary
add: _Binary
add_checked: _Binary
atan2: _Binary
binary_join: _Binary
binary_repeat: _Binary
bit_wise_and: _Binary
bit_wise_or: _Binary
bit_wise_xor: _Binary
days_between: _Binary
divide: _Binary
divide_checked: _Binary
hours_between: _Binary
hypot: _Binary
list_element: _Binary
logb: _Binary
logb_checked: _Binary
microseconds_between: _Binary
milliseconds_between: _Binary
minutes_between: _Binary
modulo: _Binary
modulo_checked: _Binary
month_day_nano_interval_between: _Binary
multiply: _Binary
multiply_checked: _Binary
nanoseconds_between: _Binary
power: _Binary
power_checked: _Binary
quarters_between: _Binary
remainder: _Binary
remainder_checked: _Binary
seconds_between: _Binary
shift_left: _Binary
shift_left_checked: _Binary
shift_right: _Binary
shift_right_checked: _Binary
subtract: _Binary
subtract_checked: _Binary
years_between: _Binary

# Functions that pyarrow writes by hand, or whose result depends on more than the first argument

def call_function(
    name: str,
    args: Sequence[Any],
    options: FunctionOptions | None = None,
    *,
    length: int | None = None,
) -> Any: ...
def list_functions() -> list[str]: ...
def cast(
    arr: _Datum,
    target_type: _AnyType | None = None,
    safe: bool | None = None,
) -> _Datum: ...
def index(
    data: Array | ChunkedArray,
    value: Scalar | _Plain,
    start: int | None = None,
    end: int | None = None,
) -> Scalar: ...
def take(data: _Table, indices: _Indices, *, boundscheck: bool = True) -> _Table: ...
def filter(
    input: _Table,
    selection_filter: _Mask,
    /,
    null_selection_behavior: Literal["drop", "emit_null"] = "drop",
) -> _Table: ...
def drop_null(input: _Table, /) -> _Table: ...
def fill_null(values: _Datum, fill_value: _AnyDatum) -> _Datum: ...
def unique(array: Array | ChunkedArray, /) -> Array: ...
def value_counts(array: Array | ChunkedArray, /) -> StructArray: ...
def min_max(
    array: Array | ChunkedArray,
    /,
    *,
    skip_nulls: bool = True,
    min_count: int = 1,
) -> StructScalar: ...
@overload
def dictionary_encode(
    array: Array,
    /,
    null_encoding: Literal["mask", "encode"] = "mask",
) -> DictionaryArray: ...
@overload
def dictionary_encode(
    array: ChunkedArray,
    /,
    null_encoding: Literal["mask", "encode"] = "mask",
) -> ChunkedArray: ...
@overload
def if_else(cond: Array, left: _Flat, right: _Flat, /) -> Array: ...
@overload
def if_else(cond: ChunkedArray, left: _AnyDatum, right: _AnyDatum, /) -> ChunkedArray: ...
@overload
def if_else(cond: _AnyDatum, left: ChunkedArray, right: _AnyDatum, /) -> ChunkedArray: ...
@overload
def if_else(cond: _AnyDatum, left: _AnyDatum, right: ChunkedArray, /) -> ChunkedArray: ...
@overload
def replace_with_mask(values: Array, mask: _Flat, replacements: _Flat, /) -> Array: ...
@overload
def replace_with_mask(values: ChunkedArray, mask: _AnyDatum, replacements: _AnyDatum, /) -> ChunkedArray: ...
@overload
def coalesce(*values: Array | Scalar | _Plain) -> Array: ...  # type: ignore[overload-overlap]  # of scalars only: not in use
@overload
def coalesce(*values: ChunkedArray | Scalar | _Plain) -> ChunkedArray: ...
@overload
def binary_join_element_wise(  # type: ignore[overload-overlap]  # of scalars only: not in use
    *strings: Array | Scalar | _Plain,
    null_handling: Literal["emit_null", "skip", "replace"] = "emit_null",
    null_replacement: str | bytes = "",
) -> Array: ...
@overload
def binary_join_element_wise(
    *strings: ChunkedArray | Scalar | _Plain,
    null_handling: Literal["emit_null", "skip", "replace"] = "emit_null",
    null_replacement: str | bytes = "",
) -> ChunkedArray: ...
def list_flatten(
    lists: _Datum,
    /,
    recursive: bool = False,
) -> _Datum: ...
def list_parent_indices(lists: _Datum, /) -> _Datum: ...
def choose(indices: _Datum, /, *values: _AnyDatum) -> _Datum: ...
def case_when(cond: _Datum, /, *cases: _AnyDatum) -> _Datum: ...
def strptime(
    strings: _Datum,
    /,
    format: str,
    unit: str,
    error_is_null: bool = False,
) -> _Datum: ...

# Functions with options

def all(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def any(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def approximate_median(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def array_filter(
    array: Array | ChunkedArray,
    selection_filter: _AnyDatum,
    /,
    null_selection_behavior: Literal["drop", "emit_null"] = "drop",
) -> Array: ...
def array_sort_indices(
    array: Array | ChunkedArray,
    /,
    order: _Order = "ascending",
    *,
    null_placement: Literal["at_start", "at_end"] = "at_end",
) -> Array: ...
def array_take(array: Array | ChunkedArray, indices: _AnyDatum, /, *, boundscheck: bool = True) -> Array: ...
def ascii_center(
    strings: _Datum, /, width: int, padding: str = " ", lean_left_on_odd_padding: bool = True
) -> _Datum: ...
def ascii_lpad(strings: _Datum, /, width: int, padding: str = " ", lean_left_on_odd_padding: bool = True) -> _Datum: ...
def ascii_ltrim(strings: _Datum, /, characters: str) -> _Datum: ...
def ascii_rpad(strings: _Datum, /, width: int, padding: str = " ", lean_left_on_odd_padding: bool = True) -> _Datum: ...
def ascii_rtrim(strings: _Datum, /, characters: str) -> _Datum: ...
def ascii_split_whitespace(strings: _Datum, /, *, max_splits: int | None = None, reverse: bool = False) -> _Datum: ...
def ascii_trim(strings: _Datum, /, characters: str) -> _Datum: ...
def assume_timezone(
    timestamps: _Datum,
    /,
    timezone: str,
    *,
    ambiguous: Literal["raise", "earliest", "latest"] = "raise",
    nonexistent: Literal["raise", "earliest", "latest"] = "raise",
) -> _Datum: ...
def binary_replace_slice(strings: _Datum, /, start: int, stop: int | None, replacement: str | bytes) -> _Datum: ...
def binary_slice(strings: _Datum, /, start: int, stop: int | None = None, step: int = 1) -> _Datum: ...
def ceil_temporal(
    timestamps: _Datum,
    /,
    multiple: float = 1,
    unit: str = "day",
    *,
    week_starts_monday: bool = True,
    ceil_is_strictly_greater: Any = False,
    calendar_based_origin: Any = False,
) -> _Datum: ...
def count(array: Array | ChunkedArray, /, mode: Literal["only_valid", "only_null", "all"] = "only_valid") -> Scalar: ...
def count_distinct(
    array: Array | ChunkedArray, /, mode: Literal["only_valid", "only_null", "all"] = "only_valid"
) -> Scalar: ...
def count_substring(strings: _Datum, /, pattern: str | bytes, *, ignore_case: bool = False) -> _Datum: ...
def count_substring_regex(strings: _Datum, /, pattern: str | bytes, *, ignore_case: bool = False) -> _Datum: ...
def cumulative_max(values: _Datum, /, start: int | None = None, *, skip_nulls: bool = False) -> _Datum: ...
def cumulative_mean(values: _Datum, /, start: int | None = None, *, skip_nulls: bool = False) -> _Datum: ...
def cumulative_min(values: _Datum, /, start: int | None = None, *, skip_nulls: bool = False) -> _Datum: ...
def cumulative_prod(values: _Datum, /, start: int | None = None, *, skip_nulls: bool = False) -> _Datum: ...
def cumulative_prod_checked(values: _Datum, /, start: int | None = None, *, skip_nulls: bool = False) -> _Datum: ...
def cumulative_sum(values: _Datum, /, start: int | None = None, *, skip_nulls: bool = False) -> _Datum: ...
def cumulative_sum_checked(values: _Datum, /, start: int | None = None, *, skip_nulls: bool = False) -> _Datum: ...
def day_of_week(values: _Datum, /, *, count_from_zero: bool = True, week_start: int = 1) -> _Datum: ...
@overload
def ends_with(strings: Array, /, pattern: str | bytes, *, ignore_case: bool = False) -> BooleanArray: ...
@overload
def ends_with(strings: ChunkedArray, /, pattern: str | bytes, *, ignore_case: bool = False) -> ChunkedArray: ...
@overload
def ends_with(strings: Scalar, /, pattern: str | bytes, *, ignore_case: bool = False) -> Scalar: ...
def extract_regex(strings: _Datum, /, pattern: str | bytes) -> _Datum: ...
def extract_regex_span(strings: _Datum, /, pattern: str | bytes) -> _Datum: ...
def find_substring(strings: _Datum, /, pattern: str | bytes, *, ignore_case: bool = False) -> _Datum: ...
def find_substring_regex(strings: _Datum, /, pattern: str | bytes, *, ignore_case: bool = False) -> _Datum: ...
def first(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def first_last(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def floor_temporal(
    timestamps: _Datum,
    /,
    multiple: float = 1,
    unit: str = "day",
    *,
    week_starts_monday: bool = True,
    ceil_is_strictly_greater: Any = False,
    calendar_based_origin: Any = False,
) -> _Datum: ...
def index_in(values: _Datum, /, value_set: Array | ChunkedArray, *, skip_nulls: bool = False) -> _Datum: ...
def indices_nonzero(values: Array | ChunkedArray, /) -> Array: ...
def inverse_permutation(indices: Array | ChunkedArray, /, max_index: Any = -1, output_type: Any = None) -> Array: ...
@overload
def is_in(values: Array, /, value_set: Array | ChunkedArray, *, skip_nulls: bool = False) -> BooleanArray: ...
@overload
def is_in(values: ChunkedArray, /, value_set: Array | ChunkedArray, *, skip_nulls: bool = False) -> ChunkedArray: ...
@overload
def is_in(values: Scalar, /, value_set: Array | ChunkedArray, *, skip_nulls: bool = False) -> Scalar: ...
@overload
def is_null(values: Array, /, *, nan_is_null: bool = False) -> BooleanArray: ...
@overload
def is_null(values: ChunkedArray, /, *, nan_is_null: bool = False) -> ChunkedArray: ...
@overload
def is_null(values: Scalar, /, *, nan_is_null: bool = False) -> Scalar: ...
def kurtosis(
    array: Array | ChunkedArray, /, *, skip_nulls: bool = True, biased: Any = True, min_count: int = 0
) -> Scalar: ...
def last(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def list_slice(
    lists: _Datum, /, start: int, stop: int | None = None, step: int = 1, return_fixed_size_list: Any = None
) -> _Datum: ...
def make_struct(
    *args: _AnyDatum, field_names: Any = (), field_nullability: Any = None, field_metadata: Any = None
) -> Array | ChunkedArray | Scalar: ...
def map_lookup(container: _Datum, /, query_key: Any, occurrence: Any) -> _Datum: ...
@overload
def match_like(strings: Array, /, pattern: str | bytes, *, ignore_case: bool = False) -> BooleanArray: ...
@overload
def match_like(strings: ChunkedArray, /, pattern: str | bytes, *, ignore_case: bool = False) -> ChunkedArray: ...
@overload
def match_like(strings: Scalar, /, pattern: str | bytes, *, ignore_case: bool = False) -> Scalar: ...
@overload
def match_substring(strings: Array, /, pattern: str | bytes, *, ignore_case: bool = False) -> BooleanArray: ...
@overload
def match_substring(strings: ChunkedArray, /, pattern: str | bytes, *, ignore_case: bool = False) -> ChunkedArray: ...
@overload
def match_substring(strings: Scalar, /, pattern: str | bytes, *, ignore_case: bool = False) -> Scalar: ...
@overload
def match_substring_regex(strings: Array, /, pattern: str | bytes, *, ignore_case: bool = False) -> BooleanArray: ...
@overload
def match_substring_regex(
    strings: ChunkedArray, /, pattern: str | bytes, *, ignore_case: bool = False
) -> ChunkedArray: ...
@overload
def match_substring_regex(strings: Scalar, /, pattern: str | bytes, *, ignore_case: bool = False) -> Scalar: ...
def max(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def max_element_wise(*args: _AnyDatum, skip_nulls: bool = True) -> Array | ChunkedArray | Scalar: ...
def mean(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def min(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def min_element_wise(*args: _AnyDatum, skip_nulls: bool = True) -> Array | ChunkedArray | Scalar: ...
def mode(array: Array | ChunkedArray, /, n: int = 1, *, skip_nulls: bool = True, min_count: int = 0) -> Array: ...
def pairwise_diff(input: _Datum, /, period: Any = 1) -> _Datum: ...
def pairwise_diff_checked(input: _Datum, /, period: Any = 1) -> _Datum: ...
def partition_nth_indices(
    array: Array | ChunkedArray, /, pivot: Any, *, null_placement: Literal["at_start", "at_end"] = "at_end"
) -> Array: ...
def product(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def quantile(
    array: Array | ChunkedArray,
    /,
    q: Any = 0.5,
    *,
    interpolation: str = "linear",
    skip_nulls: bool = True,
    min_count: int = 0,
) -> Array: ...
def rank(
    input: Array | ChunkedArray | RecordBatch | Table,
    /,
    sort_keys: Any = "ascending",
    *,
    null_placement: Literal["at_start", "at_end"] | None = None,
    tiebreaker: Literal["min", "max", "first", "dense"] = "first",
) -> Array: ...
def rank_normal(
    input: Array | ChunkedArray,
    /,
    sort_keys: Any = "ascending",
    *,
    null_placement: Literal["at_start", "at_end"] | None = None,
) -> Array: ...
def rank_quantile(
    input: Array | ChunkedArray,
    /,
    sort_keys: Any = "ascending",
    *,
    null_placement: Literal["at_start", "at_end"] | None = None,
) -> Array: ...
def replace_substring(
    strings: _Datum, /, pattern: str | bytes, replacement: str | bytes, *, max_replacements: int | None = None
) -> _Datum: ...
def replace_substring_regex(
    strings: _Datum, /, pattern: str | bytes, replacement: str | bytes, *, max_replacements: int | None = None
) -> _Datum: ...
def round(x: _Datum, /, ndigits: int = 0, round_mode: str = "half_to_even") -> _Datum: ...
def round_binary(x: Array | ChunkedArray, s: _AnyDatum, /, round_mode: str = "half_to_even") -> Array: ...
def round_temporal(
    timestamps: _Datum,
    /,
    multiple: float = 1,
    unit: str = "day",
    *,
    week_starts_monday: bool = True,
    ceil_is_strictly_greater: Any = False,
    calendar_based_origin: Any = False,
) -> _Datum: ...
def round_to_multiple(x: _Datum, /, multiple: float = 1.0, round_mode: str = "half_to_even") -> _Datum: ...
def run_end_encode(array: _Datum, /, run_end_type: DataType = ...) -> _Datum: ...
def scatter(values: Array | ChunkedArray, indices: _AnyDatum, /, max_index: Any = -1) -> Array: ...
def search_sorted(values: Array | ChunkedArray, needles: _AnyDatum, /, side: Any = "left") -> Array: ...
def select_k_unstable(input: Array | ChunkedArray | RecordBatch | Table, /, k: Any, sort_keys: Any) -> Array: ...
def skew(
    array: Array | ChunkedArray, /, *, skip_nulls: bool = True, biased: Any = True, min_count: int = 0
) -> Scalar: ...
def sort_indices(
    input: Array | ChunkedArray | RecordBatch | Table,
    /,
    sort_keys: Any = (),
    *,
    null_placement: Literal["at_start", "at_end"] | None = None,
) -> Array: ...
def split_pattern(
    strings: _Datum, /, pattern: str | bytes, *, max_splits: int | None = None, reverse: bool = False
) -> _Datum: ...
def split_pattern_regex(
    strings: _Datum, /, pattern: str | bytes, *, max_splits: int | None = None, reverse: bool = False
) -> _Datum: ...
@overload
def starts_with(strings: Array, /, pattern: str | bytes, *, ignore_case: bool = False) -> BooleanArray: ...
@overload
def starts_with(strings: ChunkedArray, /, pattern: str | bytes, *, ignore_case: bool = False) -> ChunkedArray: ...
@overload
def starts_with(strings: Scalar, /, pattern: str | bytes, *, ignore_case: bool = False) -> Scalar: ...
def stddev(array: Array | ChunkedArray, /, *, ddof: int = 0, skip_nulls: bool = True, min_count: int = 0) -> Scalar: ...
def strftime(timestamps: _Datum, /, format: str = "%Y-%m-%dT%H:%M:%S", locale: str = "C") -> _Datum: ...
def struct_field(values: _Datum, /, indices: Any) -> _Datum: ...
def sum(array: Array | ChunkedArray, /, *, skip_nulls: bool = True, min_count: int = 1) -> Scalar: ...
def tdigest(
    array: Array | ChunkedArray,
    /,
    q: Any = 0.5,
    *,
    delta: Any = 100,
    buffer_size: Any = 500,
    skip_nulls: bool = True,
    min_count: int = 0,
) -> Array: ...
def utf8_center(
    strings: _Datum, /, width: int, padding: str = " ", lean_left_on_odd_padding: bool = True
) -> _Datum: ...
def utf8_lpad(strings: _Datum, /, width: int, padding: str = " ", lean_left_on_odd_padding: bool = True) -> _Datum: ...
def utf8_ltrim(strings: _Datum, /, characters: str) -> _Datum: ...
def utf8_normalize(strings: _Datum, /, form: str) -> _Datum: ...
def utf8_replace_slice(strings: _Datum, /, start: int, stop: int | None, replacement: str | bytes) -> _Datum: ...
def utf8_rpad(strings: _Datum, /, width: int, padding: str = " ", lean_left_on_odd_padding: bool = True) -> _Datum: ...
def utf8_rtrim(strings: _Datum, /, characters: str) -> _Datum: ...
def utf8_slice_codeunits(strings: _Datum, /, start: int, stop: int | None = None, step: int = 1) -> _Datum: ...
def utf8_split_whitespace(strings: _Datum, /, *, max_splits: int | None = None, reverse: bool = False) -> _Datum: ...
def utf8_trim(strings: _Datum, /, characters: str) -> _Datum: ...
def utf8_zero_fill(strings: _Datum, /, width: int, padding: str = "0") -> _Datum: ...
def utf8_zfill(strings: _Datum, /, width: int, padding: str = "0") -> _Datum: ...
def variance(
    array: Array | ChunkedArray, /, *, ddof: int = 0, skip_nulls: bool = True, min_count: int = 0
) -> Scalar: ...
def week(
    values: _Datum,
    /,
    *,
    week_starts_monday: bool = True,
    count_from_zero: bool = False,
    first_week_is_fully_in_year: Any = False,
) -> _Datum: ...
def weeks_between(
    start: Array | ChunkedArray, end: _AnyDatum, /, *, count_from_zero: bool = True, week_start: int = 1
) -> Array: ...
def winsorize(array: _Datum, /, lower_limit: Any, upper_limit: Any) -> _Datum: ...

# Options

class ArraySortOptions(FunctionOptions):
    def __init__(
        self, order: _Order = "ascending", *, null_placement: Literal["at_start", "at_end"] = "at_end"
    ) -> None: ...

class AssumeTimezoneOptions(FunctionOptions):
    def __init__(
        self,
        timezone: str,
        *,
        ambiguous: Literal["raise", "earliest", "latest"] = "raise",
        nonexistent: Literal["raise", "earliest", "latest"] = "raise",
    ) -> None: ...

class CastOptions(FunctionOptions):
    def __init__(
        self,
        target_type: Any = None,
        *,
        allow_int_overflow: Any = None,
        allow_time_truncate: Any = None,
        allow_time_overflow: Any = None,
        allow_decimal_truncate: Any = None,
        allow_float_truncate: Any = None,
        allow_invalid_utf8: Any = None,
    ) -> None: ...

class CountOptions(FunctionOptions):
    def __init__(self, mode: Literal["only_valid", "only_null", "all"] = "only_valid") -> None: ...

class CumulativeOptions(FunctionOptions):
    def __init__(self, start: int | None = None, *, skip_nulls: bool = False) -> None: ...

class CumulativeSumOptions(FunctionOptions):
    def __init__(self, start: int | None = None, *, skip_nulls: bool = False) -> None: ...

class DayOfWeekOptions(FunctionOptions):
    def __init__(self, *, count_from_zero: bool = True, week_start: int = 1) -> None: ...

class DictionaryEncodeOptions(FunctionOptions):
    def __init__(self, null_encoding: Literal["mask", "encode"] = "mask") -> None: ...

class ElementWiseAggregateOptions(FunctionOptions):
    def __init__(self, *, skip_nulls: bool = True) -> None: ...

class ExtractRegexOptions(FunctionOptions):
    def __init__(self, pattern: str | bytes) -> None: ...

class ExtractRegexSpanOptions(FunctionOptions):
    def __init__(self, pattern: str | bytes) -> None: ...

class FilterOptions(FunctionOptions):
    def __init__(self, null_selection_behavior: Literal["drop", "emit_null"] = "drop") -> None: ...

class IndexOptions(FunctionOptions):
    def __init__(self, value: Any) -> None: ...

class InversePermutationOptions(FunctionOptions):
    def __init__(self, max_index: Any = -1, output_type: Any = None) -> None: ...

class JoinOptions(FunctionOptions):
    def __init__(
        self, null_handling: Literal["emit_null", "skip", "replace"] = "emit_null", null_replacement: str | bytes = ""
    ) -> None: ...

class ListFlattenOptions(FunctionOptions):
    def __init__(self, recursive: bool = False) -> None: ...

class ListSliceOptions(FunctionOptions):
    def __init__(
        self, start: int, stop: int | None = None, step: int = 1, return_fixed_size_list: Any = None
    ) -> None: ...

class MakeStructOptions(FunctionOptions):
    def __init__(self, field_names: Any = (), *, field_nullability: Any = None, field_metadata: Any = None) -> None: ...

class MapLookupOptions(FunctionOptions):
    def __init__(self, query_key: Any, occurrence: Any) -> None: ...

class MatchSubstringOptions(FunctionOptions):
    def __init__(self, pattern: str | bytes, *, ignore_case: bool = False) -> None: ...

class ModeOptions(FunctionOptions):
    def __init__(self, n: int = 1, *, skip_nulls: bool = True, min_count: int = 0) -> None: ...

class NullOptions(FunctionOptions):
    def __init__(self, *, nan_is_null: bool = False) -> None: ...

class PadOptions(FunctionOptions):
    def __init__(self, width: int, padding: str = " ", lean_left_on_odd_padding: bool = True) -> None: ...

class PairwiseOptions(FunctionOptions):
    def __init__(self, period: Any = 1) -> None: ...

class PartitionNthOptions(FunctionOptions):
    def __init__(self, pivot: Any, *, null_placement: Literal["at_start", "at_end"] = "at_end") -> None: ...

class PivotWiderOptions(FunctionOptions):
    def __init__(self, key_names: Any, *, unexpected_key_behavior: Any = "ignore") -> None: ...

class QuantileOptions(FunctionOptions):
    def __init__(
        self, q: Any = 0.5, *, interpolation: str = "linear", skip_nulls: bool = True, min_count: int = 0
    ) -> None: ...

class RandomOptions(FunctionOptions):
    def __init__(self, *, initializer: Any = "system") -> None: ...

class RankOptions(FunctionOptions):
    def __init__(
        self,
        sort_keys: Any = "ascending",
        *,
        null_placement: Literal["at_start", "at_end"] | None = None,
        tiebreaker: Literal["min", "max", "first", "dense"] = "first",
    ) -> None: ...

class RankQuantileOptions(FunctionOptions):
    def __init__(
        self, sort_keys: Any = "ascending", *, null_placement: Literal["at_start", "at_end"] | None = None
    ) -> None: ...

class ReplaceSliceOptions(FunctionOptions):
    def __init__(self, start: int, stop: int | None, replacement: str | bytes) -> None: ...

class ReplaceSubstringOptions(FunctionOptions):
    def __init__(
        self, pattern: str | bytes, replacement: str | bytes, *, max_replacements: int | None = None
    ) -> None: ...

class RoundBinaryOptions(FunctionOptions):
    def __init__(self, round_mode: str = "half_to_even") -> None: ...

class RoundOptions(FunctionOptions):
    def __init__(self, ndigits: int = 0, round_mode: str = "half_to_even") -> None: ...

class RoundTemporalOptions(FunctionOptions):
    def __init__(
        self,
        multiple: float = 1,
        unit: str = "day",
        *,
        week_starts_monday: bool = True,
        ceil_is_strictly_greater: Any = False,
        calendar_based_origin: Any = False,
    ) -> None: ...

class RoundToMultipleOptions(FunctionOptions):
    def __init__(self, multiple: float = 1.0, round_mode: str = "half_to_even") -> None: ...

class RunEndEncodeOptions(FunctionOptions):
    def __init__(self, run_end_type: DataType = ...) -> None: ...

class ScalarAggregateOptions(FunctionOptions):
    def __init__(self, *, skip_nulls: bool = True, min_count: int = 1) -> None: ...

class ScatterOptions(FunctionOptions):
    def __init__(self, max_index: Any = -1) -> None: ...

class SearchSortedOptions(FunctionOptions):
    def __init__(self, side: Any = "left") -> None: ...

class SelectKOptions(FunctionOptions):
    def __init__(self, k: Any, sort_keys: Any) -> None: ...

class SetLookupOptions(FunctionOptions):
    def __init__(self, value_set: Array | ChunkedArray, *, skip_nulls: bool = False) -> None: ...

class SkewOptions(FunctionOptions):
    def __init__(self, *, skip_nulls: bool = True, biased: Any = True, min_count: int = 0) -> None: ...

class SliceOptions(FunctionOptions):
    def __init__(self, start: int, stop: int | None = None, step: int = 1) -> None: ...

class SortOptions(FunctionOptions):
    def __init__(self, sort_keys: Any = (), *, null_placement: Literal["at_start", "at_end"] | None = None) -> None: ...

class SplitOptions(FunctionOptions):
    def __init__(self, *, max_splits: int | None = None, reverse: bool = False) -> None: ...

class SplitPatternOptions(FunctionOptions):
    def __init__(self, pattern: str | bytes, *, max_splits: int | None = None, reverse: bool = False) -> None: ...

class StrftimeOptions(FunctionOptions):
    def __init__(self, format: str = "%Y-%m-%dT%H:%M:%S", locale: str = "C") -> None: ...

class StrptimeOptions(FunctionOptions):
    def __init__(self, format: str, unit: str, error_is_null: bool = False) -> None: ...

class StructFieldOptions(FunctionOptions):
    def __init__(self, indices: Any) -> None: ...

class TDigestOptions(FunctionOptions):
    def __init__(
        self, q: Any = 0.5, *, delta: Any = 100, buffer_size: Any = 500, skip_nulls: bool = True, min_count: int = 0
    ) -> None: ...

class TakeOptions(FunctionOptions):
    def __init__(self, *, boundscheck: bool = True) -> None: ...

class TrimOptions(FunctionOptions):
    def __init__(self, characters: str) -> None: ...

class Utf8NormalizeOptions(FunctionOptions):
    def __init__(self, form: str) -> None: ...

class VarianceOptions(FunctionOptions):
    def __init__(self, *, ddof: int = 0, skip_nulls: bool = True, min_count: int = 0) -> None: ...

class WeekOptions(FunctionOptions):
    def __init__(
        self,
        *,
        week_starts_monday: bool = True,
        count_from_zero: bool = False,
        first_week_is_fully_in_year: Any = False,
    ) -> None: ...

class WinsorizeOptions(FunctionOptions):
    def __init__(self, lower_limit: Any, upper_limit: Any) -> None: ...

class ZeroFillOptions(FunctionOptions):
    def __init__(self, width: int, padding: str = "0") -> None: ...
