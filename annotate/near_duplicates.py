"""Find units of different questions whose texts are nearly equal.

Intervals treat questions as independent. If the same text occurs under several questions, labels repeat, and the
intervals are too narrow.

Two texts are nearly equal if the Jaccard similarity of their runs of five words is at least .8. Pairs are found by
MinHash (Broder 1997) with banding (Leskovec, Rajaraman & Ullman, Mining of Massive Datasets, section 3.4), and each
pair that is found is then compared exactly.
"""

import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

import numpy as np

from judge.stats.ratings import IntArray
from judge.store import Store
from judge.store.study import dumps

ALIKE = 0.8
"""The smallest similarity of nearly equal texts."""
WORDS = 5
# A pair with similarity .8 shares at least one of 16 bands of 4 minima with a probability of 1 - (1 - .8^4)^16 = .9998.
BANDS, ROWS = 16, 4
# Every number is odd, so that each multiplication permutes the numbers of 64 bits.
_FACTORS = np.random.default_rng(0).integers(2**63, size=(BANDS * ROWS, 1), dtype=np.uint64) * np.uint64(
    2
) + np.uint64(1)
_WORD = re.compile(r"\w+")
_TEXT = """
    SELECT unit_id, question_id,
           coalesce(nullif(answer_claim, ''), nullif(nugget, ''), nullif(sentence, ''), nullif(passage, ''), answer, claim, '')
    FROM unit_texts WHERE unit_id IN (SELECT value FROM json_each(?)) ORDER BY n
"""


def describe_near_duplicates(store: Store, units: Collection[str]) -> str:
    """Return a sentence about the units whose text is nearly equal to that of a unit of another question.

    The sentence is empty if there are no such units.
    """
    alike = find_near_duplicates(store.conn.execute(_TEXT, [dumps(list(units))]))
    if not alike:
        return ""
    first, other = min(alike.items())
    return (
        f"{len(alike):,} of {len(units):,} units ({len(alike) / len(units):.1%}) have nearly the same text as a unit of another "
        f"question, such as {first} and {other}. Intervals treat these questions as independent, so they may be too narrow"
    )


def find_near_duplicates(texts: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return each unit whose text is nearly equal to that of a unit of another question, mapped to one such unit.

    `texts` has the unit, the question and the text.
    """
    known: dict[str, tuple[str, IntArray, list[tuple[int, bytes]]]] = {}
    # Two questions in a bucket suffice, because a unit of any question can be compared with another question then.
    buckets: defaultdict[tuple[int, bytes], dict[str, str]] = defaultdict(dict)
    for unit, question, text in texts:
        runs = _hash_runs(text)
        if not len(runs):
            continue
        bands = list(_list_bands(runs))
        known[unit] = question, runs, bands
        for band in bands:
            if len(buckets[band]) < 2:
                buckets[band].setdefault(question, unit)
    alike: dict[str, str] = {}
    for unit, (question, runs, bands) in known.items():
        others = {other: None for band in bands for q, other in buckets[band].items() if q != question}
        for other in others:
            if _compute_similarity(runs, known[other][1]) >= ALIKE:
                alike[unit] = other
                break
    return alike


def _hash_runs(text: str) -> IntArray:
    """Return the sorted hashes of the runs of five words in a text, or of all its words if there are fewer."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    n = min(WORDS, len(words))
    runs = {" ".join(words[i : i + n]) for i in range(len(words) - n + 1)} if n else set()
    return np.array(sorted(zlib.crc32(run.encode(errors="replace")) for run in runs), dtype=np.int64)


def _list_bands(runs: IntArray) -> Iterator[tuple[int, bytes]]:
    minima = (runs.astype(np.uint64) * _FACTORS).min(axis=1).reshape(BANDS, ROWS)
    for number, band in enumerate(minima):
        yield number, band.tobytes()


def _compute_similarity(a: IntArray, b: IntArray) -> float:
    shared = len(np.intersect1d(a, b))
    return shared / (len(a) + len(b) - shared)
