"""The line that is typed into: its keys, colours, completion and history."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from coprlake.cli.shell.completing import Vocabulary, proposals
from coprlake.cli.shell.query_words import classes, is_complete

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples

    from coprlake.table import Table

PROMPT = "coprlake> "
CONTINUED = "       .. "
_STYLE = {
    "command": "bold ansiblue",
    "function": "ansicyan",
    "parameter": "ansiyellow",
    "keyword": "bold",
    "string": "ansigreen",
    "number": "ansimagenta",
    "variable": "ansired",
    "comment": "italic ansibrightblack",
    "prompt": "ansibrightblack",
}


def history_file() -> Path:
    """Where what was typed is kept: in the user's state folder."""
    return platformdirs.user_state_path("coprlake") / "history"


def _history() -> History:
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("ab"):
            pass
        path.chmod(0o600)  # queries name users, addresses and keys
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


class QueryLexer(Lexer):
    """Gives each word of a query its colour."""

    def lex_document(self, document: Document) -> "Callable[[int], StyleAndTextTuples]":
        """The colours, line by line."""
        lines: list[StyleAndTextTuples] = [[]]
        for kind, text in classes(document.text):
            for number, part in enumerate(text.split("\n")):
                if number:
                    lines.append([])
                lines[-1].append((f"class:{kind}", part))
        return lambda number: lines[number] if number < len(lines) else []


class QueryCompleter(Completer):
    """Completes commands, functions, fields and parameters."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """What fits at the cursor; while typing only what finishes a word."""
        for found in proposals(document.text_before_cursor, self._vocabulary):
            if found.start or complete_event.completion_requested:
                yield Completion(found.text, start_position=-found.start, display_meta=found.about)


def learn(vocabulary: Vocabulary, table: "Table") -> threading.Thread:
    """Look at a few records for attributes and values, beside everything else."""
    from coprlake.cli.shell.known_fields import attributes_seen, fields_of, values_seen
    from coprlake.errors import CoprlakeError

    vocabulary.fields = fields_of(table)

    def look() -> None:
        try:
            vocabulary.attributes = attributes_seen(table)
            vocabulary.values = values_seen(table)
        except (CoprlakeError, OSError):  # a query will say what is wrong
            return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    return thread


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        buffer: Buffer = event.current_buffer
        is_at_end = not buffer.document.text_after_cursor.strip()
        if (is_at_end or "\n" not in buffer.text) and is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=True)

    @keys.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=True)

    return keys


def prompt_session(vocabulary: Vocabulary, **options: Any) -> "PromptSession[str]":
    """What asks for the next query.

    Args:
        vocabulary: what can be completed.
        options: more for prompt_toolkit, such as an input for tests.
    """
    return PromptSession(
        [("class:prompt", PROMPT)],
        multiline=True,
        lexer=QueryLexer(),
        completer=QueryCompleter(vocabulary),
        complete_while_typing=True,
        complete_in_thread=True,
        history=_history(),
        auto_suggest=AutoSuggestFromHistory(),
        enable_open_in_editor=True,
        key_bindings=_keys(),
        prompt_continuation=[("class:prompt", CONTINUED)],
        style=Style.from_dict(_STYLE),
        include_default_pygments_style=False,
        **options,
    )
