"""The reference of the language: made from the registries, and every example is run on both engines."""

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coprlake import Table
from coprlake.language.commands.catalog import COMMANDS
from coprlake.language.functions.catalog import FUNCTIONS
from coprlake.spark import query as spark_query
from scripts import make_language_reference as reference
from tests.language.language_cases import NOW, Case, canonical, check
from tests.spark_sessions import QUIET

pytestmark = QUIET

DOCS = Path(__file__).parent.parent.parent / "docs"
EXAMPLE = re.compile(r"```dql\n(.*?)```\n(?:```json\n(.*?)```)?", re.DOTALL)
FILES = ("language", "commands", "functions", "patterns")


def _examples() -> list[tuple[Case, bool]]:
    """Each example of the documents, and whether its rows are told."""
    found = []
    for name in FILES:
        for number, (text, rows) in enumerate(EXAMPLE.findall((DOCS / f"{name}.md").read_text())):
            wanted = tuple(canonical(json.loads(line)) for line in rows.splitlines() if line.strip())
            found.append((Case(f"{name} {number}", text, wanted, ordered=False), bool(rows)))
    return found


EXAMPLES = _examples()
by_name = pytest.mark.parametrize(("case", "told"), EXAMPLES, ids=[case.name for case, _ in EXAMPLES])


def test_the_reference_is_made_from_the_registries() -> None:
    advice = "run `python -m scripts.make_language_reference`"
    assert (DOCS / "commands.md").read_text() == reference.commands(), advice
    assert (DOCS / "functions.md").read_text() == reference.functions(), advice


def test_every_function_and_command_has_an_example() -> None:
    assert all(function.examples for function in FUNCTIONS.values() if function.group)
    assert all(info.examples for info in COMMANDS.values())
    assert len(EXAMPLES) > 200


@by_name
def test_examples_on_duckdb(table: Table, case: Case, told: bool) -> None:
    found = table.query(case.query, now=NOW).arrow()
    if told:
        check(case, found)


@pytest.mark.slow
@by_name
def test_examples_on_spark(spark: SparkSession, table: Table, case: Case, told: bool) -> None:
    found = spark_query(spark, table, case.query, now=NOW).arrow()
    if told:
        check(case, found)
