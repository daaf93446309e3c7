"""The alternative annotator test as its authors' code runs it, through the command line."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.annotate.agreement_helpers import annotate, document, write_csv

PEOPLE = ("p0", "p1", "p2", "p3")


def votes(folder: Path) -> tuple[str, list[dict[str, str]]]:
    """Ninety units of thirty questions; people label three quarters of them, the judge all."""
    draw = random.Random(4)
    rows: list[dict[str, str]] = []
    for i in range(90):
        truth = draw.choice("abc")
        row = {"u": f"u{i:02}", "q": f"q{i // 3:02}"}
        for name, error in zip((*PEOPLE, "judge"), (0.2, 0.3, 0.25, 0.2, 0.3), strict=True):
            row[name] = draw.choice("abc") if draw.random() < error else truth
            if name != "judge" and draw.random() < 0.25:
                row[name] = ""
        rows.append(row)
    table = [tuple(rows[0]), *(tuple(row.values()) for row in rows)]
    return str(write_csv(folder / "t.csv", table)), rows


def by_the_authors(rows: list[dict[str, str]], epsilon: float) -> tuple[float, float]:
    """Winning rate and advantage probability as their code finds them: units with two annotators or more in all, a t-test of
    the units (Wilcoxon under thirty), Benjamini and Yekutieli."""
    p_values, advantages = [], []
    for person in PEOPLE:
        wins, losses = [], []
        for row in rows:
            others = [row[other] for other in PEOPLE if other != person and row[other]]
            if not row[person] or not others:
                continue
            judge = np.mean([row["judge"] == label for label in others])
            mine = np.mean([row[person] == label for label in others])
            wins.append(int(judge >= mine))
            losses.append(int(mine >= judge))
        difference = np.array(losses) - np.array(wins)
        p_values.append(stats.ttest_1samp(difference, epsilon, alternative="less").pvalue)
        advantages.append(np.mean(wins))
    won = stats.false_discovery_control(p_values, method="by") <= 0.05
    return float(np.mean(won)), float(np.mean(advantages))


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
def test_without_clusters_it_is_theirs(tmp_path: Path, epsilon: float) -> None:
    path, rows = votes(tmp_path)
    who = ",".join((*PEOPLE, "judge"))
    table = ("agreement", path, "--unit", "u", "--annotators", who, "--judge", "judge", "--alt-test")
    asked = ("--epsilon", str(epsilon), "--cluster", "none", "--interval", "none", "--no-pairwise")
    (found,) = document(*table, *asked)["fields"][0]["alt_tests"]
    rate, advantage = by_the_authors(rows, epsilon)
    assert found["winning_rate"] == pytest.approx(rate, abs=1e-9)
    assert found["advantage"] == pytest.approx(advantage, abs=1e-9)
    assert found["least_others"] == 1 and found["notes"] == []


def test_what_differs_from_theirs_is_said(tmp_path: Path) -> None:
    path, _ = votes(tmp_path)
    who = ",".join((*PEOPLE, "judge"))
    table = ("agreement", path, "--unit", "u", "--annotators", who, "--judge", "judge", "--alt-test")
    printed = annotate(*table, "--cluster", "q", "--interval", "none", "--no-pairwise").stdout
    assert "standard errors are by question, which the authors' code does not do" in printed
    two = document(*table, "--least-others", "2", "--interval", "none", "--no-pairwise")
    (found,) = two["fields"][0]["alt_tests"]
    assert "as the paper's text suggests; the authors' code takes one" in found["notes"][0]
    assert all(row["n_units"] < 90 for row in found["compared"])


def test_none_beside_the_question_changes_the_alt_test_alone(tmp_path: Path) -> None:
    path, rows = votes(tmp_path)
    who = ",".join((*PEOPLE, "judge"))
    asked = ("agreement", path, "--unit", "u", "--annotators", who, "--judge", "judge", "--alt-test")
    asked += ("--no-pairwise", "--replicates", "200", "--cluster", "q")
    theirs, ours = document(*asked, "--cluster", "none"), document(*asked)
    assert theirs["measures"] == ours["measures"] and ours["measures"][0]["n_clusters"] < len(rows)
    (test,), (by_question,) = (found["fields"][0]["alt_tests"] for found in (theirs, ours))
    assert test["winning_rate"] == pytest.approx(by_the_authors(rows, 0.2)[0], abs=1e-9)
    # What a test by question changes: standard errors and p values; no gap and no advantage.
    for one, other in zip(test["compared"], by_question["compared"], strict=True):
        assert one["p_value"] != other["p_value"] and one["judge_wins"] == other["judge_wins"]
    assert "one column names the question" in annotate(*asked, "--cluster", "u", code=2).stderr
