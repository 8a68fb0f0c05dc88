"""The options of ``.option(name, value)``: names, types and meanings; unknown options are errors."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from coprlake.config import RULES, SEGMENT_BYTES, RuleSet
from coprlake.errors import UsageError
from coprlake.predicate.expression import parse_query
from coprlake.predicate.narrowing.claims import Exact
from coprlake.predicate.predicates import EVERYTHING
from coprlake.query.options import SearchOptions
from coprlake.query.planning import FOREVER
from coprlake.query.time_bounds import microseconds
from coprlake.text.nearest_words import nearest
from coprlake.tokens.rules import rule_set

SHARE_BYTES: Final = 32 * 1024 * 1024
"""Compressed data that one task reads: about 300 MB of logs, a third of a second."""

_NO_PUSHDOWN: Final = (
    "the option pushdown was removed: Spark reuses a read that was planned with a filter for reads without it, and so "
    "lost records; to prune, put the search into the option query, or call coprlake.spark.search"
)

SPARKS_OWN: Final = frozenset({"path", "checkpointlocation", "queryname", "outputmode", "triggertype"})


@dataclass(frozen=True)
class ReadSettings:
    """Options of ``spark.read.format("coprlake")``.

    Attributes:
        path: the table.
        query: text that the content contains, or an expression such as ``term("refused") & ~equals("loglevel",
            "debug")``.
        since: only records from this time on, in ISO 8601.
        until: only records before this time.
        share_bytes: compressed data that one task reads.
        use_sketches: false to scan; the result is the same.
    """

    path: str
    query: str = ""
    since: str | None = None
    until: str | None = None
    share_bytes: int = SHARE_BYTES
    use_sketches: bool = True

    def sought(self) -> Exact:
        """The predicate to search for."""
        return Exact(parse_query(self.query) if self.query else EVERYTHING)

    def search_options(self) -> SearchOptions:
        """The options of the search."""
        since, until = microseconds(self.since, FOREVER[0]), microseconds(self.until, FOREVER[1])
        return SearchOptions(since=since, until=until, threads=1, strict=False, use_sketches=self.use_sketches)


@dataclass(frozen=True)
class WriteSettings:
    """Options of ``df.write.format("coprlake")`` and ``df.writeStream.format("coprlake")``.

    Attributes:
        path: the table; created if it does not exist.
        partition_by: comma-separated columns by which a new table is partitioned, such as ``day``; none by default.
        grams: fields of a new table, besides the content, to index for searches inside words.
        rules: how text is split into tokens in a new table: ``winnowed`` or ``paper``.
        segment_bytes: raw size at which a segment is sealed.
        application: the name under which the table records a stream's batches; by default the id of the query, from
            its checkpoint.
    """

    path: str
    partition_by: str = ""
    grams: str = ""
    rules: RuleSet = RULES
    segment_bytes: int = SEGMENT_BYTES
    application: str = ""


def read_settings(options: Mapping[str, str]) -> ReadSettings:
    """Parse the options of a read.

    Raises:
        UsageError: an option is unknown, or its value is not valid.
    """
    for given, value in options.items():
        if given.lower() == "pushdown" and _typed(given, value, bool):
            raise UsageError(_NO_PUSHDOWN)
    left = {given: value for given, value in options.items() if given.lower() != "pushdown"}
    return ReadSettings(**_values(left, ReadSettings))


def write_settings(options: Mapping[str, str]) -> WriteSettings:
    """Parse the options of a write.

    Raises:
        UsageError: an option is unknown, or its value is not valid.
    """
    return WriteSettings(**_values(options, WriteSettings))


def _values(options: Mapping[str, str], kind: type[ReadSettings] | type[WriteSettings]) -> dict[str, Any]:
    known = {field.name.replace("_", ""): field for field in fields(kind)}
    found: dict[str, Any] = {}
    for given, value in options.items():
        name = given.lower().replace("_", "")  # Spark's options ignore case: shareBytes is share_bytes
        if name in known:
            found[known[name].name] = _typed(given, value, known[name].type)
        elif name not in SPARKS_OWN and not name.startswith("spark."):
            raise UsageError(_unknown(given, [field.name for field in known.values()]))
    if not found.get("path"):
        raise UsageError('no table is named; use .load("/path/of/table") or .option("path", ...)')
    return found


def _unknown(given: str, names: list[str]) -> str:
    near = nearest(given, names)
    hint = f"did you mean {near}?" if near else f"the options are {', '.join(names)}"
    return f"the data source coprlake has no option {given}; {hint}"


def _typed(name: str, value: str, kind: object) -> Any:
    if kind is bool:
        if value.lower() not in ("true", "false"):
            raise UsageError(f"option {name} is {value!r}; expected true or false")
        return value.lower() == "true"
    if kind is int:
        try:
            number = int(value)
        except ValueError as error:
            raise UsageError(f"option {name} is {value!r}; expected a number of bytes") from error
        if number < 1:
            raise UsageError(f"option {name} is {value}; expected 1 or more")
        return number
    return rule_set(value) if kind is RuleSet else value
