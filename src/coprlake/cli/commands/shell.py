"""``coprlake shell``: interactive queries with history, highlighting and completion."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from coprlake.cli.options.engine import Engine, engine_options
from coprlake.cli.options.filters import table_argument
from coprlake.cli.options.query_options import Terms, terms_options
from coprlake.cli.printing.notices import color_option, note

if TYPE_CHECKING:
    from coprlake.cli.shell.dialog import ShellSession


@click.command(
    short_help="Run queries interactively, with history and completion.",
    epilog="Without a terminal, reads queries separated by semicolons or blank lines, and exits with 1 if one failed.",
)
@table_argument
@terms_options
@engine_options("duckdb")
@color_option
@click.pass_context
def shell(ctx: click.Context, table: str, terms: Terms, engine: Engine) -> None:
    """Run queries on a table interactively.

    Enter runs the query if it is complete, and starts a new line if it is not; Alt-Enter always starts a new line. Tab
    completes commands, functions, fields and parameters. Ctrl-C stops a query, Ctrl-D exits. Type `help` for help with
    the language, and `explain QUERY` to see what a query does. The history is kept in
    $XDG_STATE_HOME/coprlake/history.
    """
    from coprlake.cli.options.table_argument import opened
    from coprlake.cli.shell.dialog import ROWS, Leave, ShellSession

    found = opened(table)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    session = ShellSession(found, replace(terms), engine, limit=ROWS if is_terminal else None, timing=is_terminal)
    try:
        if is_terminal:
            _talk(session)
        else:
            _read(session)
    except Leave:
        pass
    finally:
        session.close()
    if session.failures and not is_terminal:
        ctx.exit(1)


def _talk(session: "ShellSession") -> None:
    """Prompt for queries and run them until the user exits."""
    from coprlake.cli.shell.completing import Vocabulary
    from coprlake.cli.shell.prompt import learn, prompt_session

    vocabulary = Vocabulary()
    learn(vocabulary, session.table)
    prompt = prompt_session(vocabulary)
    note(f"{session.table.uri}\nfetch logs | ...   help for help, Ctrl-D to exit")
    while True:
        try:
            text = prompt.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        session.run(text)


def _read(session: "ShellSession") -> None:
    """Run the queries of standard input."""
    from coprlake.cli.shell.query_words import is_order, split

    data = sys.stdin.buffer.read().decode(errors="replace")
    for number, text in enumerate(split(data)):
        if number and not is_order(text):
            click.echo()
        session.run(text)
