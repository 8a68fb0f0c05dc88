"""Processes that are killed, and file operations that fail."""
