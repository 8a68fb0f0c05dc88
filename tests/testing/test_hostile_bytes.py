"""Mutated files and query texts give a clear error or a right answer, and the harness notices when they do not."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from coprlake.errors import CoprlakeError, CorruptSidecarError
from coprlake.segment.sidecar import Sidecar
from coprlake.sketch.format import FOOTER_BYTES
from coprlake.sketch.immutable import SealedSketch
from coprlake.testing.torture import mutations
from coprlake.testing.torture.hostile_bytes.hostile import Kind
from coprlake.testing.torture.hostile_bytes.hostile_files import _difference
from coprlake.testing.torture.hostile_bytes.hostile_kinds import all_kinds
from coprlake.testing.torture.hostile_bytes.hostile_sketches import (
    Sidecars,
    Sketches,
    base_sketches,
    joined_sidecar,
    sidecar_parts,
    use_sketch,
    with_checksums,
)
from coprlake.testing.torture.hostile_bytes.mutating import Edit, edited, random_edits, random_text_edits


def run_here(kind: Kind, seed: int, count: int) -> None:
    """As a child runs them, without one: for cases that were run often and hurt nobody."""
    for number in range(count):
        case = kind.case(random.Random(f"{seed}/{number}"))
        try:
            problem = case.check(case.edits)
        except CoprlakeError:
            continue
        assert problem is None, (number, case.base, list(map(str, case.edits)))


@pytest.mark.kernels
def test_mutated_sketches_never_lead_outside_of_their_bytes(tmp_path: Path) -> None:
    """Under NUMBA_BOUNDSCHECK=1 an access outside is an IndexError; without the JIT as well."""
    kind = Sketches()
    kind.prepare(tmp_path)
    run_here(kind, 5, 60 if mutations_are_slow() else 1500)


def mutations_are_slow() -> bool:
    from numba import config

    return bool(config.DISABLE_JIT)


@pytest.mark.slow
def test_a_short_run_of_all_kinds_finds_nothing(tmp_path: Path) -> None:
    outcome = mutations.run(20261118, 240.0, tmp_path, cases=1500)
    assert not outcome.failures, "\n".join(map(str, outcome.failures))
    assert outcome.cases == 1500
    assert set(outcome.counts) == {kind.name for kind in all_kinds()}


def test_the_same_seed_gives_the_same_cases(tmp_path: Path) -> None:
    kind = Sketches()
    kind.prepare(tmp_path)
    one, other = ([kind.case(random.Random(f"7/{n}")).edits for n in range(50)] for _ in range(2))
    assert one == other


def test_edits_cover_all_ways_to_change_a_file() -> None:
    data = bytes(range(256)) * 4
    sizes = set()
    for number in range(300):
        chance = random.Random(number)
        sizes.add(np.sign(len(edited(data, random_edits(chance, data, [b"other" * 50]))) - len(data)))
        edited(b"fetch logs", random_text_edits(chance, "fetch logs", ["|", "filter"])).decode("utf-8", "replace")
    assert sizes == {-1, 0, 1}
    assert edited(b"abcdef", [Edit(2, 2, b"X"), Edit(-1, 1, b""), Edit(100, 5, b"!")]) == b"abXe!"


CHILD = """
import os, sys, time, types
from coprlake.errors import UsageError
from coprlake.testing.torture import mutations
from coprlake.testing.torture.hostile_bytes.mutating import Edit

class Broken:
    name = "broken"
    weight = 1
    def prepare(self, folder): pass
    def case(self, chance):
        number = chance.randrange(1 << 30)
        def check(some):
            if not any(edit.data == b"bad" for edit in some):
                return None
            how = HOW
            if how == "dies":
                os.abort()
            if how == "hangs":
                time.sleep(600)
            if how == "allocates":
                bytearray(8 << 30)
            if how == "refuses":
                raise UsageError("refused")
            if how == "raises":
                raise KeyError("unclean")
            return "wrong answer"
        edits = [Edit(0, 0, b"harmless"), Edit(0, 0, b"bad"), Edit(0, 0, b"harmless")]
        return types.SimpleNamespace(base="base", edits=edits, check=check)

