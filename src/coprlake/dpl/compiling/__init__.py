"""Compile the tree of a pattern into a program for the machine."""
