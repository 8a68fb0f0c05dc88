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
$ coprlake stream /var/spool/logs --into logs         # new files of a folder; or --kafka HOST:PORT --topic T
$ coprlake search "connection refused" logs           # like grep: the text, then the table
$ coprlake search -w 10.32.4.73 logs --since 2h --level warn+
$ coprlake search -e timeout -e refused logs -C 3     # any of several texts, with context
$ coprlake search --where 'status>=500' logs --json | jq .content
$ coprlake search refused logs --follow               # new matches as they are committed
$ coprlake explain "connection refused" logs          # what was skipped, what was read, and why
$ coprlake query 'fetch logs, from:-2h | summarize count(), by:{loglevel}' logs
$ coprlake query 'fetch logs | makeTimeseries count(), by:{source}' logs     # a sparkline for each source
$ coprlake shell logs                                 # interactively, with history and completion
```

## Text and table

`search`, `explain` and `delete` take `[TEXT] [TABLE]`:

| given | means |
|---|---|
| `TEXT TABLE` | the text in that table |
| `-e TEXT TABLE` | the same; `-e` again for any of several texts, `--all` for all of them |
| one argument, and `--table` or `COPRLAKE_TABLE` | the text, in that table |
| one argument alone | the table: all records that pass the other filters |

A table is a folder or the URI of an object store. Folders of Parquet files that other programs wrote can be
searched too; `coprlake index` makes that fast.

## Queries

`query` and `shell` run the [query language](language.md). Pass the query as an argument, with `--file`, or with `-`
on standard input. Pass values with `--set name=value`, and refer to them as `$name` in the query. On a terminal,
the result is a table of at most 1,000 rows, with a sparkline for each time series; `-o json`, `-o csv` and `--out
found.parquet` give all rows. `--timeout`, `--max-rows` and `--memory` set limits. `--explain` shows the syntax
tree, what was pruned, the SQL, and the time of each stage. An empty result is not an error: the exit code is 0.

## Engines

`ingest` reads in this process or on Spark, whichever is faster: Spark takes some seconds to start, then reads on all
cores of this machine, so it pays off from about half a gigabyte of text on many cores, and a gigabyte on two.
Standard input, `--dry-run` and a machine without Java or PySpark need this process. A line on stderr says which
engine was chosen and why; `--quiet` omits it. `--master` (`COPRLAKE_MASTER`), `--conf` and `--jars` choose Spark,
`--engine` (`COPRLAKE_ENGINE`) either. `search`, `query`, `optimize` and `index` run in this process unless you ask
for Spark in one of these ways, where COPRLAKE_MASTER alone does not count. `stream` always runs on Spark.
For what a cluster needs, see [spark.md](spark.md).

## Output

| `-o` | what | when |
|---|---|---|
| `table` | time, level, source and content side by side, the match in colour | the default on a terminal |
| `lines` | the line of a text log, the object of a JSON log | the default in a pipe and with `--out` |
| `json` | one JSON object per line, without fields that are null | `--json`, `--out x.json` |
| `csv` | with a header; attributes as JSON | `--out x.csv` |
| `parquet` | with the column types of the table | `--out x.parquet` |

Results are written while the search runs, and their number is not limited. In order of time (the default), a result
waits until no other can precede it: briefly if logs arrived in order, and never with `--order any`. Context (`-C`)
ends at the end of a segment, which is part of a day. If a data file cannot be read, the result is incomplete, and
the exit code is 2.

The lines of `-o lines` are those of a text log in UTF-8, byte for byte, with four differences: a line ends in a line
feed alone, also where it ended in CR LF; a record does not end in blank lines; bytes that are not valid in the
encoding of the log are U+FFFD, and other encodings become UTF-8; a record beyond the size limit of intake is several.
A record of a JSON log is an object that equals the one that was read, with its keys in their order.

A file given with `--out` appears only once it is complete. On a terminal, control characters are shown as symbols
(`␛`), so that no log line can change the screen; everywhere else the bytes are unchanged. Groups of context are
separated by `--`; in `json`, `csv` and `parquet`, the columns `match` and `group` say what belongs together. Times
are in UTC, except in the `table` of a search on a terminal: those are local, with their offset, unless you add
`--utc`. What else a terminal gets (a pager, folded records) is in [searching.md](searching.md#on-a-terminal).

## Times

`--since` is inclusive, `--until` exclusive. Both accept ISO 8601 (`2026-11-16`, `2026-11-16T03:55`, in UTC unless a
zone is given; also `2026-11` and `2026`); a span, counted back from now (`45s`, `30m`, `2h`, `7d`, `1w`, `1h30m`);
`now`, `today`, `yesterday` and `tomorrow`, also with a span (`now-2h`, `today+6h`); and seconds since 1970
(`@1763264100`).

## Exit codes and messages

| code | means |
|---|---|
| 0 | success; for `search`: a record matches |
| 1 | for `search`: no record matches; `verify`, `index`, `ingest`: there are problems; `delete`: not confirmed |
| 2 | an error, or invalid arguments; nothing was changed |
| 130 | interrupted by Ctrl-C |

Results go to stdout, and everything else to stderr: all errors as `coprlake: error: ...`, damaged or missing files as
`coprlake: warning: ...` (fatal with `--strict`). If the pipe is closed early, as by `| head`, the command ends
quietly.

| variable | means |
|---|---|
| `COPRLAKE_TABLE` | the table, if the command line names none |
| `COPRLAKE_DEBUG` | `1` prints the traceback of an error |
| `COPRLAKE_PAGER`, `PAGER` | the pager of `search` on a terminal; empty or `cat` for none |
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
