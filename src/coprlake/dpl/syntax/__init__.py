"""From the text of a pattern to its tree."""
