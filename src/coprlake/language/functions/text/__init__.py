"""Functions over text."""
