"""``coprlake generate``: realistic logs to try things with."""

import click

from coprlake.cli.printing import figures
from coprlake.cli.printing.notices import color_option, note

_CHUNK_LINES = 65_536


@click.command(short_help="Write realistic logs to try things with.")
@click.option(
    "--megabytes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MB",
    help="Stop near this size (1e6 bytes) instead of the set's own.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Equal seeds give equal bytes.")
@click.option(
    "--set",
    "name",
    default="1M_generated",
    show_default=True,
    help="1M_generated (1 million lines of 3,234 sources) or 5M_generated (7 million of 60,580).",
)
@click.option(
    "--samples",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Draw sequences of lines from the *.log files of this folder.",
)
@click.option(
    "--out",
    type=click.Path(),
    default="-",
    metavar="FILE",
    help="Where the lines go; - is standard output, the default.",
)
@color_option
def generate(megabytes: float | None, seed: int, name: str, samples: str | None, out: str) -> None:
    """Write a set of log lines that looks like those of many applications, shuffled as a log server gets them."""
    from coprlake.cli.printing.search_output import destination
    from coprlake.generator import generate as generate_logs

    logs = generate_logs(name, megabytes=megabytes, seed=seed, samples=samples)
    with destination(out) as file:
        for first in range(0, logs.line_count, _CHUNK_LINES):
            lines = logs.content.slice(first, _CHUNK_LINES).to_pylist()
            file.write(("\n".join(lines) + "\n").encode())
        file.flush()
    sources = figures.amount(logs.source_count, "source")
    note(f"{figures.amount(logs.line_count, 'line')} of {sources}, {figures.size(logs.raw_bytes)}")
