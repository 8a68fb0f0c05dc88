"""Members of JSON by name and by path. Results are loose strings: their type is left open."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import pyarrow as pa
from sqlglot import exp

from coprlake.errors import UsageError
from coprlake.language.functions.array_functions import array_function, by_distinct
from coprlake.language.functions.registry import function
from coprlake.language.functions.text.text_matching import constant_at
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import LOOSE

GROUP: Final = "text"
_STEP = re.compile(r"""\.([^.\[\]'"\s]+)|\[(-?[0-9]{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]|\."([^"]*)\"""")

Sql = Sequence[exp.Expression]
Path = tuple[str | int, ...]


def parse_path(path: str) -> Path:
    """Parse a path like ``$.a[0]['b c']`` into names and indexes.

    Raises:
        UsageError: the path is not valid.
    """
    rest = path.strip().removeprefix("$")
    if rest and not rest.startswith((".", "[")):
        rest = f".{rest}"
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            raise UsageError(f"{path!r} is not a valid JSON path; write it like $.name, $.list[0] or $['odd name']")
        name, index, *quoted = found.groups()
        steps.append(int(index) if index is not None else next(n for n in (name, *quoted) if n is not None))
        at = found.end()
    return tuple(steps)


def values_at(texts: pa.Array, path: Path = ()) -> pa.Array:
    """The value at a path in each text: strings without quotes, anything else as JSON; null if missing or null."""
    return by_distinct(texts, pa.string(), lambda text: value_at(text, path))


def value_at(text: str, path: Path) -> str | None:
    """The value at a path in one text; see `values_at`."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            is_there = isinstance(value, list) and -len(value) <= step < len(value)
            value = value[step] if is_there else None
    return _shown(value)


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    try:
        shown = value if type(value) is str else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return None
    return shown if shown.isascii() else shown.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refused)


def at_path(d: Dialect, text: exp.Expression, path: Path) -> exp.Expression:
    """The value at a path in a text, as SQL."""
    return d.apply(array_function(values_at, (pa.string(),), pa.string(), path=path), text)


@function(
    "jsonField(json: string, name: const string) -> string",
    "The member of a JSON object with this name: a string without its quotes, anything else "
    "as JSON. Null if there is none.",
    group=GROUP,
    example='data record(a = """{"user": "eve", "roles": ["x", "y"]}""") | fields x = jsonField(a, "user"), '
    'y = jsonField(a, "roles"), z = jsonField(a, "age")',
    gives=[{"x": "eve", "y": '["x","y"]', "z": None}],
    result=lambda types: LOOSE,
)
def _json_field(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return at_path(d, args[0], (str(constant_at(node, 1)),))


@function(
    "jsonPath(json: string, path: const string) -> string",
    "The value at a path of names and indexes, as in `$.list[0]['odd name']`; a negative "
    "index counts from the end. A string comes without its quotes, anything else as JSON. "
    "Null if there is none.",
    group=GROUP,
    example='data record(a = """{"user": {"roles": ["x", "y"]}}""") | fields x = jsonPath(a, "$.user.roles[-1]"), '
    'y = jsonPath(a, "$.user")',
    gives=[{"x": "y", "y": '{"roles":["x","y"]}'}],
    result=lambda types: LOOSE,
    checks={"path": parse_path},
)
def _json_path(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return at_path(d, args[0], parse_path(str(constant_at(node, 1))))
