"""What docs/spark.md lists is what there is."""

import re
from dataclasses import fields
from pathlib import Path

from coprlake import spark as lake
from coprlake.spark.runtime.sessions import CONFS
from coprlake.spark.source.source_options import ReadSettings, WriteSettings

DOCUMENT = (Path(__file__).parent.parent.parent / "docs" / "spark.md").read_text()


def section(name: str) -> str:
    return DOCUMENT.partition(f"## {name}\n")[2].partition("\n## ")[0]


def test_the_options_of_the_data_source_are_all_there() -> None:
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|", section("Options of the data source"), re.MULTILINE)
    told = {name: where for names, where in rows for name in re.findall(r"`(\w+)`", names)}
    reads, writes = ({field.name for field in fields(kind)} for kind in (ReadSettings, WriteSettings))
    assert told.keys() == reads | writes
    for name, where in told.items():
        assert (where == "both", "read" in where, "write" in where) in (
            (True, False, False) if name in reads & writes else (False, name in reads, name in writes),
        ), name


def test_every_function_and_setting_that_is_named_is_there() -> None:
    assert set(re.findall(r"\blake\.([a-zA-Z_]+)", DOCUMENT)) <= set(lake.__all__)
    assert {name for name in re.findall(r"`(spark\.[\w.]+?)(?:=\w+(?:\.\w+)*)?`", DOCUMENT) if name in CONFS} >= {
        "spark.python.daemon.module"
    }
