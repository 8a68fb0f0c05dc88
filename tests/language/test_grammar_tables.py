"""A parser from the cache reads what one made from the grammar reads, and a bad cache does no harm."""

import hashlib
from pathlib import Path

import pytest
from lark import Lark, UnexpectedInput

from coprlake.language import grammar_tables
from coprlake.language.parsing import parse

QUERIES = sorted((Path(__file__).parent / "queries").glob("*"))
TEXTS = [
    "fetch logs",
    'fetch logs | filter contains(content, "x") and not (level == "ERROR" or a[b] > 1.5) | limit 3',
    "data record(a=1, b=`odd name`) | summarize n = count(), by:{bin(timestamp, 1h@d), c = $v} | sort n desc",
    "fetch logs, from:now()-2h | fieldsAdd x = -3 mod 2 in {1, 2}, y = a ~ 'b*'",
    "fetch logs | | limit",
    "fetch logs | filter (a",
    'fetch "x',
    "",
    "é ü 😀",
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COPRLAKE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "private"


def outcome(parser: Lark, text: str) -> object:
    try:
        tree = parser.parse(text)
        parts = [(str(part.data), part.meta) for part in tree.iter_subtrees()]
        return tree, [(name, meta.empty or (meta.start_pos, meta.end_pos)) for name, meta in parts]
    except UnexpectedInput as error:
        return type(error), error.pos_in_stream, str(error.args), sorted(getattr(error, "expected", ()))


def test_the_parser_of_the_cache_is_that_of_the_grammar(cache: Path) -> None:
    made = grammar_tables.parser.__wrapped__()
    [kept] = cache.iterdir()
    again = grammar_tables._kept(kept.name)
    assert again is not None
    assert again is not made
    texts = [*TEXTS, *(line for file in QUERIES if file.is_file() for line in file.read_text().splitlines())]
    for text in texts:
        expected, found = outcome(made, text), outcome(again, text)
        assert found == expected


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other data", "not marshal", "folder"])
def test_a_damaged_cache_is_replaced(damage: str, cache: Path) -> None:
    grammar_tables.parser.__wrapped__()
    [kept] = cache.iterdir()
    data = kept.read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    other = hashlib.sha256(b"[1]").hexdigest().encode() + b"\n[1]"
    damaged: dict[str, bytes | bytearray] = {
        "empty": b"",
        "cut": data[:-9],
        "flipped": flipped,
        "other data": other,
        "not marshal": b"x\ny",
    }
    kept.unlink()
    if damage == "folder":
        kept.mkdir()
    else:
        kept.write_bytes(damaged[damage])
    assert grammar_tables._kept(kept.name) is None
    assert grammar_tables.parser.__wrapped__().parse("fetch logs")
    if damage != "folder":
        assert grammar_tables._kept(kept.name) is not None


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COPRLAKE_CACHE", str(tmp_path / "file" / "below"))
    assert grammar_tables.parser.__wrapped__().parse("fetch logs")
    monkeypatch.setenv("COPRLAKE_CACHE", "~nobody-of-this-name/cache")
    assert grammar_tables.parser.__wrapped__().parse("fetch logs")


def test_a_cache_that_others_can_write_to_is_not_read(cache: Path) -> None:
    grammar_tables.parser.__wrapped__()
    [kept] = cache.iterdir()
    assert cache.stat().st_mode & 0o777 == 0o700
    for path in (kept, cache):
        mode = path.stat().st_mode
        path.chmod(mode | 0o020)
        assert grammar_tables._kept(kept.name) is None
        path.chmod(mode)
        assert grammar_tables._kept(kept.name) is not None


def test_another_grammar_or_version_is_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    key = grammar_tables._key("a")
    assert grammar_tables._key("b") != key
    monkeypatch.setattr("lark.__version__", "9.9")
    assert grammar_tables._key("a") != key


def test_nothing_is_left_beside_the_tables(cache: Path) -> None:
    for _ in range(2):
        grammar_tables.parser.__wrapped__()
    assert len(list(cache.iterdir())) == 1
    assert parse("fetch logs")
