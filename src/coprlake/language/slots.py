"""The time slots of `makeTimeseries`."""

from typing import Final

from coprlake.language.plan import SeriesBounds

MINUTE: Final = 60 * 10**6
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
STEPS: Final = (
    *(minutes * MINUTE for minutes in (1, 2, 3, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 4, 6, 8, 12, 24)),
)
"""The default intervals to choose from, in microseconds; longer ones are whole days."""
MOST_SLOTS: Final = 1500
DEFAULT_BINS: Final = 120


def slots(bounds: SeriesBounds) -> tuple[int, int, int] | None:
    """The start, interval and number of slots; None if they depend on the records."""
    if bounds.since is None or bounds.until is None:
        return None
    interval = bounds.interval
    if interval is None:
        ideal = -(-(bounds.until - bounds.since) // bounds.bins)
        interval = next((step for step in STEPS if ideal <= step), -(-ideal // DAY) * DAY)
    start = bounds.since // interval * interval
    return start, interval, max(0, -(-(bounds.until - start) // interval))
