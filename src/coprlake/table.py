"""The public face: open a table, append to it, search it, keep it in shape."""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coprlake.config import OPTIMIZED_LEVEL, OPTIMIZED_SEGMENT_BYTES, RULES, SEGMENT_BYTES, VACUUM_HOURS, RuleSet
from coprlake.errors import ConflictError, NotFoundError, UnreadableTableError, UsageError
from coprlake.files import Folder
from coprlake.predicate.narrowing.claims import Exact
from coprlake.predicate.predicates import EVERYTHING, Combinable, Predicate
from coprlake.query.context import context_of
from coprlake.query.doubts import refuse_doubts
from coprlake.query.options import SearchOptions, columns_of
from coprlake.query.ordering import Order
from coprlake.query.plain_search import predicate_for
from coprlake.query.planning import FOREVER, View
from coprlake.query.resolving import resolved, timed
from coprlake.query.searching import Search
from coprlake.query.time_bounds import Time, microseconds
from coprlake.records import DAY, HIDDEN, SCHEMA
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.sidecar import IndexPlan
from coprlake.shortcuts import Shortcuts
from coprlake.storage import information
from coprlake.storage.conforming import lake_type
from coprlake.storage.log import features
from coprlake.storage.log.delta_log import DeltaLog
from coprlake.storage.log.watching import LogWatch
from coprlake.storage.parquet_folder import ParquetFolder
from coprlake.storage.snapshot import Snapshot, open_segments
from coprlake.text.time_words import parse_span
from coprlake.tokens.rules import rule_set

if TYPE_CHECKING:
    from coprlake.query.fetching import Fetchable
    from coprlake.query.limits import Limits
    from coprlake.query.querying import Query
    from coprlake.segment.mutable import SegmentOptions
    from coprlake.storage import deleting, indexing, optimizing, vacuuming, verifying
    from coprlake.storage.progress import Progress
    from coprlake.storage.repartitioning import Partitions
    from coprlake.storage.segmenter import TableShape
    from coprlake.storage.writer import TableWriter, WriteReport

GRAMS_PROPERTY = "coprlake.grams"
RULES_PROPERTY = "coprlake.rules"


def create_table(
    uri: str | os.PathLike[str],
    *,
    schema: pa.Schema | None = None,
    partition_by: str | Sequence[str] | None = (),
    grams: Iterable[str] = (),
    rules: RuleSet | str = RULES,
    exist_ok: bool = False,
) -> "Table":
    """Make an empty table.

    Args:
        uri: a folder, on this machine or in an object store.
        schema: columns besides those that every table has; more may come with the records.
        partition_by: the columns whose values get data files of their own, such as ``day``. None by default: a search
            skips segments and batches by their range of time anyway, and small partitions make a large index.
        grams: fields besides the content that can be searched inside words.
        rules: what is a token: ``winnowed``, or the rules of the paper.
        exist_ok: open the table if it is there already.

    Raises:
        ConflictError: there is a table already.
    """
    folder = Folder.of(uri)
    columns = [partition_by] if isinstance(partition_by, str) else list(columns_of(partition_by) or ())
    fields = {field.name: field for field in SCHEMA}
    fields |= {field.name: pa.field(field.name, lake_type(field.type)) for field in schema or ()}
    if DAY in columns:
        fields.setdefault(DAY, pa.field(DAY, pa.date32()))
    for name in columns:
        fields.setdefault(name, pa.field(name, pa.string()))
    rules = rule_set(rules)
    configuration = dict(features.OF_NEW_TABLES)
    if grams:
        configuration[GRAMS_PROPERTY] = ",".join(sorted(grams))
    if rules != RULES:
        configuration[RULES_PROPERTY] = rules.value
    try:
        log = DeltaLog.create(folder, pa.schema(list(fields.values())), columns, configuration)
    except ConflictError:
        if not exist_ok:
            raise
        log = DeltaLog.open(folder)
    return Table(log)


def open_table(uri: str | os.PathLike[str]) -> "Table":
    """Open a Delta table, or a folder of Parquet files, which then cannot be appended to.

    Raises:
        NotFoundError: there is neither.
        UnreadableTableError: the table's protocol is newer than what is understood here, or the folder belongs to a
            table of another format or is a part of a Delta table, so that some of its files do not count.
    """
    folder = Folder.of(uri)
    if folder.entry("") is not None:
        raise NotFoundError(f"{folder.uri}: this is a file, not the folder of a table; check the path")
    if folder.exists() and not folder.exists("_delta_log"):
        return Table(ParquetFolder(folder))
    return Table(DeltaLog.open(folder))


