"""The options that several commands share, and what they mean to the program."""
