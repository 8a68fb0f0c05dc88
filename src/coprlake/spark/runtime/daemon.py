"""The process from which Spark forks its Python workers, with coprlake loaded (``spark.python.daemon.module``)."""

import sys

from pyspark import daemon


def main() -> None:
    """Load what workers need, then run Spark's own daemon.

    Spark reads the port number from standard output, so nothing else may be printed there.
    """
    standard_output, sys.stdout = sys.stdout, sys.stderr
    try:
        from coprlake.spark.runtime.warming import warm_up

        warm_up()
    except Exception as error:  # a worker that has to compile is slow; no worker is worse
        print(f"coprlake: the kernels could not be loaded before workers start: {error}", file=sys.stderr)
    finally:
        sys.stdout = standard_output
    daemon.manager()


if __name__ == "__main__":
    main()
