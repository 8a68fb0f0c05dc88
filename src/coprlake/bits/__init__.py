"""Bits in memory: words, sequences, prefix codes and prefix sums."""
