"""What narrows a query never decides it: the same rows with pruning and without it, on tables of any shape.

A predicate that a condition becomes is *necessary*; the engine decides. The type says so, and the law below holds.
"""

import ast
import itertools
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from coprlake import Table, create_table, open_table
from coprlake import spark as lake
from coprlake.errors import UsageError
from coprlake.language.pruning import Pruning
from coprlake.predicate.narrowing.claims import Exact, Necessary
from coprlake.predicate.predicates import EVERYTHING, Contains
from coprlake.query import duck_scan
from coprlake.query.options import SearchOptions
from coprlake.query.searching import Candidates, Search
from tests.spark_sessions import QUIET

pytestmark = QUIET

SOURCE = Path(__file__).parent.parent.parent / "src" / "coprlake"
TEXT_MAP = pa.map_(pa.string(), pa.string())


def _ids(table: Table, text: str, **options: Any) -> list[int]:
    return sorted(row["id"] for row in table.query(f"fetch logs | {text} | fields id", **options))


def _unpruned(table: Table, text: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the engine alone says."""
    with monkeypatch.context() as patch:
        patch.setattr("coprlake.language.compiling.pruning", lambda node: defaultdict(Pruning))
        return _ids(table, text)


def _written(place: Path, data: pa.Table) -> list[Table]:
    """The records in tables of another writer and in folders of Parquet files, with sidecars and without them."""
    found: list[Table] = []
    is_delta = len({name.lower() for name in data.schema.names}) == len(data.schema.names)
    for name in ("plain", "indexed"):
        if is_delta:
            write_deltalake(str(place / name / "delta"), data)
            found.append(open_table(place / name / "delta"))
        (place / name / "folder").mkdir(parents=True)
        pq.write_table(data.slice(0, 1), place / name / "folder" / "a.parquet")
        pq.write_table(data.slice(1), place / name / "folder" / "b.parquet")
        found.append(open_table(place / name / "folder"))
        if name == "indexed":
            for table in found[-1 - is_delta :]:
                table.index()
    return found


# The two findings


def test_search_finds_text_in_a_map_that_is_not_the_attributes(tmp_path: Path) -> None:
    tags = pa.array([[("k", "a needle here")], [("k", "hay")], None], TEXT_MAP)
    data = pa.table({"id": [0, 1, 2], "content": ["x", "y", "a needle too"], "tags": tags})
    for table in _written(tmp_path, data):
        assert _ids(table, 'search "needle"') == [0, 2]
        assert _ids(table, 'filter tags[k] == "hay"') == [1]


def test_an_attribute_with_the_name_of_a_column_that_is_missing(tmp_path: Path) -> None:
    attributes = pa.array([[("source", "web")], [("source", "db")], None], TEXT_MAP)
    for table in _written(tmp_path, pa.table({"id": [0, 1, 2], "attributes": attributes})):
        assert _ids(table, 'filter attributes[source] == "web"') == [0]
        (row,) = table.query('fetch logs | summarize n = countIf(attributes[source] == "web")')
        assert row["n"] == 1


def test_both_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    tags = pa.array([[("k", "a needle here")], None], TEXT_MAP)
    attributes = pa.array([[("source", "web")], [("source", "db")]], TEXT_MAP)
    table = _written(tmp_path, pa.table({"id": [0, 1], "tags": tags, "attributes": attributes}))[-1]
    for text in ('search "needle"', 'filter attributes[source] == "web"'):
        found = lake.query(spark, table, f"fetch logs | {text} | fields id")
        assert [row["id"] for row in found] == [0]


# The law, over tables of odd shapes

WORDS = ["needle", "hay stack", "Web", "web", "404", "", "*", "a_b", "käse", "NEEDLE-7"]
NAMES = ["id", "source", "day", "day2", "Level", "level", "*", "x y", "blob", "attributes", "timestamp", "tags"]


def _column(kind: str, chance: random.Random, count: int) -> pa.Array:
    def some(make: Any) -> list[Any]:
        return [None if chance.random() < 0.25 else make() for _ in range(count)]

    def word() -> str | None:
        return chance.choice([*WORDS, None])

    def entries() -> list[tuple[str, str | None]]:
        return [(key, word()) for key in chance.sample([*NAMES, ""], chance.randint(0, 5))]

    if kind == "map":
        return pa.array(some(entries), TEXT_MAP)
    if kind == "int map":
        return pa.array(some(lambda: [(key, 404) for key, _ in entries()]), pa.map_(pa.string(), pa.int64()))
    if kind == "struct":
        return pa.array(some(lambda: {"a": word(), "n": 404}), pa.struct([("a", pa.string()), ("n", pa.int64())]))
    if kind == "list":
        return pa.array(some(lambda: [word(), word()]), pa.list_(pa.string()))
    if kind == "binary":
        return pa.array(some(lambda: (word() or "needle").encode()), pa.binary())
    if kind == "int":
        return pa.array(some(lambda: chance.choice([0, 404, 7])), pa.int64())
    if kind == "dictionary":
        return pa.array(some(word), pa.string()).dictionary_encode()
    return pa.array(some(word), pa.string())


KINDS = ["text", "text", "dictionary", "map", "struct", "list", "binary", "int", "int map"]


def _table(seed: int, count: int = 12) -> pa.Table:
    """A table whose columns have names that mean something, and types that they usually do not have."""
    chance = random.Random(seed)
    columns: dict[str, pa.Array] = {"id": pa.array(range(count))}
    for name in chance.sample(NAMES[1:], chance.randint(2, 6)):
        usual = chance.random() < 0.7
        kind = "map" if name == "attributes" and usual else chance.choice(KINDS)
        if name != "timestamp":
            columns[name] = _column(kind, chance, count)
    columns.setdefault("attributes", _column("map", chance, count))
    return pa.table(columns)


def _conditions() -> Iterator[str]:
    fields = ["source", "day", "Level", "level", "`*`", "`x y`", "blob", "tags", "other"]
    fields += [f"attributes[`{name}`]" for name in [*NAMES, "other"]] + ['attributes[""]', "tags[source]", "tags[k]"]
    forms = [
        '{} == "{}"',
        'contains({}, "{}")',
        'contains({}, "{}", caseSensitive: false)',
        'startsWith({}, "{}")',
        'endsWith({}, "{}", caseSensitive: false)',
        'matchesPhrase({}, "{}")',
        'matchesValue({}, "*{}")',
        'in({}, "{}", "web")',
        'like({}, "%{}%")',
        'matchesRegex({}, "^{}")',
        '{} ~ "{}"',
    ]
    for form, field in itertools.product(forms, fields):
        for word in ("needle", "web", "404", "", "ay"):
            if not (form.startswith("matchesRegex") and word == ""):
                yield "filter " + form.format(field, word)
    for term in ("needle", "web", "404", "*eedl*", "hay*ack", "käse"):
        yield f'search "{term}"'


CONDITIONS = list(_conditions())


@pytest.mark.parametrize("seed", range(10))
def test_pruning_changes_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    tables = _written(tmp_path, _table(seed))
    for text in chance.sample(CONDITIONS, 12):
        if chance.random() < 0.3:
            text = f"{text} | {chance.choice(CONDITIONS)}"
        _same(chance.choice(tables), text, monkeypatch)


def _same(table: Table, text: str, patch: pytest.MonkeyPatch) -> None:
    """With sketches, without them, read by DuckDB, and without anything but the engine."""
    try:
        expected = _unpruned(table, text, patch)
    except UsageError:  # the query is wrong for a table of this shape, whoever runs it
        with pytest.raises(UsageError):
            _ids(table, text)
        return
    assert _ids(table, text) == expected, (table.uri, text)
    assert _ids(table, text, use_sketches=False) == expected, (table.uri, text)
    with patch.context() as much:
        much.setattr(duck_scan, "LITTLE_BYTES", 0)
        assert _ids(table, text) == expected, (table.uri, text)


def test_every_condition_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator may take long to meet a condition; here each meets a table that has all names."""
    chance = random.Random(5)
    names = {name: "int map" if name == "tags" else "text" for name in NAMES[1:] if name != "timestamp"}
    names |= {"attributes": "map", "blob": "binary", "level": "dictionary"}
    del names["source"]
    data = pa.table({"id": list(range(12)), **{name: _column(kind, chance, 12) for name, kind in names.items()}})
    table = _written(tmp_path, data)[-1]
    for text in CONDITIONS[::11] + CONDITIONS[-6:]:
        _same(table, text, monkeypatch)


def test_a_column_may_be_text_in_some_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"id": [0, 1], "code": ["404", "needle"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [2, 3], "code": [404, 7]}), tmp_path / "b.parquet")
    for indexed in (False, True):
        table = open_table(tmp_path)
        if indexed:
            table.index()
        assert _ids(table, 'filter contains(code, "0")') == [0, 2]
        assert _ids(table, 'search "404"') == [0, 2]
        _same(table, 'filter contains(code, "0")', monkeypatch)


