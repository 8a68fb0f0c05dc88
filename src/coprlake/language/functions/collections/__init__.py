"""Functions over many values: arrays, JSON, and the records of a group."""
