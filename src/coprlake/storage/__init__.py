"""Which segments make up a table, and how that set changes without losing a record."""
