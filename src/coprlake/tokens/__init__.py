"""How text is split into tokens (paper 5.1.1)."""
