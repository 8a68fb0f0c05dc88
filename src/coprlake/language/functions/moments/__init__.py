"""Functions over times and durations."""
