"""The command `makeTimeseries`."""

from dataclasses import replace

from coprlake.language import syntax
from coprlake.language.binding.converting import expect
from coprlake.language.commands.pipeline import Pipeline, group_keys, items, text_of
from coprlake.language.commands.registry import command
from coprlake.language.commands.sources import time_range, until_now
from coprlake.language.plan import Apply, Column, Constant, Expr, Ref, Series, SeriesBounds
from coprlake.language.scope import Scope
from coprlake.language.slots import DEFAULT_BINS, MOST_SLOTS, slots
from coprlake.language.times import Months
from coprlake.language.types import DOUBLE, DURATION, TIMEFRAME, TIMESTAMP, array


@command(
    "makeTimeseries",
    "makeTimeseries [NAME =] AGGREGATION(default:, rate:), … [, by:{…}] [, interval: | bins:120] [, "
    "from:, to:, timeframe:] [, time:timestamp] [, nonempty:false]",
    "Returns for each group an array with one value per time slot. The timeframe is that of "
    "`fetch`, or the range of the records. Slots are aligned to the interval; there are at "
    "most 1,500. A slot without records is null, or the default.",
    parameters=("by", "interval", "bins", "from", "to", "timeframe", "time", "nonempty", "spread"),
    example='data record(timestamp = toTimestamp("2026-01-01T00:00:30Z")), record(timestamp = '
    'toTimestamp("2026-01-01T00:02:00Z")) | makeTimeseries n = count(default: 0), interval: 1m | fields n',
    gives=[{"n": [1, 0, 1]}],
)
def _make_timeseries(pipeline: Pipeline, step: syntax.Command, scope: Scope) -> Scope:
    plain, named = pipeline.split(step)
    if "spread" in named:
        pipeline.fail("spread is not supported; set the time of a record with time:", named["spread"].span)
    bounds = _bounds(pipeline, scope, step, named)
    expressions = pipeline.expressions(scope)
    if "time" in named:
        moment, span, what = expressions.bind(named["time"].value), named["time"].span, "time"
    else:
        moment, span, what = expressions.bind(syntax.Name("timestamp", step.name_span)), step.name_span, "timestamp"
    time = expect(pipeline.session, moment, TIMESTAMP, span, what)
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
    pipeline: Pipeline,
    scope: Scope,
    step: syntax.Command,
    named: dict[str, syntax.Argument],
) -> SeriesBounds:
    since, until = pipeline.timeframe
    if any(key in named for key in ("from", "to", "timeframe")):
        since, until = until_now(*time_range(pipeline, named), pipeline.session.now)
    interval, bins = None, DEFAULT_BINS
    if "interval" in named:
        length = pipeline.constant(scope, named["interval"], "duration", "interval")
        if isinstance(length, Months) or length is None or length < 1000:
            pipeline.fail(
                "interval must be a duration of at least a microsecond, not in months", named["interval"].span
            )
        interval = int(length) // 1000
    if "bins" in named:
        if interval is not None:
            pipeline.fail("give either interval or bins", named["bins"].span)
        bins = pipeline.constant(scope, named["bins"], "long", "bins")
        if not 1 <= bins <= MOST_SLOTS:
            pipeline.fail(f"bins must be a number from 1 to {MOST_SLOTS}", named["bins"].span)
    bounds = SeriesBounds(since, until, interval, bins)
    known = slots(bounds)
    if known is not None and known[2] > MOST_SLOTS:
        pipeline.fail(f"this makes {known[2]:,} slots, more than {MOST_SLOTS:,}; use a longer interval", step.span)
    return bounds


def _measure(pipeline: Pipeline, scope: Scope, series: Series, name: str, argument: syntax.Argument) -> Column:
    """Add an aggregation to the series and return the column of its array."""
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
            pipeline.fail(
                "rate must be a duration, and needs an aggregation that returns a number", options["rate"].span
            )
        kind = DOUBLE
    measure = Column(name, kind)
    if "rate" in options:
        series.rates[measure] = int(rate)
    series.measures[measure] = applied
    series.fills[measure] = None
    if "default" in options:
        found = pipeline.expressions(scope).bind(options["default"].value)
        if not isinstance(found, Constant):
            pipeline.fail("default must be a constant", options["default"].span)
        series.fills[measure] = expect(pipeline.session, found, kind, options["default"].span, "default")
    result = Column(name, array(kind))
    series.arrays[measure] = result
    return result
