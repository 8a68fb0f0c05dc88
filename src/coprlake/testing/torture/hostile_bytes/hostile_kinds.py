"""All kinds of hostile bytes; separate from the runner, which must not load what they need."""

from coprlake.testing.torture.hostile_bytes.hostile import Kind
from coprlake.testing.torture.hostile_bytes.hostile_files import DeltaLogs, ParquetFiles
from coprlake.testing.torture.hostile_bytes.hostile_logs import CompressedFiles, RawLogs
from coprlake.testing.torture.hostile_bytes.hostile_queries import Expressions, Patterns, Queries
from coprlake.testing.torture.hostile_bytes.hostile_sketches import Sidecars, Sketches


def all_kinds() -> list[Kind]:
    """One of each."""
    return [
        Sketches(),
        Sidecars(),
        ParquetFiles(),
        DeltaLogs(),
        RawLogs(),
        CompressedFiles(),
        Expressions(),
        Patterns(),
        Queries(),
    ]
