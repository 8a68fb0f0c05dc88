"""States that a power loss may leave, rebuilt from recorded file operations."""
