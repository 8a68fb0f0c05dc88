"""The filters of `search`, `explain` and `delete` (text, field, level, time), and the predicate that they stand for."""

import functools
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from coprlake.cli.options.time_option import moment_option
from coprlake.cli.printing.notices import note_once
from coprlake.config import LEVELS, OTHER_LEVEL_NAMES
from coprlake.text.nearest_words import hint

if TYPE_CHECKING:
    from coprlake.predicate.predicates import Operator, Predicate
    from coprlake.query.searching import Search
    from coprlake.table import Table

TABLE_VARIABLE = "COPRLAKE_TABLE"
PLAIN = "plain"
"""TEXT is in the syntax of plain searches: words, "phrases", field:value, -not, *."""

_CONDITION = re.compile(r"\s*([^=!<>]+?)\s*(!=|<=|>=|==|=|<|>)(.*)", re.DOTALL)


class Condition(NamedTuple):
    """A condition of --where: a field, an operator and a value."""

    field: str
    operator: str
    text: str


@dataclass(frozen=True)
class SearchRequest:
    """The filters of a command line.

    Attributes:
        table: the path or URI of the table.
        texts: the texts to search for; without any, the other filters decide alone.
        kind: the name of the function in `coprlake.predicate.build`, or `PLAIN`.
    """

    table: str
    texts: tuple[str, ...]
    kind: str
    fields: tuple[str, ...]
    all_texts: bool
    invert_match: bool
    case_sensitive: bool
    conditions: tuple[Condition, ...]
    sources: tuple[str, ...]
    levels: tuple[str, ...]
    since: datetime | None
    until: datetime | None

    @property
    def is_everything(self) -> bool:
        """Whether there is no filter, so that every record matches."""
        return not (self.texts or self.conditions or self.sources or self.levels or self.since or self.until)

    @property
    def is_time_only(self) -> bool:
        """Whether the only filter is a time range."""
        return not (self.texts or self.conditions or self.sources or self.levels)

    def predicate(self, table: "Table | None" = None) -> "Predicate":
        """Build the predicate of all filters but the time range; without a table, texts name no fields."""
        from coprlake.predicate import predicates as p
        from coprlake.query.plain_search import level_names
        from coprlake.records import LOGLEVEL, SOURCE

        parts: list[Predicate] = []
        if self.texts:
            found = [self._find(text, table) for text in self.texts]
            wanted = _one(p.And if self.all_texts else p.Or, found)
            parts.append(p.Not(wanted) if self.invert_match else wanted)
        parts += [self._condition(condition) for condition in self.conditions]
        if self.sources:
            parts.append(_one(p.Or, [_like(SOURCE, source, self.case_sensitive) for source in self.sources]))
        if self.levels:
            parts.append(
                p.OneOf(LOGLEVEL, tuple(dict.fromkeys(name for level in self.levels for name in level_names(level))))
            )
        return _one(p.And, parts)

    def search(self, table: "Table", **options: Any) -> "Search":
        """Search the table, with further options of `Table.search`."""
        return table.search(self.predicate(table), since=self.since, until=self.until, **options)

    def _fields(self) -> Sequence[str]:
        from coprlake.predicate.predicates import ANY_VALUE

        return self.fields or (ANY_VALUE,)

    def _find(self, text: str, table: "Table | None") -> "Predicate":
        from coprlake.predicate import build
        from coprlake.predicate import predicates as p

        if self.kind != PLAIN:
            find = getattr(build, self.kind)
            return _one(p.Or, [find(text, field, case_sensitive=self.case_sensitive) for field in self._fields()])
        from coprlake.query.plain_search import NO_FIELDS, plain_search

        fields = (lambda: NO_FIELDS) if table is None else table.fields
        found = plain_search(text, fields, within=self._fields(), case_sensitive=self.case_sensitive)
        for text in found.notes if table is not None else ():
            note_once(text)
        return found.predicate

    def _condition(self, condition: Condition) -> "Predicate":
        from coprlake.predicate import predicates as p
        from coprlake.query.plain_search import typed_value

        if condition.operator in ("<", "<=", ">", ">="):
            return p.Compare(condition.field, cast("Operator", condition.operator), typed_value(condition.text))
        equal = p.Equals(condition.field, condition.text, self.case_sensitive)
        return p.Not(equal) if condition.operator == "!=" else equal


