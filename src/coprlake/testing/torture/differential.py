"""Differential fuzzing: all ways to answer a question must agree.

Random predicates and pipelines run on random tables of every type, written by us and by others. The results with and
without sketches, on one thread and on many, of plain DuckDB SQL on the same files where SQL can express the question,
and of a plain Python oracle row by row must agree. An error is an answer if it is one of ours and all ways raise it.

    python -m coprlake.testing.torture.differential --seed 7 --seconds 60
    python -m coprlake.testing.torture.differential --seed 7 --table 12 --case 3
"""

import argparse
import contextlib
import json
import random
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from coprlake.errors import CoprlakeError
from coprlake.testing.torture.answers.answer_comparing import (
    OpenTable,
    SearchCase,
    random_extra,
    wrong_pipeline,
    wrong_search,
)
from coprlake.testing.torture.answers.foreign_data import ID, random_data
from coprlake.testing.torture.answers.random_pipelines import Drawing, Pipeline
from coprlake.testing.torture.answers.random_predicates import Known, random_predicate, random_times
from coprlake.testing.torture.answers.shrinking import Question, shrunk
from coprlake.testing.torture.answers.spark_writer import has_java, session
from coprlake.testing.torture.answers.writers import SPARK, Recipe, Written, fitted, random_recipe, write
from coprlake.testing.torture.outcome import Budget, Failure, Outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES_A_TABLE: Final = 50
SPARK_EVERY: Final = 60
"""Spark writes one in this many tables, in runs of at least `SPARK_SECONDS`."""
SPARK_SECONDS: Final = 300.0
SHRINK_SECONDS: Final = 20.0
MOST_FAILURES: Final = 10
"""A run stops after this many failures: they have the same few causes, and shrinking takes time."""


def run(seed: int, seconds: float, folder: Path | str, cases: int | None = None) -> Outcome:
    """Fuzz until the time is up or `cases` are done; the same seed gives the same cases in the same order."""
    outcome = Outcome()
    budget = Budget(outcome, seconds, cases)
    number = 0
    with contextlib.ExitStack() as stack:
        spark = stack.enter_context(session()) if seconds >= SPARK_SECONDS and has_java() else None
        while not budget.is_spent and len(outcome.failures) < MOST_FAILURES:
            if not _is_for_spark(number) or spark is not None:
                _run_table(seed, number, Path(folder), outcome, budget, spark)
            number += 1
    _ = budget.is_spent  # records the seconds
    return outcome


def _is_for_spark(number: int) -> bool:
    return number % SPARK_EVERY == SPARK_EVERY // 2


def table_of(seed: int, number: int) -> tuple[Recipe, pa.Table]:
    """The data of a table in a run, and the recipe to write it."""
    chance = random.Random(f"{seed}/{number}")
    data = random_data(chance)
    recipe = random_recipe(chance, data)
    return fitted(replace(recipe, writer=SPARK, deleted=None) if _is_for_spark(number) else recipe, data)


def question_of(seed: int, number: int, case: int, table: OpenTable, known: Known) -> tuple[Question, bool]:
    """A question in a run, and whether DuckDB also reads the files for it."""
    chance = random.Random(f"{seed}/{number}/{case}")
    if chance.random() < 0.2:
        return Drawing(known, table.schema).pipeline(chance), chance.random() < 0.3
    predicate = random_predicate(known, chance)
    since, until = random_times(known, chance)
    return SearchCase(predicate, since, until, random_extra(chance)), False


def _wrong(table: OpenTable, question: Question, by_files: bool, outcome: Outcome | None = None) -> str | None:
    def seen(way: str) -> None:
        if outcome is not None:
            outcome.counts[way] = outcome.counts.get(way, 0) + 1

    if isinstance(question, Pipeline):
        return wrong_pipeline(table, question, by_files, seen)
    return wrong_search(table, question, seen)


def _run_table(
    seed: int, number: int, folder: Path, outcome: Outcome, budget: Budget, spark: "SparkSession | None" = None
) -> None:
    recipe, data = table_of(seed, number)
    place = folder / "table"
    table, problem = _opened(recipe, data, place, spark)
    if table is None:
        if problem.startswith("refused"):
            outcome.count("refused")
        else:
            outcome.count(recipe.writer)
            _note(outcome, seed, number, None, recipe, data, problem)
        return
    known = Known(table.rows, table.schema.names)
    try:
        for case in range(CASES_A_TABLE):
            if budget.is_spent or len(outcome.failures) >= MOST_FAILURES:
                return
            question, by_files = question_of(seed, number, case, table, known)
            wrong = _wrong(table, question, by_files, outcome)
            outcome.count(f"{recipe.writer}, {'pipeline' if isinstance(question, Pipeline) else 'search'}")
            if wrong is not None:
                _fail(outcome, (seed, number, case), recipe, data, question, by_files, folder, wrong, spark)
                return  # the next cases of this table would mostly fail in the same way
    finally:
        table.close()


