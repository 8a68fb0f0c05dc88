"""Fetches what the tests with Kafka need: the broker, and Spark's connector; prints where they are.

Run it from the root of the repository: ``python -m scripts.fetch_kafka``. What is there is not fetched again.
"""

import logging
import sys

from coprlake.errors import CoprlakeError
from coprlake.spark.runtime.jars import connector_jars
from coprlake.testing.kafka import broker_jars


def main() -> int:
    """Fetch both; 0, or 2 if that is not possible."""
    logging.basicConfig(format="%(message)s")
    try:
        for what, jars in (("broker", broker_jars()), ("connector", connector_jars())):
            print(f"{what}: {len(jars)} jars in {jars[0].parent}")
    except CoprlakeError as error:
        print(f"fetch_kafka: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
