"""Mutated files and query texts, in child processes with limits."""
