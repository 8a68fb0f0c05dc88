"""What may stand at a place in a query, for the Tab key."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coprlake.cli.shell.command_list import brief, commands, parameters, sources
from coprlake.cli.shell.query_words import Word, meant, words

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
_ORDERS = ("\\q", "\\h", "\\fields", "\\limit", "\\engine", "\\timing")
_AGGREGATING = ("summarize", "makeTimeseries")
_BUILT_IN = ("now", "record")


class Proposal(NamedTuple):
    """A word that would fit.

    Attributes:
        text: to be written.
        start: how many characters before the cursor it replaces.
        about: what it is.
    """

    text: str
    start: int
    about: str


@dataclass
class Vocabulary:
    """What can be completed.

    Attributes:
        fields: of the table, with their types.
        attributes: keys that were seen.
        values: of some fields.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    attributes: Sequence[str] = ()
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)


def proposals(text: str, vocabulary: Vocabulary) -> list[Proposal]:
    """What may stand behind this text, or finish its last word."""
    stripped = text.lstrip()
    if stripped.startswith("\\"):
        return _order(stripped)
    if stripped.lower().startswith(("help ", "\\h ")):
        return _starting(
            stripped.split(None, 1)[1] if " " in stripped.strip() else "", [*commands(), *_functions()], ""
        )
    if stripped.lower().startswith("explain "):
        text = stripped[len("explain ") :]
    found = words(text)
    last = found[-1] if found else None
    if last is not None and last.kind == "comment" and not text.endswith("\n"):
        return []
    if last is not None and last.kind == "string" and not _is_closed(last.text):
        return _value(last.text, meant(found[:-1]), vocabulary)
    typed = last.text if last is not None and last.kind == "name" else ""
    if last is not None and last.kind == "quoted" and not _is_closed(last.text):
        typed = last.text
    before = meant(found[:-1] if typed else found)
    return _word(typed, before, vocabulary)


def _is_closed(text: str) -> bool:
    quote = '"""' if text.startswith('"""') else text[0]
    return len(text) >= 2 * len(quote) and text.endswith(quote) and not text[:-1].endswith("\\")


def _order(text: str) -> list[Proposal]:
    order, space, value = text.partition(" ")
    if not space:
        return _starting(order, _ORDERS, "")
    choices = {"\\engine": ("duckdb", "spark"), "\\timing": ("on", "off"), "\\h": (*commands(), *_functions())}
    return _starting(value.strip(), choices.get(order, ()), "")


def _starting(typed: str, known: Iterable[str], about: str, behind: str = "") -> list[Proposal]:
    low = typed.lower()
    return [Proposal(name + behind, len(typed), about) for name in known if name.lower().startswith(low)]


def _value(typed: str, before: list[Word], vocabulary: Vocabulary) -> list[Proposal]:
    """A value in quotes behind a field whose values are known."""
    if typed.startswith('"""'):
        return []
    operators = ("=", "!", "<", ">", "~", ",", "(", "{")
    names = [word.text for word in reversed(before[-12:]) if word.kind == "name" or word.text not in operators]
    if not before or before[-1].text not in operators:
        return []
    name = next((name for name in names if name in vocabulary.values), None)
    values = vocabulary.values.get(name or "", ())
    part = typed[1:].lower()
    return [Proposal(f'"{value}"', len(typed), "") for value in values if value.lower().startswith(part)]


def _word(typed: str, before: list[Word], vocabulary: Vocabulary) -> list[Proposal]:
    previous = before[-1].text if before else ""
    if not before or previous == "[":
        found = _starting(typed, sources(), "command")
        return found + (_starting(typed, ("explain", "help", "exit"), "shell") if not before else [])
    if previous == "|":
        return [
            Proposal(name, len(typed), brief(info.doc))
            for name, info in commands().items()
            if not info.is_source and name.lower().startswith(typed.lower())
        ]
    command = _command(before)
    if command in ("fetch", "describe") and previous.lower() == command:
        return _starting(typed, ("logs",), "the table")
    if before[-1].kind in ("name", "number", "string", "quoted") and not _is_operator(previous):
        return _starting(typed, ("and", "or", "not", "in", "asc", "desc"), "") if typed else []
    found = []
    if previous == "," or previous.lower() == command.lower():
        found += _starting(typed, parameters(command), "parameter", ":")
    if command not in ("fetch", "limit", "append"):
        call = _open_call(before)
        if call is not None and previous == ",":
            found += _starting(typed, _parameters(call), f"parameter of {call}", ":")
        found += _expression(typed, before, command, vocabulary)
    unique = {proposal.text: proposal for proposal in reversed(found)}
    return list(reversed(unique.values()))


