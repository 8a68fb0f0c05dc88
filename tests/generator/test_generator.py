"""The log generator: its shape follows the production quantiles, its text behaves like real logs."""

import itertools
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from coprlake.errors import UsageError
from coprlake.generator import LogSet, batches_by_source, generate, measure
from coprlake.generator.__main__ import main
from coprlake.generator.applications.application_list import APPLICATIONS
from coprlake.generator.clock import TimeStyle
from coprlake.generator.distribution import QUANTILES, SHAPES, lines_per_source
from coprlake.generator.field_values import KINDS
from coprlake.generator.line_rendering import ApplicationRenderer
from coprlake.generator.pools import GrowingPool, RecentPool
from coprlake.generator.samples import SampleRenderer


@pytest.fixture(scope="module")
def logs() -> LogSet:
    return generate(megabytes=18, seed=5)


@pytest.fixture(scope="module")
def sample_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    rows = [
        f"2023-01-{1 + i // 200:02d} 10:{i // 60 % 60:02d}:{i % 60:02d},{i * 7 % 1000:03d} INFO worker-{i % 4} "
        f"block blk_{(i // 3 + 17) * 7919 % 10**9 + 5 * 10**12} from 10.1.{i % 5}.{i % 200} size {4000 + i * 37} "
        "limit 8192"
        for i in range(600)
    ]
    (folder / "worker.log").write_bytes("\r\n".join(rows).encode())  # CRLF, and no final line end
    rows = [
        f"Mar  {i % 9 + 1} 04:11:{i % 60:02d} host app[{3000 + i // 5}]: 100% é id=0x{i * 977:06x}" for i in range(300)
    ]
    (folder / "app.log").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "empty.log").write_text("\n\n")
    (folder / "README.md").write_text("not a log")
    return folder


@pytest.mark.parametrize("name", SHAPES)
def test_lines_per_source_hit_the_quantiles_and_the_total(name: str) -> None:
    shape = SHAPES[name]
    counts = lines_per_source(shape)
    assert len(counts) == shape.source_count
    assert abs(counts.sum() - shape.line_count) < 0.001 * shape.line_count
    for quantile, lines in zip(QUANTILES, shape.lines_at_quantiles, strict=True):
        assert np.quantile(counts, quantile) == pytest.approx(lines, rel=0.06, abs=1)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("line_total", [1, 10, 777, 50_000, 3_000_000])
