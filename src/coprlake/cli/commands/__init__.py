"""The commands, one module each, loaded on first use."""
