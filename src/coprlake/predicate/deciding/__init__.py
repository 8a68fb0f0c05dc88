"""The exact answer: which records of a batch match."""
