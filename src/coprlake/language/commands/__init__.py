"""The commands of the language."""
