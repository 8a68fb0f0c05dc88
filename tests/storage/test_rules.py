"""Tables whose segments were indexed by different rules: what is found, what is merged, and what users are told."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from coprlake import (
    contains,
    create_table,
    equals,
    one_of,
    open_table,
    phrase,
    prefix,
    regex,
    suffix,
    term,
    wildcard,
)
from coprlake.cli.main import cli
from coprlake.config import RuleSet
from coprlake.errors import UsageError
from coprlake.predicate.predicates import Predicate
from coprlake.segment.mutable import SegmentOptions
from coprlake.segment.sealed import SealedSegment
from coprlake.segment.sidecar import KINDS
from coprlake.table import Table
from coprlake.tokens.profile import Indexed

LINES = [
    f"2026-11-16T03:{i:02}:07.{i * 7919:06}Z host-{i % 5} GET /api/v1/orders/{i * 12345678901} "
    f"from 10.20.{i % 7}.{i}:{4000 + i} trace=4bf92f3577b34da6a3ce929d0e0e{i:04x}"
    for i in range(40)
]
BATCHES = SegmentOptions(batch_bytes=600, slot_count=1)


def filled(path: Path, *rules: str, own: str = "winnowed") -> Table:
    """A segment of ten lines for each of the rules, of several batches each."""
    table = create_table(path, partition_by=None, rules=own)
    for number, name in enumerate(rules):
        with table.writer(options=replace(BATCHES, rules=name)) as writer:
            writer.append([{"content": line} for line in LINES[10 * number : 10 * number + 10]])
    return table


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return filled(tmp_path_factory.mktemp("mixed") / "table", "paper", "winnowed", "paper", "winnowed")


def versions(table: Table) -> list[RuleSet]:
    segments: list[SealedSegment] = sorted(table.snapshot().segments, key=lambda one: one.name)
    return [one.sidecar.sketch.rules for one in segments if one.sidecar]


def found(table: Table, predicate: Predicate, *, use_sketches: bool = True) -> list[str]:
    return sorted(row["content"] for row in table.search(predicate, use_sketches=use_sketches).rows())


def test_segments_of_both_rules_lie_in_one_table(mixed: Table) -> None:
    assert versions(mixed) == [RuleSet.PAPER, RuleSet.WINNOWED, RuleSet.PAPER, RuleSet.WINNOWED]
    kinds = [one.sidecar.description.fields["content"] for one in mixed.snapshot().segments if one.sidecar]
    assert {KINDS[kind] for kind in kinds} == {Indexed(RuleSet.PAPER, False), Indexed(RuleSet.WINNOWED, False)}
    info = mixed.info()
    assert (info.rules, info.segments_by_rules) == ("winnowed", {"paper": 2, "winnowed": 2})
    assert mixed.verify(deep=True).is_sound


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_piece_of_any_line_is_found_in_all_segments(mixed: Table, data: st.DataObject) -> None:
    line = data.draw(st.sampled_from(LINES))
    start = data.draw(st.integers(0, len(line) - 1))
    end = data.draw(st.integers(start + 1, min(len(line), start + 40)))
    text = line[start:end]
    makers: list[Callable[[], Predicate]] = [
        lambda: contains(text),
        lambda: term(text),
        lambda: phrase(text),
        lambda: prefix(line[:end]),
        lambda: suffix(line[start:]),
        lambda: wildcard(f"*{text}*" if not set(text) & set("*?\\") else "*"),
        lambda: regex("".join(f"\\{c}" if not c.isalnum() else c for c in text)),
    ]
    predicate = data.draw(st.sampled_from(makers))()
    assert found(mixed, predicate) == found(mixed, predicate, use_sketches=False)


@pytest.mark.parametrize("text", ["20.8.71:5017", "98765432109", "5b34da6a3cf", "api/v2/orde", "host-9 GET /app/"])
def test_pieces_that_are_not_there_open_nothing(tmp_path: Path, text: str) -> None:
    table = filled(tmp_path / "table", "winnowed", "winnowed")
    search = table.search(contains(text))
    assert list(search.rows()) == []
    assert search.report.batches_opened == 0


@pytest.mark.parametrize(
    "predicate",
    [
        contains("0.1.2.3.4.5"),
        prefix("98765432109 and more"),
        suffix("98765432109"),
        wildcard("*98765432109?*"),
        regex("id=98765432109[0-9]+"),
        phrase("*98765432109*"),
        term("98765432109"),
        contains("no1234567890x") | wildcard("a*98765432109"),
    ],
    ids=str,
)
def test_every_kind_of_text_search_is_pruned_by_winnowed_grams(tmp_path: Path, predicate: Predicate) -> None:
    table = create_table(tmp_path / "table", partition_by=None)
    with table.writer(options=BATCHES) as writer:
        writer.append([{"content": " ".join(f"{i:03}" for i in range(1000)) + " . and more id=x"}] * 3)
    search = table.search(predicate)
    assert list(search.rows()) == []
    assert search.report.batches_opened == 0


def test_digits_open_everything_by_the_rules_of_the_paper(tmp_path: Path) -> None:
    """Why there is a rule set 2: every three digits of this number are in every batch, but not the number."""
    lines = [" ".join(f"{i:03}" for i in range(1000))] * 3
    opened = {}
    for rules in RuleSet:
        table = create_table(tmp_path / rules, partition_by=None, rules=rules)
        with table.writer(options=BATCHES) as writer:
            writer.append([{"content": line} for line in lines])
        search = table.search(contains("12345678901"))
        assert list(search.rows()) == []
        opened[rules] = search.report.batches_opened
    assert opened == {"paper": 3, "winnowed": 0}


def test_optimize_brings_segments_to_the_rules_of_the_table(tmp_path: Path) -> None:
    for own, expected in (("winnowed", RuleSet.WINNOWED), ("paper", RuleSet.PAPER)):
        table = filled(tmp_path / own, "paper", "winnowed", "winnowed", own=own)
        report = table.optimize()
        assert (report.merged, report.written) == (3, 1)
        assert report.tokenized_again == (1 if own == "winnowed" else 2)
        assert versions(table) == [expected]
        assert table.verify(deep=True).is_sound
        for line in LINES[:30]:
            assert found(table, contains(line[-11:])) == [line]


@pytest.mark.parametrize("rules", RuleSet)
def test_long_values_of_a_field_with_grams_are_found_by_equality(tmp_path: Path, rules: RuleSet) -> None:
    ids = [f"4bf92f3577b34da6a3ce929d0e0e{i:04x}" for i in range(20)]
    table = create_table(tmp_path / "table", grams=["trace"], partition_by=None, rules=rules)
    with table.writer(options=BATCHES) as writer:
        writer.append([{"content": "x" * 100, "trace": one, "attributes": {"span": one}} for one in ids])
        for one in ids:
            assert table.search(equals("trace", one)).count() == 1
    for one in ids:
        assert table.search(equals("trace", one)).count() == 1
        assert table.search(one_of("trace", [one, "no"])).count() == 1
        assert table.search(equals("span", one)).count() == 1
        assert table.search(contains(one[5:17], field="trace")).count() == len(ids)
    assert table.delete(equals("trace", ids[3])).rows == 1


def test_an_old_table_with_grams_is_right_after_optimize(tmp_path: Path) -> None:
    ids = [f"4bf92f3577b34da6a3ce929d0e0e{i:04x}" for i in range(6)]
    table = create_table(tmp_path / "table", grams=["trace"], partition_by=None)
    for rules, some in (("paper", ids[:3]), ("winnowed", ids[3:])):
        with table.writer(options=replace(BATCHES, rules=rules)) as writer:
            writer.append([{"content": "x", "trace": one} for one in some])
    table.optimize()
    assert [table.search(equals("trace", one)).count() for one in ids] == [1] * 6


def test_segments_of_other_fields_with_grams_are_tokenized_again(tmp_path: Path) -> None:
    """Their sketches could not be relied on for a field that one has grams of and another has not."""
    table = create_table(tmp_path / "table", partition_by=None)
    for number in range(2):
        table.append([{"content": LINES[number], "user": f"user-{number}"}])
    table.index(grams=["user"], rebuild=True)
    for number in range(2, 4):
        table.append([{"content": LINES[number], "user": f"user-{number}"}])
    table.optimize()
    (segment,) = table.snapshot().segments
    assert segment.sidecar is not None
    assert segment.sidecar.description.fields["user"] == "any+winnowed"
    assert table.verify(deep=True).is_sound


def test_index_by_other_rules_writes_only_those_that_have_others(tmp_path: Path) -> None:
    table = filled(tmp_path / "table", "winnowed", "paper")
    assert table.index().indexed == 0
    assert table.index(rules="winnowed").indexed == 1
    assert set(versions(table)) == {RuleSet.WINNOWED}
    with pytest.raises(UsageError, match="no token rules"):
        table.index(rules="bogus")


def test_index_rebuilds_by_other_rules(tmp_path: Path) -> None:
    table = filled(tmp_path / "table", "winnowed", "paper")
    table.index(rebuild=True)
    assert set(versions(table)) == {RuleSet.WINNOWED}
    table.index(rebuild=True, rules="paper")
    assert set(versions(table)) == {RuleSet.PAPER}
    assert found(table, contains("10.20.3.3")) == found(table, contains("10.20.3.3"), use_sketches=False)


def test_a_table_keeps_its_rules(tmp_path: Path) -> None:
    table = create_table(tmp_path / "table", partition_by=None, rules="paper")
    table.append([{"content": line} for line in LINES])
    table = open_table(tmp_path / "table")
    assert table.rules == "paper"
    table.append([{"content": LINES[0]}])
    table.delete(contains(LINES[1]))
    assert set(versions(table)) == {RuleSet.PAPER}
    with pytest.raises(UsageError, match="there are no token rules 'papers'; expected winnowed or paper"):
        create_table(tmp_path / "other", rules="papers")


def test_the_command_has_the_rules(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("".join(f"{line}\n" for line in LINES))
    place = tmp_path / "table"

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(cli, [str(one) for one in arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    run("ingest", log, "--into", place, "--rules", "paper", "--engine", "local")
    assert json.loads(run("info", place, "--json"))["rules"] == "paper"
    run("index", place, "--rebuild", "--rules", "winnowed")
    told = json.loads(run("info", place, "--json"))
    assert (told["rules"], list(told["segments_by_rules"])) == ("paper", ["winnowed"])
    assert "with winnowed" in run("info", place)
    refused = CliRunner().invoke(cli, ["ingest", str(log), "--into", str(place), "--rules", "winnowed"])
    assert refused.exit_code == 2
    assert "indexes new segments with --rules paper" in refused.output
