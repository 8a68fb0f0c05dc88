"""How the log of a table is read and written: commits, checkpoints, and the rules for other writers."""
