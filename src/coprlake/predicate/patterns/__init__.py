"""Regular expressions and wildcards: how they are read, and which literals every match contains."""