def _opened(
    recipe: Recipe, data: pa.Table, place: Path, spark: "SparkSession | None" = None
) -> tuple[OpenTable | None, str]:
    """The table, or what went wrong while it was written or read."""
    try:
        written = write(recipe, data, place, spark)
    except CoprlakeError as error:
        return None, f"refused: {error}"
    except Exception as error:
        return None, f"unclean {type(error).__name__} while it was written or opened: {str(error)[:300]}"
    problem = _lost_rows(recipe, data, written)
    return (OpenTable(written), "") if problem is None else (None, problem)


def _lost_rows(recipe: Recipe, data: pa.Table, written: Written) -> str | None:
    """What is wrong if the files do not hold the rows that were written, except deleted ones; otherwise None."""
    gone = set() if recipe.deleted is None else set(getattr(recipe.deleted, "values", ()))
    expected = sorted(number for number in data.column(ID).to_pylist() if number not in gone)
    found = sorted(written.data.column(ID).to_pylist())
    return None if found == expected else f"rows {expected} were written, the files have {found}"


def _fail(
    outcome: Outcome,
    place: tuple[int, int, int],
    recipe: Recipe,
    data: pa.Table,
    question: Question,
    by_files: bool,
    folder: Path,
    wrong: str,
    spark: "SparkSession | None" = None,
) -> None:
    """Shrink the case and record it."""

    def fails(smaller: pa.Table, simpler: Question) -> str | None:
        table, problem = _opened(*fitted(recipe, smaller), folder / "smaller", spark)
        if table is None:
            return None if problem.startswith("refused") else problem
        try:
            return _wrong(table, simpler, by_files)
        finally:
            table.close()

    small, simple, problem = shrunk(data, question, fails, SHRINK_SECONDS)
    seed, number, case = place
    _note(outcome, seed, number, case, recipe, small, problem if problem else wrong, simple)


def _note(
    outcome: Outcome,
    seed: int,
    number: int,
    case: int | None,
    recipe: Recipe,
    data: pa.Table,
    problem: str,
    question: Question | None = None,
) -> None:
    again = f"python -m coprlake.testing.torture.differential --seed {seed} --table {number}"
    again += "" if case is None else f" --case {case}"
    asked = "" if question is None else (question.text if isinstance(question, Pipeline) else str(question))
    rows = repr(data.slice(0, 5).to_pydict()) if _can_show(data) else "(rows that Python cannot show)"
    schema = ", ".join(f"{field.name}: {field.type}" for field in data.schema)
    text = f"{again}\n  {recipe}\n  {data.num_rows} rows of {schema}\n  {rows[:1500]}\n  {asked}"
    outcome.failures.append(Failure(seed, text, problem))


def _can_show(data: pa.Table) -> bool:
    try:
        data.slice(0, 5).to_pydict()
    except (ValueError, OverflowError):
        return False
    return True


def main(arguments: list[str] | None = None) -> int:
    """Fuzz for a while, or rerun one case; the exit status is 1 if something differs."""
    parser = argparse.ArgumentParser(prog="python -m coprlake.testing.torture.differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the seed of the run")
    parser.add_argument("--seconds", type=float, default=60.0, help="the time limit")
    parser.add_argument("--cases", type=int, default=None, help="stop after this many cases")
    parser.add_argument("--table", type=int, default=None, help="only this table of the run")
    parser.add_argument("--case", type=int, default=None, help="only this case of the table")
    chosen = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="coprlake-differential-"))
    try:
        if chosen.table is None:
            outcome = run(chosen.seed, chosen.seconds, folder, chosen.cases)
        else:
            outcome = again(chosen.seed, chosen.table, chosen.case, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for failure in outcome.failures:
        print(failure, file=sys.stderr)
    print(json.dumps(outcome.as_json() | {"examples": len(outcome.failures)}, indent=2))
    return 1 if outcome.failures else 0


def again(seed: int, number: int, case: int | None, folder: Path) -> Outcome:
    """Rerun one table of a run, or one case of it."""
    with contextlib.ExitStack() as stack:
        spark = stack.enter_context(session()) if _is_for_spark(number) else None
        return _again(seed, number, case, folder, spark)


def _again(seed: int, number: int, case: int | None, folder: Path, spark: "SparkSession | None") -> Outcome:
    outcome = Outcome()
    if case is None:
        _run_table(seed, number, folder, outcome, Budget(outcome, 3600), spark)
        return outcome
    recipe, data = table_of(seed, number)
    table, problem = _opened(recipe, data, folder / "table", spark)
    outcome.count(recipe.writer)
    if table is None:
        _note(outcome, seed, number, None, recipe, data, problem)
        return outcome
    question, by_files = question_of(seed, number, case, table, Known(table.rows, table.schema.names))
    wrong = _wrong(table, question, by_files, outcome)
    table.close()
    if wrong is not None:
        _fail(outcome, (seed, number, case), recipe, data, question, by_files, folder, wrong, spark)
    return outcome


if __name__ == "__main__":
    raise SystemExit(main())
