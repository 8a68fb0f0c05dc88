"""The old name of `coprlake.spark.runtime.warming`, which set-up scripts may still name; kept for one release."""

import warnings

from coprlake.spark.runtime.warming import warm_up as warm_up

warnings.warn("coprlake.spark.warming is now coprlake.spark.runtime.warming", DeprecationWarning, stacklevel=2)
