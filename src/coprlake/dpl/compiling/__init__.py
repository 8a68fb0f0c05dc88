"""From the tree of a pattern to the program that the machine runs."""
