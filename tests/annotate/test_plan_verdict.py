"""annotate plan --verdict: what is still needed, by whom, with what chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.annotate.agreement_helpers import VOTES, annotate, document, make_study, write_csv

LONG = ("--unit", "unit", "--annotator", "annotator", "--label", "label", "--cluster", "question")
VERDICT = ("plan", VOTES, *LONG, "--judge", "gpt", "--verdict")


def votes_of(folder: Path, *names: str) -> str:
    """The example without the votes of others."""
    lines = VOTES.read_text().splitlines()
    kept = [lines[0], *(line for line in lines[1:] if line.split(",")[2] in names)]
    path = folder / "votes.csv"
    path.write_text("\n".join(kept) + "\n")
    return str(path)


def test_three_people() -> None:
    (found,) = document(*VERDICT)["judges"]
    assert (found["judge"], found["regime"], found["decision"]) == ("gpt", "people", "undecided")
    assert found["labelled_by"] == ["ann", "bob", "cyd"]
    conditions = {c["name"]: c for c in found["conditions"]}
    assert list(conditions) == ["evidence", "non_inferiority", "skill", "alt_test", "people_agree"]
    # A win takes 30 questions, and there are fewer.
    assert conditions["alt_test"]["n_clusters"] < 30 and conditions["alt_test"]["state"] == "open"
    assert found["more_units"] > found["more_clusters"] > 0
    assert found["half_units"] <= found["more_units"]
    printed = annotate(*VERDICT).stdout
    assert (
        f"Still needed: about {found['more_units']} more units on {found['more_clusters']} more questions, labelled by ann, bob "
        "and cyd, each of them, for a chance of 80 %" in printed
    )
    assert "- rule: 3 people." in printed and "Bayesian bootstrap" in printed
    assert document(*VERDICT, "--epsilon", "0.1")["epsilon"] == 0.1


def test_two_people_against_the_margin(tmp_path: Path) -> None:
    table = ("plan", votes_of(tmp_path, "ann", "bob", "gpt"), *LONG, "--judge", "gpt", "--verdict")
    (strict,) = document(*table, "--margin", "0.05")["judges"]
    (limit,) = [c["limit"] for c in strict["conditions"] if c["name"] == "non_inferiority"]
    assert strict["decision"] == "undecided" and limit == 0.05
    assert strict["labelled_by"] == ["ann", "bob"]
    assert [c["name"] for c in strict["conditions"] if c["state"] == "not asked"] == ["alt_test"]
    surer = document(*table, "--margin", "0.05", "--power", "0.95")["judges"][0]
    assert strict["curve"] == surer["curve"]
    assert surer["more_units"] is None or surer["more_units"] > (strict["more_units"] or 0)


def test_one_source_by_the_threshold(tmp_path: Path) -> None:
    table = ("plan", votes_of(tmp_path, "ann", "gpt"), *LONG, "--judge", "gpt", "--verdict")
    (found,) = document(*table, "--threshold", "0.8")["judges"]
    assert (found["regime"], found["labelled_by"], found["labels"]) == ("threshold", ["ann"], [])
    (limit,) = [c["limit"] for c in found["conditions"] if c["name"] == "threshold"]
    assert (limit, found["decision"]) == (0.8, "undecided")


def test_judge_runs_of_a_study(tmp_path: Path) -> None:
    db = make_study(tmp_path)
    found = document("plan", "-d", db, "--field", "stance", "--verdict")
    (one,) = found["judges"]
    assert one["decision"] == "undecided" and one["conditions"][0]["n_units"] <= 6


@pytest.mark.parametrize(
    ("args", "complaint", "code"),
    [
        (("plan", VOTES, *LONG, "--verdict"), "--verdict is on a judge", 2),
        ((*VERDICT, "--width", "0.2"), "leave out --width", 2),
        ((*VERDICT, "--expect", "0.2"), "leave out --expect", 2),
        ((*VERDICT, "--per-question", "2"), "leave out --per-question", 2),
        ((*VERDICT, "--epsilon", "nan"), "--epsilon nan: a number from 0 to 1", 2),
        ((*VERDICT, "--margin", "-3"), "--margin -3: a number from -1 to 1", 2),
        ((*VERDICT, "--least-others", "3"), "is not in the range 1<=x<=2", 2),
        ((*VERDICT, "--power", "0.3"), "a chance from 0.5", 1),
        ((*VERDICT, "--measure", "kappa"), "--measure kappa: there are", 2),
        (("plan", VOTES, *LONG, "--judge", "gpt", "--width", "1", "--margin", "0"), "--margin goes with --verdict", 2),
    ],
)  # fmt: skip
def test_what_no_verdict_is_planned_from(args: tuple[str, ...], complaint: str, code: int) -> None:
    assert complaint in annotate(*args, code=code).stderr


def test_a_judge_alone_has_nobody_to_agree_with(tmp_path: Path) -> None:
    rows = [("u", "gpt", "claude"), *((str(i), "xy"[i % 2], "xy"[i % 3 == 0]) for i in range(30))]
    table = str(write_csv(tmp_path / "t.csv", rows))
    both = ("--judge", "gpt", "--judge", "claude", "--verdict")
    failed = annotate("plan", table, "--unit", "u", "--annotators", "gpt,claude", *both, code=1)
    assert "nobody to compare a judge with" in failed.stderr
