"""How a kernel becomes machine code: compiled by Numba, or loaded from a bundle without it."""
