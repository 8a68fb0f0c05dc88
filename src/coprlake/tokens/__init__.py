"""What is a token (paper 5.1.1)."""
