"""annotate plan: how many questions and units, from what is expected or from a pilot, or for a verdict and with what chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.annotate.agreement_helpers import EVERYBODY, VOTES, annotate, document, make_study, write_csv

PILOT = ("--annotators", "a,b")
KAPPA = ("--expect", "0.6", "--width", "0.2", "--per-question", "1")
# 100 units, 80 of them agreed on, with both margins one half: percent .8, kappa .6.
CELLS = [("x", "x")] * 40 + [("x", "y")] * 10 + [("y", "x")] * 10 + [("y", "y")] * 40


def pilot(path: Path, cluster_of: int = 1) -> tuple[str, ...]:
    rows = [
        ("unit", "question", "a", "b"),
        *((f"{i:03}", i // cluster_of, *cell) for i, cell in enumerate(CELLS)),
    ]
    return (str(write_csv(path, rows)), *PILOT)


def test_a_rate_with_and_without_questions() -> None:
    expected = ("--measure", "percent", "--expect", "0.8", "--width", "0.1")
    # sd = sqrt(.8 .2) = .4; n = (2 * 1.959964 * .4 / .1)^2 = 245.85.
    (row,) = document("plan", *expected, "--per-question", "1")["rows"]
    assert (row["n_clusters"], row["n_units"], row["design_effect"]) == (246, 246, 1.0)
    # Five units a question: times 1 + 4 * .1 = 1.4, over 5: 68.84.
    (row,) = document("plan", *expected, "--per-question", "5", "--icc", "0.1")["rows"]
    assert (row["n_clusters"], row["n_units"], row["design_effect"]) == (69, 345, pytest.approx(1.4))
    assert [r["per_question"] for r in document("plan", *expected)["rows"]] == [1, 2, 3, 5, 10]


def test_kappa_of_two_even_labels() -> None:
    # Chance is 1/2 whatever the margins do to first order, so kappa = 2 p - 1 and sd = 2 sqrt(.8 .2) = .8.
    result = document("plan", *KAPPA, "--shares", "0.5,0.5")
    assert result["design"]["sd"] == pytest.approx(0.8) and result["rows"][0]["n_units"] == 246
    assert result["source"] is None and result["annotators"] is None


def test_a_decision_takes_the_spread_at_the_threshold() -> None:
    result = document(
        "plan", "--measure", "percent", "--expect", "0.8", "--threshold", "0.7", "--per-question", "1"
    )
    # ((1.959964 sqrt(.7 .3) + .841621 sqrt(.8 .2)) / .1)^2 = 152.48.
    assert result["rows"][0]["n_units"] == 153 and result["rows"][0]["threshold"] == 0.7


def test_rare_labels_cost_more() -> None:
    rare, even = (
        document("plan", *KAPPA, "--shares", shares)["rows"][0]["n_units"]
        for shares in ("0.95,0.05", "0.5,0.5")
    )
    assert rare > 3 * even


def test_a_pilot_table_says_what_is_missing(tmp_path: Path) -> None:
    result = document("plan", *pilot(tmp_path / "t.csv"), "--width", "0.2")
    assert result["annotators"] == ["a", "b"] and result["design"]["value"] == pytest.approx(0.6)
    assert result["design"]["n_units"] == 100 and result["design"]["icc"] == 0
    (row,) = result["rows"]  # every unit is a question of its own
    # sd .8 up to the n - 1 of 100 units.
    assert row["n_units"] == pytest.approx(246, abs=8)
    assert row["more_units"] == row["more_clusters"] == row["n_units"] - 100
    assert any("every unit in the pilot is a separate question" in line for line in result["assumed"])
    enough = document("plan", *pilot(tmp_path / "t.csv"), "--width", "0.9")["rows"][0]
    assert enough["more_units"] == 0


def test_what_is_missing_counts_alike_units_as_less(tmp_path: Path) -> None:
    # CELLS in order are runs of ten agreements or disagreements: units of a question are all alike.
    result = document("plan", *pilot(tmp_path / "t.csv", 10), "--width", "0.2", "--per-question", "1,10")
    assert result["design"]["icc"] == pytest.approx(1.0) and result["design"]["n_clusters"] == 10
    one, ten = result["rows"]
    # With icc 1 a question is worth one unit however many are labelled.
    assert one["n_clusters"] == ten["n_clusters"]
    assert (one["design_effect"], ten["design_effect"]) == (1, pytest.approx(10))
    # Questions of ten as in the pilot: ten of them are there, which are worth 9 (its variance divides by g - 1).
    assert ten["more_clusters"] == pytest.approx(ten["n_clusters"] - 10, abs=2)
    # Single units do not outvote the pilot's hundred as fast: kappa counts units, so the pilot's variance keeps
    # its weight. (100 * 11 + x) / (100 + x)^2 = 1 / N, with the pilot's effect of (10 / 9) * 9.9 = 11.
    n = one["n_clusters"]
    x = (n - 200 + ((n - 200) ** 2 + 4 * 100 * (11 * n - 100)) ** 0.5) / 2
    assert one["more_clusters"] == pytest.approx(x, rel=0.02) and x > 2 * ten["more_clusters"]
    assert (one["more_units"], ten["more_units"]) == (one["more_clusters"], 10 * ten["more_clusters"])
    assert any("as correlated as in the pilot: icc 1.000" in line for line in result["assumed"])
    mine = document("plan", *pilot(tmp_path / "t.csv", 10), "--width", "0.2", "--icc", "0")
    assert mine["design"]["icc"] == 0 and any("as specified: icc 0" in line for line in mine["assumed"])


def test_the_pair_is_the_judge_and_its_reference_unless_named(tmp_path: Path) -> None:
    base = ("plan", VOTES)
    assert document(*base, "--judge", "gpt", "--width", "0.2")["annotators"] == ["gpt", "majority"]
    assert document(*base, "--annotators", "ann,cyd", "--width", "0.2")["annotators"] == ["ann", "cyd"]
    assert "--judge gpt" in annotate(*base, "--width", "0.2", code=2).stderr
    alpha = document(*base, *EVERYBODY, "--measure", "krippendorff_alpha", "--width", "0.2")
    assert alpha["annotators"] == ["ann", "bob", "cyd", "gpt"]


def test_a_study_is_a_pilot_too(tmp_path: Path) -> None:
    db = make_study(tmp_path)
    words = ("--field", "stance", "--annotators", "ann,bob", "--measure", "percent", "--width", "0.3")
    result = document("plan", "-d", db, *words)
    assert result["design"]["value"] == 0.8 and result["design"]["n_units"] == 5


def test_a_pilot_of_two_questions_is_called_a_guess(tmp_path: Path) -> None:
    table = pilot(tmp_path / "t.csv", 50)
    result = document("plan", *table, "--threshold", "0.5", "--per-question", "50")
    assert result["design"]["n_clusters"] == 2
    assert any("only 2 questions in the pilot" in line for line in result["notes"])
    assert result["rows"][0]["more_clusters"] >= 8  # no verdict rests on fewer than ten
    assert "rough estimates" in annotate("plan", *table, "--threshold", "0.5").stdout
    plenty = document("plan", *pilot(tmp_path / "t.csv"), "--width", "0.2")
    assert plenty["notes"] == []


def test_no_spread_plans_nothing(tmp_path: Path) -> None:
    rows = [("unit", "a", "b"), *((str(i), "xy"[i % 2], "xy"[i % 2]) for i in range(20))]
    table = (write_csv(tmp_path / "t.csv", rows), *PILOT)
    failed = annotate("plan", *table, "--width", "0.1", code=1)
    assert "all labels in the pilot agree (cohen_kappa 1.000 on 20 units)" in failed.stderr
    write_csv(tmp_path / "t.csv", [("unit", "a", "b"), ("1", "x", "x"), ("2", "x", "x")])
    assert "undefined" in annotate("plan", *table, "--width", "0.1", code=1).stderr


def test_the_page_prints_what_it_assumed() -> None:
    printed = annotate(
        "plan", "--expect", "0.7", "--shares", "0.4,0.3,0.3", "--width", "0.2", "--threshold", "0.5"
    ).stdout
    assert "cohen_kappa: a 95 % interval of width 0.2:\n" in printed
    assert "cohen_kappa: a 95 % interval above 0.5, with a probability of 80 %:\n" in printed
    assert "- both annotators use the labels with shares 0.4, 0.3, 0.3\n" in printed
    assert "independent (icc 0)" in printed and "more questions" not in printed


@pytest.mark.parametrize(
    ("args", "complaint", "code"),
    [
        (("--expect", "0.7"), "--width 0.2", 2),
        (("--expect", "0.7", "--width", "0.2"), "--shares", 2),
        (("--expect", "0.7", "--width", "0.2", "--shares", "a,b"), "--shares a,b", 2),
        (("--expect", "0.7", "--width", "0.2", "--shares", "0.5,0.6"), "sum to 1", 1),
        (("--expect", "0.7", "--width", "0.2", "--measure", "gwet_ac1"), "gwet_ac1 requires a pilot", 2),
        (("--expect", "0.7", "--width", "0.2", "--measure", "percent", "--shares", "1"), "--shares is for kappa", 2),
        (("--expect", "0.7", "--width", "0", "--measure", "percent"), "width must be above 0", 1),
        (("--expect", "0.7", "--width", "0.2", "--measure", "percent", "--icc", "2"), "intraclass correlation", 1),
        (("--expect", "0.7", "--width", "0.2", "--measure", "percent", "--per-question", "0"), "whole numbers", 2),
        (("--expect", "0.7", "--threshold", "0.7", "--measure", "percent"), "equals the threshold", 1),
        (("--expect", "0.9", "--width", "3", "--measure", "percent"), "no interval is as wide as 3", 1),
        (("--expect", "0.9", "--width", "inf", "--measure", "percent"), "width must be above 0, not inf", 1),
        (("--expect", "0.9", "--width", "1e-200", "--measure", "percent"), "more than 1,000,000,000,000 units", 1),
        (("--expect", "0.9", "--threshold", "5", "--measure", "percent"), "threshold must be between 0 and 1", 1),
        (("--expect", "0.9", "--threshold", "nan", "--measure", "percent"), "threshold must be between 0 and 1", 1),
        (("--expect", "0.7", "--shares", "nan,0.5", "--width", "0.2"), "shares must be two or more positive", 1),
        (("--expect", "nan", "--shares", "0.5,0.5", "--width", "0.2"), "the kappa to plan for", 1),
        (("--expect", "0.7", "--width", "0.2", "--measure", "percent", "--per-question", "nan"), "1 to 10,000", 2),
        (("--expect", "0.7", "--width", "0.2", "--measure", "percent", "--per-question", "1e30"), "1 to 10,000", 2),
        (("--expect", "0.7", "--width", "0.2", "--measure", "percent", "--icc", "nan"), "intraclass correlation", 1),
        (("--expect", "0.7", "--width", "0.2", "--field", "x"), "without a pilot", 2),
        (("--expect", "0.7", "--width", "0.2", "--power", "1"), "between 0 and 1", 2),
        ((VOTES, "--annotators", "x", "--width", "1", "--shares", "1"), "requires --expect", 2),
        ((VOTES, "--annotators", "label,annotator", "--width", "1", "--measure", "x"), "unknown measure", 2),
    ],
)  # fmt: skip
def test_what_cannot_be_planned(args: tuple[str, ...], complaint: str, code: int) -> None:
    assert complaint in annotate("plan", *args, code=code).stderr


def test_a_threshold_that_the_pilot_leaves_open_is_no_promise(tmp_path: Path) -> None:
    # kappa .6 with sd .8 on 100 units: its 95 % interval is .6 +- .157, so .667 lies inside and .4 does not.
    table = pilot(tmp_path / "p.csv")
    for threshold, is_open in (("0.667", True), ("0.4", False)):
        notes = document("plan", *table, "--threshold", threshold)["notes"]
        assert any(threshold in note for note in notes) is is_open
    assert not document("plan", "--expect", "0.66", "--shares", "0.5,0.5", "--threshold", "0.667")["notes"]


VERDICT = ("plan", VOTES, "--judge", "gpt", "--verdict")


def votes_of(folder: Path, *names: str) -> str:
    """The example without the votes of others."""
    lines = VOTES.read_text().splitlines()
    kept = [lines[0], *(line for line in lines[1:] if line.split(",")[2] in names)]
    path = folder / "votes.csv"
    path.write_text("\n".join(kept) + "\n")
    return str(path)


def test_three_people() -> None:
    (result,) = document(*VERDICT, "--margin", "0.05")["judges"]
    assert (result["judge"], result["regime"], result["decision"]) == ("gpt", "people", "undecided")
    assert result["labelled_by"] == ["ann", "bob", "cyd"]
    conditions = {c["name"]: c for c in result["conditions"]}
    assert list(conditions) == ["evidence", "coverage", "non_inferiority", "people_agree", "lone_annotator"]
    assert result["more_units"] > result["more_clusters"] > 0
    assert result["half_units"] <= result["more_units"]
    printed = annotate(*VERDICT, "--margin", "0.05").stdout
    assert (
        f"Still needed: about {result['more_units']} more units on {result['more_clusters']} more questions, labelled by ann, bob "
        "and cyd, each of them, for a probability of 80 %" in printed
    )
    assert "compared with 3 people." in printed and "Bayesian bootstrap" in printed
    assert document(*VERDICT, "--epsilon", "0.1")["epsilon"] == 0.1


def test_two_people_against_the_margin(tmp_path: Path) -> None:
    table = ("plan", votes_of(tmp_path, "ann", "bob", "gpt"), "--judge", "gpt", "--verdict")
    (strict,) = document(*table, "--margin", "0.05")["judges"]
    (limit,) = [c["limit"] for c in strict["conditions"] if c["name"] == "non_inferiority"]
    assert strict["decision"] == "undecided" and limit == 0.05
    assert strict["labelled_by"] == ["ann", "bob"]
    assert [c["name"] for c in strict["conditions"]] == [
        "evidence",
        "coverage",
        "non_inferiority",
        "people_agree",
    ]
    surer = document(*table, "--margin", "0.05", "--power", "0.95")["judges"][0]
    assert strict["curve"] == surer["curve"]
    assert surer["more_units"] is None or surer["more_units"] > (strict["more_units"] or 0)


def test_one_source_by_the_threshold(tmp_path: Path) -> None:
    table = ("plan", votes_of(tmp_path, "ann", "gpt"), "--judge", "gpt", "--verdict")
    (result,) = document(*table, "--threshold", "0.8")["judges"]
    assert (result["regime"], result["labelled_by"], result["labels"]) == ("threshold", ["ann"], [])
    (limit,) = [c["limit"] for c in result["conditions"] if c["name"] == "threshold"]
    assert (limit, result["decision"]) == (0.8, "undecided")


def test_judge_runs_of_a_study(tmp_path: Path) -> None:
    db = make_study(tmp_path)
    result = document("plan", "-d", db, "--field", "stance", "--verdict")
    (one,) = result["judges"]
    assert one["decision"] == "undecided" and one["conditions"][0]["n_units"] <= 6


@pytest.mark.parametrize(
    ("args", "complaint", "code"),
    [
        (("plan", VOTES, *EVERYBODY, "--verdict"), "--verdict requires a judge", 2),
        ((*VERDICT, "--width", "0.2"), "omit --width", 2),
        ((*VERDICT, "--expect", "0.2"), "omit --expect", 2),
        ((*VERDICT, "--per-question", "2"), "omit --per-question", 2),
        ((*VERDICT, "--epsilon", "nan"), "--epsilon nan: must be a number from 0 to 1", 2),
        ((*VERDICT, "--margin", "-3"), "--margin -3: must be a number from -1 to 1", 2),
        ((*VERDICT, "--power", "0.3"), "--power must be at least 0.5", 1),
        ((*VERDICT, "--measure", "kappa"), "--measure kappa: unknown measure", 2),
        (("plan", VOTES, "--judge", "gpt", "--width", "1", "--margin", "0"), "--margin requires --verdict", 2),
    ],
)  # fmt: skip
def test_what_no_verdict_is_planned_from(args: tuple[str, ...], complaint: str, code: int) -> None:
    assert complaint in annotate(*args, code=code).stderr


def test_a_judge_alone_has_nobody_to_agree_with(tmp_path: Path) -> None:
    rows = [("unit", "gpt", "claude"), *((str(i), "xy"[i % 2], "xy"[i % 3 == 0]) for i in range(30))]
    table = str(write_csv(tmp_path / "t.csv", rows))
    both = ("--judge", "gpt", "--judge", "claude", "--verdict")
    failed = annotate("plan", table, "--annotators", "gpt,claude", *both, code=1)
    assert "no labels to compare a judge with" in failed.stderr
