"""Signature bits: they tell a token that was added from one that was not (paper 3.3).

A minimal perfect hash maps any key to some index, even one that was never added. We keep the low bits of the
fingerprint that belongs at each index; a key whose bits differ was never added. With ``b`` bits, one absent key in
``2 ** b`` passes. All 32 bits are the fingerprint itself: sketches that keep them can be merged (paper 4.3).
"""

import numpy as np

from coprlake.bits.sequence import low_mask, read_bits, words_for, write_bits
from coprlake.kernel import U32Array, U64Array, kernel, long_kernel


@kernel
def fits_signature(signatures: U64Array, signature_bits: int, index: int, fingerprint: np.uint32) -> bool:
    """Whether the signature at `index` is that of the fingerprint."""
    stored = read_bits(signatures, index * signature_bits, signature_bits)
    return stored == np.uint64(fingerprint) & low_mask(signature_bits)


@kernel
def decode_signatures(signatures: U64Array, signature_bits: int, out: U32Array) -> None:
    """``out[i] =`` the signature of the token with minimal hash ``i``."""
    for i in range(len(out)):
        out[i] = np.uint32(read_bits(signatures, i * signature_bits, signature_bits))


@long_kernel
def _encode(fingerprints: U32Array, signature_bits: int, out: U64Array) -> None:
    for i in range(len(fingerprints)):
        write_bits(out, i * signature_bits, signature_bits, np.uint64(fingerprints[i]))


def build_signatures(fingerprints: U32Array, signature_bits: int) -> U64Array:
    """The signatures of the fingerprints, which are in the order of their minimal hashes."""
    out = np.zeros(words_for(len(fingerprints) * signature_bits), np.uint64)
    _encode(fingerprints, signature_bits, out)
    return out