def test_other_sizes_keep_the_shape(name: str, line_total: int) -> None:
    counts = lines_per_source(SHAPES[name], line_total)
    assert counts.min() >= 1
    assert counts.sum() == pytest.approx(line_total, rel=0.15)
    assert (np.diff(counts) >= 0).all()
    if line_total >= 50_000:
        largest = np.sort(counts)[-max(len(counts) // 100, 1) :].sum()
        assert largest > 0.5 * counts.sum()


def test_a_set_is_dense_shuffled_and_near_its_size(logs: LogSet) -> None:
    sources = np.asarray(logs.source)
    assert logs.content.type == pa.large_string()
    assert logs.source.type == pa.int32()
    assert set(np.unique(sources)) == set(range(logs.source_count))
    assert logs.raw_bytes == sum(len(line.encode()) + 1 for line in logs.content.to_pylist())
    assert logs.raw_bytes == pytest.approx(18e6, rel=0.05)
    assert 110 < logs.raw_bytes / logs.line_count < 180
    assert logs.content.null_count == 0
    assert not any("\n" in line or not line for line in logs.content.to_pylist())
    # The largest source is spread over the whole set.
    places = np.flatnonzero(sources == np.bincount(sources).argmax())
    assert places[0] < 0.01 * len(sources)
    assert places[-1] > 0.99 * len(sources)


def test_equal_seeds_give_equal_bytes_and_others_differ() -> None:
    first, again, other = (generate(megabytes=0.4, seed=seed) for seed in (7, 7, 8))
    assert first.content.equals(again.content)
    assert first.source.equals(again.source)
    shared = set(first.content.to_pylist()) & set(other.content.to_pylist())
    assert len(shared) < 0.01 * first.line_count


def test_the_bytes_do_not_depend_on_the_process() -> None:
    code = (
        "import zlib; from coprlake.generator import generate;"
        "print(zlib.crc32('\\n'.join(generate(megabytes=0.1, seed=3).content.to_pylist()).encode()))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True)
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_every_application_compiles_and_its_clock_never_goes_back(application: object) -> None:
    kind = next(index for index, known in enumerate(APPLICATIONS) if known is application)
    flows = APPLICATIONS[kind].flows
    assert 15 <= sum(len(flow) for flow in flows) <= 40
    assert not any(flow[0].optional for flow in flows)
    lines = ApplicationRenderer(APPLICATIONS, 3).render(kind, np.array([900, 1, 600]))
    assert len(lines) == 1501
    assert not any(re.search(rf"<({'|'.join(KINDS)})[:>]", line) for line in lines)
    clocks = [match[0] for line in lines[:900] if (match := re.search(r"(?<!\d)\d\d:\d\d:\d\d|^\d{6} \d{6}", line))]
    assert len(clocks) > 400
    assert clocks == sorted(clocks)  # the span is some hours of one day


def test_a_source_keeps_its_order_and_a_request_spans_lines() -> None:
    kind = next(index for index, known in enumerate(APPLICATIONS) if known.name == "order service")
    lines = ApplicationRenderer(APPLICATIONS, 1).render(kind, np.array([4000]))
    rows = defaultdict(list)
    for row, line in enumerate(lines):
        if match := re.search(r"\[([0-9a-f]{16})\]", line):
            rows[match[1]].append(row)
    assert np.mean([len(places) for places in rows.values()]) > 2
    assert all(places[-1] - places[0] < 10 for places in rows.values())


def test_shuffling_keeps_each_source_in_time_order(logs: LogSet) -> None:
    by_source = defaultdict(list)
    for source, line in zip(logs.source.to_pylist(), logs.content.to_pylist(), strict=True):
        if match := re.match(r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)", line):
            by_source[source].append(match[1])
    assert sum(map(len, by_source.values())) > 10_000
    assert all(times == sorted(times) for times in by_source.values())


def test_values_recur_with_skew_and_new_ones_keep_coming() -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    pool = GrowingPool(rng, 5.0, 0.7, 2.0)
    first, second = pool.draw(20_000), pool.draw(20_000)
    assert Counter(first.tolist()).most_common(1)[0][1] > 20
    assert second.max() > first.max()
    recent = RecentPool(rng, 0.1, 20.0).draw(5_000)
    assert recent[-500:].min() > recent[:500].max()


def test_time_styles_write_all_their_parts() -> None:
    times = np.array([1_718_000_000_123_456, 1_718_000_061_000_007])
    written = {}
    for spec in ("%b %e %H:%M:%S", "%H:%M:%S,{ms}", "%S.{us}", "{epoch}.{ms}", "%Y.%m.%d"):
        style = TimeStyle(spec)
        written[spec] = [style.pattern % row for row in zip(*style.columns(times), strict=True)]
    assert written == {
        "%b %e %H:%M:%S": ["Jun 10 06:13:20", "Jun 10 06:14:21"],
        "%H:%M:%S,{ms}": ["06:13:20,123", "06:14:21,000"],
        "%S.{us}": ["20.123456", "21.000007"],
        "{epoch}.{ms}": ["1718000000.123", "1718000061.000"],
        "%Y.%m.%d": ["2024.06.10", "2024.06.10"],
    }


def test_batches_hold_every_line_once_and_keep_sources_together(logs: LogSet) -> None:
    batches = list(batches_by_source(logs, 100_000))
    order = np.argsort(np.asarray(logs.source), kind="stable")
    assert pa.concat_arrays(batches).equals(logs.content.take(pa.array(order)))
    sizes = [sum(len(line.encode()) + 1 for line in batch.to_pylist()) for batch in batches]
    assert all(100_000 <= size < 110_000 for size in sizes[:-1])


def test_batches_of_nothing_are_none() -> None:
    empty = LogSet("none", pa.array([], pa.large_string()), pa.array([], pa.int32()), 0)
    assert list(batches_by_source(empty)) == []
    assert empty.source_count == 0
    assert measure(empty).distinct_tokens_per_megabyte == 0


def test_built_in_text_measures_like_real_logs(logs: LogSet) -> None:
    figures = measure(logs)
    assert (figures.raw_bytes, figures.line_count) == (logs.raw_bytes, logs.line_count)
    assert 8 < figures.zstd3_percent < 15
    assert 7_000 < figures.distinct_tokens_per_megabyte < 13_000
    assert 70 < figures.single_batch_token_percent < 88


def test_there_is_text_beyond_ascii(logs: LogSet) -> None:
    assert sum(not line.isascii() for line in logs.content.to_pylist()) > 100


def test_samples_keep_the_form_and_refresh_the_values(sample_folder: Path) -> None:
    logs = generate(megabytes=1.5, seed=2, samples=sample_folder)
    lines = logs.content.to_pylist()
    assert logs.raw_bytes == pytest.approx(1.5e6, rel=0.1)
    worker = re.compile(
        r"2024-06-\d\d \d\d:\d\d:\d\d,\d{3} INFO worker-\d block blk_(\d{13}) from 10(\.\d+){3} size \d+ limit 8192"
    )
    app = re.compile(r"Jun [ 1]\d \d\d:\d\d:\d\d host app\[\d{4}\]: 100% é id=0x([0-9a-f]{6})")
    assert all(worker.fullmatch(line) or app.fullmatch(line) for line in lines)
    blocks = Counter(match[1] for line in lines if (match := worker.fullmatch(line)))
    assert len(blocks) > 600  # more than the sample has
    assert blocks.most_common(1)[0][1] > 1
    assert len(set(lines)) > 0.99 * len(lines)


def test_samples_keep_equal_parts_of_a_run_equal_and_time_advances(sample_folder: Path) -> None:
    renderer = SampleRenderer(sample_folder, 1)
    lines = renderer.render(1, np.array([3000]))
    assert lines == sorted(lines, key=lambda line: line[:23])
    blocks = [line.partition("blk_")[2][:13] for line in lines]
    repeats = sum(left == right for left, right in itertools.pairwise(blocks))
    assert repeats > 0.5 * len(blocks)  # each block has three lines in a row in the sample


def test_samples_are_deterministic(sample_folder: Path) -> None:
    first, again, other = (generate(megabytes=0.2, seed=seed, samples=str(sample_folder)) for seed in (1, 1, 2))
    assert first.content.equals(again.content)
    assert not first.content.equals(other.content)


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1M_generated, 5M_generated"):
        generate("2M_generated")
    for megabytes in (0, -1, float("nan")):
        with pytest.raises(UsageError, match="more than 0"):
            generate(megabytes=megabytes)
    with pytest.raises(UsageError, match="does not exist"):
        generate(samples=tmp_path / "missing")
    with pytest.raises(UsageError, match="no log lines"):
        generate(samples=tmp_path)
    (tmp_path / "a.log").mkdir()
    with pytest.raises(UsageError, match="cannot read the sample"):
        generate(samples=tmp_path)


def test_the_command_writes_the_lines_and_prints_the_figures(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "lines.log"
    assert main(["--megabytes", "0.3", "--seed", "4", "--out", str(out)]) == 0
    told = capfd.readouterr()
    assert told.out == ""
    assert "distinct tokens per MB" in told.err
    assert "in one batch only" in told.err
    assert "zstd level 3" in told.err
    expected = generate(megabytes=0.3, seed=4).content.to_pylist()
    assert out.read_text(encoding="utf-8") == "\n".join(expected) + "\n"


def test_the_command_writes_to_standard_output_and_reports_errors(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--set", "nothing", "--out", "-"]) == 2
    assert "error: unknown log set 'nothing'" in capfd.readouterr().err
    assert main(["--megabytes", "0.05", "--out", str(tmp_path / "no" / "folder")]) == 2
    assert "no/folder" in capfd.readouterr().err
    command = [sys.executable, "-m", "coprlake.generator", "--megabytes", "0.05", "--out", "-"]
    run = subprocess.run(command, capture_output=True, check=True)
    assert len(run.stdout) == pytest.approx(50_000, rel=0.1)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(UsageError, match="seed"):
        generate(megabytes=1, seed=-1)