def test_the_attributes_may_have_other_types_in_some_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = pa.table(
        {"id": [0, 1], "code": ["404", "needle"], "attributes": pa.array([[("k", "404")], None], TEXT_MAP)}
    )
    numbers = pa.table(
        {"id": [2, 3], "code": [404, 7], "attributes": pa.array([[("k", 404)], None], pa.map_(pa.string(), pa.int64()))}
    )
    pq.write_table(words, tmp_path / "a.parquet")
    pq.write_table(numbers, tmp_path / "b.parquet")
    for indexed in (False, True):
        table = open_table(tmp_path)
        if indexed:
            table.index()
        assert _ids(table, 'filter contains(code, "0")') == [0, 2]
        assert _ids(table, 'filter code == "404"') == [0, 2]
        assert _ids(table, 'filter attributes[k] == "404"') == [0, 2]
        assert _ids(table, 'filter k == "404"') == [0, 2]
        assert _ids(table, 'search "404"') == [0, 2]
        assert _ids(table, 'search "needle"') == [1]
        for text in ('filter code == "404"', 'filter contains(k, "4")', 'search "404"'):
            _same(table, text, monkeypatch)


def test_records_that_are_not_committed_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create_table(tmp_path / "table", schema=_table(3).schema)
    writer = table.writer()
    writer.append(_table(3))
    for text in CONDITIONS[::41]:
        _same(table, text, monkeypatch)
    writer.close()


