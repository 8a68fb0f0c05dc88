"""How logs are read: the options that `ingest` and `stream` share."""

import functools
from collections.abc import Callable
from typing import Any

import click

_FORMATS = ("auto", "text", "ndjson", "csv", "syslog", "access", "parquet")

_OPTIONS = {
    "format": click.option(
        "--format",
        "format",
        type=click.Choice(_FORMATS),
        default="auto",
        show_default=True,
        help="Of the logs; auto looks at the beginning of each file.",
    ),
    "zone": click.option(
        "--zone", default="UTC", show_default=True, help="Of timestamps that name none: Europe/Vienna, +02:00."
    ),
    "year": click.option(
        "--year",
        type=click.IntRange(1970, 2200),
        metavar="YEAR",
        help="Of timestamps that have none; by default that of the file.",
    ),
    "source": click.option(
        "--source", metavar="NAME", help="The source of all records; by default the path of the file."
    ),
    "multiline": click.option(
        "--multiline",
        metavar="REGEX",
        help="A record begins with a line that has this; empty to make each line a record.",
    ),
    "encoding": click.option("--encoding", default="utf-8", show_default=True, help="Of text."),
    "content_key": click.option("--content-key", metavar="KEY", help="The key or column that is the log line."),
    "timestamp_key": click.option("--timestamp-key", metavar="KEY", help="... that is the time."),
    "level_key": click.option("--level-key", metavar="KEY", help="... that is the level."),
    "source_key": click.option("--source-key", metavar="KEY", help="... that is the source."),
    "max_expansion": click.option(
        "--max-expansion",
        type=click.IntRange(min=0),
        default=250,
        show_default=True,
        metavar="TIMES",
        help="Stop reading a compressed file that expands to over 1 GiB and this many times its size; 0 for no limit.",
    ),
    "attributes": click.option(
        "--attributes", is_flag=True, help="Put all other keys into one map instead of typed columns."
    ),
}
"""By the names of `ReadOptions`."""


follow_option = click.option(
    "-L",
    "--follow-links",
    is_flag=True,
    help="Also follow symbolic links that lead out of a folder to be read; one that is named itself always is.",
)
"""For commands that read folders."""


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, and the function one argument for all of them: `reading`."""

    @functools.wraps(function)
    def with_reading(*arguments: Any, **given: Any) -> Any:
        from coprlake.intake.options import ReadOptions

        own = {name: given.pop(name) for name in _OPTIONS}
        return function(*arguments, reading=ReadOptions(**own), **given)

    decorated: Callable[..., Any] = with_reading
    for option in reversed(_OPTIONS.values()):
        decorated = option(decorated)
    return decorated
