"""The parser of the query language, made from its grammar once and kept in the user's cache.

To work out the tables of the parser takes 50 ms, to load them 5 ms. They are kept under a name that tells the grammar
and the version of Lark, so a cache that was made of something else is never read, and one that cannot be read or
written is done without.
"""

import hashlib
import marshal
import os
import sys
import tempfile
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from coprlake.config import cache_folder


@lru_cache(maxsize=1)
def parser() -> Lark:
    """The parser of queries."""
    grammar = resources.files("coprlake.language").joinpath("grammar.lark").read_text("utf-8")
    name = f"grammar-{_key(grammar)}.tables"
    return _kept(name) or _made(grammar, name)


def _key(grammar: str) -> str:
    """Whatever the tables depend on, as a name."""
    told = "\n".join((lark.__version__, sys.version, str(marshal.version), grammar))
    return hashlib.sha256(told.encode()).hexdigest()[:24]


def _kept(name: str) -> Lark | None:
    """The parser of the cache; None if there is none, or if it is damaged."""
    try:
        digest, _, data = (cache_folder() / name).read_bytes().partition(b"\n")
        if hashlib.sha256(data).hexdigest().encode() != digest:
            return None
        tables, memo = marshal.loads(data)
        found: Lark = Lark._load_from_dict(tables, memo)  # type: ignore[no-untyped-call]
    except Exception:  # whatever is wrong with it: the grammar is there
        return None
    return found


def _made(grammar: str, name: str) -> Lark:
    made = Lark(grammar, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False)
    with suppress(Exception):  # a folder that cannot be written to, a full disk, another Lark
        data = marshal.dumps(made.memo_serialize([TerminalDef, Rule]))
        _keep(cache_folder() / name, hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    return made


def _keep(file: Path, data: bytes) -> None:
    """Write a file of the cache whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=file.name, dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
