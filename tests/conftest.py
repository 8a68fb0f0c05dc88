"""Settings for all tests: seeded, strict about warnings with and without the JIT, and in this process."""

import os
import warnings

import pytest
from hypothesis import HealthCheck, settings
from numba import config

settings.register_profile(
    "coprlake", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("without_jit", settings.get_profile("coprlake"), max_examples=20, stateful_step_count=20)
settings.load_profile("without_jit" if config.DISABLE_JIT else "coprlake")

os.environ["COPRLAKE_ENGINE"] = "local"
"""Commands work in this process, also in those that tests start; tests of Spark say so."""


@pytest.fixture(autouse=True)
def _hashes_may_wrap() -> None:
    """Without the JIT a hash that wraps modulo 2**64, as it shall, makes NumPy warn."""
    if config.DISABLE_JIT:
        warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
