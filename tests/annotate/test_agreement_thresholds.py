"""--fail-under: which pair, which number, and exit 5. --alt-test as its authors' code runs it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from annotate.cli import _thresholds as thresholds
from judge.errors import UsageError
from tests.annotate.agreement_helpers import EVERYBODY, VOTES, annotate, document, make_study, write_csv

# gold and gpt agree on 8 of 10 units, with equal margins: percent .8, kappa .6. ann agrees with all gold labels.
PAIRS = [("x", "x")] * 4 + [("x", "y")] + [("y", "x")] + [("y", "y")] * 4


@pytest.fixture
def table(tmp_path: Path) -> tuple[str, ...]:
    rows = [("unit", "ann", "gold", "gpt"), *((str(i), g, g, p) for i, (g, p) in enumerate(PAIRS))]
    path = write_csv(tmp_path / "t.csv", rows)
    return (str(path), "--annotators", "ann,gold,gpt", "--judge", "gpt")


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ("percent=0.8", 0),
        ("percent=0.81", 5),
        ("cohen_kappa=0.6", 0),
        ("cohen_kappa=0.61", 5),
        ("cohen_kappa:gpt,gold=0.61", 5),
        ("cohen_kappa:ann,gold=0.99", 0),
        ("krippendorff_alpha:all=0.99", 5),
        ("accuracy=0.8", 0),
        ("macro_f1=0.81", 5),
    ],
)
def test_the_limit_decides_the_exit_code(table: tuple[str, ...], limit: str, code: int) -> None:
    annotate("agreement", *table, "--interval", "none", "--fail-under", limit, code=code)


def test_a_weighted_measure_and_a_pair(table: tuple[str, ...]) -> None:
    order = ("--level", "ordinal:x,y", "--interval", "none")
    limit = "cohen_kappa:quadratic:gpt,gold=0.59"
    (result,) = document("agreement", *table, *order, "--fail-under", limit)["thresholds"]
    # With two labels all weights are the same: kappa is .6.
    assert result["weights"] == "quadratic" and result["compared"] == pytest.approx(0.6)
    assert result["why"].startswith("cohen_kappa (quadratic) between gpt and gold"), (
        "and not the plain one's name"
    )
    assert "needs ordered labels" in annotate("agreement", *table, "--fail-under", limit, code=2).stderr


def test_json_says_what_was_compared(table: tuple[str, ...]) -> None:
    limits = ("--fail-under", "percent=0.5", "--fail-under", "cohen_kappa=0.9")
    first, second = document("agreement", *table, *limits, code=5)["thresholds"]
    assert (first["annotators"], first["compared"], first["passed"]) == (["gpt", "gold"], 0.8, True)
    assert (second["limit"], second["passed"]) == (0.9, False) and second["compared"] == pytest.approx(0.6)
    assert "is 0.6000 < 0.9" in second["why"]


def test_the_lower_bound_is_stricter(table: tuple[str, ...]) -> None:
    annotate("agreement", *table, "--fail-under", "percent=0.7")
    failed = annotate("agreement", *table, "--fail-under", "percent=0.7", "--on", "lower", code=5)
    assert "lower bound of percent between gpt and gold" in failed.stderr


def test_a_bound_that_does_not_exist_fails(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [("unit", "a", "b"), ("1", "x", "x")])
    table = (path, "--annotators", "a,b", "--fail-under", "percent=0.1")
    annotate("agreement", *table)
    failed = annotate("agreement", *table, "--on", "lower", code=5)
    assert "has no lower bound: no interval: " in failed.stderr


def test_every_judge_must_pass_and_may_be_named_by_its_end(tmp_path: Path) -> None:
    db = make_study(tmp_path, runs=2)
    base = ("agreement", "-d", db, "--interval", "none")
    both = document(*base, "--fail-under", "percent=0.5")["thresholds"]
    assert len(both) == 2 and {row["annotators"][1] for row in both} == {"gold"}
    end = both[0]["annotators"][0][-4:]
    (named,) = document(*base, "--fail-under", f"percent:{end},ann=0.1")["thresholds"]
    assert named["annotators"] == [both[0]["annotators"][0], "ann"]


def test_the_reference_can_be_chosen(table: tuple[str, ...]) -> None:
    result = document("agreement", *table, "--reference", "ann", "--fail-under", "percent=0.1")
    assert result["thresholds"][0]["annotators"] == ["gpt", "ann"]


def test_without_a_judge_all_are_meant() -> None:
    base = ("agreement", VOTES, "--interval", "none")
    (result,) = document(*base, *EVERYBODY, "--fail-under", "krippendorff_alpha=0.1")["thresholds"]
    assert result["annotators"] == ["ann", "bob", "cyd", "gpt"]
    assert (
        "cohen_kappa compares two annotators"
        in annotate(*base, *EVERYBODY, "--fail-under", "cohen_kappa=0.1", code=2).stderr
    )
    people = document(*base, "--judge", "gpt", "--fail-under", "fleiss_kappa:people=0.1")["thresholds"][0]
    assert people["annotators"] == ["ann", "bob", "cyd"]


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("percent", "MEASURE=0.6"),
        ("percent=high", "MEASURE=0.6"),
        ("percent=nan", "MEASURE=0.6"),
        ("=0.6", "MEASURE=0.6"),
        ("kapa=0.6", "--fail-under kapa=0.6: unknown measure; available: accuracy"),
        ("percent:gpt,zoe=0.6", "'gpt,zoe' is not a pair A,B of annotators; available: ann, gold, gpt"),
        ("percent:gpt=0.6", "'gpt' is not a pair"),
        ("percent:gpt,gpt=0.6", "is not a pair"),
        ("cohen_kappa:all=0.6", "cohen_kappa compares two annotators"),
    ],
)
def test_what_cannot_be_meant_ends_with_2(table: tuple[str, ...], typed: str, complaint: str) -> None:
    failed = annotate("agreement", *table, "--interval", "none", "--fail-under", typed, code=2)
    assert complaint in failed.stderr


def test_names_with_commas_and_colons_are_found() -> None:
    (limit,) = thresholds.parse(["cohen_kappa:a:b,c,d=0.5"])
    assert (limit.measure, limit.who, limit.least) == ("cohen_kappa", "a:b,c,d", 0.5)
    with pytest.raises(UsageError):
        thresholds.parse(["cohen_kappa:a,b"])


PEOPLE = ("p0", "p1", "p2", "p3")


def votes(folder: Path) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """The alt-test of ninety units of thirty questions; people label three quarters of them, the judge all."""
    draw = random.Random(4)
    rows: list[dict[str, str]] = []
    for i in range(90):
        truth = draw.choice("abc")
        row = {"unit": f"u{i:02}", "question": f"q{i // 3:02}"}
        for name, error in zip((*PEOPLE, "judge"), (0.2, 0.3, 0.25, 0.2, 0.3), strict=True):
            row[name] = draw.choice("abc") if draw.random() < error else truth
            if name != "judge" and draw.random() < 0.25:
                row[name] = ""
        rows.append(row)
    table = [tuple(rows[0]), *(tuple(row.values()) for row in rows)]
    path = str(write_csv(folder / "t.csv", table))
    who = ("--annotators", ",".join((*PEOPLE, "judge")), "--judge", "judge")
    return ("agreement", path, *who, "--measure", "alt_test", "--interval", "none"), rows


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


def test_without_clusters_it_is_theirs(tmp_path: Path) -> None:
    words, rows = votes(tmp_path)
    (result,) = document(*words, "--cluster", "none")["fields"][0]["alt_tests"]
    rate, advantage = by_the_authors(rows, 0.2)
    assert result["winning_rate"] == pytest.approx(rate, abs=1e-9)
    assert result["advantage"] == pytest.approx(advantage, abs=1e-9)
    assert result["least_others"] == 1 and result["notes"] == []


def test_what_differs_from_theirs_is_said(tmp_path: Path) -> None:
    words, _ = votes(tmp_path)
    printed = annotate(*words).stdout
    assert "clustered by question" in printed
