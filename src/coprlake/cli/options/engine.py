"""The engine of a command, this process or Spark: its options, and the Spark session."""

import functools
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from coprlake.cli.options.choices import NearestChoice
from coprlake.extras import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coprlake.cli.options.engine_choice import Work

ENGINE_VARIABLE = "COPRLAKE_ENGINE"
MASTER_VARIABLE = "COPRLAKE_MASTER"
AUTO = "auto"
_SUBMITTED_VARIABLE = "PYSPARK_GATEWAY_PORT"
_IN_PROCESS = ("local", "duckdb")
_SPARK_ONLY = {"master": "--master", "confs": "--conf", "jars": "--jars"}


@dataclass(frozen=True)
class Engine:
    """The engine that the command line chose.

    Attributes:
        name: ``spark``, ``local``, ``duckdb``, or ``auto`` until `weighed` has chosen.
        reason: why this engine, if the user left it open.
        asked: what in the environment asks for Spark if the engine is ``auto``.
        master: the master URL of Spark; None for the default.
        confs: Spark settings.
        jars: files for Spark's class path.
    """

    name: str
    reason: str | None = None
    asked: str | None = None
    master: str | None = None
    confs: Mapping[str, str] = field(default_factory=dict)
    jars: tuple[str, ...] = ()

    @property
    def is_spark(self) -> bool:
        """Whether Spark does the work."""
        return self.name == "spark"

    def able(self, local_only: Sequence[str]) -> "Engine":
        """Check that Spark, if it was chosen, can do what was asked for.

        Args:
            local_only: the requested options and inputs that Spark does not support, as the user wrote them.

        Raises:
            click.UsageError: it cannot.
        """
        if self.is_spark and local_only:
            raise click.UsageError(f"{local_only[0]} needs the local engine; add --engine local")
        return self

    def weighed(self, work: "Work", local_only: Sequence[str] = ()) -> "Engine":
        """Choose the faster engine if the user left it open.

        Args:
            work: how much there is to do.
            local_only: the requested options and inputs that Spark does not support, as the user wrote them.

        Raises:
            click.UsageError: the user chose Spark explicitly, and it does not support something.
        """
        from coprlake.cli.options.engine_choice import choose, core_count, spark_obstacle

        if self.name != AUTO:
            return self.able(local_only)
        choice = choose(work, core_count(), local_only=local_only, asked=self.asked, obstacle=spark_obstacle)
        return replace(self, name="spark" if choice.is_spark else "local", reason=choice.reason)

    @contextmanager
    def session(
        self, *, jars: Sequence[str | Path] = (), confs: Mapping[str, str] | None = None
    ) -> Iterator["SparkSession"]:
        """Start a Spark session, and translate its errors into ours.

        Args:
            jars: files for the class path, unless --jars names others.
            confs: settings; those of --conf take precedence.
        """
        from coprlake.spark import session
        from coprlake.spark.runtime.failures import clear_errors

        chosen = {**(confs or {}), **self.confs}
        is_quiet = not os.environ.get("COPRLAKE_DEBUG")
        with ExitStack() as stack:
            stack.enter_context(_without_traces(is_quiet))
            with _shown("starting Spark ..."), _own_interrupts():
                spark = stack.enter_context(session(self.master, chosen, jars=self.jars or jars, quiet=is_quiet))
            stack.enter_context(clear_errors())  # inside the session: messages are read from Java
            yield spark


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Restore our Ctrl-C handler afterwards: Spark's own calls Java in the middle of a reply."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _without_traces(is_quiet: bool) -> Iterator[None]:
    """Suppress the tracebacks that Py4J logs to the root logger on Ctrl-C."""

    def is_wanted(record: logging.LogRecord) -> bool:
        return not is_quiet

    logger = logging.getLogger()
    logger.addFilter(is_wanted)
    try:
        yield
    finally:
        logger.removeFilter(is_wanted)


