"""Finds the matching records, puts them in order, and reports what it took."""
