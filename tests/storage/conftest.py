"""Fixtures for tests of tables on disk."""

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test puts its table."""
    return tmp_path / "table"
