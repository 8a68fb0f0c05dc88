"""Mutated files and queries, in child processes with limits."""
