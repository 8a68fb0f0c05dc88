"""The programs whose logs the generator writes, grouped by kind; all text is made up for this project."""