kinds = types.ModuleType("kinds")  # the real ones take long
sys.modules["coprlake.testing.torture.hostile_bytes.hostile_kinds"] = kinds
kinds.all_kinds = lambda: [Broken()]
mutations.main()
"""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("dies", "the process died: -6"),
        ("hangs", "it did not end"),
        ("allocates", "MemoryError"),
        ("raises", "KeyError"),
        ("answers", "wrong answer"),
    ],
)
def test_what_goes_wrong_in_a_child_is_a_failure_with_its_smallest_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, said: str
) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD.replace("HOW", repr(how)))
    monkeypatch.setattr(mutations, "HANG_SECONDS", 1.0)
    monkeypatch.setattr(mutations, "FAILURE_LIMIT", 1)
    monkeypatch.setattr(mutations, "CHILD_COMMAND", (str(script),))
    outcome = mutations.run(3, 60.0, tmp_path / "work", cases=1)
    assert len(outcome.failures) == 1
    failure = outcome.failures[0]
    assert said in failure.what
    assert failure.seed == 3
    assert "--edits 1" in failure.case


def test_a_clear_error_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD.replace("HOW", repr("refuses")))
    monkeypatch.setattr(mutations, "CHILD_COMMAND", (str(script),))
    outcome = mutations.run(3, 60.0, tmp_path / "work", cases=20)
    assert (outcome.cases, outcome.failures) == (20, [])


def test_a_description_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    kind = Sidecars()
    kind.prepare(tmp_path)
    sketch, _ = sidecar_parts(kind.sound_bytes)
    with pytest.raises(CorruptSidecarError, match="description"):
        Sidecar(joined_sidecar(sketch, b"[" * 100_000), "a.copr")


@pytest.mark.kernels
def test_new_checksums_leave_a_sound_sketch_as_it_is() -> None:
    for _, data, fingerprints in base_sketches():
        assert with_checksums(data) == data
        use_sketch(SealedSketch(data), fingerprints)
        body = edited(data, [Edit(len(data) - FOOTER_BYTES - 8, 8, bytes(range(8)))])  # the end of the last section
        SealedSketch(with_checksums(body))  # the header is sound again: the deeper code is reached


def test_a_child_that_finds_no_time_left_is_no_failure_unless_it_is_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "child.py"
    monkeypatch.setattr(mutations, "CHILD_COMMAND", (str(script),))
    script.write_text("import sys\nprint('end' if '5' in sys.argv else '4 kind\\nend')\n")
    outcome = mutations.run(3, 60.0, tmp_path / "work", cases=20)
    assert (outcome.cases, outcome.failures) == (1, [])
    script.write_text("print('end')\n")
    assert "ran none" in mutations.run(3, 60.0, tmp_path / "work", cases=20).failures[0].what
    script.write_text("import sys\nprint('4 kind\\nend') if '5' not in sys.argv else sys.exit(3)\n")
    assert "ran none" in mutations.run(3, 60.0, tmp_path / "work", cases=20).failures[0].what


def test_a_damaged_row_group_excuses_nothing_in_the_others() -> None:
    """`a` is in a group that pyarrow can read, `b` was written to the other one."""
    a, b, strange = (Counter([line]) for line in ("a", "b", "strange"))
    written = a + b
    assert _difference(a, a, True, written) is None
    assert _difference(a + b, a, True, written) is not None
    assert _difference(strange, strange, False, written) is None  # the same damage, read by both
    assert _difference(a, a, False, written) is None
    assert _difference(a + b, a, False, written) is None
    assert _difference(b, a, False, written) is not None
    assert _difference(a + strange, a, False, written) is not None
    assert _difference(a + a + a, a, False, written) is not None
