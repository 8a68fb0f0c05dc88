"""How records are written, searched at once, and sealed into a data file with its sketch."""
