"""The sidecar of a data file: its sketch, then a description of what was indexed, format version 1.

The description says which fields are in the sketch and how they were indexed, because a search may prune only by tokens
that were certainly indexed. It also says which data file it belongs to. `docs/format/sidecar.md` has the layout.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, NoReturn, Self

import numpy as np

from coprlake.config import RULES, RuleSet
from coprlake.errors import CorruptSidecarError, UsageError
from coprlake.files import Folder
from coprlake.records import CONTENT
from coprlake.segment.checksum import checksum
from coprlake.sketch.immutable import SealedSketch
from coprlake.tokens.profile import NOT_TOGETHER, Indexed, Profile, other_fields

MAGIC: Final = b"COPRSIDE"
MAJOR: Final = 1
MINOR: Final = 0
TRAILER: Final = np.dtype(
    [
        ("sketch_bytes", "<u8"),
        ("sketch_checksum", "<u8"),
        ("description_bytes", "<u4"),
        ("description_crc", "<u4"),
        ("major", "<u2"),
        ("minor", "<u2"),
        ("trailer_crc", "<u4"),
        ("magic", "S8"),
    ]
)
FOLDER: Final = "_coprlake"
"""Delta's readers and its vacuum skip names that start with an underscore."""

FIELD_LIMIT: Final = 1000
"""The most fields that are listed; beyond that, a search over all fields has to read the segment."""

KINDS: Final = {
    "winnowed": Indexed(RuleSet.WINNOWED, whole_values=False),
    "winnowed+values": Indexed(RuleSet.WINNOWED, whole_values=True),
    "grams": Indexed(RuleSet.PAPER, whole_values=False),
    "grams+values": Indexed(RuleSet.PAPER, whole_values=True),
    "values": Indexed(None, whole_values=True),
    "any+winnowed": Indexed(RuleSet.WINNOWED, whole_values=False, with_content=True),
    "any+grams": Indexed(RuleSet.PAPER, whole_values=False, with_content=True),
}
"""How a field is indexed, by name in the description: with rule set 2, rules 1-8 or rules 1-5, whether each value is
also one token, and whether the tokens are among those of the content. An unknown name belongs to a later version; such
a field is not used for pruning."""
UNINDEXED: Final = "no"
_RULE_NAMES: Final = frozenset(rules.value for rules in RuleSet)

_REBUILD: Final = "the data is not affected: run `coprlake index` on the table to write it again"


def sidecar_name(data_name: str) -> str:
    """The path of a data file's sidecar, always inside `FOLDER`."""
    if data_name.startswith("/") or ".." in data_name.split("/"):
        raise UsageError(f"{data_name}: not the name of a data file inside a table, so it gets no sidecar")
    return f"{FOLDER}/{data_name}.copr"


def remove_segment(folder: Folder, name: str) -> None:
    """Remove a data file that is in no log, and its sidecar."""
    folder.remove(name)
    folder.remove(sidecar_name(name))


def data_name_of(sidecar: str) -> str | None:
    """The data file that a name under `FOLDER` belongs to; None if it is something else."""
    if not (sidecar.startswith(f"{FOLDER}/") and sidecar.endswith(".copr")):
        return None
    return sidecar[len(FOLDER) + 1 : -len(".copr")]


def most_batches(data_bytes: int) -> int:
    """The most row groups that a Parquet file of this size can have: the footer takes more than 16 bytes for each.

    The decoded lists of a sketch take a byte or two per batch, so this keeps a small file from using much memory.
    """
    return data_bytes // 16


class IndexPlan(NamedTuple):
    """How records are indexed.

    Attributes:
        gram_fields: fields besides the content in which parts of words can be searched.
        rules: how text is split into tokens.
        values: whether the values of all fields are indexed together, under the name of the content.
    """

    gram_fields: frozenset[str] = frozenset()
    rules: RuleSet = RULES
    values: bool = True


@dataclass(frozen=True)
class Description:
    """What a sidecar says about its data file and about its index."""

    data_name: str
    data_bytes: int
    row_count: int
    batch_count: int
    raw_bytes: int
    fields: dict[str, str] = field(default_factory=dict)
    typed: list[str] = field(default_factory=list)
    complete: bool = True
    modified_ns: int = 0
    any_value: str = NOT_TOGETHER
    all_in_content: bool = False

    @property
    def plan(self) -> IndexPlan:
        """The plan of the fields in which parts of words can be searched under their own names."""
        known = {name: KINDS[kind] for name, kind in self.fields.items() if kind in KINDS}
        grams = {name for name, own in known.items() if own.rules is not None and not own.with_content}
        is_paper = self.any_value == RuleSet.PAPER or any(own.rules == RuleSet.PAPER for own in known.values())
        return IndexPlan(frozenset(grams), RuleSet.PAPER if is_paper else RULES, self.any_value in _RULE_NAMES)

    def encoded(self) -> bytes:
        """The bytes in the file; keys that earlier builds did not have are left out if they say nothing."""
        values = asdict(self)
        if self.any_value == NOT_TOGETHER:
            del values["any_value"]
        if not self.all_in_content:
            del values["all_in_content"]
        return json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def profile_of(
    fields: Mapping[str, str],
    typed: Iterable[str],
    complete: bool,
    any_value: str = NOT_TOGETHER,
    all_in_content: bool = False,
) -> Profile:
    """The same object for all segments with the same fields, so that a search is planned once for all of them."""
    known = any_value if any_value in _RULE_NAMES else NOT_TOGETHER
    return _profile(tuple(sorted(fields.items())), frozenset(typed), complete, known, all_in_content)


