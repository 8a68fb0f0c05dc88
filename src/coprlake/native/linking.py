"""Links objects of LLVM into an image: position-independent code that works wherever it is loaded.

Only what kernels consist of is supported: ELF objects for x86-64 with code, constants and references relative to the
place of the reference. Anything else raises `UnsupportedObjectError`, and the kernel is left out of the bundle.
"""

import struct
from dataclasses import dataclass, field
from typing import Final

PAGE_BYTES: Final = 4096
TABLE: Final = "coprlake_table"
"""The symbol of the table of addresses that follows the code."""
EXTERNALS: Final = ("memcpy", "memmove", "memset", "memcmp", "bcmp", "pow", "exp2", "ldexp", "log2", "floor")
"""What objects may call of the C library."""

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QIIq")
_X86_64: Final = 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_ALLOCATED, _WRITABLE = 0x2, 0x1
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_PC32, _PLT32 = 2, 4
_STUB: Final = b"\xff\x25"  # jmp [rip + offset]
_STUB_BYTES: Final = 8


class UnsupportedObjectError(Exception):
    """An object with something that an image cannot contain."""


@dataclass(frozen=True)
class _Section:
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_bytes: int


@dataclass
class Image:
    """Code and constants, then the table, of which the first addresses are those of `slots`, the others `externals`."""

    slot_count: int
    code: bytearray = field(default_factory=bytearray)
    externals: list[str] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)
    _pending: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, content: bytes) -> None:
        """Add an object.

        Raises:
            UnsupportedObjectError: it cannot become part of an image; nothing was added.
        """
        linked = _Object(content)
        linked.check()
        places = linked.place_in(self.code)
        for name, section, value in linked.exported():
            self.symbols[name] = places[section] + value
        for place, symbol, addend in linked.relocations(places):
            if isinstance(symbol, int):
                _put_relative(self.code, place, symbol + addend)
            else:
                self._pending.append((place, addend, symbol))

    def finish(self) -> bytes:
        """The code in whole pages; the table begins where it ends."""
        names = sorted({name for _, _, name in self._pending if name != TABLE})
        self.externals = names
        _align(self.code, 16)
        stubs = {name: len(self.code) + _STUB_BYTES * number for number, name in enumerate(names)}
        self.code += bytes(_STUB_BYTES * len(names))
        _align(self.code, PAGE_BYTES)
        table = len(self.code)
        for number, name in enumerate(names):
            at = stubs[name]
            self.code[at : at + 2] = _STUB
            _put_relative(self.code, at + 2, table + 8 * (self.slot_count + number) - 4)
        for place, addend, name in self._pending:
            _put_relative(self.code, place, (table if name == TABLE else stubs[name]) + addend)
        return bytes(self.code)


def _align(code: bytearray, alignment: int) -> None:
    code += bytes(-len(code) % max(alignment, 1))


def _put_relative(code: bytearray, place: int, target: int) -> None:
    struct.pack_into("<i", code, place, target - place)


class _Object:
    """An ELF object."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        header = _HEADER.unpack_from(content)
        if header[0][:6] != b"\x7fELF\x02\x01" or header[2] != _X86_64:
            raise UnsupportedObjectError("not an ELF object for x86-64")
        begin, size, count = header[6], header[11], header[12]
        self.sections = [_Section(*_SECTION.unpack_from(content, begin + size * n)) for n in range(count)]
        self.names = self._bytes(self.sections[header[13]])
        tables = [section for section in self.sections if section.kind == _SYMTAB]
        if len(tables) != 1:
            raise UnsupportedObjectError("no table of symbols")
        self.strings = self._bytes(self.sections[tables[0].link])
        self.symbols = list(_SYMBOL.iter_unpack(self._bytes(tables[0])))

    def check(self) -> None:
        """Raises:
        UnsupportedObjectError: it cannot become part of an image.
        """
        kept = self._kept()
        for number in kept:
            section = self.sections[number]
            if section.kind != _PROGBITS or section.flags & _WRITABLE:
                raise UnsupportedObjectError(f"a section that is written to: {self._section_name(section)}")
        for _, symbol, _ in self.relocations(dict.fromkeys(kept, 0)):
            if isinstance(symbol, str) and symbol != TABLE and symbol not in EXTERNALS:
                raise UnsupportedObjectError(f"a symbol that it does not define: {symbol}")

    def place_in(self, code: bytearray) -> dict[int, int]:
        """Append the sections that are kept; returns where each is."""
        places = {}
        for number in self._kept():
            section = self.sections[number]
            _align(code, section.alignment)
            places[number] = len(code)
            code += self._bytes(section)
        return places

    def exported(self) -> list[tuple[str, int, int]]:
        """The functions that are called from outside: name, section and offset in it."""
        kept = set(self._kept())
        return [
            (self._name(symbol), symbol[3], symbol[4])
            for symbol in self.symbols
            if symbol[1] >> 4 != 0 and symbol[3] in kept
        ]

    def relocations(self, places: dict[int, int]) -> list[tuple[int, int | str, int]]:
        """References to fill in: the place, what is referred to (a place or a name), and what to add to it."""
        found: list[tuple[int, int | str, int]] = []
        for section in self.sections:
            if section.kind != _RELA or section.info not in places:
                continue
            for offset, kind, number, addend in _RELOCATION.iter_unpack(self._bytes(section)):
                if kind not in (_PC32, _PLT32):
                    raise UnsupportedObjectError(f"a relocation of kind {kind}")
                symbol = self.symbols[number]
                target: int | str = self._name(symbol)
                if symbol[3] in places:
                    target = places[symbol[3]] + symbol[4]
                elif symbol[3] != _UNDEFINED:
                    raise UnsupportedObjectError(f"a reference to section {symbol[3]}")
                found.append((places[section.info] + offset, target, addend))
        return found

    def _kept(self) -> list[int]:
        """The sections that are part of the image: all that are loaded, except tables for unwinding."""
        return [
            number
            for number, section in enumerate(self.sections)
            if section.flags & _ALLOCATED and section.size and self._section_name(section) != ".eh_frame"
        ]

    def _bytes(self, section: _Section) -> bytes:
        return self.content[section.offset : section.offset + section.size] if section.kind != _NOBITS else b""

    def _section_name(self, section: _Section) -> str:
        return _text_at(self.names, section.name)

    def _name(self, symbol: tuple[int, ...]) -> str:
        return _text_at(self.strings, symbol[0])


def _text_at(strings: bytes, offset: int) -> str:
    return strings[offset : strings.index(b"\0", offset)].decode()
