"""The measurement of gram choices: its kernels are the scanner's twins, and it runs on little data."""

import json
from pathlib import Path

import pytest

from benchmarks import grams
from benchmarks.gram_choices import CHOICES, SHIPPED, Choice, ChoiceScanner, Kept
from coprlake.errors import CoprlakeError
from coprlake.generator import batches_by_source, generate
from coprlake.sketch.immutable import SealedSketch
from coprlake.sketch.sealing import encode
from coprlake.tokens.required_tokens import contains_tokens, term_tokens
from coprlake.tokens.scanner import BatchScanner

pytestmark = pytest.mark.slow

SMALL = ["--megabytes", "1", "--queries", "4"]


def tokens_of(choice: Choice, text: bytes) -> set[int]:
    return set(ChoiceScanner(choice, len(text)).tokens(text).tolist())


def test_the_first_and_the_last_choice_are_the_rule_sets_of_the_scanner() -> None:
    """Grams have other hashes there: nearly as many of them is all that can be said."""
    scanner = BatchScanner()
    for batch in batches_by_source(generate(megabytes=1)):
        text = "\n".join(batch.to_pylist()).encode()
        assert tokens_of(CHOICES[0], text) == set(scanner.scan(batch, rules="paper").tolist())
        expected = set(scanner.scan(batch, rules="winnowed").tolist())
        without_grams = tokens_of(SHIPPED._replace(grams=()), text)
        assert without_grams <= expected
        assert len(expected) == pytest.approx(len(tokens_of(SHIPPED, text)), rel=0.03)


@pytest.mark.parametrize("text", ["10.23.45.67", "a", "worker-12", "/usr/lib/x.so", "00deadbeef1234567890", "..", "ab"])
@pytest.mark.parametrize("is_term", [True, False], ids=["term", "contains"])
def test_they_ask_for_what_the_planner_asks_for(text: str, is_term: bool) -> None:
    planned = term_tokens if is_term else contains_tokens
    paper, shipped, without_grams = (
        set(ChoiceScanner(choice, 64).required_tokens(text.encode(), is_term=is_term).tolist())
        for choice in (CHOICES[0], SHIPPED, SHIPPED._replace(grams=()))
    )
    assert paper == set(planned(text, rules="paper").tolist())
    expected = set(planned(text, rules="winnowed").tolist())
    assert without_grams <= expected
    assert (without_grams < expected) == (without_grams < shipped)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)
def test_no_choice_rules_out_a_text_that_has_what_is_searched(choice: Choice) -> None:
    line = (
        b"get:/api/v2/10.200.30.44/item_0012345678901?x=deadbeef00112233,aaaaaaaaaaaaaaaaaaaaaaaa,1111111111111111111"
    )
    known = set(ChoiceScanner(choice, len(line)).tokens(line).tolist())
    scanner = ChoiceScanner(choice, len(line))
    for first in range(len(line)):
        for last in range(first + 1, len(line) + 1, 3):
            assert set(scanner.required_tokens(line[first:last], is_term=False).tolist()) <= known


def test_a_run_has_all_figures_and_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert grams.main([*SMALL, "--json"]) == 0
    out = capsys.readouterr().out
    own = json.loads(out)["logs"]["generated"]
    assert list(own["choices"]) == [*(choice.name for choice in CHOICES), grams.SHIPPED_ROW]
    assert sum(own["tokens_by_paper_rule"].values()) == own["choices"]["paper"]["tokens"]
    for row in own["choices"].values():
        assert [row["bits"][str(bits)]["index_percent"] for bits in grams.BITS] == sorted(
            row["bits"][str(bits)]["index_percent"] for bits in grams.BITS
        )
        assert all(0 <= rate <= 1 for rate in row["bits"]["6"]["error_rate"].values())
        assert sum(row["bits"]["6"]["parts_percent"].values()) == pytest.approx(row["bits"]["6"]["index_percent"])
    (tmp_path / "run.json").write_text(out)
    assert grams.main(["--run", str(tmp_path / "run.json")]) == 0
    assert "| and no long words with digits, 6 bits |" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    assert {path.name for path in grams.draw(json.loads(out), tmp_path)} == {"parts.png", "sharpness-generated.png"}


def test_a_choice_that_loses_a_match_fails_the_run() -> None:
    logs = grams.Logs(100, [b"alpha-beta", b"gamma"])
    query = grams.query_of(b"alpha-beta", True, logs.texts)
    without_pairs = Choice("without pairs", kept=Kept(pair_bytes=0))
    sealed = SealedSketch(b"".join(encode(grams.index(without_pairs, logs), signature_bits=32)[0]))
    assert grams.error_rate(without_pairs, sealed, [query]) == 0
    with pytest.raises(CoprlakeError, match="paper: a batch with b'alpha-beta' is ruled out"):
        grams.error_rate(CHOICES[0], sealed, [query])


@pytest.mark.parametrize("arguments", [["--megabytes", "0"], ["--queries", "0"], ["--run", "nowhere.json"]])
def test_what_is_wrong_is_said_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert grams.main(arguments) == 2
    assert capsys.readouterr().err.startswith("error: ")
