"""The commands, a module each, loaded when a person types their name."""
