"""Symbolic links inside of a folder are not followed out of it unless asked for."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coprlake.cli.main import cli
from coprlake.errors import NotFoundError
from coprlake.intake.reading import Intake
from coprlake.intake.sources.inputs import Walk, list_inputs
from coprlake.table import open_table

LINE = "2026-11-16T03:55:00Z INFO {}\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with a log, links inside of it, links out of it, and a loop."""
    outside, folder = tmp_path / "outside", tmp_path / "logs"
    (outside / "deep").mkdir(parents=True)
    (folder / "sub").mkdir(parents=True)
    (outside / "secret.log").write_text(LINE.format("secret"))
    (outside / "deep" / "more.log").write_text(LINE.format("more"))
    (folder / "sub" / "own.log").write_text(LINE.format("own"))
    (folder / "inner.log").symlink_to("sub/own.log")
    (folder / "out.log").symlink_to(outside / "secret.log")
    (folder / "sub" / "way_out.log").symlink_to("../../outside/secret.log")
    (folder / "folder_out").symlink_to(outside / "deep")
    (folder / "loop").symlink_to(folder)
    (folder / "sub" / "up").symlink_to("..")
    (tmp_path / "logs_too").mkdir()
    (tmp_path / "logs_too" / "near.log").write_text(LINE.format("near"))
    (folder / "near.log").symlink_to(tmp_path / "logs_too" / "near.log")  # a path that begins alike
    return folder


def names(files: list[str], folder: Path) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in files)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_links_out_of_a_folder_are_passed_over_and_counted(logs: Path) -> None:
    with Intake([logs]) as intake:
        assert names([file.path for file in intake.files], logs) == ["inner.log", "sub/own.log"]
        assert intake.report.skipped_links == 4
        assert any("out.log: a link that leads out of the folder" in text for text in intake.report.warnings)


def test_links_are_followed_if_asked_for_and_loops_end(logs: Path) -> None:
    with Intake([logs], follow_links=True) as intake:
        found = names([file.path for file in intake.files], logs)
        assert found == ["folder_out/more.log", "inner.log", "near.log", "out.log", "sub/own.log", "sub/way_out.log"]
        assert intake.report.skipped_links == 0


def test_a_link_that_is_named_is_followed(logs: Path, tmp_path: Path) -> None:
    assert [file.path for file in list_inputs([logs / "out.log"])] == [str(logs / "out.log")]
    (tmp_path / "to_logs").symlink_to(logs)
    assert len(list_inputs([tmp_path / "to_logs"])) == 2


def test_globs_stay_inside_too(logs: Path) -> None:
    walk = Walk()
    assert names([file.path for file in list_inputs([f"{logs}/*.log"], walk)], logs) == ["inner.log"]
    assert names(walk.links, logs) == ["near.log", "out.log"]
    assert len(list_inputs([f"{logs}/*.log"], Walk(follow_links=True))) == 3


def test_a_folder_of_such_links_alone_is_an_error_with_advice(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.log").symlink_to(logs / "sub" / "own.log")
    with pytest.raises(NotFoundError, match="--follow-links"):
        list_inputs([tmp_path / "links"])


def test_the_command_line_says_what_it_passed_over(logs: Path, tmp_path: Path) -> None:
    result = run("ingest", logs, "--into", tmp_path / "t", "--engine", "local")
    assert result.exit_code == 0
    assert "4 not followed" in result.stdout
    assert open_table(tmp_path / "t").search("secret").count() == 0
    result = run("ingest", logs, "--into", tmp_path / "u", "--engine", "local", "-L", "--json")
    assert json.loads(result.stdout)["reading"]["skipped_links"] == 0
    assert open_table(tmp_path / "u").search("secret").count() == 2
