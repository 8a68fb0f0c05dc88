"""Parse and plan queries, and translate them for two engines."""