def _one(kind: Callable[[tuple["Predicate", ...]], "Predicate"], parts: list["Predicate"]) -> "Predicate":
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def _like(field: str, text: str, case_sensitive: bool) -> "Predicate":
    """Match the whole value; ``*`` matches any characters, and ``?`` one."""
    from coprlake.predicate import predicates as p

    if not re.search(r"[*?]", text):
        return p.Equals(field, text, case_sensitive)
    pattern = "".join({"*": ".*", "?": "."}.get(letter) or re.escape(letter) for letter in text)
    return p.Regex(rf"(?s)\A{pattern}\z", field, case_sensitive)


def _conditions(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> tuple[Condition, ...]:
    found = []
    for text in given:
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise click.BadParameter(
                f"{text!r} is not a valid condition; expected FIELD=VALUE, or != < <= > >= instead of =",
                ctx,
                param,
            )
        found.append(Condition(match[1], match[2], match[3]))
    return tuple(found)


def _levels(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    for level in given:
        name = level.rstrip("+").upper()
        if level.endswith("+") and OTHER_LEVEL_NAMES.get(name, name) not in LEVELS:
            known = hint(name, [*LEVELS, *OTHER_LEVEL_NAMES])
            raise click.BadParameter(f"{level!r}: + needs one of {', '.join(LEVELS)} before it{known}", ctx, param)
    return tuple(given)


class _Arguments(NamedTuple):
    texts: tuple[str, ...]
    table: str


def _arguments(positional: Sequence[str], texts: Sequence[str], table: str | None) -> _Arguments:
    """Tell the text from the table, as the help of `search` describes."""
    fallback = table or os.environ.get(TABLE_VARIABLE) or None
    most = (0 if texts else 1) + (0 if table else 1)
    if len(positional) > most:
        raise click.UsageError(
            f"expected {_expected(bool(texts), bool(table))}, found {' '.join(map(repr, positional))}"
        )
    if len(positional) == 2:
        _check_order(*positional)
    if not texts and positional and (len(positional) == 2 or fallback):
        texts, positional = positional[:1], positional[1:]
    found = positional[0] if positional else fallback
    if not found:
        raise click.UsageError(f"no table given; name it after the text, with --table, or in {TABLE_VARIABLE}")
    return _Arguments(tuple(texts), found)


def _check_order(text: str, table: str) -> None:
    """Reject a table that comes before the text."""
    if is_local_table(text) and "://" not in table and not Path(table).exists():
        right = shlex.join(["coprlake", click.get_current_context().info_name or "search", table, text])
        raise click.UsageError(f"{text} is a table and {table} is not; the text comes before the table: {right}")


def is_local_table(path: str | Path) -> bool:
    """Whether a path is a Delta table on a local disk."""
    try:
        return Path(path, "_delta_log").is_dir()
    except (OSError, ValueError):  # any text can be searched for, however long
        return False


def _expected(has_texts: bool, has_table: bool) -> str:
    if has_texts:
        return "no argument with -e and --table" if has_table else "only TABLE with -e"
    return "only TEXT with --table" if has_table else "at most TEXT and TABLE"


def _kind(flag: str, short: str | None, kind: str, text: str) -> Callable[[Any], Any]:
    names = [name for name in (short, flag) if name]
    return click.option(*names, "kind", flag_value=kind, default=None, help=text)


def table_argument(function: Any) -> Any:
    """Add the argument TABLE to a command that takes no text."""
    return click.argument("table", type=click.Path(), envvar=TABLE_VARIABLE)(function)


_OPTIONS = [
    click.argument("positional", nargs=-1, metavar="[TEXT] [TABLE]", type=click.Path()),
    click.option(
        "-t",
        "--table",
        "table",
        metavar="TABLE",
        type=click.Path(),
        help="The table; the only argument is then TEXT.",
    ),
    click.option(
        "-e",
        "--text",
        "texts",
        multiple=True,
        metavar="TEXT",
        help="Text to search for; the only argument is then TABLE. Repeat to match any of several.",
    ),
    _kind("--contains", "-F", "contains", "Match TEXT as it is, anywhere, blanks and all."),
    _kind(
        "--word",
        "-w",
        "term",
        "Match TEXT as a whole term: what is next to it is of another kind (alphanumeric, punctuation, blank).",
    ),
    _kind(
        "--phrase",
        None,
        "phrase",
        "Match TEXT as whole words (letters, digits, underscores); * at either end matches part of a word.",
    ),
    _kind("--prefix", None, "prefix", "Match fields that begin with TEXT."),
    _kind("--suffix", None, "suffix", "Match fields that end with TEXT."),
    _kind("--wildcard", None, "wildcard", "Treat * in TEXT as any characters, and ? as any one character."),
    _kind("--regex", "-E", "regex", "Treat TEXT as a regular expression (RE2 syntax); ^ and $ match at each line."),
    click.option("--all", "all_texts", is_flag=True, help="Require all texts given with -e, not just one."),
    click.option("-v", "--invert-match", is_flag=True, help="Select records that do not match the text."),
    click.option(
        "-s/-i",
        "--case-sensitive/--ignore-case",
        "case_sensitive",
        default=False,
        help="Match ASCII letters case-sensitively, or regardless of case, the default.",
    ),
    click.option(
        "-f",
        "--field",
        "fields",
        multiple=True,
        metavar="NAME",
        help="Search this column or attribute instead of every value of a record. Repeat to search several.",
    ),
    click.option("--all-fields", is_flag=True, help="Search all text of a record, its source and level too."),
    click.option(
        "--where",
        "conditions",
        multiple=True,
        metavar="CONDITION",
        callback=_conditions,
        help="Require FIELD=VALUE; also != < <= > >=, which compare numbers and ISO times. Repeat to require several.",
    ),
    click.option(
        "--source",
        "sources",
        multiple=True,
        metavar="SOURCE",
        help="Select records of this source; * and ? are wildcards. Repeat to select several.",
    ),
    click.option(
        "--level",
        "levels",
        multiple=True,
        metavar="LEVEL",
        callback=_levels,
        help="Select records of this log level; warn+ means WARN and above. Repeat to select several.",
    ),
    click.option(
        "--since",
        type=moment_option,
        metavar="TIME",
        help="Start of the time range: ISO 8601 (UTC by default), 2h or 7d (ago), now-2h, today, yesterday.",
    ),
    click.option("--until", type=moment_option, metavar="TIME", help="End of the time range, exclusive."),
]


def filter_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the filters to a command, passed to it as one argument, `asked`."""

    @functools.wraps(function)
    def with_filter(**given: Any) -> Any:
        texts, table = _arguments(given.pop("positional"), given.pop("texts"), given.pop("table"))
        if given.pop("all_fields"):
            if given["fields"]:
                raise click.UsageError("--field and --all-fields contradict each other")
            from coprlake.predicate.predicates import ALL_FIELDS

            given["fields"] = (ALL_FIELDS,)
        if given["since"] and given["until"] and given["since"] >= given["until"]:
            raise click.UsageError("--since is not before --until, so nothing can match")
        given["kind"] = given["kind"] or PLAIN
        own = {
            field.name: given.pop(field.name) for field in fields(SearchRequest) if field.name not in ("table", "texts")
        }
        return function(asked=SearchRequest(table=table, texts=texts, **own), **given)

    decorated: Callable[..., Any] = with_filter
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
