"""Units of different questions with nearly the same text are counted, in a draw and in a report."""

import json
import random
from pathlib import Path

import pytest

from annotate.near_duplicates import find_near_duplicates
from tests.annotate.agreement_helpers import annotate, judge

TEXT = " ".join(f"word{i}" for i in range(100))


def change(*places: int) -> str:
    """TEXT with other words at these places."""
    words = TEXT.split()
    for place in places:
        words[place] = f"other{place}"
    return " ".join(words)


# TEXT has 96 runs of five words. A changed word far from the ends and from other changed words replaces five runs.
@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (change(50), True),  # 91 / 101 = .90
        (change(30, 60), True),  # 86 / 106 = .81
        (change(20, 45, 70), False),  # 81 / 111 = .73
        (TEXT.upper().replace(" ", ",\n "), True),  # the words are the same
        (TEXT + " " + TEXT, True),  # 96 / 100: four runs cross the seam
        ("", False),
    ],
)
def test_similarity_of_runs_of_five_words_decides(other: str, alike: bool) -> None:
    found = find_near_duplicates([("a", "q1", TEXT), ("b", "q2", other)])
    assert found == ({"a": "b", "b": "a"} if alike else {})


def test_only_units_of_other_questions_count() -> None:
    same = [(f"a{i}", "q1", TEXT) for i in range(40)]
    assert find_near_duplicates(same) == {}
    found = find_near_duplicates(
        [*same, ("b", "q2", TEXT), ("c", "q3", TEXT), ("d", "q4", "Something else.")]
    )
    assert set(found) == {unit for unit, _, _ in same} | {"b", "c"}
    assert all(not other.startswith("a") for unit, other in found.items() if unit.startswith("a"))


def test_every_planted_copy_is_found_and_nothing_else() -> None:
    rng = random.Random(5)
    vocabulary = [f"w{i}" for i in range(3000)]
    texts = [rng.choices(vocabulary, k=120) for _ in range(400)]
    rows = [(f"u{i}", f"q{i}", " ".join(words)) for i, words in enumerate(texts)]
    copies = []
    for i in range(60):
        words = list(texts[i])
        # One word of 120 replaces at most five of 116 runs: the similarity is at least 111 / 121.
        words[rng.randrange(120)] = "changed"
        copies.append((f"c{i}", f"p{i}", " ".join(words)))
    found = find_near_duplicates(rows + copies)
    assert found == {f"u{i}": f"c{i}" for i in range(60)} | {f"c{i}": f"u{i}" for i in range(60)}


def test_a_draw_and_a_report_name_them(tmp_path: Path) -> None:
    passages = [f"Passage {i} says {' '.join(f'thing{i}x{k}' for k in range(20))}." for i in range(30)]
    passages[7] = passages[3]
    lines = [json.dumps({"id": f"q{i}", "claim": f"Claim {i}.", "passages": [{"id": f"p{i}", "text": text, "votes": {"stance": {"ann": "support", "bob": "support"}}}]}) for i, text in enumerate(passages)]  # fmt: skip
    source, db = tmp_path / "items.jsonl", tmp_path / "s.db"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    judge("items", "import", source, "-d", db)
    drawn = annotate("batches", "new", "all", "stance", "-n", "30", "--annotators", "cyd,dan", "-d", db)
    assert "2 of 30 units (6.7%) have nearly the same text" in " ".join(drawn.output.split())
    report = json.loads(annotate("report", "-d", db, "--field", "stance", "--json").stdout)
    [section] = [s for s in report["sections"] if s["key"] == "sampling"]
    assert "2 of 30 units (6.7%) have nearly the same text" in json.dumps(section)
