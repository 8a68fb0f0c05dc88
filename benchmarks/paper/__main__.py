"""``python -m benchmarks.paper``: all tables and figures of the paper's evaluation, from one run."""

import argparse
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.paper.datasets import GENERATED, DataSet, generated, of_folder
from benchmarks.paper.plots import draw
from benchmarks.paper.report import page, write_raw
from benchmarks.paper.running import machine, run
from benchmarks.stores.catalog import stores

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT.parent / "shared" / "data" / "loghub_2k"
QUICK_MEGABYTES = {"1M_generated": None, "5M_generated": 139.0}
"""The smaller set in its own size; of the larger one as much, with its shape."""


def say(text: str) -> None:
    """Tell how far the run is."""
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)


def prepare(options: argparse.Namespace, folder: Path) -> list[DataSet]:
    """The sets of lines of this run."""
    if options.logs is not None:
        return [of_folder(options.logs, folder)]
    samples = SAMPLES if SAMPLES.is_dir() and not options.made_up else None
    sets = []
    for name in options.sets:
        megabytes = options.megabytes or (QUICK_MEGABYTES[name] if options.size == "quick" else None)
        say(f"{name}: making the lines")
        sets.append(generated(name, folder, megabytes=megabytes, seed=options.seed, samples=samples))
    return sets


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description="The paper's evaluation, run again."
    )
    parser.add_argument("--size", choices=["quick", "full"], default="quick", help="full: the sizes of the paper")
    parser.add_argument("--megabytes", type=float, help="another size for each set")
    parser.add_argument("--sets", nargs="+", default=list(GENERATED), choices=GENERATED)
    parser.add_argument("--logs", type=Path, help="a folder of logs instead of the generated sets")
    parser.add_argument("--made-up", action="store_true", help="do not draw lines from the samples of LogHub")
    parser.add_argument("--stores", nargs="+", help="only these; scan, copr and coprlake are always there")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, help="seconds for each scenario and mode (quick 0.5, full 10)")
    parser.add_argument("--timeout", type=float, help="seconds that a store may take (quick 300, full 7200)")
    parser.add_argument("--out", type=Path, help="a folder for the results; an interrupted run goes on there")
    options = parser.parse_args(arguments)
    quick = options.size == "quick"
    out = options.out or ROOT / "benchmarks" / "runs" / f"{datetime.now(UTC):%Y-%m-%d}-{options.size}"
    out.mkdir(parents=True, exist_ok=True)
    chosen = [
        one for one in stores() if not options.stores or one.name in {"scan", "copr", "coprlake", *options.stores}
    ]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="coprlake-paper-") as folder:
        sets = prepare(options, Path(folder))
        rows = run(
            chosen,
            sets,
            out,
            budget=options.budget or (0.5 if quick else 10.0),
            timeout=options.timeout or (300.0 if quick else 7200.0),
            say=say,
        )
    where = machine()
    (out / "machine.json").write_text(json.dumps(where, indent=1) + "\n")
    write_raw(rows, out / "raw.csv")
    try:
        figures = draw(rows, out)
    except ImportError:
        say("matplotlib is not installed, so there are no figures; run: pip install -e '.[peers]'")
        figures = []
    (out / "README.md").write_text(page(rows, sets, where, options.size, figures))
    say(f"done after {(time.monotonic() - started) / 60:.1f} minutes")
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
