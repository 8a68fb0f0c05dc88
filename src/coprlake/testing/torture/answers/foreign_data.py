"""Random tables with every type of Parquet and Delta, and with column names of other writers.

Values come from small pools, so that searches match, and each stretch of rows has its own words, so that sketches have
something to rule out.
"""

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from coprlake.records import ATTRIBUTES, ATTRIBUTES_TYPE, CONTENT, LOGLEVEL, SOURCE, TIMESTAMP, TIMESTAMP_TYPE

ID: Final = "id"
"""The number of the row: the only column that every random table has."""
EXTREME_TIMES: Final = 0.12
"""The share of tables that have times outside the years 1 to 9999."""
_START_US: Final = 1_717_200_000_000_000
_DAY_US: Final = 86_400_000_000
_UNITS_A_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_WIDE_US: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The first and the last microsecond that Python's datetime can hold."""

WORDS: Final = (  # noqa: SIM905
    "error Error ERROR user login 10.0.0.1 10.0.0.17 a_b x=1 42 404 it's % * \\ ? [x] a-b-c foo.bar.baz "
    "user@example.com 2024-06-01T00:00:00Z true NULL null -0.5 1e3 ab AB aB a b c \" ' ` ; -- $ {k:v} "
    # case pairs outside ASCII: none of them may fold, neither here nor in an engine
    "straße STRASSE ẞ İstanbul istanbul ıI ſs ss \u212aelvin kelvin ÄÖ äö Ω ω ΜΆΪΟΣ µ μ 漢字 😀 e\u0301 é"
).split(" ")
_SEPARATORS: Final = (" ", " ", " ", "  ", ".", "-", ":", "/", "_", "@", "=", ",", "\t", "\n", "\r\n", "\0", "|", "")
_INVALID: Final = (b"\x80", b"\xff\xfe", b"\xc3", b"\xe6\xbc", b"\xf0\x9f\x98", b"\xed\xa0\x80")
_SOURCES: Final = ("web", "Web", "db", "db-1", "it's", "a=b", "x/y", "ß", "", "10.0.0.1", "%41", "a b")
_LEVELS: Final = ("INFO", "info", "Warn", "ERROR", "")
_KEYS: Final = ("userapp", "region", "source", "loglevel", "status", "ID", "a b", "k.e.y", "", "ключ", "content", "num")
ODD_NAMES: Final = (
    "userapp", "region", "status", "num", "two words", "dotted.name", 'quo"te', "it's", "eq=ual", "naïve", "名前",
    "back`tick", "Level", "LEVEL", "Content", "select", "count", "100", "a,b", "per%cent", "_hidden", "x" * 60, "$v",
    "semi;colon", "[list]", "{brace}", "tab\tname", "*", "null", "true", "date", "MixedCase", "day", "match", "group",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A column type and how to draw its values, as ``pyarrow.array`` takes them."""

    type: pa.DataType
    draw: Callable[[random.Random], Any]


class _Words:
    """The words of one table: common ones, and some that occur only in a stretch of its rows."""

    def __init__(self, chance: random.Random) -> None:
        self.common = chance.sample(WORDS, 12)
        self.rare = [_new_word(chance) for _ in range(40)]
        self.stretch = 0

    def word(self, chance: random.Random) -> str:
        at = (self.stretch * 5) % len(self.rare)
        return chance.choice(self.common) if chance.random() < 0.5 else chance.choice(self.rare[at : at + 5])


def _new_word(chance: random.Random) -> str:
    letters = chance.choice(["abcdefgh", "abAB01", "0123456789", "xyzXYZ_-.", "äöüßÄÖ", "0123456789abcdef"])
    return "".join(chance.choices(letters, k=chance.choice([1, 2, 3, 3, 4, 5, 8, 12, 20])))


def _text(chance: random.Random, words: _Words, most: int = 7) -> str:
    if chance.random() < 0.06:
        return ""
    pieces = []
    for _ in range(chance.randint(1, most)):
        pieces.append(words.word(chance))
        pieces.append(chance.choice(_SEPARATORS))
    return "".join(pieces[: chance.choice([-1, None])])


def _moment(chance: random.Random, *, unit: str, extreme: bool) -> int:
    """A time as a number of units; with `extreme`, also outside the years 1 to 9999."""
    scale = _UNITS_A_SECOND[unit]
    if chance.random() < 0.15:
        if extreme:
            beyond = min(_WIDE_US[1] * scale // 10**6 + 1, 2**63 - 2)
            return chance.choice([-(2**63) + 1, 2**63 - 1, -(2**62), 2**62, beyond, 0, -1])
        if unit != "ns":
            return chance.choice(_WIDE_US) * scale // 10**6
        return chance.choice([-1, 0, 1, 9_223_372_036_000_000_000, -9_223_372_036_000_000_000])
    micros = _START_US + chance.randrange(-3 * _DAY_US, 3 * _DAY_US, chance.choice([1, 1000, 10**6, _DAY_US // 4]))
    return micros * scale // 10**6


def _float(chance: random.Random) -> float:
    special = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, 0.1, 404.0, -1.5]
    return chance.choice(special) if chance.random() < 0.6 else chance.uniform(-1000, 1000)


def _whole(bits: int, signed: bool) -> Callable[[random.Random], int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    edges = [low, high, low + 1, high - 1, 0, 1, 42, 100]
    return lambda chance: (
        chance.choice(edges) if chance.random() < 0.5 else chance.randint(max(low, -99), min(high, 99))
    )


def _decimal(precision: int, scale: int) -> Callable[[random.Random], Decimal]:
    def draw(chance: random.Random) -> Decimal:
        digits = chance.randint(1, precision)
        number = chance.choice([10**digits - 1, chance.randrange(10**digits), 0, 1, 10**scale, 42 * 10**scale])
        sign = chance.choice(["", "-"])
        return Decimal(f"{sign}{number % 10**precision}E-{scale}")  # `scaleb` would round to 28 digits

    return draw


def _number_kinds() -> list[Kind]:
    signed = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
    unsigned = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
    kinds = [Kind(kind, _whole(bits, True)) for bits, kind in signed.items()]
    kinds += [Kind(kind, _whole(bits, False)) for bits, kind in unsigned.items()]
    kinds += [Kind(pa.float64(), _float), Kind(pa.float32(), _narrow_float), Kind(pa.float16(), _half_float)]
    for precision, scale in ((9, 2), (18, 0), (18, 6), (38, 10), (38, 0), (5, 5)):
        kinds.append(Kind(pa.decimal128(precision, scale), _decimal(precision, scale)))
    return kinds


def _narrow_float(chance: random.Random) -> float:
    number = _float(chance)
    return float(np.float32(number)) if abs(number) < 3e38 or number != number else number * float("inf")


def _half_float(chance: random.Random) -> Any:
    return np.float16(chance.choice([0.0, -0.0, 1.5, 404.0, float("nan"), float("inf"), -2.25]))


def _time_kinds(*, extreme: bool) -> list[Kind]:
    kinds = [
        Kind(pa.timestamp(unit, zone), partial(_moment, unit=unit, extreme=extreme))
        for unit in _UNITS_A_SECOND
        for zone in (None, "UTC", "Europe/Vienna", "+05:30")
    ]
    days = (-(2**31) + 1, 2**31 - 1) if extreme else (-719_162, 2_932_896)
    kinds.append(Kind(pa.date32(), lambda c: c.choice([*days, 0, -1, 19_874, 19_875, 19_876])))
    kinds.append(Kind(pa.date64(), lambda c: 86_400_000 * c.choice([-719_162, 2_932_896, 0, -1, 19_874, 19_875])))
    kinds.append(Kind(pa.time32("s"), lambda c: c.choice([0, 86_399, c.randrange(86_400)])))
    kinds.append(Kind(pa.time32("ms"), lambda c: c.choice([0, 86_399_999, c.randrange(86_400_000)])))
    kinds.append(Kind(pa.time64("us"), lambda c: c.randrange(_DAY_US)))
    kinds.append(Kind(pa.time64("ns"), lambda c: c.randrange(_DAY_US) * 1000))
    kinds.append(Kind(pa.duration("us"), lambda c: c.choice([0, -1, 10**12])))
    return kinds


def _text_kinds(words: _Words) -> list[Kind]:
    def text(chance: random.Random) -> str:
        return _text(chance, words, 4)

    def data(chance: random.Random) -> bytes:
        return chance.choice([text(chance).encode(), struct.pack("<q", chance.getrandbits(60)), b"", *_INVALID])

    strings = [pa.string(), pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
    return [
        *(Kind(kind, text) for kind in strings),
        Kind(pa.binary(), data),
        Kind(pa.large_binary(), data),
        Kind(pa.binary(4), lambda c: c.choice([b"abcd", b"ABCD", b"a.b ", b"\x00\xff\x80z", data(c)[:4].ljust(4)])),
        Kind(pa.dictionary(pa.int8(), pa.large_string()), lambda c: c.choice(words.common)),
    ]


def _nested_kinds(words: _Words, leaves: Sequence[Kind], chance: random.Random) -> list[Kind]:
    def some(kind: Kind) -> Callable[[random.Random], Any]:
        return lambda c: None if c.random() < 0.15 else kind.draw(c)

    plain = [kind for kind in leaves if not pa.types.is_dictionary(kind.type)]
    text, other = Kind(pa.string(), lambda c: _text(c, words, 3)), chance.choice(plain)
    drawn, drawn_other = some(text), some(other)
    key = Kind(pa.string(), lambda c: c.choice([*_KEYS, words.word(c)]))
    entries: Callable[..., Any] = lambda item: lambda c: _pairs(c, key.draw, item)  # noqa: E731
    return [
        Kind(pa.list_(text.type), lambda c: [drawn(c) for _ in range(c.randint(0, 3))]),
        Kind(pa.large_list(other.type), lambda c: [drawn_other(c) for _ in range(c.randint(0, 3))]),
        Kind(pa.list_(other.type, 2), lambda c: [drawn_other(c), drawn_other(c)]),
        Kind(pa.struct([("a", text.type), ("B c", other.type)]), lambda c: {"a": drawn(c), "B c": drawn_other(c)}),
        Kind(pa.map_(pa.string(), pa.string()), entries(drawn)),
        Kind(pa.map_(pa.string(), other.type), entries(drawn_other)),
        Kind(pa.map_(pa.int32(), pa.string()), lambda c: [(n, drawn(c)) for n in range(c.randint(0, 3))]),
        Kind(
            pa.list_(pa.struct([("x", text.type), ("y", pa.list_(text.type))])),
            lambda c: [{"x": drawn(c), "y": [drawn(c)] if c.random() < 0.7 else None} for _ in range(c.randint(0, 2))],
        ),
        Kind(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.string())))]), lambda c: {"m": [("k", [drawn(c)])]}),
    ]


def _pairs(chance: random.Random, key: Callable[[random.Random], str], item: Callable[[random.Random], Any]) -> Any:
    found = {key(chance): item(chance) for _ in range(chance.randint(0, 3))}  # some writers reject duplicates
    return list(found.items())


def _array(kind: Kind, words: _Words, count: int, chance: random.Random) -> pa.Array:
    nulls = chance.choice([0.0, 0.1, 0.1, 0.5, 1.0 if chance.random() < 0.2 else 0.3])
    values = []
    for number in range(count):
        words.stretch = number // 10
        values.append(None if chance.random() < nulls else kind.draw(chance))
    if pa.types.is_dictionary(kind.type):
        return pa.array(values, kind.type.value_type).dictionary_encode().cast(kind.type)
    return pa.array(values, kind.type)


def _invalid_text(column: pa.Array, chance: random.Random) -> pa.Array:
    """Insert invalid UTF-8 into some of the strings; Arrow does not check."""
    values = column.cast(pa.binary()).to_pylist()
    for number, value in enumerate(values):
        if value is not None and chance.random() < 0.2:
            at = chance.randint(0, len(value))
            values[number] = value[:at] + chance.choice(_INVALID) + value[at:]
    return pa.array(values, pa.binary()).view(pa.string())


def random_data(chance: random.Random, *, most_rows: int = 160) -> pa.Table:
    """A table of any shape, sometimes without rows."""
    count = 0 if chance.random() < 0.03 else chance.randint(1, most_rows)
    words = _Words(chance)
    extreme = chance.random() < EXTREME_TIMES
    leaves = [*_number_kinds(), *_time_kinds(extreme=extreme), *_text_kinds(words), Kind(pa.bool_(), _is_even)]
    nested = _nested_kinds(words, leaves, chance)
    columns: dict[str, pa.Array] = {ID: pa.array(range(count), pa.int64())}
    for name, kind in _own_kinds(words, chance, extreme=extreme).items():
        if chance.random() < 0.12:
            continue  # a table of another writer that lacks the column
        odd = chance.random() < 0.12
        columns[name] = _array(chance.choice([*leaves, *nested]) if odd else kind, words, count, chance)
    if chance.random() < 0.06 and CONTENT in columns and columns[CONTENT].type == pa.string():
        columns[CONTENT] = _invalid_text(columns[CONTENT], chance)
    for name in chance.sample(ODD_NAMES, chance.randint(0, 5)):
        if name.lower() in {known.lower() for known in columns}:
            continue
        kind = chance.choice(leaves if chance.random() < 0.65 else nested)
        columns[name] = _array(kind, words, count, chance) if chance.random() > 0.04 else pa.nulls(count)
    names = list(columns)
    if chance.random() < 0.5:
        chance.shuffle(names)
    return pa.table({name: columns[name] for name in names})


def _is_even(chance: random.Random) -> bool:
    return chance.random() < 0.5


def _own_kinds(words: _Words, chance: random.Random, *, extreme: bool) -> dict[str, Kind]:
    """Our own columns, as we would write them."""
    lines = chance.choice([3, 7, 12])
    number = Kind(pa.string(), lambda c: c.choice(["404", "4e2", "-1", "0.5", "+2", " 7", "x", "1_000", "NaN"]))
    text = Kind(pa.string(), lambda c: _text(c, words, 3))
    entry: Callable[[random.Random], Any] = lambda c: None if c.random() < 0.1 else c.choice([text, number]).draw(c)  # noqa: E731
    return {
        TIMESTAMP: Kind(TIMESTAMP_TYPE, lambda c: _moment(c, unit="us", extreme=extreme)),
        SOURCE: Kind(pa.string(), lambda c: c.choice(_SOURCES)),
        LOGLEVEL: Kind(pa.string(), lambda c: c.choice(_LEVELS)),
        CONTENT: Kind(pa.string(), lambda c: _text(c, words, lines)),
        ATTRIBUTES: Kind(ATTRIBUTES_TYPE, lambda c: _pairs(c, lambda d: d.choice(_KEYS), entry)),
    }
