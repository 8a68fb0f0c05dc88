"""Prints reports as JSON."""

import dataclasses
import json
from datetime import date, datetime
from typing import Any

import click

from coprlake.cli.printing.harmless import harmless_json
from coprlake.deprecation import old_names


def echo_json(report: Any) -> None:
    """Print a report, or a dict of reports, as one JSON object."""
    click.echo(harmless_json(json.dumps(as_plain(report), ensure_ascii=False, indent=2, default=_plain)))


def as_plain(value: Any) -> Any:
    """Convert a report, and what is in it, to dicts and lists; renamed figures also have their old names."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        plain = {field.name: as_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return plain | {old: plain[new] for old, new in old_names(type(value)).items() if new in plain}
    if isinstance(value, dict):
        return {key: as_plain(one) for key, one in value.items()}
    return [as_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime | date) else str(value)
