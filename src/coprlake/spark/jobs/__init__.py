"""Work that the driver shares out among tasks: ingest, index, optimize, search, query."""
