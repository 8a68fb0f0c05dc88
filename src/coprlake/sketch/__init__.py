"""The COPR sketch: in which batches can a token occur (paper 3.2, 3.3, 4.1-4.4)."""
