"""Options that several commands share, and what the program makes of them."""
