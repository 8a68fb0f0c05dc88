"""One module for each log format, and how a format is recognized."""
