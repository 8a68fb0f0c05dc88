"""The driver and the workers must run the same build of coprlake.

A task is sent as a pickle that names classes of the driver's build. In a worker with another build these may be missing
or, worse, mean something else. So a task travels as bytes inside a small function that Spark pickles by value: the
worker compares the versions first, and only then unpacks what the driver sent.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from coprlake import __version__
from coprlake.errors import UsageError

Task = TypeVar("Task", bound=Callable[..., Any])


def same_build(task: Task) -> Task:
    """Wrap a task so that workers with another build raise an error that says what to install."""
    from pyspark.cloudpickle import dumps

    packed, build = dumps(task), __version__
    unpacked: list[Callable[..., Any]] = []

    def run(*arguments: Any) -> Any:  # self-contained: this module is not loaded when it runs
        if not unpacked:
            import pickle

            import coprlake

            if coprlake.__version__ != build:
                raise RuntimeError(
                    f"the driver runs coprlake {build}, this worker {coprlake.__version__}; install the same version "
                    "on the driver and on all workers"
                )
            unpacked.append(pickle.loads(packed))
        return unpacked[0](*arguments)

    return cast(Task, run)


def check_build(build: str) -> None:
    """In a worker: check the build of the driver, for objects that Spark pickles by reference to their class.

    Raises:
        UsageError: the driver runs another build.
    """
    if build != __version__:
        raise UsageError(
            f"the driver runs coprlake {build}, this worker {__version__}; install the same version on the driver and "
            "on all workers"
        )
