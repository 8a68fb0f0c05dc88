"""Strings as they lie in memory, and the numbers, dates and words that are read from them."""