# The types


def test_only_what_is_exact_answers() -> None:
    necessary = Necessary(Contains("x"))
    assert Exact(Contains("x")).necessary == necessary
    for wrong in (necessary, Exact(), "x", None):
        with pytest.raises(UsageError, match="expected a predicate"):
            Exact(wrong)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="expected a predicate"):
            Necessary(wrong)  # type: ignore[arg-type]
    assert not any(
        hasattr(Candidates, name)
        for name in ("count", "arrow", "pandas", "polars", "rows", "batches", "reader", "__arrow_c_stream__")
    )


def test_a_necessary_predicate_is_not_searched_for(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table")
    with pytest.raises(UsageError, match="expected a predicate"):
        table.search(Necessary(EVERYTHING))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        Search(table._view, Necessary(EVERYTHING), SearchOptions())  # type: ignore[arg-type]


CONFUSED = """
from coprlake.predicate.narrowing.claims import Exact, Necessary
from coprlake.predicate.predicates import EVERYTHING
from coprlake.query.options import SearchOptions
from coprlake.query.searching import Candidates, Search
from coprlake.query.shares import plan
from coprlake.spark.jobs.searching import SparkSearch, plan_candidates, plan_search
from coprlake.table import Table


def confused(table: Table, narrows: Necessary, decides: Exact, options: SearchOptions) -> None:
    Search(table._view, decides, options)
    Candidates(table._view, decides.necessary, options)
    Search(table._view, narrows, options)  # 1
    Candidates(table._view, decides, options)  # 2
    plan(table.snapshot(), decides, options)  # 3
    table.search(narrows)  # 4
    table.delete(narrows)  # 5
    plan_search(table, narrows)  # 6
    Exact(narrows)  # 7
    Necessary(decides)  # 8
    decides = narrows  # 9
    answer: SparkSearch[Exact] = plan_candidates(  # 10
        table, narrows, since=None, until=None, columns=["content"], use_sketches=True
    )
    narrows.exact  # 11
"""


@pytest.mark.slow
def test_mypy_rejects_every_confusion(tmp_path: Path) -> None:
    file = tmp_path / "confused.py"
    file.write_text(CONFUSED)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent", str(file)]
    root = SOURCE.parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    lines = {
        int(line.split(":")[1]) for line in done.stdout.splitlines() if line.startswith(str(file)) and "error" in line
    }
    marked = {number for number, line in enumerate(CONFUSED.splitlines(), 1) if "  # " in line}
    assert lines == marked, done.stdout + done.stderr


def test_exact_predicates_come_from_those_who_ask() -> None:
    """What a user asks for is exact by definition; nobody else may say so of a predicate.

    A search that asks again for further columns, and one that resolved the names of fields, ask for the same.
    """
    made = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Exact"
    }
    asking = {"table.py", "query/searching.py"}
    assert made == asking | {
        f"spark/{name}.py" for name in ("jobs/searching", "source/source_options", "source/data_source")
    }
