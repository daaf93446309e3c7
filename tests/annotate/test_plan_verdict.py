"""annotate plan --verdict: what is still needed, by each of the three rules."""

from __future__ import annotations

import random
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


def test_three_people_by_the_alt_test() -> None:
    (found,) = document(*VERDICT)["judges"]
    assert (found["judge"], found["regime"], found["decision"]) == ("gpt", "alt_test", "undecided")
    assert [row["annotators"] for row in found["rows"]] == [["ann"], ["bob"], ["cyd"]]
    # Every person shares 17 questions with 32 units; 13 more make 30, with 13 * 32 / 17 = 24.5 units.
    for row in found["rows"]:
        assert (row["n_clusters"], row["n_units"], row["more_clusters"], row["more_units"]) == (
            17,
            32,
            13,
            25,
        )
        assert row["limit"] == 0.2
    assert (found["more_clusters"], found["more_units"], found["people_needed"]) == (13, 25, 3)
    printed = annotate(*VERDICT).stdout
    assert "gpt: undecided (three people or more: the alt-test)\n" in printed
    assert (
        "Still needed: about 25 more units on 13 more questions, labelled by each of 3 people.\n" in printed
    )
    assert "- rule: 3 annotators: the alternative annotator test" in printed
    assert "- every new unit is labelled by gpt and by 2 other people" in printed
    assert document(*VERDICT, "--epsilon", "0.1")["judges"][0]["rows"][0]["limit"] == 0.1


def test_many_people_are_listed_from_the_nearest(tmp_path: Path) -> None:
    # Forty people who err on a tenth of 60 units, and a judge who errs on a quarter: gaps of about .15.
    draw = random.Random(1)
    rows = [("u", "gpt", *(f"p{j:02}" for j in range(40)))]
    for i in range(60):
        wrong = [draw.random() < (0.25 if j == 0 else 0.1) for j in range(41)]
        rows.append((f"{i:02}", *("xy"[(i + w) % 2] for w in wrong)))
    people = ",".join(rows[0][1:])
    table = ("plan", str(write_csv(tmp_path / "t.csv", rows)), "--unit", "u", "--annotators", people)
    asked = (*table, "--judge", "gpt", "--verdict", "--epsilon", "0.2")
    (found,) = document(*asked)["judges"]
    printed = annotate(*asked).stdout
    assert len(found["rows"]) == 40
    assert "the 12 of 40 people nearest to a win that counts (--json has all):\n" in printed
    assert sum(line.startswith("p") for line in printed.splitlines()) == 12 + 1  # and the head, "person"
    # The first of them is the one who needs fewest, of those who need any.
    fewest = min(row["more_units"] for row in found["rows"] if row["more_units"])
    first = next(
        line for line in printed.splitlines() if line.startswith("p") and not line.startswith("person")
    )
    (row,) = [row for row in found["rows"] if row["annotators"] == [first.split()[0]]]
    assert row["more_units"] == fewest > 0


def test_two_people_by_the_difference_against_the_margin(tmp_path: Path) -> None:
    table = ("plan", votes_of(tmp_path, "ann", "bob", "gpt"), *LONG, "--judge", "gpt", "--verdict")
    (found,) = document(*table)["judges"]
    assert (found["regime"], found["decision"], found["more_units"]) == ("difference", "trust", 0)
    assert "Decided: no more labels are needed" in annotate(*table).stdout
    (strict,) = document(*table, "--margin", "0.05")["judges"]
    (row,) = strict["rows"]
    assert strict["decision"] == "undecided" and row["limit"] == 0.05 and row["more_units"] > 0
    assert strict["people_needed"] == 2
    surer = document(*table, "--margin", "0.05", "--power", "0.95")["judges"][0]
    assert surer["more_units"] > strict["more_units"]


def test_one_source_by_the_threshold(tmp_path: Path) -> None:
    table = ("plan", votes_of(tmp_path, "ann", "gpt"), *LONG, "--judge", "gpt", "--verdict")
    (found,) = document(*table, "--threshold", "0.8")["judges"]
    assert (found["regime"], found["rows"][0]["limit"]) == ("threshold", 0.8)
    assert found["decision"] == "undecided" and found["more_units"] > 0
    assert "labelled by each of them" in annotate(*table, "--threshold", "0.8").stdout


def test_judge_runs_of_a_study(tmp_path: Path) -> None:
    db = make_study(tmp_path)
    found = document("plan", "-d", db, "--field", "stance", "--verdict")
    (one,) = found["judges"]
    assert one["decision"] == "undecided" and one["rows"][0]["n_units"] <= 6


@pytest.mark.parametrize(
    ("args", "complaint", "code"),
    [
        (("plan", VOTES, *LONG, "--verdict"), "--verdict is on a judge", 2),
        ((*VERDICT, "--width", "0.2"), "leave out --width", 2),
        ((*VERDICT, "--expect", "0.2"), "leave out --expect", 2),
        ((*VERDICT, "--per-question", "2"), "leave out --per-question", 2),
        ((*VERDICT, "--epsilon", "nan"), "--epsilon nan: a number from 0 to 1", 2),
        ((*VERDICT, "--margin", "-3"), "--margin -3: a number from -2 to 1", 2),
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
