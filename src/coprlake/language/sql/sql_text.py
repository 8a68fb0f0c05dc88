"""From a tree of SQL to its text.

The generator of sqlglot calls itself for every level of the tree. A long pipeline nests deeper than Python lets calls
nest, so the inner parts of a deep tree are rendered first.
"""

from typing import Final

from sqlglot import exp
from sqlglot.generator import Generator

_LEVELS: Final = 40
"""About as many levels of the tree are rendered in one go; each takes a few nested calls."""
_SELF_CONTAINED: Final = (exp.Subquery, exp.Paren, exp.Case, exp.Anonymous)
"""What reads the same wherever it is, and whose text nobody looks into."""


def rendered(generator: Generator, tree: exp.Expression) -> str:
    """``generator.generate(tree)``, however deep the tree is."""
    tree = tree.copy()
    for part in reversed(_inner_parts(tree)):
        part.replace(exp.Var(this=generator.sql(part)))
    return generator.generate(tree, copy=False)


def _inner_parts(tree: exp.Expression) -> list[exp.Expression]:
    """The nodes at which a deep tree is cut, each before those inside it."""
    found: list[exp.Expression] = []
    pending = [(tree, 0)]
    while pending:
        node, level = pending.pop()
        if level >= _LEVELS and isinstance(node, _SELF_CONTAINED):
            found.append(node)
            level = 0
        pending += [(child, level + 1) for child in node.iter_expressions()]
    return found
