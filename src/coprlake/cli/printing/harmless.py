"""Makes text safe to show on a terminal: names, keys, paths and log lines may contain control sequences.

All text for people passes through here: messages (`notices`), figures (`figures`), reports, and the results of searches
and queries on a terminal.
"""

_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {127: 0x2421}
_CONTROLS |= dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)
_CONTROLS |= dict.fromkeys([0x2028, 0x2029, *range(0xD800, 0xE000)], 0xFFFD)
"""Characters that could move the cursor, change colours or reverse the line, and the visible one that replaces each."""

_JSON_CONTROLS = {code: f"\\u{code:04x}" for code in _CONTROLS if code >= 127}
"""Characters that JSON allows in a string but that must not reach a terminal."""

_LINE_FEED = "\u240a"


def harmless(text: str) -> str:
    """Replace control characters one for one; tabs and line feeds stay."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def one_line(text: str) -> str:
    """Like `harmless`, but also replace line feeds, so that a name cannot pass for one of our messages."""
    return harmless(text).replace("\n", _LINE_FEED)


def harmless_json(text: str) -> str:
    """Escape control characters in JSON; it means the same."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_JSON_CONTROLS)
