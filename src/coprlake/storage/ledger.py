"""Which files were ingested into a table, so that none is ingested twice: a list beside it, named by its commits.

Each ingest adds a page to the list, a small Parquet file in ``_coprlake/ingested``, before it commits. The commit has
a transaction of the application ``coprlake.ingested`` whose version is the name of that page, so the list is exactly as
new as the table: a page that no commit names does not count. Readers of Delta tables pass over both. Each page names
the one before it, or holds what several before it held, so that there are only a few to read.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.parquet

from coprlake.errors import ConflictError, CoprlakeError, OvertakenError
from coprlake.files import READ_ERRORS
from coprlake.intake.sources.contents import FileContent
from coprlake.segment.sidecar import FOLDER
from coprlake.storage.log.delta_log import DeltaLog, Transaction

LEDGER_FOLDER: Final = f"{FOLDER}/ingested"
APPLICATION: Final = "coprlake.ingested"
_PREVIOUS: Final = b"coprlake.previous"
_ATTEMPTS: Final = 30
_ABSORBED_FACTOR: Final = 2
"""A new page takes in those before it that are at most so many times as long."""
_COLUMNS: Final = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("key", pa.binary()),
        ("digest", pa.binary()),
        ("format", pa.string()),
        ("after", pa.binary()),
        ("source", pa.string()),
        ("wanted", pa.string()),
    ]
)
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class _Page:
    """A page of the list."""

    version: int
    contents: list[FileContent]


def page_name(version: int) -> str:
    """The page that a transaction names; not ``.parquet``, so that nobody takes it for data."""
    return f"{LEDGER_FOLDER}/{version:016x}.contents"


class Ledger:
    """The contents that were ingested into one table.

    Attributes:
        problem: why a part of the list is not known; None if all of it is.
    """

    def __init__(self, log: DeltaLog) -> None:
        self._log = log
        self._pages: list[_Page] = []
        self._previous: dict[int, int] = {}
        self._head: int | None = None
        self._by_key: dict[bytes, list[FileContent]] = {}
        self.problem: str | None = None
        self._load()

    @property
    def contents(self) -> list[FileContent]:
        """All of them, newest first."""
        return [content for page in self._pages for content in page.contents]

    def __bool__(self) -> bool:
        """Whether any file was ingested."""
        return bool(self._by_key)

    def with_key(self, key: bytes) -> Sequence[FileContent]:
        """The contents that begin with the bytes of this key."""
        return self._by_key.get(key, ())

    def live_names(self) -> set[str]:
        """The pages that count."""
        return {page_name(page.version) for page in self._pages}

    def record(
        self,
        contents: Sequence[FileContent],
        commit: Callable[[Transaction | None], _Result],
        *,
        again: bool = False,
    ) -> _Result:
        """Commit, and add contents to the list in the same step.

        Args:
            contents: what was read.
            commit: makes the commit, as the given transaction.
            again: whether it is fine that somebody else has ingested the same meanwhile.

        Raises:
            ConflictError: somebody else has.
        """
        if not contents:
            return commit(None)
        for _ in range(_ATTEMPTS):
            page, previous = self._next_page(contents)
            self._log.folder.write(page_name(page.version), [_encoded(page.contents, previous)])
            try:
                result = commit(Transaction(APPLICATION, page.version, self._head or 0))
            except OvertakenError:
                self._log.folder.remove(page_name(page.version))
                known = set(self.contents)
                self._load()
                self._check_new([one for one in self.contents if one not in known], contents, again=again)
                continue
            self._load()
            return result
        raise ConflictError(
            f"{self._log.folder.uri}: others ingested again and again; nothing was committed, try again"
        )

    def note(self, contents: Sequence[FileContent]) -> None:
        """Add contents to the list whose records were committed before, in a commit without records."""
        note = {"operation": "ingest"}
        self.record(contents, lambda once: self._log.commit(note=note, once=once), again=True)

    def _check_new(self, theirs: Sequence[FileContent], ours: Sequence[FileContent], *, again: bool) -> None:
        """Refuse to commit what somebody else has just committed."""
        for one in ours:
            alike = [other for other in theirs if other.was_read_as(one.source, one.wanted)]
            same = any(
                other.digest == one.digest
                or (other.path == one.path and (other.key == one.key or (other.after and other.after == one.after)))
                for other in alike
            )
            if same and not again:
                raise ConflictError(
                    f"{one.path}: somebody else has ingested this file into {self._log.folder.uri} meanwhile; nothing "
                    "was committed, try again: what is in the table will be passed over"
                )

    def _next_page(self, contents: Sequence[FileContent]) -> tuple[_Page, int]:
        """The page to add, and the one that it follows."""
        number = ((self._head or 0) >> 32) + 1
        version = number << 32 | secrets.randbits(32)
        held = list(contents)
        pages = list(self._pages)
        if self.problem is None:
            while pages and len(pages[0].contents) <= _ABSORBED_FACTOR * len(held):
                held += pages.pop(0).contents
        replaced = {(one.path, one.after, one.source, one.wanted) for one in held if one.after}
        held = [one for one in held if (one.path, one.digest, one.source, one.wanted) not in replaced]
        previous = pages[0].version if pages else 0
        if self.problem is not None:
            previous = self._head or 0
        return _Page(version, held), previous

    def _load(self) -> None:
        self._log.refresh()
        self._head = version = self._log.transaction_version(APPLICATION)
        known = {page.version: page for page in self._pages}
        previous = self._previous
        self._pages, self._previous, self._by_key, self.problem = [], {}, {}, None
        while version:
            if version not in known:
                try:
                    known[version], previous[version] = self._read(version)
                except (*READ_ERRORS, CoprlakeError, KeyError, TypeError, ValueError) as error:
                    found = str(error).partition("\n")[0]
                    self.problem = f"{self._log.folder.path(page_name(version))}: cannot be read: {found}"
                    break
            self._pages.append(known[version])
            self._previous[version] = previous[version]
            version = previous[version]
        for content in self.contents:
            self._by_key.setdefault(content.key, []).append(content)

    def _read(self, version: int) -> tuple[_Page, int]:
        data = self._log.folder.read(page_name(version))
        table = pyarrow.parquet.read_table(pa.BufferReader(data))
        rows = table.select([name for name in _COLUMNS.names if name in table.column_names]).to_pylist()
        return _Page(version, [FileContent(**row) for row in rows]), int((table.schema.metadata or {})[_PREVIOUS], 16)


def _encoded(contents: Sequence[FileContent], previous: int) -> bytes:
    rows = [asdict(content) for content in contents]
    schema = _COLUMNS.with_metadata({_PREVIOUS: f"{previous:x}".encode()})
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema), sink, compression="zstd", write_statistics=False)
    return sink.getvalue().to_pybytes()
