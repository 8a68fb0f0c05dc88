"""``coprlake generate``: realistic log lines for experiments."""

import click

from coprlake.cli.printing import figures
from coprlake.cli.printing.notices import color_option, note

_CHUNK_LINES = 65_536


@click.command(short_help="Write realistic log lines for experiments.")
@click.option(
    "--megabytes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MB",
    help="Stop at about this size (1 MB = 1e6 bytes) instead of the size of the set.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Seed of the random numbers: the same seed gives the same lines.",
)
@click.option(
    "--set",
    "name",
    default="1M_generated",
    show_default=True,
    help="1M_generated (1 million lines from 3,234 sources) or 5M_generated (7 million from 60,580).",
)
@click.option(
    "--samples",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Use runs of lines from the *.log files in this folder.",
)
@click.option(
    "--out",
    type=click.Path(),
    default="-",
    metavar="FILE",
    help="File to write to; - for standard output, the default.",
)
@color_option
def generate(megabytes: float | None, seed: int, name: str, samples: str | None, out: str) -> None:
    """Write log lines that look like those of many applications, interleaved as a log server receives them."""
    from coprlake.cli.printing.search_output import destination
    from coprlake.generator import generate as generate_logs

    logs = generate_logs(name, megabytes=megabytes, seed=seed, samples=samples)
    with destination(out) as file:
        for first in range(0, logs.line_count, _CHUNK_LINES):
            lines = logs.content.slice(first, _CHUNK_LINES).to_pylist()
            file.write(("\n".join(lines) + "\n").encode())
        file.flush()
    sources = figures.amount(logs.source_count, "source")
    note(f"{figures.amount(logs.line_count, 'line')} from {sources}, {figures.size(logs.raw_bytes)}")
