"""How results, reports and notices look on a terminal and in a file."""
