"""Which files hold no text: programs, pictures, databases. They are passed over, as grep and ripgrep do."""

import codecs
from typing import Final

from coprlake.intake.options import ReadOptions

_MAGICS: Final = {
    b"\x7fELF": "a program",
    b"MZ\x90\x00": "a program",
    b"\xca\xfe\xba\xbe": "a program",
    b"\x89PNG\r\n\x1a\n": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF87a": "a picture",
    b"GIF89a": "a picture",
    b"%PDF-": "a PDF document",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an office document",
    b"SQLite format 3\x00": "a SQLite database",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive, which is not read",
    b"Rar!\x1a\x07": "a RAR archive, which is not read",
    b"\x1f\x9d": "compressed by compress, which is not read",
    b"OggS\x00": "audio or video",
    b"ID3\x03": "audio or video",
    b"ID3\x04": "audio or video",
    b"wOF2": "a font",
    b"wOFF": "a font",
    b"Obj\x01": "an Avro file, which is not read",
    b"ORC\n": "an ORC file, which is not read",
    b"ARROW1\x00\x00": "an Arrow file, which is not read",
}
"""The first bytes of files that need have no zero byte, or that are better called by their name."""

_CONTROLS: Final = bytes(byte for byte in range(1, 32) if byte not in b"\t\n\v\f\r\b\x07\x1b") + b"\x7f"
_MOST_CONTROLS: Final = 0.03
_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF8)


def why_binary(head: bytes, options: ReadOptions) -> str | None:
    """What a file is that begins so, if it is not text; None if it is, or if it is to be read all the same.

    Text is what has a mark of UTF-16 or UTF-8, or is said to have an encoding with zero bytes. Binary is what begins as
    well-known formats do, has a zero byte in its first 64 KiB, or has many control characters and is not UTF-8.
    """
    if options.text or not head or head.startswith(_MARKS):
        return None
    known = next((name for magic, name in _MAGICS.items() if head.startswith(magic)), None)
    if known is not None:
        return known
    encoding = codecs.lookup(options.encoding).name
    if encoding.startswith(("utf-16", "utf-32", "utf-7")):
        return None
    if 0 in head:
        if len(head) >= 8 and head.count(0, 0, 200) * 3 > len(head[:200]) and b"\0\0" not in head[:200]:
            return "binary, or UTF-16 without a mark (then --encoding utf-16-le or utf-16-be reads it)"
        return "binary"
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls <= _MOST_CONTROLS * len(head):
        return None
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except ValueError:
        return "binary"
    return None
