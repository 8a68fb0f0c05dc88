"""The command line: ``coprlake``."""
