"""Hostile queries: they must give a clear error, or the rows that a naive interpreter finds."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from coprlake.dpl.matching_texts import matches as pattern_matches
from coprlake.dpl.matching_texts import parse, parse_all
from coprlake.dpl.pattern import compile_pattern
from coprlake.predicate.build import regex, wildcard
from coprlake.predicate.deciding.matching import Matcher
from coprlake.predicate.expression import parse_expression, parse_query
from coprlake.predicate.narrowing.required import required_tokens
from coprlake.predicate.predicates import Predicate
from coprlake.query.limits import Limits
from coprlake.segment.sidecar import profile_of
from coprlake.testing.naive_search import matches
from coprlake.testing.torture.hostile_bytes.hostile import Case, Kind, log_lines, small_table
from coprlake.testing.torture.hostile_bytes.mutating import Edit, edited, random_text_edits

_EXPRESSIONS: Final = (
    'contains("refused") & ~term("error")',
    'level == "ERROR" | regex("id=[0-9a-f]{4}")',
    'wildcard("GET*index") & exists("source")',
    'prefix("2026") | suffix("ms") & phrase("took 7")',
    'one_of("source", ["web", "db"]) & number > 7',
    "refused -error",
    '"exact phrase" OR user',
)
_PATTERNS: Final = (
    "ISO8601:ts ' ' WORD:level ' ' LD:rest 'id=' HEXINT:id",
    "(INT:a | DOUBLE:b | IPADDR:c){1,3} LD*",
    "JSON{STRING:k, INT:n}:j EOL",
    "[a-z]{2,5}:w ' '? ARRAY{WORD:x ' '?}{0,4}:xs",
    "TIMESTAMP('yyyy-MM-dd''T''HH:mm:ss'):t DATA",
)
_REGEXES: Final = (
    "id=[0-9a-f]+",
    "(?i)refused|timeout",
    "^2026-\\d\\d",
    "took (\\d+) ms$",
    "(a|b)*c{2,5}",
    "\\bGET\\b.*html",
)
_WILDCARDS: Final = ("*refused*", "10.0.?.17", "\\*x*", "a*b*c*d", "??", "käse*")
_QUERIES: Final = (
    'fetch logs | filter loglevel == "ERROR" | summarize count(), by:{source}',
    'fetch logs | search "refused" | sort timestamp desc | limit 3 | fields content, source',
    "fetch logs | parse content, \"LD 'took ' INT:ms\" | summarize avg(ms), max(ms), by:{bin(timestamp, 1m)}",
    'data record(a = 1, b = "x"), record(a = -2.5, b = null) | fieldsAdd c = a * 2 + toLong("7")',
    'fetch logs | fieldsAdd l = splitString(content, " ") | expand l | dedup l | limit 5',
    "fetch logs | makeTimeseries count(), interval:1m",
    'fetch logs | filter matchesPhrase(content, "took 7") and not contains(content, "x") or isNull(source)',
)
_WORDS: Final = (
    *(
        "fetch",
        "logs",
        "|",
        "filter",
        "summarize",
        "count()",
        ",",
        "by:{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "==",
        "!=",
        "~",
        "&",
    ),
    *(
        '"',
        "'",
        "\\",
        "*",
        "?",
        "+",
        "{2,9}",
        "{0,60000}",
        "(?:",
        "(?P<a>",
        "[^",
        "\\p{L}",
        "\\x{110000}",
        "$",
        "^",
        "//",
    ),
    *(
        "null",
        "true",
        "1.5",
        "now()",
        "-5m",
        "record(",
        "array(",
        "lookup [",
        "join [",
        "if(",
        "else:",
        "in",
        "not",
        "or",
    ),
    *(
        "INT",
        "LD",
        "JSON",
        "EOL",
        ":a",
        "{1,}",
        "ENUM{'a'=1}",
        ">>",
        "<<",
        "!",
        "bin(timestamp, 1s)",
        "sum(",
        "parse content,",
    ),
)
_NAIVE_CHARACTERS: Final = 80
_ROWS: Final = [
    {"content": line, "source": f"host-{number % 3}", "level": line[21:25].strip(), "number": number}
    for number, line in enumerate([*log_lines(17, 12), "", "käse KÄSE *x* \\ \x00 a.b", "10.0.0.17 aabbccdd"])
]
_BATCH: Final = pa.RecordBatch.from_pylist(_ROWS)
_TEXTS: Final = _BATCH.column("content")
_PROFILE: Final = profile_of({"content": "winnowed", "source": "values", "level": "values"}, ["number"], True)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _check_predicate(predicate: Predicate) -> str | None:
    """Prune with the predicate, and compare its matches with plain Python."""
    required_tokens(predicate, _PROFILE)
    mask = [bool(found) for found in Matcher(predicate, _BATCH.schema).mask(_BATCH)]
    wanted = [matches(predicate, row) for row in _ROWS]
    return None if mask == wanted else f"found {mask}, expected {wanted}"


class Expressions(Kind):
    """Searches as users type them: expressions, words, regular expressions and wildcards."""

    name = "search text"
    weight = 45

    def prepare(self, folder: Path) -> None:
        """Nothing to prepare."""

    def case(self, chance: random.Random) -> Case:
        """A search with a few edits."""
        make, bases = chance.choice(
            ((parse_expression, _EXPRESSIONS), (parse_query, _EXPRESSIONS), (regex, _REGEXES), (wildcard, _WILDCARDS))
        )
        text = chance.choice(bases)
        edits = random_text_edits(chance, text, _WORDS)

        def check(some: Sequence[Edit]) -> str | None:
            changed = _text(edited(text.encode(), some))
            predicate = make(changed)
            # Python and RE2 differ on some patterns, and the oracle is slow on long ones
            if make is regex or "regex" in changed or len(changed) > _NAIVE_CHARACTERS:
                required_tokens(predicate, _PROFILE)
                Matcher(predicate, _BATCH.schema).mask(_BATCH)
                return None
            return _check_predicate(predicate)

        return Case(f"{make.__name__} {text}", edits, check)


class Patterns(Kind):
    """Patterns of `parse`."""

    name = "pattern"
    weight = 40

    def prepare(self, folder: Path) -> None:
        """Nothing to prepare."""

    def case(self, chance: random.Random) -> Case:
        """A pattern with a few edits."""
        text = chance.choice(_PATTERNS)
        edits = random_text_edits(chance, text, _WORDS)

        def check(some: Sequence[Edit]) -> str | None:
            pattern = compile_pattern(_text(edited(text.encode(), some)))
            found = parse(pattern, _TEXTS)
            if len(found) != len(_TEXTS) or len(parse_all(pattern, _TEXTS)) != len(_TEXTS):
                return "not a row for each text"
            found.validate(full=True)
            pattern_matches(pattern, _TEXTS)
            return None

        return Case(text, edits, check)


class Queries(Kind):
    """Queries of the language: they must compile, and some of them run, or be rejected."""

    name = "query"
    weight = 40

    def prepare(self, folder: Path) -> None:
        """Write a small table."""
        self._table = small_table(folder / "table", 21)

    def case(self, chance: random.Random) -> Case:
        """A query with a few edits."""
        text = chance.choice(_QUERIES)
        edits = random_text_edits(chance, text, _WORDS)
        runs = chance.random() < 0.3

        def check(some: Sequence[Edit]) -> str | None:
            query = self._table.query(
                _text(edited(text.encode(), some)), limits=Limits(seconds=10.0), now="2026-11-18T02:00:00Z"
            )
            if runs:
                query.arrow().validate(full=True)
            return None

        return Case(f"{text}{', run' if runs else ''}", edits, check)