def table_exists(uri: str | os.PathLike[str]) -> bool:
    """Whether there is a table or a folder of Parquet files."""
    try:
        open_table(uri)
    except NotFoundError:
        return False
    return True


class Table(Shortcuts):
    """A table of logs. Searches see the newest version, and what writers of this object have not committed yet."""

    def __init__(self, log: DeltaLog | ParquetFolder) -> None:
        self._log = log
        self._lock = threading.RLock()
        self._writers: weakref.WeakSet[TableWriter] = weakref.WeakSet()
        self._snapshot = self._new_snapshot({})
        self._log_state: int | None = None
        self._watch = LogWatch(log.folder) if isinstance(log, DeltaLog) else None

    @property
    def uri(self) -> str:
        """Where the table is."""
        return self._log.folder.uri

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.snapshot().schema

    @property
    def partition_by(self) -> list[str]:
        """The columns that data files are told apart by."""
        return self._log.partition_by

    @property
    def gram_fields(self) -> frozenset[str]:
        """The fields besides the content that can be searched inside words."""
        return frozenset(name for name in self._log.configuration.get(GRAMS_PROPERTY, "").split(",") if name)

    @property
    def rules(self) -> RuleSet:
        """What is a token in segments that are written from now on; those that are there may have other rules."""
        name = self._log.configuration.get(RULES_PROPERTY, RULES)
        if name not in list(RuleSet):
            raise UnreadableTableError(
                self.uri,
                section=RULES_PROPERTY,
                expected=" or ".join(RuleSet),
                found=name,
                advice="upgrade coprlake to write to this table; searches work as before",
            )
        return RuleSet(name)

    @property
    def index_plan(self) -> IndexPlan:
        """How the table's records are indexed."""
        return IndexPlan(self.gram_fields, self.rules)

    @property
    def shape(self) -> "TableShape":
        """What somebody has to know who writes segments for this table elsewhere."""
        log = self._delta_log("append")
        log.check_writable("append")
        return log.shape

    def snapshot(self) -> Snapshot:
        """The segments of the newest version."""
        state = None if self._watch is None else self._watch.state(self._log_state)
        if state == self._log_state and state is not None:
            return self._snapshot
        with self._lock:
            if self._log.refresh() or self._log.version != self._snapshot.version:
                known = {segment.name: segment for segment in self._snapshot.segments}
                self._snapshot = self._new_snapshot(known)
            self._log_state = state  # last: whoever sees it takes the snapshot without the lock
            return self._snapshot

    def append(self, data: Any, *, raw_bytes: int | None = None) -> "WriteReport":
        """Add records and commit them: Arrow data, a data frame, or an iterable of dicts or lines."""
        with self.writer(searchable=False) as writer:
            writer.append(data, raw_bytes=raw_bytes)
            return writer.close()

    def writer(
        self,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        options: "SegmentOptions | None" = None,
        searchable: bool = True,
    ) -> "TableWriter":
        """Something to append to for a while; its records are found at once, and are the table's when it commits.

        Args:
            segment_bytes: raw size at which a segment is sealed.
            options: see `SegmentOptions`.
            searchable: whether searches of this object find what is not committed.
        """
        from coprlake.segment.mutable import SegmentOptions
        from coprlake.storage.writer import TableWriter, scratch_options

        log = self._delta_log("append")
        log.check_writable("append")  # before anything is written
        options = replace(options or SegmentOptions(), searchable=searchable)
        options = replace(
            options, gram_fields=options.gram_fields or self.gram_fields, rules=options.rules or self.rules
        )
        writer = TableWriter(log, scratch_options(options, log.folder), segment_bytes=segment_bytes, guard=self._lock)
        if searchable:
            self._writers.add(writer)
        return writer

    def search(
        self,
        predicate: Predicate | str = EVERYTHING,
        *,
        since: Time = None,
        until: Time = None,
        columns: Sequence[str] | None = None,
        order: Order = "any",
        limit: int | None = None,
        context: int | tuple[int, int] = 0,
        threads: int | None = None,
        strict: bool = False,
        use_sketches: bool = True,
    ) -> Search:
        """Find records by a text, ``refused -debug level:error "connection reset"``, or by a predicate.

        Args:
            predicate: a text (docs/search-syntax.md), or a predicate, ``contains("refused by") & ~term("debug")``.
            since: of this time and later: a datetime, or a text such as ``2h``, ``yesterday`` or ``2026-11-16T03:55``.
            until: before this time.
            columns: what to return of a record.
            order: ``any``, ``newest`` or ``oldest``.
            limit: stop after so many.
            context: records of the same source to return before and after each match; a pair for different numbers.
            threads: how many batches to work on at a time.
            strict: whether a damaged segment ends the search with an error; else it is named in the report.
            use_sketches: False to scan, which finds the same.
        """
        predicate = predicate_for(predicate, self._view)
        around = context_of(context)
        options = SearchOptions(
            since=microseconds(since, FOREVER[0]),
            until=microseconds(until, FOREVER[1]),
            columns=columns_of(columns),
            order=order,
            limit=limit,
            context=around,
            threads=threads,
            strict=strict,
            use_sketches=use_sketches,
        )
        return Search(self._view, Exact(predicate), options, resolves=True)

    def query(
        self,
        text: str,
        *,
        since: Time = None,
        until: Time = None,
        variables: Mapping[str, Any] | None = None,
        limits: "Limits | None" = None,
        now: Time = None,
        tables: "Fetchable" = (),
        use_sketches: bool = True,
    ) -> "Query":
        """Ask in the query language: ``fetch logs | filter loglevel == "ERROR" | summarize count(), by:{source}``.

        Args:
            text: the query; ``logs`` is this table. See docs/language.md.
            since: of this time and later, up to now if `until` is not given; a ``from:`` of the query counts more.
            until: before this time, unless the query has a ``to:``.
            variables: values for ``$names`` in the query, which are never taken for a part of it.
            limits: of time, rows and memory.
            now: what ``now()`` is.
            tables: what the query may open by ``fetch "..."`` besides this table: names and the tables that they stand
                for, ``{"audit": "/lake/audit"}``; or tables, and folders of tables, that it may open by their path,
                ``["/lake"]``; or `coprlake.ANY_TABLE`, for the query of somebody who may read what this process may.
                By default nothing.
            use_sketches: False to read everything that time and partition leave, which gives the same.

        Raises:
            QueryError: the query is wrong, and where.
        """
        if not isinstance(text, str):
            raise UsageError(f"expected the text of a query, found {text!r}")
        from coprlake.query.fetching import Fetching
        from coprlake.query.querying import Catalog, Query  # DuckDB and the compiler are loaded when first used

        fetching = Fetching(tables)

        def other(name: str) -> tuple[str, Callable[[], View]]:
            table = open_table(fetching.place(name))
            return table.uri, table._view

        return Query(
            text,
            lambda: Catalog(self._view, self.uri, other),
            limits=limits,
            variables=variables,
            timeframe=(
                None if since is None else microseconds(since, FOREVER[0]),
                None if until is None else microseconds(until, FOREVER[1]),
            ),
            now=None if now is None else microseconds(now, 0),
            options=SearchOptions(use_sketches=use_sketches, strict=True),
        )

    def info(self) -> information.TableInfo:
        """Segments, records, and bytes by part."""
        snapshot = self.snapshot()
        columns = {field.name: str(field.type) for field in snapshot.schema if field.name not in HIDDEN}
        rules = self._log.configuration.get(RULES_PROPERTY, RULES)
        info = information.TableInfo(self.uri, snapshot.version, self.partition_by, columns, rules)
        info.problems += map(str, snapshot.missing)
        return information.describe(info, snapshot.segments)

    def optimize(
        self,
        *,
        target_bytes: int = OPTIMIZED_SEGMENT_BYTES,
        level: int = OPTIMIZED_LEVEL,
        full: bool = False,
        repartition: "Partitions | None" = None,
        progress: "Progress | None" = None,
    ) -> "optimizing.OptimizeReport":
        """Merge small segments, neighbours in time; see `coprlake.storage.optimizing.optimize`.

        With `repartition`, ``none`` or ``day``, rewrite all of them for these partitions, in one commit.
        """
        from coprlake.storage.repartitioning import optimize_or_repartition

        return optimize_or_repartition(
            self._delta_log("optimize"),
            self.snapshot,
            repartition,
            target_bytes=target_bytes,
            level=level,
            full=full,
            plan=self.index_plan,
            progress=progress,
        )

    def delete(
        self,
        predicate: Predicate = EVERYTHING,
        *,
        since: Time = None,
        until: Time = None,
        progress: "Progress | None" = None,
        is_repeated: bool = False,
    ) -> "deleting.DeleteReport":
        """Delete the committed records that match, in a range of time; `deletions` tells how far that is.

        Args:
            predicate: which records.
            since: of this time and later.
            until: before this time.
            progress: told how many bytes of data were worked on.
            is_repeated: whether this runs regularly: then a field that no record has is an error only in a ``~``.

        Raises:
            UsageError: neither a predicate nor a time is given: that would delete everything. Or the predicate names
                what no record has, probably by a typo, with which a ``~`` would delete everything.
        """
        from coprlake.segment.mutable import SegmentOptions
        from coprlake.storage import deleting
        from coprlake.storage.writer import scratch_options

        if not isinstance(predicate, Combinable):
            advice = "to delete the records that contain a text, pass contains(text)"
            raise UsageError(f"expected a predicate, found {predicate!r}; {advice}")
        if predicate == EVERYTHING and since is None and until is None:
            raise UsageError("this would delete every record; name a predicate or a time")
        schema = self.schema
        times = SearchOptions(since=microseconds(since, FOREVER[0]), until=microseconds(until, FOREVER[1]))
        times = timed(times, schema)
        doomed = deleting.Doomed(resolved(predicate, schema), times.since, times.until, times.time_column)
        refuse_doubts(predicate, View(self.snapshot()), schema, is_repeated=is_repeated)
        log = self._delta_log("delete")
        log.check_writable("delete")
        own = SegmentOptions(searchable=False, gram_fields=self.gram_fields, rules=self.rules)
        options = scratch_options(own, log.folder)
        return deleting.delete(log, self.snapshot, doomed, options, progress)

    def retain(self, age: timedelta | str, predicate: Predicate = EVERYTHING) -> "deleting.DeleteReport":
        """Delete records that are older than `age`, such as ``30d``: all records, or those that match."""
        return self.delete(predicate, until=parse_span(age) if isinstance(age, str) else age, is_repeated=True)

    def deletions(self) -> "list[deleting.DeletionStatus]":
        """All deletions, newest first: hidden from every search, or erased from the disk as well."""
        from coprlake.storage import deleting

        return deleting.deletions(self._delta_log("list deletions"))

    def vacuum(self, *, retention_hours: float = VACUUM_HOURS, dry_run: bool = False) -> "vacuuming.VacuumReport":
        """Remove files that no version of the last hours needs."""
        from coprlake.storage import vacuuming

        return vacuuming.vacuum(self._delta_log("vacuum"), retention_hours=retention_hours, dry_run=dry_run)

    def verify(self, *, deep: bool = False, progress: "Progress | None" = None) -> "verifying.VerifyReport":
        """Check all files; see `coprlake.storage.verifying.verify`."""
        from coprlake.storage import verifying

        fresh = open_segments(self._log.folder, [s.entry for s in self.snapshot().segments], self.schema, {})
        report = verifying.verify(fresh, deep=deep, progress=progress)
        if isinstance(self._log, DeltaLog):
            report.log_problems = [str(problem) for problem in self._log.problems()]
        return report

    def index(
        self,
        *,
        grams: Iterable[str] = (),
        rules: RuleSet | str | None = None,
        rebuild: bool = False,
        progress: "Progress | None" = None,
    ) -> "indexing.IndexReport":
        """Write the sidecars that are missing; the data is not touched.

        Args:
            grams: fields that can be searched inside words; the content can anyway.
            rules: what is a token: sidecars of other rules are replaced. By default the table's, for those that
                are written anyway.
            rebuild: write all of them.
            progress: told how many bytes of data were worked on.
        """
        from coprlake.storage import indexing

        rules = None if rules is None else rule_set(rules)
        features.check_writable(self.uri, self._log.configuration)
        segments = self.snapshot().segments
        report = indexing.index(
            self._log.folder,
            segments,
            plan=IndexPlan(frozenset(grams) | self.gram_fields, self.rules),
            rules=rules,
            rebuild=rebuild,
            progress=progress,
        )
        self.forget()
        return report

    def forget(self) -> None:
        """Open all segments again when they are next needed: their sidecars were written meanwhile."""
        with self._lock:
            self._snapshot = self._new_snapshot({})

    def _view(self) -> View:
        """One moment: no record is seen twice or not at all while a writer commits."""
        if not self._writers:
            return View(self.snapshot())
        with self._lock:
            waiting = [searchable for writer in list(self._writers) for searchable in writer.searchables()]
            return View(self.snapshot(), waiting)

    def _new_snapshot(self, known: dict[str, SealedSegment]) -> Snapshot:
        schema = self._log.schema
        segments = open_segments(self._log.folder, self._log.entries(), schema, known)
        missing = self._log.missing() if isinstance(self._log, DeltaLog) else ()
        return Snapshot(segments, schema, self._log.partition_by, self._log.version, missing)

    def _delta_log(self, what: str) -> DeltaLog:
        if isinstance(self._log, ParquetFolder):
            raise UsageError(
                f"{self.uri}: cannot {what}: this is a folder of Parquet files without a Delta log, and is only read; "
                "ingest it into a table of its own"
            )
        log = DeltaLog.open(self._log.folder)
        features.check_writable(self.uri, log.configuration)
        return log
