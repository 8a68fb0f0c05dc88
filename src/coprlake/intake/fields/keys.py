"""The names under which structured logs keep what every record has."""

from typing import Final

CONTENT_KEYS: Final = ("content", "message", "msg", "log", "body", "text", "event", "@m", "@mt")
TIMESTAMP_KEYS: Final = (
    "timestamp",
    "@timestamp",
    "time",
    "ts",
    "datetime",
    "date",
    "eventtime",
    "event_time",
    "_time",
    "@t",
    "t",
    "observedtimestamp",
    "time_unix_nano",
    "timeunixnano",
    "__realtime_timestamp",
)
LEVEL_KEYS: Final = (
    "loglevel",
    "level",
    "log_level",
    "log.level",
    "severity",
    "severity_text",
    "severitytext",
    "levelname",
    "lvl",
    "@l",
)
SOURCE_KEYS: Final = ("source",)
