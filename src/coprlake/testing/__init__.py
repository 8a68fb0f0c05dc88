"""Oracles, strategies and data for testing coprlake and code built on it."""
