"""Parse the text of a pattern into a tree.

A matcher is ``[lookaround] MATCHER [(configuration)] [quantifier] [?] [:name]``. Matchers are separated by blanks or
commas. ``|`` separates alternatives and binds less tightly than a sequence. Macros are expanded where they are used.
"""

import re
from dataclasses import replace
from typing import Final

from coprlake.dpl.syntax.configuring import configured, read_options
from coprlake.dpl.syntax.matcher_names import MATCHERS, SILENT, WITH_BODY, nearest
from coprlake.dpl.syntax.pattern_scanner import Scanner
from coprlake.dpl.syntax.tree import (
    MOST,
    MOST_DEPTH,
    MOST_NODES,
    MOST_PAIRS,
    MOST_PATTERN_BYTES,
    Array,
    Chars,
    Data,
    Enumeration,
    Group,
    Json,
    Literal,
    Matcher,
    Node,
    Pairs,
    Sequence,
)
from coprlake.errors import PatternError

_LOOKS: Final = ("!>>", "!<<", ">>", "<<")
_COUNTED: Final = (Literal, Chars, Data, Group, Array, Pairs)
"""Matchers that take a quantifier in braces; for all others ``*`` means optional."""
_JSON_MEMBERS: Final = "a matcher and the name of a member, such as STRING:name"


