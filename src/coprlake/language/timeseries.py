"""`makeTimeseries`: the slots of time, and the command."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from coprlake.language import syntax
from coprlake.language.plan import Apply, Column, Constant, Expr, Ref, Series, SeriesBounds
from coprlake.language.scope import Scope
from coprlake.language.times import Months
from coprlake.language.types import DOUBLE, DURATION, TIMEFRAME, TIMESTAMP, array

if TYPE_CHECKING:
    from coprlake.language.commands import Pipeline

MINUTE: Final = 60 * 10**6
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
STEPS: Final = (
    *(minutes * MINUTE for minutes in (1, 2, 3, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 4, 6, 8, 12, 24)),
)
"""The intervals that are taken when none is given, in microseconds; longer ones are whole days."""
MOST_SLOTS: Final = 1500
DEFAULT_BINS: Final = 120


def slots(bounds: SeriesBounds) -> tuple[int, int, int] | None:
    """The begin, interval and number of slots; None if they depend on the records."""
    if bounds.since is None or bounds.until is None:
        return None
    interval = bounds.interval
    if interval is None:
        ideal = -(-(bounds.until - bounds.since) // bounds.bins)
        interval = next((step for step in STEPS if ideal <= step), -(-ideal // DAY) * DAY)
    start = bounds.since // interval * interval
    return start, interval, max(0, -(-(bounds.until - start) // interval))


def make_timeseries(pipeline: "Pipeline", step: syntax.Command, scope: Scope) -> Scope:
    """Handle the command."""
    from coprlake.language.commands import group_keys, items, text_of, time_range

    plain, named = pipeline.split(
        step, "by", "interval", "bins", "from", "to", "timeframe", "time", "nonempty", "spread"
    )
    if "spread" in named:
        pipeline.fail("spread is not supported; give the time of a record by time:", named["spread"].span)
    bounds = _bounds(pipeline, scope, step, named, time_range)
    expressions = pipeline.expressions(scope)
    if "time" in named:
        time = expressions.expect(expressions.bind(named["time"].value), TIMESTAMP, named["time"].span, "time")
    else:
        time = expressions.expect(
            expressions.bind(syntax.Name("timestamp", step.name_span)), TIMESTAMP, step.name_span, "timestamp"
        )
    keys = group_keys(pipeline, scope, named)
    key_columns = {name: Column(name, value.type) for name, value in keys.items()}
    series = Series(
        scope.node,
        {key_columns[name]: value for name, value in keys.items()},
        {},
        {},
        {},
        time,
        bounds,
        Column("timeframe", TIMEFRAME),
        Column("interval", DURATION),
        {},
        "nonempty" in named and bool(pipeline.constant(scope, named["nonempty"], "boolean", "nonempty")),
    )
    fields: dict[str, Expr] = {"timeframe": Ref(series.timeframe), "interval": Ref(series.interval)}
    fields |= {name: Ref(column) for name, column in key_columns.items()}
    found = items(plain)
    if not found:
        pipeline.fail("makeTimeseries needs an aggregation: makeTimeseries count()", step.span)
    for argument in found:
        name = argument.alias.text if argument.alias else text_of(pipeline, argument)
        fields[name] = Ref(_measure(pipeline, scope, series, name, argument))
    return Scope(series, fields)


def _bounds(
    pipeline: "Pipeline", scope: Scope, step: syntax.Command, named: dict[str, syntax.Argument], time_range: object
) -> SeriesBounds:
    since, until = pipeline.timeframe
    if any(key in named for key in ("from", "to", "timeframe")):
        since, until = time_range(pipeline, named)  # type: ignore[operator]
    if since is not None and until is None:
        until = max(since, pipeline.session.now)
    interval, bins = None, DEFAULT_BINS
    if "interval" in named:
        length = pipeline.constant(scope, named["interval"], "duration", "interval")
        if isinstance(length, Months) or length is None or length < 1000:
            pipeline.fail("interval is a duration of a microsecond or more, without months", named["interval"].span)
        interval = int(length) // 1000
    if "bins" in named:
        if interval is not None:
            pipeline.fail("give either interval or bins", named["bins"].span)
        bins = pipeline.constant(scope, named["bins"], "long", "bins")
        if not 1 <= bins <= MOST_SLOTS:
            pipeline.fail(f"bins is a number from 1 to {MOST_SLOTS}", named["bins"].span)
    bounds = SeriesBounds(since, until, interval, bins)
    known = slots(bounds)
    if known is not None and known[2] > MOST_SLOTS:
        pipeline.fail(f"this makes {known[2]:,} slots; at most {MOST_SLOTS:,}: raise the interval", step.span)
    return bounds


def _measure(pipeline: "Pipeline", scope: Scope, series: Series, name: str, argument: syntax.Argument) -> Column:
    """Put one aggregation into the series; the column of its array."""
    call = argument.value
    if not isinstance(call, syntax.Call):
        pipeline.fail("makeTimeseries takes aggregations: makeTimeseries count()", argument.span)
    assert isinstance(call, syntax.Call)
    options = {a.name.lower(): a for a in call.arguments if a.name and a.name.lower() in ("default", "rate", "scalar")}
    bare = replace(call, arguments=tuple(a for a in call.arguments if a not in options.values()))
    if "scalar" in options:
        pipeline.fail("scalar is not supported; use summarize", options["scalar"].span)
    applied = pipeline.expressions(scope, lambda made: made).bind(bare)
    if not isinstance(applied, Apply) or not applied.function.is_aggregate:
        pipeline.fail(f"{call.name} is not an aggregation", argument.span)
    kind = applied.type
    measure: Column
    if "rate" in options:
        rate = pipeline.constant(scope, options["rate"], "duration", "rate")
        if isinstance(rate, Months) or not rate or not kind.is_number:
            pipeline.fail("rate is a duration, for an aggregation that gives a number", options["rate"].span)
        kind = DOUBLE
    measure = Column(name, kind)
    if "rate" in options:
        series.rates[measure] = int(rate)
    series.measures[measure] = applied
    series.fills[measure] = None
    if "default" in options:
        expressions = pipeline.expressions(scope)
        found = expressions.bind(options["default"].value)
        if not isinstance(found, Constant):
            pipeline.fail("default has to be a constant", options["default"].span)
        series.fills[measure] = expressions.expect(found, kind, options["default"].span, "default")
    result = Column(name, array(kind))
    series.arrays[measure] = result
    return result
