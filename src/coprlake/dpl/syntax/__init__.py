"""Parse the text of a pattern into a tree."""
