"""Match patterns against text."""
