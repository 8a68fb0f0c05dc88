"""Reading logs: from paths to Arrow batches of records, one file after the other.

.. code-block:: python

    with Intake(["/var/log", "app.ndjson.gz"]) as intake:
        for batch in intake:
            ...
    print(intake.report)
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import BinaryIO, Self

import pyarrow as pa

from coprlake.errors import StorageError, UsageError
from coprlake.intake.fields.mapping import RecordMapper
from coprlake.intake.fields.timestamps import Clock
from coprlake.intake.formats.access import access_parts
from coprlake.intake.formats.csv import CsvReader
from coprlake.intake.formats.detection import detect, wanted_format
from coprlake.intake.formats.ndjson import NdjsonReader
from coprlake.intake.formats.parquet import PARQUET_MAGIC, read_parquet
from coprlake.intake.formats.syslog import syslog_parts
from coprlake.intake.formats.text_lines import TextReader
from coprlake.intake.options import IntakeReport, ReadOptions
from coprlake.intake.sources.archives import archive_kind, is_document, members
from coprlake.intake.sources.binaries import why_binary
from coprlake.intake.sources.blocks import BlockReader
from coprlake.intake.sources.compression import ByteStream, DamagedError
from coprlake.intake.sources.contents import FileContent, RangeContent, file_content, path_text, range_content
from coprlake.intake.sources.inputs import InputFile, Walk, is_one_file, list_inputs
from coprlake.tokens.fingerprint import as_bytes

__all__ = ["InputFile", "Intake", "IntakeReport", "ReadOptions", "list_inputs"]

_DEFAULTS = ReadOptions()
_DOCUMENT = "a document or program in a zip archive"
_PARTS = {"text": None, "syslog": syslog_parts, "access": access_parts}


def refuse_binary(file: InputFile, options: ReadOptions) -> None:
    """Refuse a file that is not text, unless the options say so; for one that is named by itself.

    Raises:
        UsageError: it is not.
    """
    with suppress(OSError), closing(ByteStream(file)) as stream:  # who reads it will tell of errors
        if archive_kind(stream.head) is not None:
            what = _DOCUMENT if is_document(file) else None
        else:
            is_parquet = options.format == "parquet" or stream.head.startswith(PARQUET_MAGIC)
            what = None if is_parquet else why_binary(stream.head, options)
        if what is not None:
            raise refusal(file, what)


def refusal(file: InputFile, what: str) -> UsageError:
    """The error for a file that is not text."""
    return UsageError(f"{file.name}: this is {what}, not text; --text reads it all the same (ReadOptions.text)")


def _total_bytes(files: Sequence[InputFile]) -> int | None:
    lengths = [file.length for file in files]
    return None if None in lengths else sum(length or 0 for length in lengths)


class Intake:
    """The records of files, to be iterated over once.

    A batch has the columns of `coprlake.records.SCHEMA` (the attributes only where there are any) and further typed
    ones; a column has the same type in all batches, but need not be in each. Memory is bounded by a few blocks.

    Args:
        inputs: files, folders, globs, or ``-`` for standard input.
        options: how to read them.
        recursive: also take the files in folders of folders.
        follow_links: also follow symbolic links that lead out of a folder; a link that is an input itself always is.
        stdin: what ``-`` means; by default the standard input of the process.
        files: what to read instead of `inputs`, listed before; see `of`.
        strict: whether a file that cannot be opened or read is an error.

    Attributes:
        report: what was found, growing while reading.
        files: what will be read.
        options: how.
        total_bytes: of all files, or their ranges, on disk; None if one of them is a stream.
        contents: what each file held that was read to its end; streams are left out.
        ranges: the same for ranges of files.

    Raises:
        NotFoundError: a path is not there, or a folder or glob has no files.
        UsageError: an option or input makes no sense.
    """

    def __init__(
        self,
        inputs: Sequence[str | PathLike[str]],
        options: ReadOptions = _DEFAULTS,
        *,
        recursive: bool = True,
        follow_links: bool = False,
        stdin: BinaryIO | None = None,
        files: Sequence[InputFile] | None = None,
        strict: bool = False,
    ) -> None:
        walk = Walk(recursive, follow_links)
        self.files = list_inputs(inputs, walk) if files is None else list(files)
        Clock(options.zone)  # an unknown zone is an error now and not at the first timestamp
        self.report = IntakeReport()
        self.total_bytes = _total_bytes(self.files)
        self.options = options
        self._stdin = stdin
        self._stream: ByteStream | None = None
        self._begun = False
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._first: pa.RecordBatch | None = None
        self._strict = strict
        self._mapper = RecordMapper(options, self.report)
        self._refuses_binary = files is None and is_one_file(inputs)
        if self._refuses_binary and self.files[0].size:
            refuse_binary(self.files[0], options)
        self.contents: list[FileContent] = []
        self.ranges: list[RangeContent] = []
        self.report.passed_over(walk.skipped, walk.links)

    @classmethod
    def of(cls, files: Sequence[InputFile], options: ReadOptions = _DEFAULTS, *, strict: bool = False) -> Self:
        """An intake of files, or ranges of files, that were listed before (`coprlake.intake.sources.splitting`).

        If it is `strict`, a file that cannot be opened or read is an error, so that it can be tried again.
        """
        return cls((), options, files=files, strict=strict)

    def restrict(self, files: Sequence[InputFile]) -> None:
        """Read other files, or less of them, than were listed; before anything is read."""
        self.files = list(files)
        self.total_bytes = _total_bytes(self.files)

    def first(self) -> pa.RecordBatch | None:
        """The first batch, None if there is none; the iteration gives it again."""
        if self._batches is None:
            self._batches = self._all_batches()
            self._first = next(self._batches, None)
        return self._first

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file that is being read; batches that were handed out stay valid."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._begun:
            raise UsageError("an intake can be read only once; make another one")
        self._begun = True
        first, self._first = self.first(), None
        if first is not None:
            assert self._batches is not None
            yield first
            del first
            yield from self._batches

    def _all_batches(self) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            self.report.files += file.is_first
            try:
                yield from self._of_file(file)
            except OSError as error:
                if self._strict:
                    raise StorageError(f"{file.name}: cannot be read: {error.strerror or error}; try again") from error
                self.report.unreadable += 1
                self.report.warn(file.name, f"cannot be read: {error.strerror or error}")
            finally:
                self.close()

    def _of_file(self, file: InputFile) -> Iterator[pa.RecordBatch]:
        """The records of a file, or of all members of an archive."""
        self._stream = stream = ByteStream(file, self._stdin, max_expansion=self.options.max_expansion)
        if file.after and file.end is None and not stream.is_continued:
            self.report.continued -= 1
            self.report.warn(file.path, "was replaced after it had been compared with what is known; read whole")
            file = replace(file, skip=0, prefix=b"", after=b"", after_size=0, format=None)
        kind = archive_kind(stream.head) if stream.from_start and not stream.is_continued else None
        if kind == "zip" and is_document(file):
            self._pass_over(file, _DOCUMENT)
        elif kind is not None:
            yield from self._of_archive(file, stream, kind)
        else:
            yield from self._batches_of(file, stream)

    def _of_archive(self, file: InputFile, stream: ByteStream, kind: str) -> Iterator[pa.RecordBatch]:
        self.report.files -= 1  # its members count
        self._refuses_binary = False
        bytes_before = self.report.bytes_read
        known = file.known if file.known_in == stream.identity else frozenset()
        is_whole = True
        try:
            for number, member in enumerate(members(file, stream, kind, self.options.max_expansion)):
                if number in known:
                    self.report.known += 1
                    continue
                self.report.files += 1
                if member.raw is None:
                    is_whole = False
                    self.report.unreadable += 1
                    self.report.warn(member.file.path, member.problem or "cannot be read")
                    continue
                inner = ByteStream(member.file, max_expansion=self.options.max_expansion, raw=member.raw)
                if archive_kind(inner.head):
                    self._pass_over(member.file, "an archive inside an archive")
                    is_whole = False
                else:
                    passed_over = self.report.binary
                    yield from self._batches_of(member.file, inner)
                    is_whole = is_whole and self.report.binary == passed_over and not inner.damage
        except DamagedError as error:
            stream.damage = stream.damage or str(error)
        if stream.damage:
            self.report.unreadable += 1
            self.report.warn(file.name, f"{stream.damage}; members before that place were read")
        elif file.size is not None and is_whole:
            content, identity = file_content(file.path)
            if identity and identity == stream.identity:  # else it was replaced or written meanwhile
                self._keep(content)
        self.report.bytes_read = bytes_before + (stream.bytes_read if file.size is None else file.size)

    def _pass_over(self, file: InputFile, what: str) -> None:
        if self._refuses_binary:
            raise refusal(file, what)
        self.report.binary += 1
        self.report.bytes_read += file.length or 0  # done with
        self.report.warn(file.name, f"passed over because it is {what}; --text reads it all the same")

    def _batches_of(self, file: InputFile, stream: ByteStream) -> Iterator[pa.RecordBatch]:
        report, before = self.report, self._counts()
        source = file.source if self.options.source is None else self.options.source
        source = as_bytes(source).decode(errors="replace")  # the name of a file need not be UTF-8
        clock = Clock(self.options.zone, self.options.year, file.modified)
        name = wanted_format(file, self.options)
        if name == "parquet" or (name == "auto" and stream.head.startswith(PARQUET_MAGIC)):
            name = "parquet"
            report.formats[name] += 1
            yield from read_parquet(file, stream, self._mapper.for_file(source, clock), report)
            while stream.read(1 << 20):  # for its hash
                pass
        elif stream.from_start and not stream.is_continued and (what := why_binary(stream.head, self.options)):
            self._pass_over(file, what)
            return
        else:
            blocks = BlockReader(stream, self.options, report)
            name = detect(blocks.head, file.path) if name == "auto" else name
            if file.is_first:
                report.formats[name] += 1
            mapper = self._mapper.for_file(source, clock)
            if name == "ndjson":
                yield from NdjsonReader(blocks, mapper, self.options, report)
            elif name == "csv":
                yield from CsvReader(blocks, os.path.basename(file.path), mapper, self.options, report)  # noqa: PTH119
            else:
                yield from TextReader(blocks, source, clock, self.options, report, _PARTS[name])
        if stream.damage:
            report.unreadable += 1
            report.warn(file.name, f"{stream.damage}; everything before that place was read")
        self._warn(file, before)
        self._note_content(file, stream, name)

    def _note_content(self, file: InputFile, stream: ByteStream, name: str) -> None:
        """Keep by what the file is known again that was just read."""
        path = path_text(file.path)
        if file.size is None:
            return
        if file.end is None and file.start == 0:
            if stream.content.size:
                self._keep(stream.content.content(path, name, file.after))
        elif file.end is not None and not stream.damage:
            held = range_content(file, stream.raw, stream.content, path, name)
            if held is not None:
                self.ranges.append(replace(held, source=self.options.source, wanted=self.options.format))

    def _keep(self, content: FileContent) -> None:
        self.contents.append(replace(content, source=self.options.source, wanted=self.options.format))

    def _counts(self) -> tuple[int, ...]:
        report = self.report
        return report.replaced_lines, report.broken, report.split, report.misfits, report.records

    def _warn(self, file: InputFile, before: tuple[int, ...]) -> None:
        """Say what was odd about the file that was just read."""
        replaced, broken, split, misfits, records = (now - old for now, old in zip(self._counts(), before, strict=True))
        if replaced:
            lines = "1 line is" if replaced == 1 else f"{replaced} lines are"
            self.report.warn(file.name, f"{lines} not valid {self.options.encoding}; invalid bytes became U+FFFD")
        if broken:
            self.report.warn(file.name, f"{broken} of {records} records do not have the format; kept as plain text")
        if split:
            limit = self.options.max_record_bytes
            self.report.warn(file.name, f"lines or records longer than {limit} bytes were cut {split} times")
        if misfits:
            values = "1 value does" if misfits == 1 else f"{misfits} values do"
            self.report.warn(file.name, f"{values} not fit the type of their column; kept as attributes")
