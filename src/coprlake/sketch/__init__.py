"""The COPR sketch: which batches may contain a token (paper 3.2, 3.3, 4.1-4.4)."""
