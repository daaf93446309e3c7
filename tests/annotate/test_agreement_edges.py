"""annotate agreement on tables that break careless programs: outliers, odd line ends, look-alike names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.annotate.agreement_helpers import VOTES, annotate, document, write_csv

LONG = ("--unit", "u", "--annotator", "who", "--label", "y")


def test_a_number_on_a_unit_of_one_annotator_does_not_undo_alpha(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [("u", "who", "y")]
    for i in range(60):
        rows += [(f"u{i:02}", "a", i % 2), (f"u{i:02}", "b", 1 - i % 2 if i % 20 == 0 else i % 2)]
    rows.append(("uu", "a", 1000000000))
    table = write_csv(tmp_path / "t.csv", rows)
    found = document("agreement", str(table), *LONG, "--level", "interval", "--measure", "krippendorff_alpha")
    (alpha,) = found["measures"]
    # Units 0, 20 and 40 differ: Do = 3 / 60. b gives three 1s in place of 0, so the 120 values hold
    # 57 zeros and 63 ones: De = 2 * 57 * 63 / (120 * 119).
    assert alpha["value"] == pytest.approx(1 - (3 / 60) / (2 * 57 * 63 / (120 * 119)))
    assert alpha["reason"] is None and alpha["low"] < alpha["value"] < alpha["high"]


def test_total_agreement_in_three_questions_prints_bounds_on_the_scale(tmp_path: Path) -> None:
    rows = [("u", "q", "a", "b")] + [(f"{i:02}", i // 10, *("yn"[i % 10 == 0] * 2)) for i in range(30)]
    table = write_csv(tmp_path / "t.csv", rows)
    printed = annotate("agreement", str(table), "--unit", "u", "--cluster", "q", "--annotators", "a,b").stdout
    assert "-1.000 … 1.000" in printed and "cut at -1, the least there can be" in printed
    assert "-2.9" not in printed


VOTES_LONG = ("--unit", "unit", "--annotator", "annotator", "--label", "label")


def test_an_alt_test_of_two_people_says_that_the_paper_asks_for_more(tmp_path: Path) -> None:
    rows = [("u", "a", "b", "gpt")]
    rows += [(f"{i:02}", "xy"[i % 2], "xy"[(i + (i % 9 == 0)) % 2], "xy"[i % 2]) for i in range(40)]
    table = (str(write_csv(tmp_path / "t.csv", rows)), "--unit", "u", "--annotators", "a,b,gpt")
    asked = ("agreement", *table, "--judge", "gpt", "--alt-test", "--interval", "none")
    (test,) = document(*asked)["fields"][0]["alt_tests"]
    told = "two people only: compared with the one other; the paper asks for two others"
    assert test["least_others"] == 1 and test["notes"] == [told]
    assert f"- {told}\n" in annotate(*asked).stdout


def test_an_alt_test_of_few_questions_says_that_it_wins_too_easily() -> None:
    asked = ("agreement", VOTES, *VOTES_LONG, "--cluster", "question", "--judge", "gpt", "--alt-test")
    (test,) = document(*asked)["fields"][0]["alt_tests"]
    # The example has 20 questions, and three people of whom two others label each unit.
    assert test["least_others"] == 2 and {row["test"] for row in test["compared"]} == {"wilcoxon"}
    assert "fewer than 30 questions" in test["notes"][0] and "wins too easily" in test["notes"][0]
    assert "wins too easily" in annotate(*asked).stdout
