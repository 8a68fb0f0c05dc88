"""Hashes of the UTF-8 bytes of text, as lower-case hexadecimal digits."""

import hashlib
import zlib
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import xxhash
from sqlglot import exp

from coprlake.language.functions.array_functions import array_function, by_distinct
from coprlake.language.functions.registry import function
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect

GROUP: Final = "hash"

Sql = Sequence[exp.Expression]


def hashed(texts: pa.Array, name: str = "sha512") -> pa.Array:
    """The hash of each text by an algorithm of `hashlib`."""
    return by_distinct(
        texts, pa.string(), lambda text: hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()
    )


def checksums(texts: pa.Array) -> pa.Array:
    """The CRC-32 of each text."""
    return by_distinct(texts, pa.string(), lambda text: f"{zlib.crc32(text.encode()):08x}")


def xx_hashes(texts: pa.Array, bits: int = 64) -> pa.Array:
    """The xxHash of each text with seed 0."""
    digest = xxhash.xxh64_hexdigest if bits == 64 else xxhash.xxh32_hexdigest
    values = texts.cast(pa.binary()).to_pylist()  # hashing is faster than finding duplicates
    return pa.array([None if value is None else digest(value) for value in values], pa.string())


def _put(name: str, doc: str, gives: str, sql: "Callable[[Dialect, Apply, Sql], exp.Expression]") -> None:
    function(
        f"{name}(text: string) -> string",
        doc,
        group=GROUP,
        example=f'data record(a = "abc") | fields x = {name}(a)',
        gives=[{"x": gives}],
    )(sql)


_put(
    "hashMd5",
    "The MD5 hash of the text.",
    "900150983cd24fb0d6963f7d28e17f72",
    lambda d, node, args: d.call("md5", args[0]),
)
_put(
    "hashSha1",
    "The SHA-1 hash of the text.",
    "a9993e364706816aba3e25717850c26c9cd0d89d",
    lambda d, node, args: d.call("sha1", args[0]),
)
_put(
    "hashSha256",
    "The SHA-256 hash of the text.",
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    lambda d, node, args: d.call("sha2", args[0], exp.Literal.number(256)) if d.is_spark else d.call("sha256", args[0]),
)
_put(
    "hashSha512",
    "The SHA-512 hash of the text.",
    "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
    "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    lambda d, node, args: d.apply(array_function(hashed, (pa.string(),), pa.string(), name="sha512"), args[0]),
)
_put(
    "hashCrc32",
    "The CRC-32 checksum of the text.",
    "352441c2",
    lambda d, node, args: d.apply(array_function(checksums, (pa.string(),), pa.string()), args[0]),
)
_put(
    "hashXxHash32",
    "The 32-bit xxHash of the text, with seed 0.",
    "32d153ff",
    lambda d, node, args: d.apply(array_function(xx_hashes, (pa.string(),), pa.string(), bits=32), args[0]),
)
_put(
    "hashXxHash64",
    "The 64-bit xxHash of the text, with seed 0.",
    "44bc2cf5ad770999",
    lambda d, node, args: d.apply(array_function(xx_hashes, (pa.string(),), pa.string(), bits=64), args[0]),
)