def _is_operator(text: str) -> bool:
    return text.lower() in ("and", "or", "xor", "not", "in", "mod") or text.lower() in (
        name.lower() for name in commands()
    )


def _expression(typed: str, before: list[Word], command: str, vocabulary: Vocabulary) -> Iterator[Proposal]:
    """Fields and functions; in a command that aggregates the aggregations come first."""
    own = list(dict.fromkeys(_assigned(before)))
    plain = typed.removeprefix("`")
    fields = {
        **dict.fromkeys(own, "of the query"),
        **vocabulary.fields,
        **dict.fromkeys(vocabulary.attributes, "attribute"),
    }
    named = [
        Proposal(_written(name), len(typed), about)
        for name, about in fields.items()
        if name.lower().startswith(plain.lower())
    ]
    if typed.startswith("`"):
        yield from named
        return
    functions = {f"{name}{'(' if _takes_arguments(name) else '()'}": kind for name, kind in _functions().items()}
    aggregates = _starting(typed, (name for name, is_aggregate in functions.items() if is_aggregate), "aggregation")
    others = _starting(typed, (name for name, is_aggregate in functions.items() if not is_aggregate), "function")
    if command in _AGGREGATING and not _is_in_group(before) and _open_call(before) is None:
        yield from aggregates
        yield from named
    else:
        yield from named
    yield from others


def _written(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _command(before: list[Word]) -> str:
    """The command that the place belongs to."""
    depth = 0
    for place in range(len(before) - 1, -1, -1):
        text = before[place].text
        if text in ")]}":
            depth += 1
        elif text in "([{":
            if depth == 0 and text == "[":
                return _spelled(before[place + 1].text) if place + 1 < len(before) else ""
            depth = max(0, depth - 1)
        elif text == "|" and depth == 0 and place + 1 < len(before):
            return _spelled(before[place + 1].text)
    return _spelled(before[0].text)


def _spelled(name: str) -> str:
    return next((known for known in commands() if known.lower() == name.lower()), name)


def _open_call(before: list[Word]) -> str | None:
    """The function whose parenthesis is open."""
    depth = 0
    for place in range(len(before) - 1, 0, -1):
        text = before[place].text
        if text == ")":
            depth += 1
        elif text == "(":
            if depth == 0:
                return before[place - 1].text if before[place - 1].kind == "name" else None
            depth -= 1
        elif text == "|" and depth == 0:
            return None
    return None


def _is_in_group(before: list[Word]) -> bool:
    texts = [word.text for word in before]
    return texts.count("{") > texts.count("}")


def _assigned(before: list[Word]) -> Iterator[str]:
    """Names that the query has given itself: ``n = count()``."""
    for word, behind, beyond in zip(before, before[1:], [*before[2:], Word("sign", "", 0)], strict=False):
        if word.kind == "name" and behind.text == "=" and beyond.text != "=":
            yield word.text


def _functions() -> dict[str, bool]:
    """All functions that can be named, and whether they aggregate."""
    from coprlake.language.functions.catalog import FUNCTIONS

    known = {function.name: function.is_aggregate for function in FUNCTIONS.values() if function.group}
    return dict(sorted({**known, **dict.fromkeys(_BUILT_IN, False)}.items(), key=lambda item: item[0].lower()))


def _takes_arguments(name: str) -> bool:
    from coprlake.language.functions.catalog import FUNCTIONS

    known = FUNCTIONS.get(name.lower())
    return bool(known.parameters) if known is not None else name != "now"


def _parameters(function: str) -> list[str]:
    from coprlake.language.functions.catalog import FUNCTIONS

    known = FUNCTIONS.get(function.lower())
    return [] if known is None else [parameter.name for parameter in known.parameters if parameter.is_optional]
