"""The paper's own numbers: Table 3 (queries a second, cold), and what its text says of sizes and error rates."""

from typing import Final

TABLE_3: Final[dict[str, dict[str, dict[str, float]]]] = {
    "term(ID)": {
        "1M_generated": {"scan": 6.4, "copr": 7.7e3, "csc": 4.3e3, "lucene-line": 3.9e3, "dictionary": 1.6},
        "5M_generated": {"scan": 0.81, "copr": 4.2e3, "csc": 2.7e3, "lucene-line": 2.5e3, "dictionary": 0.22},
    },
    "contains(ID)": {
        "1M_generated": {"scan": 6.4, "copr": 5.5e3, "csc": 4.2e3, "lucene-line": 33.0, "dictionary": 1.6},
        "5M_generated": {"scan": 0.81, "copr": 2.8e3, "csc": 2.7e3, "lucene-line": 11.0, "dictionary": 0.22},
    },
    "term(IP)": {
        "1M_generated": {"scan": 5.1, "copr": 7.7e3, "csc": 2.4e3, "lucene-line": 3.9e3, "dictionary": 1.5},
        "5M_generated": {"scan": 0.65, "copr": 4.3e3, "csc": 27.0, "lucene-line": 2.5e3, "dictionary": 0.21},
    },
    "contains(IP)": {
        "1M_generated": {"scan": 5.1, "copr": 6.2, "csc": 6.2, "lucene-line": 33.0, "dictionary": 1.5},
        "5M_generated": {"scan": 0.65, "copr": 0.68, "csc": 0.68, "lucene-line": 11.0, "dictionary": 0.21},
    },
    "term(extracted)": {
        "1M_generated": {"scan": 5.3, "copr": 210.0, "csc": 200.0, "lucene-line": 180.0},
        "5M_generated": {"scan": 0.66, "copr": 12.0, "csc": 10.0, "lucene-line": 11.0, "dictionary": 0.20},
    },
}
"""By scenario, data set and store; `dictionary` is LogGrep there, `lucene-line` its Lucene."""

INDEX_PERCENT_OF_RAW: Final = {"copr": (2.3, 3.6), "lucene-line": (12.0, 39.0)}
SEARCHED_GIGABYTES: Final = 3_596.0
"""A second and core, in production, over 12,030 segments (section 6)."""
SEGMENTS: Final = 12_030


def speedup(scenario: str, data: str, store: str) -> float | None:
    """Times as fast as Scan, in the paper; None where it has no number."""
    row = TABLE_3[scenario].get(data, {})
    return row[store] / row["scan"] if store in row else None