@contextmanager
def _shown(text: str) -> Iterator[None]:
    """Show a text on the terminal, if there is one, while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    click.echo(text, nl=False, err=True)
    try:
        yield
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def pairs(what: str, example: str, prefix: str = "") -> Callable[..., dict[str, str]]:
    """Make the callback of a repeatable option that takes KEY=VALUE.

    Args:
        what: what a pair is called in messages.
        example: a valid pair, for messages.
        prefix: the prefix that every key must have.
    """

    def parsed(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, str]:
        found = {}
        for text in given:
            key, equals, value = text.partition("=")
            key = key.strip()
            if not equals or not key.removeprefix(prefix) or not key.startswith(prefix):
                raise click.BadParameter(
                    f"{text!r} is not a valid {what}; expected KEY=VALUE, such as {example}", ctx, param
                )
            found[key] = value.strip()
        return found

    return parsed


def _files(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    for name in names:
        if ":/" not in name and not Path(name).is_file():
            raise click.BadParameter(f"{name}: no such file", ctx, param)
    return tuple(names)


_SPARK_OPTIONS = [
    click.option(
        "--master",
        envvar=MASTER_VARIABLE,
        show_envvar=True,
        metavar="URL",
        help="Spark master URL, such as local[4], spark://host:7077 or yarn. Defaults to local[*]: all local cores.",
    ),
    click.option(
        "--conf",
        "confs",
        multiple=True,
        metavar="KEY=VALUE",
        callback=pairs("Spark setting", "spark.driver.memory=4g", "spark."),
        help="Spark setting, such as spark.driver.memory=4g. Can be repeated.",
    ),
    click.option(
        "--jars", multiple=True, metavar="FILE,...", callback=_files, help="Files to add to Spark's class path."
    ),
]


def spark_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that always runs on Spark, passed to it as one argument, `engine`."""

    @functools.wraps(function)
    def with_spark(*arguments: Any, **given: Any) -> Any:
        own = {name: given.pop(name) for name in _SPARK_ONLY}
        require_spark()
        return function(*arguments, engine=Engine("spark", **own), **given)

    return _decorated(with_spark, _SPARK_OPTIONS)


class _EngineChoice(NearestChoice):
    """Accepts any name of the engine in this process, since COPRLAKE_ENGINE applies to all commands."""

    def __init__(self, local: str) -> None:
        super().__init__([AUTO, local, "spark"])
        self._local = local

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(self._local if value in _IN_PROCESS else value, param, ctx)


def engine_options(local: str = "local", *, weighs: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of a command that has both engines, passed to it as one argument, `engine`.

    Args:
        local: the name of the engine in this process: ``local``, or ``duckdb`` for the query language.
        weighs: whether ``auto`` depends on the amount of work; then the command must call `Engine.weighed`. Otherwise
            it is this process, unless an option for Spark is given.
    """
    here = "this process (local)" if local == "local" else "DuckDB in this process"
    automatic = "whichever is faster" if weighs else here
    chooser = click.option(
        "--engine",
        "engine_name",
        type=_EngineChoice(local),
        default=AUTO,
        show_default=True,
        envvar=ENGINE_VARIABLE,
        show_envvar=True,
        help=f"Engine to run on: {here}, or Spark, which needs Java; auto is {automatic}, and Spark if --master, "
        "--conf or --jars is given.",
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_engine(*arguments: Any, **given: Any) -> Any:
            own = {name: given.pop(name) for name in _SPARK_ONLY}
            engine = _chosen(given.pop("engine_name"), own, default=AUTO if weighs else local)
            return function(*arguments, engine=engine, **given)

        return _decorated(with_engine, [chooser, *_SPARK_OPTIONS])

    return decorate


def _chosen(name: str, own: dict[str, Any], default: str) -> Engine:
    source = click.get_current_context().get_parameter_source
    given = [option for key, option in _SPARK_ONLY.items() if source(key) == ParameterSource.COMMANDLINE]
    if given and name in _IN_PROCESS:
        raise click.UsageError(f"{given[0]} has no effect with --engine {name}")
    if given or name == "spark":
        require_spark()
    if name != AUTO:
        return Engine(name, **own)
    if given:
        return Engine("spark", reason=f"because of {given[0]}", **own)
    return Engine(default, asked=_asking_variable(own["master"]), **own)


def _asking_variable(master: str | None) -> str | None:
    """Return the variable that asks for Spark: the user's, or that of spark-submit, which has started it already."""
    if master is not None:
        return MASTER_VARIABLE
    return _SUBMITTED_VARIABLE if os.environ.get(_SUBMITTED_VARIABLE) else None


def _decorated(function: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    for option in reversed(options):
        function = option(function)
    return function
