"""The parser of the query language, made from its grammar once and kept in the user's cache.

To work out the tables of the parser takes 50 ms, to load them 5 ms. They are kept under a name that tells the grammar
and the version of Lark, so a cache that was made of something else is never read, and one that cannot be read or
written is done without.
"""

import hashlib
import marshal
import sys
from contextlib import suppress
from functools import lru_cache
from importlib import resources

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from coprlake.private_files import make_private, private_folder, read_private, replace_file


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
    """The parser of the cache; None if there is none, if it is damaged, or if others may have written it."""
    try:
        digest, _, data = read_private(private_folder() / name).partition(b"\n")
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
        folder = private_folder()
        make_private(folder)
        replace_file(folder / name, hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    return made
