"""Settings for all tests: seeded, strict about warnings with and without the JIT, and in this process."""

import os
import uuid
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from numba import config
from pyarrow import fs

from tests.s3_server import s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile(
    "coprlake", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("without_jit", settings.get_profile("coprlake"), max_examples=20, stateful_step_count=20)
settings.load_profile("without_jit" if config.DISABLE_JIT else "coprlake")

os.environ["COPRLAKE_ENGINE"] = "local"
"""Commands work in this process, also in those that tests start; tests of Spark say so."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs Spark: tests that take its session, and those whose file, folder or name says so."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or "spark" in item.nodeid.lower():
            item.add_marker(pytest.mark.spark)


@pytest.fixture(autouse=True)
def _hashes_may_wrap() -> None:
    """Without the JIT a hash that wraps modulo 2**64, as it shall, makes NumPy warn."""
    if config.DISABLE_JIT:
        warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One Spark session for all tests that ask for it."""
    from coprlake import spark as lake
    from tests.spark_sessions import CONFS, MASTER

    with lake.session(MASTER, CONFS, quiet=True) as session:
        yield session


@pytest.fixture(scope="session")
def s3_environment(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[dict[str, str]]":
    """One S3 server for all tests that ask for it: the environment by which clients find it."""
    with s3_server(tmp_path_factory.mktemp("s3")) as environment:
        yield environment


@pytest.fixture
def bucket(s3_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a new, empty bucket, which this process and those that it starts can reach."""
    for name, value in s3_environment.items():
        monkeypatch.setenv(name, value)
    name = f"tests-{uuid.uuid4().hex}"
    filesystem, _ = fs.FileSystem.from_uri(f"s3://{name}?allow_bucket_creation=true")
    filesystem.create_dir(name)
    return f"s3://{name}"
