"""The functions of the language, and their SQL for each engine."""