class _Reader:
    def __init__(self, text: str) -> None:
        self.scanner = Scanner(text)
        self.macros: dict[str, tuple[Sequence, ...]] = {}
        self.depth = 0
        self.node_count = 0

    def pattern(self) -> Group:
        """Read the whole text: macro definitions, then the pattern."""
        scanner = self.scanner
        scanner.skip_gap()
        while scanner.looking_at(r"\$\w+\s*="):
            self._macro()
        alternatives = self._alternatives("")
        scanner.takes(";")
        scanner.skip_gap()
        if scanner.peek():
            raise scanner.error("a matcher")
        return Group(alternatives)

    def _macro(self) -> None:
        scanner = self.scanner
        scanner.at += 1
        name = scanner.word("the name of a macro")
        scanner.take("=", "'='")
        self.macros[name] = self._alternatives(";")
        scanner.take(";", "';' at the end of a macro")
        scanner.skip_gap()

    def _alternatives(self, closing: str) -> tuple[Sequence, ...]:
        """Read alternatives up to the closing mark, but not the mark."""
        scanner = self.scanner
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise PatternError(f"groups are nested deeper than {MOST_DEPTH}", scanner.at)
        out: list[Sequence] = []
        nodes: list[Node] = []
        while True:
            scanner.skip_gap(commas=True)
            mark = scanner.peek()
            if mark in ("|", closing, ";", ")", "}", ""):
                if not nodes:
                    raise scanner.error("a matcher")
                out.append(tuple(nodes))
                nodes = []
                if not scanner.takes("|"):
                    break
            else:
                nodes += self._node()
        self.depth -= 1
        return tuple(out)

    def _body(self, close: str) -> tuple[Sequence, ...]:
        """Read the alternatives after an opening bracket, and the closing one."""
        alternatives = self._alternatives(close)
        self.scanner.take(close, f"a matcher or {close!r}")
        return alternatives

    def _node(self) -> Sequence:
        """Read a matcher with its lookaround, quantifier and export. A bare macro yields its whole sequence."""
        scanner = self.scanner
        start = scanner.at
        look = next((mark for mark in _LOOKS if scanner.takes(mark)), "")
        if look:
            scanner.skip_gap()
        at = scanner.at
        matcher, least, most = self._matcher()
        is_macro = scanner.text[at] == "$"
        least, most = self._quantifier(matcher, least, most)
        optional = scanner.takes("?")
        export = None
        if scanner.looking_at(r"\s*:"):
            scanner.take(":", "':'")
            scanner.skip_gap()
            word = re.split(r"\W", scanner.text[at : at + 8])[0]
            if look or word in SILENT:
                raise PatternError(f"{'a lookaround' if look else word} exports nothing", scanner.at)
            export = scanner.name()
        if scanner.peek() in ("?", "*", "+"):
            raise PatternError(f"{scanner.peek()!r} must come before the name of the export", scanner.at)
        if is_macro and isinstance(matcher, Group):
            bare = export is None and (least, most) == (1, 1) and not look and not optional
            if bare and len(matcher.alternatives) == 1:
                return matcher.alternatives[0]
            exports = any(node.export for part in matcher.alternatives for node in _all_nodes(part))
            matcher = replace(matcher, is_record=export is not None and exports)
        return self._counted((Node(matcher, start, least, most, optional, export, look),))

    def _counted(self, nodes: Sequence) -> Sequence:
        self.node_count += len(nodes)
        if self.node_count > MOST_NODES:
            raise PatternError(f"the pattern has more than {MOST_NODES} matchers", self.scanner.at)
        return nodes

    def _matcher(self) -> tuple[Matcher, int, int]:
        """Read a matcher and return it with its default quantifier."""
        scanner = self.scanner
        mark = scanner.peek()
        if mark in ("'", '"'):
            at = scanner.at
            text = scanner.quoted()
            if not text:
                raise PatternError("a literal needs at least one character", at)
            return Literal(text), 1, 1
        if mark == "[":
            return Chars(scanner.char_set()), 1, 1
        if mark == "(":
            scanner.at += 1
            return self._with_separators(Group(self._body(")"))), 1, 1
        if mark == "$":
            return self._use_of_macro(), 1, 1
        at = scanner.at
        word = scanner.word("a matcher")
        if word in WITH_BODY:
            return self._with_body(word, at)
        if word.startswith("XML"):
            raise PatternError(f"{word} is not supported; read XML with LD, DATA and literals", at)
        if word not in MATCHERS:
            raise PatternError(f"unknown matcher {word}{nearest(word)}", at)
        matcher = MATCHERS[word]
        if isinstance(matcher, Json) and scanner.looking_at(r"\s*\{"):
            matcher = self._members(matcher, word)
        matcher = configured(scanner, word, matcher)
        return matcher, 1, MOST if isinstance(matcher, Data | Chars) else 1

    def _use_of_macro(self) -> Group:
        scanner = self.scanner
        at = scanner.at
        scanner.at += 1
        name = scanner.word("the name of a macro")
        if name not in self.macros:
            raise PatternError(f"unknown macro ${name}; define it first with ${name} = ...;", at)
        alternatives = self.macros[name]
        self._counted(tuple(node for sequence in alternatives for node in _all_nodes(sequence)))
        return Group(alternatives)

    def _with_separators(self, group: Group) -> Group:
        """Insert the separator: ``( a b )(fs=',')`` means ``( a ',' b )``."""
        options = read_options(self.scanner, {"fs"}, self._separator)
        if "fs" not in options:
            return group
        between = options["fs"]
        assert isinstance(between, Node)
        return Group(tuple(_joined(sequence, between) for sequence in group.alternatives))

    def _separator(self) -> Node:
        scanner = self.scanner
        at = scanner.at
        if scanner.takes("{"):
            return Node(Group(self._body("}")), at)
        if scanner.peek() not in ("'", '"'):
            raise scanner.error("a quoted string or matchers in braces")
        text = scanner.quoted()
        if not text:
            raise PatternError("a separator needs at least one character", at)
        return Node(Literal(text), at)

    def _with_body(self, word: str, at: int) -> tuple[Matcher, int, int]:
        scanner = self.scanner
        scanner.take("{", f"'{{' after {word}")
        if word == "ENUM":
            entries = self._entries()
            options = read_options(scanner, {"cis", "locale", "charset"})
            return Enumeration(entries, options.get("cis") is True), 1, 1
        alternatives = self._body("}")
        if word == "STRUCTURE":
            return Group(alternatives, is_record=True), 1, 1
        body = alternatives[0] if len(alternatives) == 1 else (Node(Group(alternatives), at),)
        read_options(scanner, {"locale", "charset"})
        if word == "KVP":
            return Pairs(body), 1, MOST_PAIRS
        if not scanner.looking_at(r"\{|\*|\+"):
            raise scanner.error("a quantifier of ARRAY, such as {1,10}")
        return Array(body), 1, 1

    def _entries(self) -> tuple[tuple[str, int], ...]:
        """The entries of an ENUM, longest first, so that the first that matches is the longest match."""
        scanner = self.scanner
        entries: dict[str, int] = {}
        while True:
            scanner.skip_gap(commas=True)
            if scanner.takes("}"):
                break
            if scanner.peek() not in ("'", '"'):
                raise scanner.error("a quoted string or '}'")
            text = scanner.quoted()
            scanner.take("=", "'=' and a number")
            scanner.skip_gap()
            at = scanner.at
            number = scanner.integer()
            if not -(1 << 63) <= number < 1 << 63:
                raise PatternError(f"{number} does not fit in 64 bits", at)
            entries.setdefault(text, number)
        if not entries:
            raise scanner.error("an entry such as 'A'=1", scanner.at - 1)
        return tuple(sorted(entries.items(), key=lambda entry: -len(entry[0].encode())))

    def _members(self, matcher: Json, word: str) -> Json:
        scanner = self.scanner
        at = scanner.at
        if matcher.form != "object":
            raise PatternError(f"{word} takes no braces; read its elements from the exported text", at)
        scanner.take("{", "'{'")
        (members, *others) = self._body("}")
        for node in members:
            if others or node.export is None or node.look:
                raise PatternError(f"expected {_JSON_MEMBERS}", node.offset)
        return replace(matcher, members=members)

    def _quantifier(self, matcher: Matcher, least: int, most: int) -> tuple[int, int]:
        scanner = self.scanner
        counted = isinstance(matcher, _COUNTED) and not (isinstance(matcher, Group) and matcher.is_record)
        if scanner.takes("*"):
            return 0, MOST if counted else 1
        if scanner.takes("+"):
            return 1, MOST if counted else 1
        if not scanner.looking_at(r"\s*\{"):
            return least, most
        scanner.skip_gap()
        at = scanner.at
        if not counted:
            raise PatternError("this matcher takes only the quantifiers * and +; put it in a group to use others", at)
        scanner.at += 1
        scanner.skip_gap()
        first = None if scanner.peek() == "," else scanner.integer()
        scanner.skip_gap()
        last = first
        if scanner.takes(","):
            scanner.skip_gap()
            last = MOST if scanner.peek() == "}" else scanner.integer()
        scanner.take("}", "'}' at the end of a quantifier")
        if last is None or not 0 <= (first or 0) <= last:
            raise PatternError("a quantifier must be {n}, {n,m}, {n,} or {,m}, with n at most m", at)
        if last > MOST or last < 1:
            raise PatternError(f"the upper bound of a quantifier must be between 1 and {MOST}", at)
        return first or 0, last


def _joined(sequence: Sequence, between: Node) -> Sequence:
    """The sequence with `between` inserted between neighbours."""
    return tuple(node for pair in sequence for node in (between, pair))[1:]


def _all_nodes(sequence: Sequence) -> list[Node]:
    """The nodes of a sequence, including nested ones."""
    out: list[Node] = []
    for node in sequence:
        out.append(node)
        matcher = node.matcher
        if isinstance(matcher, Group):
            out += [inner for part in matcher.alternatives for inner in _all_nodes(part)]
        elif isinstance(matcher, Array | Pairs):
            out += _all_nodes(matcher.body)
        elif isinstance(matcher, Json):
            out += _all_nodes(matcher.members or ())
    return out


def read_pattern(text: str) -> Group:
    """Parse a pattern into a tree; raises `PatternError`."""
    if len(text.encode("utf-8", "surrogatepass")) > MOST_PATTERN_BYTES:
        raise PatternError(f"a pattern may have at most {MOST_PATTERN_BYTES} bytes", 0)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PatternError("half of a surrogate pair is not a valid character", error.start) from error
    return _Reader(text).pattern()
