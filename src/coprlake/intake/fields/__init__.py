"""What every record has: its timestamp, level, source and content, wherever the log keeps them."""
