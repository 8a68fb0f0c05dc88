"""Functions over single values: numbers, nulls, addresses, and conversions between types."""
