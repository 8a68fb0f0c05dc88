"""The demo and the benchmarks run, on little data, and say what they promise to say."""

import json
from pathlib import Path

import pytest

from benchmarks import demo, first_contact, intake, signature_bits, sketch, store

pytestmark = pytest.mark.slow

PROMISED = {
    "raw_bytes", "zstd3_seconds", "index_seconds", "seal_seconds", "distinct_tokens", "bits_per_token",
    "overhead_percent", "absent_probes_per_second", "single_probe_microseconds", "error_rate",
    "peak_sketch_memory_bytes", "spill_count",
}  # fmt: skip


def test_the_sketch_benchmark_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert sketch.main(["--megabytes", "8", "--memory-limit-mib", "2", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert not PROMISED - set(figures)
    assert figures["peak_sketch_memory_bytes"] <= 2 * 2**20
    assert figures["spill_count"] >= 1
    parts = {name: bits for name, bits in figures["bits_per_token"].items() if name != "total"}
    assert sum(parts.values()) == pytest.approx(figures["bits_per_token"]["total"])
    deviation = (2.0**-8 * (1 - 2.0**-8) / 2e6) ** 0.5
    assert abs(figures["error_rate"] - figures["error_rate_in_theory"]) < 6 * deviation


def test_the_sketch_benchmark_prints_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert sketch.main(["--megabytes", "2"]) == 0
    assert "overhead_percent" in capsys.readouterr().out


def test_the_demo_misses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--megabytes", "3", "--folder", str(tmp_path / "demo")]) == 0
    out = capsys.readouterr().out
    assert "every search found what the scan found, and DuckDB sees every record" in out
    assert "ruled out by sketch" in out


def test_the_demo_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--megabytes", "0", "--folder", str(tmp_path / "demo")]) == 2
    assert capsys.readouterr().err.startswith("error: ")


STORE_FIGURES = {
    "ingest_seconds", "zstd3_seconds", "data_bytes", "index_bytes", "raw_bytes", "open_microseconds", "queries",
    "scan_gigabytes_per_second", "absent_microseconds", "peak_memory_bytes",
}  # fmt: skip


def test_the_store_benchmark_finds_the_same_lines_both_ways(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "QUERIES", 5)
    assert store.main(["--megabytes", "3", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert not STORE_FIGURES - set(figures)
    assert set(figures["queries"]) == {"term_id", "contains_id", "term_ip", "contains_ip", "term_extracted"}
    for both in figures["queries"].values():
        assert both["coprlake"]["lines"] == both["scan"]["lines"]
    assert figures["queries"]["term_extracted"]["coprlake"]["lines"] >= 5


def test_the_store_benchmark_takes_logs_of_your_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "QUERIES", 3)
    lines = [f"2026-11-16 03:55:00 INFO handled request{i:08d} from client{i % 7:08d}" for i in range(2000)]
    (tmp_path / "own.log").write_text("\n".join(lines))
    assert store.main(["--logs", str(tmp_path)]) == 0
    assert "term_extracted" in capsys.readouterr().out
    assert store.main(["--logs", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_the_intake_benchmark_has_a_figure_for_each_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert intake.main(["--megabytes", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_the_signature_table_has_a_row_for_each_size(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signature_bits, "QUERIES", 50)
    assert signature_bits.main(["--megabytes", "2"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ") and "bits" not in line]
    assert [int(row.split("|")[1]) for row in rows] == list(signature_bits.SIZES)


@pytest.mark.parametrize("arguments", [["--megabytes", "0"], ["--signature-bits", "0"], ["--memory-limit-mib", "1"]])
def test_the_sketch_benchmark_says_what_is_wrong(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert sketch.main(["--megabytes", "1", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_the_signature_benchmark_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert signature_bits.main(["--megabytes", "0"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


FIRST_CONTACT_FIGURES = {
    "search_seconds", "query_seconds", "help_seconds", "import_seconds", "many_years", "threads_over_one",
    "search_over_pyarrow", "query_over_pyarrow", "help_over_pyarrow", "import_over_pyarrow", "search_over_ripgrep",
}  # fmt: skip


def test_the_first_contact_is_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without the installation, which has a test of its own."""
    sizes = ["--megabytes", "1", "--years-megabytes", "0.3", "--runs", "1", "--thread-seconds", "0.1"]
    assert first_contact.main([*sizes, "--no-install", "--folder", str(tmp_path), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert not FIRST_CONTACT_FIGURES - set(figures)
    years = figures["many_years"]
    assert set(years) == {"raw_bytes", "segments", "index_percent", "ingest_over_unpartitioned"}
    assert years["segments"] <= 2
    assert not list(tmp_path.iterdir())


def test_a_log_over_years_keeps_its_lines() -> None:
    lines = first_contact.over_years(["a", "b", "c"])
    assert [line.rpartition(" ")[2] for line in lines] == ["a", "b", "c"]
    assert lines[0].startswith("2013-01-01T00:00:00Z ")
    assert lines[-1].startswith("2021-")