@lru_cache(maxsize=256)
def _profile(
    fields: tuple[tuple[str, str], ...], typed: frozenset[str], complete: bool, any_value: str, all_in_content: bool
) -> Profile:
    return Profile({name: KINDS.get(kind) for name, kind in fields}, complete, typed, any_value, all_in_content)


class Sidecar:
    """An open sidecar.

    Args:
        data: the file.
        file: its name.
        is_trusted: do not read the whole sketch to check it. A flipped bit in an unchecked sketch may lose a
            match.

    Raises:
        FormatError: the file is damaged or has an unsupported version.
    """

    def __init__(self, data: memoryview | bytes, file: str, *, is_trusted: bool = False) -> None:
        self.file = file
        self.file_bytes = len(data)
        self.data = memoryview(data)
        sketch_bytes, stated, description = _read_trailer(data, file)
        self.description = description
        self.sketch = SealedSketch(memoryview(data)[:sketch_bytes], file)
        if not is_trusted:
            found = int(checksum(self.sketch.words))
            if found != stated:
                _refuse(file, "sketch", f"checksum {stated:016x}", f"{found:016x}")
        if self.sketch.posting_count > description.batch_count:
            _refuse(file, "description", f"at least {self.sketch.posting_count} batches", str(description.batch_count))
        self.profile = profile_of(
            description.fields,
            description.typed,
            description.complete,
            description.any_value,
            description.all_in_content,
        )

    def check_belongs_to(self, data_name: str, data_bytes: int, modified_ns: int = 0) -> None:
        """Raise if this is not the sidecar of this data file, or the file has been replaced.

        Args:
            data_name: the data file; folders are ignored, so that a table can be moved.
            data_bytes: its size.
            modified_ns: when it was written, for files that may be replaced; 0 if they never are.
        """
        own_name = data_name.rpartition("/")[2]
        if own_name != self.description.data_name:
            _refuse(self.file, "description", f"the data file {own_name}", self.description.data_name)
        if data_bytes != self.description.data_bytes:
            _refuse(self.file, "description", f"a data file of {self.description.data_bytes} bytes", str(data_bytes))
        if self.description.batch_count > most_batches(data_bytes):
            expected = f"at most {most_batches(data_bytes)} batches in a data file of {data_bytes} bytes"
            _refuse(self.file, "description", expected, str(self.description.batch_count))
        if modified_ns and modified_ns != self.description.modified_ns:
            _refuse(self.file, "description", "the data file that was indexed", "one that was written later")

    def check_batch_count(self, row_group_count: int) -> None:
        """Raise if the data file does not have as many row groups as were indexed."""
        stated = self.description.batch_count
        if stated != row_group_count:
            _refuse(self.file, "description", f"the {row_group_count} batches of the data file", str(stated))

    def close(self) -> None:
        """Release the file."""
        self.sketch.close()
        self.data = memoryview(b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def encode_sidecar(sketch: list[bytes], description: Description) -> list[bytes]:
    """The pieces of the file, in order."""
    body = description.encoded()
    sketch_bytes = sum(map(len, sketch))
    trailer = np.zeros(1, TRAILER)
    row = trailer[0]
    row["sketch_checksum"] = checksum(np.frombuffer(b"".join(sketch), np.uint64))
    row["sketch_bytes"], row["description_bytes"], row["description_crc"] = sketch_bytes, len(body), zlib.crc32(body)
    row["major"], row["minor"], row["magic"] = MAJOR, MINOR, MAGIC
    row["trailer_crc"] = zlib.crc32(trailer.tobytes())
    return [*sketch, body, trailer.tobytes()]


def _read_trailer(data: memoryview | bytes, file: str) -> tuple[int, int, Description]:
    """The end of the sketch, its checksum, and the description; checks everything but the sketch."""
    size = TRAILER.itemsize
    if len(data) < size:
        _refuse(file, "trailer", f"at least {size} bytes", f"{len(data)} bytes")
    trailer = np.frombuffer(data[-size:], TRAILER).copy()
    sketch_bytes, sketch_checksum, description_bytes, description_crc, major, _, trailer_crc, magic = trailer[0].item()
    if magic != MAGIC:
        _refuse(file, "trailer", f"magic {MAGIC!r}", repr(magic))
    trailer["trailer_crc"] = 0
    if zlib.crc32(trailer.tobytes()) != trailer_crc:
        _refuse(file, "trailer", f"checksum {trailer_crc:08x}", f"{zlib.crc32(trailer.tobytes()):08x}")
    if major != MAJOR:
        advice = "upgrade coprlake to use it; until then the data file is scanned"
        raise CorruptSidecarError(
            file, section="trailer", expected=f"version {MAJOR}", found=f"version {major}", advice=advice
        )
    if sketch_bytes + description_bytes + size != len(data):
        _refuse(file, "trailer", f"a file of {sketch_bytes + description_bytes + size} bytes", f"{len(data)} bytes")
    body = bytes(data[sketch_bytes : len(data) - size])
    if zlib.crc32(body) != description_crc:
        _refuse(file, "description", f"checksum {description_crc:08x}", f"{zlib.crc32(body):08x}")
    return sketch_bytes, sketch_checksum, _read_description(body, file)


def _read_description(body: bytes, file: str) -> Description:
    """Parse a description; ignores keys of later minor versions, and rejects values of the wrong type."""
    try:
        values = json.loads(body)
        known = Description.__dataclass_fields__
        description = Description(**{name: value for name, value in values.items() if name in known})
        _check_types(description)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptSidecarError(
            file, section="description", expected="a valid description", found=str(error), advice=_REBUILD
        ) from error
    return description


def _check_types(description: Description) -> None:
    counts = (description.data_bytes, description.row_count, description.batch_count, description.raw_bytes)
    if not all(type(number) is int and number >= 0 for number in (*counts, description.modified_ns)):
        raise ValueError("an invalid size")
    texts = [description.data_name, *description.fields, *description.fields.values(), *description.typed]
    texts.append(description.any_value)
    if not all(isinstance(text, str) for text in texts) or not isinstance(description.typed, list):
        raise ValueError("an invalid name")
    if type(description.complete) is not bool or type(description.all_in_content) is not bool:
        raise ValueError("something other than true or false")


def _refuse(file: str, section: str, expected: str, found: str) -> NoReturn:
    raise CorruptSidecarError(file, section=section, expected=expected, found=found, advice=_REBUILD)


def joined_kinds(descriptions: Sequence[Description]) -> dict[str, str]:
    """How fields are indexed in a segment that was merged from others: as in the weakest of them that has the field.

    A segment that does not list all of its fields may have any field, indexed differently.
    """
    joined: dict[str, str] = {}
    for described in descriptions:
        for name, kind in described.fields.items():
            joined[name] = _worse(joined[name], kind) if name in joined else kind
    for described in descriptions:
        if not described.complete:
            joined |= {name: UNINDEXED for name in joined if name not in described.fields}
    return joined


def joined_any_value(descriptions: Iterable[Description]) -> str:
    """How all values are indexed together in a segment that was merged from others, as in `Profile.any_value`."""
    found = {_any_value_of(described) for described in descriptions} - {None}
    return (found.pop() or NOT_TOGETHER) if len(found) == 1 else NOT_TOGETHER


def _any_value_of(described: Description) -> str | None:
    """How all values are indexed together; in a text log of an earlier build as the content is. None if it has none."""
    if described.any_value in _RULE_NAMES:
        return described.any_value
    if not described.complete or other_fields(described.fields, described.typed):
        return NOT_TOGETHER
    kind = described.fields.get(CONTENT)
    if kind is None:
        return None
    rules = KINDS[kind].rules if kind in KINDS else None
    return NOT_TOGETHER if rules is None or CONTENT in described.typed else rules.value


def are_all_in_content(descriptions: Iterable[Description]) -> bool:
    """Whether each value is a part of the content of its record in a segment that was merged from others."""
    return all(
        described.all_in_content or (described.complete and not other_fields(described.fields, described.typed))
        for described in descriptions
    )


def _worse(one: str, other: str) -> str:
    """What both ways of indexing guarantee, for a field whose text is indexed partly in one and partly in the other.

    The paper's rules include those of words; rule set 2 has fewer tokens, so it has no guarantee in common with others.
    """
    first, second = KINDS.get(one), KINDS.get(other)
    if first is None or second is None or first.with_content != second.with_content:
        return UNINDEXED
    if first.rules != second.rules and RuleSet.WINNOWED in (first.rules, second.rules):
        return UNINDEXED
    common = first.rules if first.rules == second.rules else None
    return kind_of(Indexed(common, first.whole_values and second.whole_values, first.with_content))


def kind_of(indexed: Indexed) -> str:
    """The name of a way to index a field; `UNINDEXED` if it has none."""
    return next((kind for kind, own in KINDS.items() if own == indexed), UNINDEXED)
