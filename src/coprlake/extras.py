"""Optional packages: which of them are installed, and what to run if one is missing.

The core of coprlake works without them. Whatever needs one calls `require` first, so that a missing package is one
clear line instead of a traceback.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Final, NamedTuple

from coprlake.errors import NotInstalledError


class _Package(NamedTuple):
    """An optional package: what is missing without it, and what to give to ``pip install``."""

    lacking: str
    installed_by: str


_SPARK: Final = _Package("Spark is not installed", "'coprlake[spark]'")
_TESTING: Final = _Package("coprlake.testing needs packages that are not installed", "'coprlake[testing]'")

HOW_TO_INSTALL_SPARK: Final = f"run pip install {_SPARK.installed_by}, then use --engine spark"
"""The advice where Spark would be of use but is not installed."""

OPTIONAL: Final = {
    "pyspark": _SPARK,
    "py4j": _SPARK,
    "pandas": _Package("pandas is not installed", "pandas"),
    "polars": _Package("Polars is not installed", "polars"),
    "hypothesis": _TESTING,
    "confluent_kafka": _TESTING,
}
"""The optional packages by the names under which they are imported."""

FOR_SPARK: Final = ("pyspark", "py4j", "pandas")
"""What a Spark session needs; PySpark needs pandas for everything that passes Arrow data."""


def is_installed(package: str) -> bool:
    """Whether a package can be imported; does not import it."""
    if package in sys.modules:
        return sys.modules[package] is not None
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # an import hook that refuses, or a module without a spec
        return False


def require(package: str) -> None:
    """Check that an optional package is installed.

    Raises:
        NotInstalledError: it is not; the message says what to run.
    """
    if not is_installed(package):
        raise _not_installed(package)


def require_spark() -> None:
    """Check that everything is installed that a Spark session needs; Java is checked elsewhere.

    Raises:
        NotInstalledError: it is not; the message says what to run.
    """
    show_pandas()
    for package in FOR_SPARK:
        if not is_installed(package):
            lacking = _SPARK.lacking if package != "pandas" else "Spark needs pandas, which is not installed"
            raise NotInstalledError(f"{lacking}; run: pip install {_SPARK.installed_by}")


class _HiddenPandas:
    """Makes `import pandas` fail. Not a `MetaPathFinder` by descent: `importlib.abc` takes 8 ms to import."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden: this program does not need it", name=fullname)


_HIDDEN: Final = _HiddenPandas()


def hide_pandas() -> None:
    """Make `import pandas` fail until `show_pandas`. For programs of our own only, never for those of others.

    PyArrow imports pandas as soon as it turns Python values into an array, to recognise data frames. That takes 0.2 s,
    as long as the rest of a search, and there are no data frames in the command line.
    """
    if _HIDDEN not in sys.meta_path:
        sys.meta_path.insert(0, _HIDDEN)


def show_pandas() -> None:
    """End what `hide_pandas` began; PyArrow still finds pandas where it must."""
    if _HIDDEN in sys.meta_path:
        sys.meta_path.remove(_HIDDEN)


def missing_package(error: BaseException | None) -> NotInstalledError | None:
    """The clear form of an error that was caused by a missing optional package; None if it had another cause."""
    seen = 0
    while error is not None and seen < 20:
        package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if package in OPTIONAL and not is_installed(package):
            return _not_installed(package)
        error, seen = error.__cause__ or error.__context__, seen + 1
    return None


def _not_installed(package: str) -> NotInstalledError:
    lacking, installed_by = OPTIONAL[package]
    return NotInstalledError(f"{lacking}; run: pip install {installed_by}")
