"""The paper's running example (Table 1) through every stage of the sketch; read it from top to bottom.

| log message                          | posting |
|--------------------------------------|---------|
| INFO: Connection to host established | 0       |
| INFO: Start processing               | 1       |
| ERROR: Host connection terminated    | 2       |
| INFO: Restart triggered              | 3       |
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from coprlake import (
    ANYTHING,
    NOTHING,
    BatchScanner,
    MutableSketch,
    SealedSketch,
    SketchWriter,
    batches_in_all,
    batches_in_any,
)
from coprlake.kernel import U16Array, U32Array
from coprlake.sketch.algebra import Token, compile_expression
from coprlake.sketch.asking import Sketch
from coprlake.sketch.merge import add_sealed
from coprlake.sketch.posting_lists import HASH, TOKENS
from coprlake.sketch.postings_hash import posting_hash
from coprlake.sketch.sealing import encode, seal
from coprlake.sketch.token_map import DIRECT, LIST, PAYLOAD
from coprlake.tokens.fingerprint import fingerprint

pytestmark = pytest.mark.kernels

MESSAGES = (
    "INFO: Connection to host established",
    "INFO: Start processing",
    "ERROR: Host connection terminated",
    "INFO: Restart triggered",
)
POSTINGS = {
    "info": {0, 1, 3},
    "connection": {0, 2},
    "to": {0},
    "host": {0, 2},
    "established": {0},
    "start": {1},
    "processing": {1},
    "error": {2},
    "terminated": {2},
    "restart": {3},
    "triggered": {3},
}
DISTINCT_LISTS = {frozenset(postings) for postings in POSTINGS.values()}


def words_of(message: str) -> U32Array:
    """The fingerprints of a message's words. The paper's example has no colon, which rule 2 would make a token."""
    return BatchScanner().scan(pa.array([message.replace(":", "")]), grams=False)


def value_of(sketch: MutableSketch, token: str) -> int:
    """What the token map says of a token: two mark bits, and a posting or the number of a list."""
    return int(sketch.list_ids(np.array([fingerprint(token)], np.uint32))[0])


def rank_of(sketch: SealedSketch, token: str) -> int:
    return int(sketch.list_ids(np.array([fingerprint(token)], np.uint32))[0])


def answers(sketch: Sketch) -> dict[str, set[int]]:
    return {token: set(sketch.candidate_postings(token).tolist()) for token in POSTINGS}


@pytest.fixture
def mutable() -> MutableSketch:
    sketch = MutableSketch()
    for posting, message in enumerate(MESSAGES):
        assert sketch.insert(words_of(message), posting) == len(message.split())
    return sketch


@pytest.fixture
def sealed(mutable: MutableSketch, tmp_path: Path) -> SealedSketch:
    seal(mutable, tmp_path / "table-1.copr", signature_bits=32)
    return SealedSketch.open(tmp_path / "table-1.copr")


@pytest.fixture(params=["mutable", "sealed", "writer"])
def sketch(request: pytest.FixtureRequest, mutable: MutableSketch) -> Sketch:
    """The same content in every kind of sketch: what can be asked of one can be asked of all."""
    if request.param == "mutable":
        return mutable
    if request.param == "sealed":
        return SealedSketch(b"".join(encode(mutable, signature_bits=32)[0]))
    writer = SketchWriter()
    for posting, message in enumerate(MESSAGES):
        writer.insert(words_of(message), posting)
    return writer


# 1. Tokens


def test_each_word_in_lower_case_is_one_token() -> None:
    for posting, message in enumerate(MESSAGES):
        expected = [fingerprint(token) for token, postings in POSTINGS.items() if posting in postings]
        assert sorted(words_of(message).tolist()) == sorted(expected)


def test_the_colon_of_the_real_messages_is_a_token_in_all_postings() -> None:
    sketch = MutableSketch()
    for posting, message in enumerate(MESSAGES):
        sketch.insert(BatchScanner().scan(pa.array([message]), grams=False), posting)
    assert sketch.candidate_postings(":").tolist() == [0, 1, 2, 3]
    assert answers(sketch) == POSTINGS


# 2. The mutable sketch (paper 3.2, Figure 2)


def test_every_word_is_found_in_its_postings(mutable: MutableSketch) -> None:
    assert answers(mutable) == POSTINGS
    assert mutable.token_count == len(POSTINGS)
    assert mutable.posting_count == len(MESSAGES)


def test_connection_and_host_share_one_posting_list(mutable: MutableSketch) -> None:
    shared = value_of(mutable, "connection")
    assert shared & LIST
    assert shared == value_of(mutable, "host")
    assert mutable.decode(shared).tolist() == [0, 2]
    assert mutable.parts.lists.records[shared & PAYLOAD, TOKENS] == 2


def test_info_has_a_list_of_its_own(mutable: MutableSketch) -> None:
    own = value_of(mutable, "info")
    assert own & LIST
    assert mutable.decode(own).tolist() == [0, 1, 3]
    assert mutable.parts.lists.records[own & PAYLOAD, TOKENS] == 1


def test_start_has_its_only_posting_in_the_token_map(mutable: MutableSketch) -> None:
    assert value_of(mutable, "start") == DIRECT | 1


def test_there_are_two_lists_for_three_tokens_and_the_lists_on_the_way_are_gone(mutable: MutableSketch) -> None:
    assert mutable.list_count == 2  # "info" was on {0, 1} for a while


def test_the_hash_of_a_list_is_the_xor_of_the_hashes_of_its_postings(mutable: MutableSketch) -> None:
    expected = posting_hash(0) ^ posting_hash(1) ^ posting_hash(3)
    assert mutable.parts.lists.records[value_of(mutable, "info") & PAYLOAD, HASH] == expected


def test_a_word_that_never_occurred_is_in_no_posting(mutable: MutableSketch) -> None:
    assert not mutable.may_contain("stop")
    assert mutable.candidate_postings("stop").tolist() == []


def test_inserting_everything_again_in_another_order_changes_no_answer(mutable: MutableSketch) -> None:
    for posting in (2, 0, 3, 1):
        mutable.insert(words_of(MESSAGES[posting]), posting)
    assert answers(mutable) == POSTINGS
    assert mutable.list_count == 2


# 3. The sealed sketch (paper 3.3)


def test_sealed_and_opened_again_it_gives_the_same_answers(sealed: SealedSketch) -> None:
    with sealed:
        assert answers(sealed) == POSTINGS
        assert not sealed.may_contain("stop")
        assert sealed.token_count == len(POSTINGS)
        assert sealed.posting_count == len(MESSAGES)
        sealed.verify()


def test_sealed_lists_are_distinct_and_count_those_of_one_posting(sealed: SealedSketch) -> None:
    with sealed:
        lists = {frozenset(sealed.decode(rank).tolist()) for rank in range(sealed.list_count)}
        assert sealed.list_count == len(DISTINCT_LISTS) == 6
        assert lists == DISTINCT_LISTS


def test_lists_are_ranked_by_how_many_tokens_have_them(sealed: SealedSketch) -> None:
    with sealed:
        tokens_of = Counter(rank_of(sealed, token) for token in POSTINGS)
        assert [tokens_of[rank] for rank in range(6)] == [2, 2, 2, 2, 2, 1]
        assert rank_of(sealed, "info") == 5
        assert rank_of(sealed, "connection") == rank_of(sealed, "host")


def test_the_list_that_most_tokens_have_gets_rank_0(mutable: MutableSketch) -> None:
    third = np.array([fingerprint("peer")], np.uint32)  # a third token in the postings of "connection" and "host"
    mutable.insert(third, 0)
    mutable.insert(third, 2)
    sketch = SealedSketch(b"".join(encode(mutable)[0]))
    assert {rank_of(sketch, token) for token in ("connection", "host", "peer")} == {0}
    assert sketch.decode(0).tolist() == [0, 2]


def test_info_alone_has_its_list_and_stores_no_rank(mutable: MutableSketch) -> None:
    """Of a file of format 1.1 or later, that is; format 1.0 stores the rank of each token."""
    paper, latest = (SealedSketch(b"".join(encode(mutable, rules=rules)[0])) for rules in ("paper", "winnowed"))
    assert (paper.header.own_list_count, latest.header.own_list_count) == (0, 1)
    assert rank_of(latest, "info") == rank_of(paper, "info") == 5
    assert answers(paper) == answers(latest) == POSTINGS


# 4. Spilled and merged (paper 4.3)


def test_two_halves_merged_with_postings_rebased_are_the_whole(mutable: MutableSketch, tmp_path: Path) -> None:
    merged = MutableSketch()
    for half in (0, 1):
        path = tmp_path / f"{half}.copr"
        with SketchWriter() as writer:
            for posting in (0, 1):  # each half counts its postings from 0 on
                writer.insert(words_of(MESSAGES[2 * half + posting]), posting)
            writer.seal(path, signature_bits=32)
        with SealedSketch.open(path) as part:
            assert add_sealed(merged, part, posting_base=2 * half)
    assert answers(merged) == POSTINGS
    assert encode(merged)[0] == encode(mutable)[0]


def test_a_writer_that_had_to_spill_answers_and_seals_as_one_that_had_not(tmp_path: Path) -> None:
    """Tokens with a posting far apart, kept as bitsets, fill the smallest sketch quickly."""
    noise = np.arange(1, 100, dtype=np.uint32)
    files = []
    for limit_bytes in (2 << 20, 64 << 20):
        with SketchWriter(limit_bytes, short_list_postings=1, spill_folder=tmp_path) as writer:
            for posting, message in enumerate(MESSAGES):
                own = noise[posting::4]
                for token in own:
                    writer.insert(np.array([token], np.uint32), 1000 + int(token))
                writer.insert(own, 65535)
                writer.insert(words_of(message), posting)
            assert (writer.spill_count > 0) == (limit_bytes == 2 << 20)
            assert answers(writer) == POSTINGS
            writer.seal(tmp_path / "whole.copr")
            assert answers(writer) == POSTINGS
        files.append((tmp_path / "whole.copr").read_bytes())
    assert files[0] == files[1]
    assert answers(SealedSketch(files[0])) == POSTINGS


# 5. Queries (paper 4.4)


class Collector:
    """Takes all lists, or those until `enough` says so."""

    def __init__(self, enough: Callable[[list[list[int]]], bool] = lambda _: False) -> None:
        self.lists: list[list[int]] = []
        self._enough = enough

    def accept(self, postings: U16Array) -> None:
        self.lists.append(postings.tolist())

    def should_stop(self) -> bool:
        return self._enough(self.lists)


def test_algorithm_3_decodes_each_distinct_list_once(sketch: Sketch) -> None:
    consumer = Collector()
    sketch.query(["connection", "host", "info", "HOST"], consumer)
    assert sorted(consumer.lists) == [[0, 1, 3], [0, 2]]


def test_algorithm_3_reports_absent_tokens_first_and_each_of_them(sketch: Sketch) -> None:
    consumer = Collector()
    sketch.query(["info", "stop", "halt"], consumer)
    assert consumer.lists == [[], [], [0, 1, 3]]


def test_algorithm_3_ends_when_the_consumer_has_seen_an_absent_token(sketch: Sketch) -> None:
    consumer = Collector(enough=lambda lists: lists[-1] == [])
    sketch.query(["info", "stop", "halt", "host"], consumer)
    assert consumer.lists == [[]]


def test_algorithm_3_ends_when_the_consumer_has_seen_enough_lists(sketch: Sketch) -> None:
    consumer = Collector(enough=lambda lists: len(lists) == 1)
    sketch.query(["info", "host", "start"], consumer)
    assert len(consumer.lists) == 1


def test_the_algebra_combines_postings(sketch: Sketch) -> None:
    info, host, start = (Token(fingerprint(token)) for token in ("info", "host", "start"))
    stop = Token(fingerprint("stop"))
    assert sketch.candidates(batches_in_all(info, host)).tolist() == [0]
    assert sketch.candidates(batches_in_any(info, host)).tolist() == [0, 1, 2, 3]
    assert sketch.candidates(batches_in_any(host, start)).tolist() == [0, 1, 2]
    assert sketch.candidates(batches_in_all(info, batches_in_any(host, start))).tolist() == [0, 1]
    assert sketch.candidates(batches_in_any(batches_in_all(info, host), batches_in_all(info, start))).tolist() == [0, 1]
    assert sketch.candidates(batches_in_all(host, start)).tolist() == []
    assert sketch.candidates(batches_in_all(info, stop)).tolist() == []
    assert sketch.candidates(batches_in_any(info, stop)).tolist() == [0, 1, 3]


def test_anything_is_every_posting_and_nothing_is_none(sketch: Sketch) -> None:
    info = Token(fingerprint("info"))
    assert sketch.candidates(ANYTHING).tolist() == [0, 1, 2, 3]
    assert sketch.candidates(NOTHING).tolist() == []
    assert sketch.candidates(batches_in_all(info, ANYTHING)).tolist() == [0, 1, 3]
    assert sketch.candidates(batches_in_any(info, ANYTHING)).tolist() == [0, 1, 2, 3]
    assert sketch.candidates(batches_in_any(info, NOTHING)).tolist() == [0, 1, 3]
    assert sketch.candidates(batches_in_all(info, NOTHING)).tolist() == []


def test_programs_ask_for_tokens_in_the_order_of_the_expression() -> None:
    """The rarest come last in a search text, and are asked first: from the end."""
    expression = batches_in_all(Token(1), Token(2), batches_in_any(Token(3), Token(4)), Token(5))
    assert compile_expression(expression).fingerprints.tolist() == [1, 2, 3, 4, 5]
