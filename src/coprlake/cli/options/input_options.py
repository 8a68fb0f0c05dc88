"""The options of `ingest` and `stream` that say how logs are read."""

import functools
from collections.abc import Callable
from typing import Any

import click

from coprlake.cli.options.choices import NearestChoice

_FORMATS = ("auto", "text", "ndjson", "csv", "syslog", "access", "parquet")
_OTHER_NAMES = {
    **{"json": "ndjson", "jsonl": "ndjson", "log": "text", "plain": "text", "tsv": "csv"},
    **{"apache": "access", "nginx": "access", "combined": "access", "common": "access"},
}

_OPTIONS = {
    "format": click.option(
        "--format",
        "format",
        type=NearestChoice(_FORMATS, _OTHER_NAMES),
        default="auto",
        show_default=True,
        help="Format of the logs; auto detects it from the beginning of each file.",
    ),
    "zone": click.option(
        "--zone", default="UTC", show_default=True, help="Time zone of timestamps without one: Europe/Vienna, +02:00."
    ),
    "year": click.option(
        "--year",
        type=click.IntRange(1970, 2200),
        metavar="YEAR",
        help="Year of timestamps without one. Defaults to the year in which the file was modified.",
    ),
    "source": click.option(
        "--source", metavar="NAME", help="Source of all records. Defaults to the file's path as given."
    ),
    "multiline": click.option(
        "--multiline",
        metavar="REGEX",
        help="Start a record at each line that matches REGEX; an empty REGEX makes every line a record.",
    ),
    "encoding": click.option("--encoding", default="utf-8", show_default=True, help="Encoding of text files."),
    "content_key": click.option("--content-key", metavar="KEY", help="Key or column with the log line."),
    "timestamp_key": click.option("--timestamp-key", metavar="KEY", help="Key or column with the time."),
    "level_key": click.option("--level-key", metavar="KEY", help="Key or column with the log level."),
    "source_key": click.option("--source-key", metavar="KEY", help="Key or column with the source."),
    "max_expansion": click.option(
        "--max-expansion",
        type=click.IntRange(min=0),
        default=250,
        show_default=True,
        metavar="TIMES",
        help="Stop reading a compressed file or archive once it expands to more than 1 GiB and TIMES its size; "
        "0 for no limit.",
    ),
    "text": click.option(
        "-a", "--text", is_flag=True, help="Also read files that look binary, as text. They are passed over otherwise."
    ),
    "attributes": click.option(
        "--attributes", is_flag=True, help="Store all other keys in one map instead of typed columns."
    ),
}
"""The options, by their names in `ReadOptions`."""


follow_option = click.option(
    "-L",
    "--follow-links",
    is_flag=True,
    help="Follow symbolic links that lead out of the folder. Links on the command line are always followed.",
)
"""The option of commands that read folders."""


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command, passed to it as one argument, `reading`."""

    @functools.wraps(function)
    def with_reading(*arguments: Any, **given: Any) -> Any:
        from coprlake.intake.options import ReadOptions

        own = {name: given.pop(name) for name in _OPTIONS}
        return function(*arguments, reading=ReadOptions(**own), **given)

    decorated: Callable[..., Any] = with_reading
    for option in reversed(_OPTIONS.values()):
        decorated = option(decorated)
    return decorated
