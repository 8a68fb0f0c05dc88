"""The README's table of figures, made from a run: ``python -m benchmarks.figures RUN.json``."""

import json
import sys
from pathlib import Path
from typing import Any


def sketch_table(run: dict[str, Any]) -> str:
    """What a newcomer wants to know of a run of `benchmarks.sketch`, as Markdown."""
    parts = ", ".join(
        f"{name.replace('_', ' ')} {bits:.1f}" for name, bits in run["bits_per_token"].items() if name != "total"
    )
    rows = {
        "size of the sketch": f"{run['overhead_percent']:.2f} % of raw",
        "bits a token": f"{run['bits_per_token']['total']:.1f} ({parts})",
        "index (tokenize + insert)": f"{run['index_to_zstd3_ratio']:.2f} x the time of zstd level 3",
        "seal": f"{run['seal_to_index_ratio']:.2f} x the time of indexing",
        "memory of the mutable sketch": (
            f"{run['peak_sketch_memory_bytes'] / 2**20:.1f} MiB of {run['memory_limit_bytes'] / 2**20:.0f} allowed, "
            f"{run['spill_count']} spills"
        ),
        "absent tokens looked up": f"{run['absent_probes_per_second'] / 1e6:.1f} million a second in a batch",
        "one token through the Python API": f"{run['single_probe_microseconds']:.1f} us",
        "absent tokens taken for present": (
            f"{100 * run['error_rate']:.3f} % (theory: {100 * run['error_rate_in_theory']:.3f} %)"
        ),
    }
    return "\n".join(["| what | figure |", "|---|---|", *(f"| {name} | {figure} |" for name, figure in rows.items())])


def main() -> int:
    """Print the table of the run that is named."""
    print(sketch_table(json.loads(Path(sys.argv[1]).read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
