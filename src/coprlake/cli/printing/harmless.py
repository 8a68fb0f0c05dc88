"""Text as a terminal may show it: names, keys and paths are written by others, and may hold what drives a terminal.

Everything that is printed for people goes through here: messages (`messages`), figures (`figures`), reports, and the
results of searches and queries where a terminal shows them.
"""

_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {127: 0x2421}
_CONTROLS |= dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)
_CONTROLS |= dict.fromkeys([0x2028, 0x2029, *range(0xD800, 0xE000)], 0xFFFD)
"""What could move the cursor, change colours or turn the line around, and the sign that stands for it: one for one."""

_JSON_CONTROLS = {code: f"\\u{code:04x}" for code in _CONTROLS if code >= 127}
"""What JSON allows inside of a string but a terminal should not get."""

_LINE_FEED = "\u240a"


def harmless(text: str) -> str:
    """The text as a terminal may show it: of the same length. Tabs and line feeds stay."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def one_line(text: str) -> str:
    """As `harmless`, with a sign for each line feed too: a name cannot pass for a message of ours."""
    return harmless(text).replace("\n", _LINE_FEED)


def harmless_json(text: str) -> str:
    """JSON that means the same and is safe to show."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_JSON_CONTROLS)
