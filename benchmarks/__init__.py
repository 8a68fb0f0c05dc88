"""Figures for every hot path: ratios measured in one run, and counts that no noise touches."""
