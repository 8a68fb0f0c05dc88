"""Writes docs/cli.md, the reference of the command line, from the help of each command.

Run it from the root of the repository: ``python -m scripts.make_cli_reference``. A test compares.
"""

from pathlib import Path

import click

from coprlake.cli.main import COMMANDS, cli

WIDTH = 100
TARGET = Path(__file__).parent.parent / "docs" / "cli.md"

INTRODUCTION = """\
# The command line

<!-- Made by scripts/make_cli_reference.py from the help of each command; a test compares. Change it there. -->

```console
$ coprlake ingest /var/log/myapp --into logs          # files, folders, globs, - for standard input
$ coprlake stream /var/spool/logs --into logs         # a folder that receives files; or --kafka HOST:PORT --topic T
$ coprlake search "connection refused" logs           # as grep: the text, then the table
$ coprlake search -w 10.32.4.73 logs --since 2h --level warn+
$ coprlake search -e timeout -e refused logs -C 3     # any of several texts, with what stood around
$ coprlake search --where 'status>=500' logs --json | jq .content
$ coprlake explain "connection refused" logs          # what was skipped, what was read, and why
$ coprlake query 'fetch logs, from:-2h | summarize count(), by:{loglevel}' logs
$ coprlake query 'fetch logs | makeTimeseries count(), by:{source}' logs     # a sparkline for each source
$ coprlake shell logs                                 # the same, interactively: history, completion, explain
```

## Text and table

`search`, `explain` and `delete` take `[TEXT] [TABLE]`:

| given | means |
|---|---|
| `TEXT TABLE` | the text in that table |
| `-e TEXT TABLE` | the same; `-e` again for any of several texts, `--all` for all of them |
| one argument, and `--table` or `COPRLAKE_TABLE` | the text, in that table |
| one argument alone | the table: all records that the other filters leave |

A table is a folder or a URI of an object store. A folder of Parquet files that others wrote can be searched too, and
`coprlake index` makes that fast.

## Queries

`query` and `shell` take the [query language](language.md). The query comes as an argument, from `--file`, or from
standard input with `-`; values from elsewhere go in by `--set name=value` and are `$name` in the query. On a terminal
the result is a table of at most 1,000 rows, with a sparkline for each time series; `-o json`, `-o csv`, `--out
found.parquet` give everything. `--timeout`, `--max-rows` and `--memory` are limits, `--explain` shows the syntax tree,
what was pruned, the SQL, and what each stage cost. An empty result is no error: the exit code is 0.

## Engines

`ingest` and `stream` run on Spark: on all cores of this machine, or with `--master` (`COPRLAKE_MASTER`) on a cluster;
`--conf` takes any of Spark's settings. `--engine local` (`COPRLAKE_ENGINE`) ingests in one process, without Java.
`search`, `query`, `optimize` and `index` run in one process unless told `--engine spark`. What a cluster needs:
[spark.md](spark.md).

## Output

| `-o` | what | when |
|---|---|---|
| `table` | time, level, source and content side by side, the match in colour | the default on a terminal |
| `lines` | the log line alone, byte by byte as it was read | the default in a pipe and with `--out` |
| `json` | one JSON object a line; what a record does not have is left out | `--json`, `--out x.json` |
| `csv` | with a header; attributes as JSON | `--out x.csv` |
| `parquet` | with the types of the table | `--out x.parquet` |

Results are written while the search goes on, without a cap. By time (the default) those wait that an earlier or later
one may still come before: with logs that came in their order that is little, with `--order any` nothing. Context
(`-C`) ends with its segment, which is a part of a day. An incomplete result (a data file that cannot be read) exits
with 2.
A file of `--out` is there when it is complete, or not at all. On a terminal control characters are shown as signs
(`␛`), so that no log line can change the screen; everywhere else the bytes are left alone. Contexts (`-C`) are parted
by `--`; in `json`, `csv` and `parquet` the columns `match` and `group` say what belongs together. Times are printed in
UTC.

## Times

`--since` is included, `--until` is not. Both take ISO 8601 (`2026-11-16`, `2026-11-16T03:55`, with a zone or in UTC;
also `2026-11` and `2026`), a span that is counted back from now (`45s`, `30m`, `2h`, `7d`, `1w`, `1h30m`), `now`,
`today`, `yesterday`, `tomorrow`, these with a span (`now-2h`, `today+6h`), and seconds since 1970 (`@1763264100`).

## Exit codes and messages

| code | means |
|---|---|
| 0 | done; for `search`: something matches |
| 1 | for `search`: nothing matches; `verify`, `index`, `ingest`: something is wrong; `delete`: not confirmed |
| 2 | an error, or a command line that makes no sense; nothing was changed |
| 130 | interrupted by Ctrl-C |

Results go to stdout, everything else to stderr: errors as `coprlake: error: ...`, damaged or missing files as
`coprlake: warning: ...` (fatal with `--strict`). A pipe that closes early, as with `| head`, ends the command quietly.

| variable | means |
|---|---|
| `COPRLAKE_TABLE` | the table when the command line names none |
| `COPRLAKE_DEBUG` | `1` shows where an error comes from |
| `NO_COLOR` | no colours unless `--color always` |
"""


def help_of(command: click.Command, *names: str) -> str:
    """What ``--help`` prints, for a terminal of a fixed width."""
    context: click.Context | None = None
    for name in names:
        owner = cli if context is None else command
        settings = {**cli.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
        context = click.Context(owner, parent=context, info_name=name, **settings)
    assert context is not None
    return command.get_help(context)


def reference() -> str:
    """The whole document."""
    parts = [INTRODUCTION, f"## coprlake\n\n```text\n{help_of(cli, 'coprlake')}\n```\n"]
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        parts.append(f"## coprlake {name}\n\n```text\n{help_of(command, 'coprlake', name)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(reference())
