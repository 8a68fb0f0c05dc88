"""The old name of `coprlake.spark.runtime.daemon`, which settings of clusters may still name; kept for one release."""

import sys

from coprlake.spark.runtime.daemon import main

if __name__ == "__main__":
    print("coprlake: spark.python.daemon.module is now coprlake.spark.runtime.daemon", file=sys.stderr)
    main()
