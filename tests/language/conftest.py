"""Fixtures for tests of the query language."""

from pathlib import Path

import pytest

from coprlake import Table
from tests.language.language_cases import small_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The small table that the golden queries ask."""
    return small_table(Path(tmp_path_factory.mktemp("language")) / "logs")
