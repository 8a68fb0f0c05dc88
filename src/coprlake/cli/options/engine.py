"""Where a command does its work: in this process, or on Spark. The options for it, and the session."""

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

from coprlake.cli.printing.notices import note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINE_VARIABLE = "COPRLAKE_ENGINE"
MASTER_VARIABLE = "COPRLAKE_MASTER"
_IN_PROCESS = ("local", "duckdb")
_SPARK_ONLY = {"master": "--master", "confs": "--conf", "jars": "--jars"}


@dataclass(frozen=True)
class Engine:
    """What the command line says about it.

    Attributes:
        name: ``spark``, ``local`` or ``duckdb``.
        is_chosen: whether somebody asked for this one.
        master: of the cluster; None for the default.
        confs: settings of Spark's.
        jars: files for its class path.
    """

    name: str
    is_chosen: bool = True
    master: str | None = None
    confs: Mapping[str, str] = field(default_factory=dict)
    jars: tuple[str, ...] = ()

    @property
    def is_spark(self) -> bool:
        """Whether Spark does the work."""
        return self.name == "spark"

    def able(self, local_only: Sequence[str]) -> "Engine":
        """An engine that can do all of this: the local one if Spark cannot and nobody insists on it.

        Args:
            local_only: what was asked for that Spark cannot do, in the words of the command line.

        Raises:
            click.UsageError: somebody insists.
        """
        if not self.is_spark or not local_only:
            return self
        if self.is_chosen:
            raise click.UsageError(f"{local_only[0]} needs the local engine; say --engine local")
        note(f"{local_only[0]}: the local engine is used")
        return replace(self, name="local")

    @contextmanager
    def session(
        self, *, jars: Sequence[str | Path] = (), confs: Mapping[str, str] | None = None
    ) -> Iterator["SparkSession"]:
        """A session of Spark; what it raises is clear.

        Args:
            jars: for the class path, unless the command line names others.
            confs: settings, unless the command line says otherwise.
        """
        from coprlake.spark import session
        from coprlake.spark.runtime.failures import clear_errors

        chosen = {**(confs or {}), **self.confs}
        is_quiet = not os.environ.get("COPRLAKE_DEBUG")
        with ExitStack() as stack:
            stack.enter_context(_without_traces(is_quiet))
            with _shown("starting Spark ..."), _own_interrupts():
                spark = stack.enter_context(session(self.master, chosen, jars=self.jars or jars, quiet=is_quiet))
            stack.enter_context(clear_errors())  # while Java is there, which is asked for the message
            yield spark


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Ctrl-C does afterwards what it did before: Spark's way to handle it asks Java in the middle of an answer."""
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
    """No pages of Python when somebody presses Ctrl-C: Py4J logs them, with no logger of its own."""

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
    """The text on the screen while something is done, if there is a screen."""
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
    """The callback of an option that takes KEY=VALUE, and may be repeated.

    Args:
        what: a pair is.
        example: of one.
        prefix: with which every key begins.
    """

    def parsed(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> dict[str, str]:
        found = {}
        for text in given:
            key, equals, value = text.partition("=")
            key = key.strip()
            if not equals or not key.removeprefix(prefix) or not key.startswith(prefix):
                raise click.BadParameter(f"{text!r} is no {what}; expected KEY=VALUE, such as {example}", ctx, param)
            found[key] = value.strip()
        return found

    return parsed


def _files(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    for name in names:
        if ":/" not in name and not Path(name).is_file():
            raise click.BadParameter(f"{name}: there is no such file", ctx, param)
    return tuple(names)


_SPARK_OPTIONS = [
    click.option(
        "--master",
        envvar=MASTER_VARIABLE,
        show_envvar=True,
        metavar="URL",
        help="Where Spark runs: local[4], spark://host:7077, yarn; by default local[*], on all cores of this machine.",
    ),
    click.option(
        "--conf",
        "confs",
        multiple=True,
        metavar="KEY=VALUE",
        callback=pairs("setting of Spark", "spark.driver.memory=4g", "spark."),
        help="A setting of Spark, such as spark.driver.memory=4g. Repeat it for several.",
    ),
    click.option("--jars", multiple=True, metavar="FILE,...", callback=_files, help="Put on Spark's class path."),
]


def spark_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that always runs on Spark; the function gets one argument for all: `engine`."""

    @functools.wraps(function)
    def with_spark(*arguments: Any, **given: Any) -> Any:
        own = {name: given.pop(name) for name in _SPARK_ONLY}
        return function(*arguments, engine=Engine("spark", **own), **given)

    return _decorated(with_spark, _SPARK_OPTIONS)


class _EngineChoice(click.Choice[str]):
    """``spark``, or this process by any of its names: one variable is for all commands."""

    def __init__(self, local: str) -> None:
        super().__init__(["spark", local] if local == "local" else [local, "spark"])
        self._local = local

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(self._local if value in _IN_PROCESS else value, param, ctx)


def engine_options(default: str, local: str = "local") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of a command that has both engines; the function gets one argument for all: `engine`.

    Args:
        default: the engine without the option.
        local: how the one in this process is called: ``local``, or ``duckdb`` for queries of the language.
    """
    chooser = click.option(
        "--engine",
        "engine_name",
        type=_EngineChoice(local),
        default=default,
        show_default=True,
        envvar=ENGINE_VARIABLE,
        show_envvar=True,
        help="What does the work: Spark, which needs Java, or this process (local)."
        if local == "local"
        else "What does the work: DuckDB in this process, or Spark, which needs Java.",
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_engine(*arguments: Any, **given: Any) -> Any:
            own = {name: given.pop(name) for name in _SPARK_ONLY}
            return function(*arguments, engine=_chosen(given.pop("engine_name"), own), **given)

        return _decorated(with_engine, [chooser, *_SPARK_OPTIONS])

    return decorate


def _chosen(name: str, own: dict[str, Any]) -> Engine:
    source = click.get_current_context().get_parameter_source
    given = [option for key, option in _SPARK_ONLY.items() if source(key) == ParameterSource.COMMANDLINE]
    if given and name in _IN_PROCESS:
        raise click.UsageError(f"{given[0]} has no effect with --engine {name}")
    is_default = source("engine_name") in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    return Engine(name, is_chosen=not is_default or bool(given), **own)


def _decorated(function: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    for option in reversed(options):
        function = option(function)
    return function
