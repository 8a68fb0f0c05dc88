"""How the log of a table is read and written: commits, checkpoints, and what others may do with them."""
