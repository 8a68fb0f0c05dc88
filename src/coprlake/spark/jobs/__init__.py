"""Work that the driver distributes among tasks: ingest, index, optimize, search, query."""
