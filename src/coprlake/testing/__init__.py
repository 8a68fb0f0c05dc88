"""Oracles, strategies and data for testing coprlake, shipped for those who build on it."""
