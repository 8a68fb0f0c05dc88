"""Prints reports as JSON."""

import dataclasses
import json
from datetime import date, datetime
from typing import Any

import click

from coprlake.cli.printing.harmless import harmless_json


def echo_json(report: Any) -> None:
    """Print a report, or a dict of reports, as one JSON object."""
    click.echo(harmless_json(json.dumps(as_plain(report), ensure_ascii=False, indent=2, default=_plain)))


def as_plain(report: Any) -> Any:
    """Convert a report to a dict."""
    return dataclasses.asdict(report) if dataclasses.is_dataclass(report) and not isinstance(report, type) else report


def _plain(value: object) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return as_plain(value) if dataclasses.is_dataclass(value) else str(value)
