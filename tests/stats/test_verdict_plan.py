"""What a verdict still needs: the rows of each rule, and whether the labels asked for do decide."""

from __future__ import annotations

import numpy as np
import pytest

from judge.errors import BadInput
from judge.stats import Ratings, plan_verdict, still_needed, verdict
from judge.stats.alternative import to_win


def noisy(n: int, noise: dict[str, float], seed: int = 0, per_question: int = 1) -> Ratings:
    """Two labels; each annotator turns the true one around with the chance given."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    columns = [np.where(rng.random(n) < chance, 1 - truth, truth) for chance in noise.values()]
    clusters = np.arange(n) // per_question
    return Ratings.from_codes(np.column_stack(columns), ["a", "b"], list(noise), clusters=clusters)


CLOSE = {"judge": 0.24, "x": 0.15, "y": 0.15, "z": 0.15}


def test_three_people_are_planned_by_the_alt_test() -> None:
    table = noisy(40, CLOSE, seed=0)
    plan = plan_verdict(table, "judge", ["x", "y", "z"])
    test = plan.verdict.alt_test
    assert (plan.regime, plan.decision) == ("alt_test", "undecided")
    needed = []
    for row, compared in zip(plan.rows, test.compared, strict=True):
        assert row.annotators == (compared.annotator,)
        assert row.value == pytest.approx(compared.annotator_wins - compared.judge_wins)
        assert (row.limit, row.n_units, row.n_clusters) == (0.2, 40, 40)
        expected = to_win(compared, test)
        assert (row.more_clusters, row.more_units) == (expected or (None, None))
        needed += [expected] if expected else []
    # Two of three have to be won, and every unit takes two others.
    assert (plan.more_clusters, plan.more_units) == sorted(needed)[1]
    assert plan.people_needed == 3
    surer = plan_verdict(table, "judge", ["x", "y", "z"], power=0.95)
    assert surer.more_units > plan.more_units
    assert any("Benjamini-Yekutieli" in line for line in plan.assumed)


def test_a_person_who_labelled_too_little_is_told_what_is_missing() -> None:
    table = noisy(60, {**CLOSE, "w": 0.1}, seed=3)
    codes = table.codes.copy()
    codes[8:, 4] = -1
    plan = plan_verdict(
        Ratings.from_codes(codes, table.domain, table.annotators), "judge", ["x", "y", "z", "w"]
    )
    (row,) = [row for row in plan.rows if row.annotators == ("w",)]
    assert row.value is None
    # 8 units there, 30 make a test.
    assert (row.n_units, row.more_clusters, row.more_units) == (8, 22, 22)
    assert row.why == "not tested: only 8 units with the judge and 2 others"


def test_a_gap_above_epsilon_is_won_by_no_number_of_labels() -> None:
    plan = plan_verdict(
        noisy(200, {"judge": 0.45, "x": 0.05, "y": 0.05, "z": 0.05}), "judge", ["x", "y", "z"]
    )
    assert plan.decision == "do not trust"
    assert (plan.more_clusters, plan.more_units) == (0, 0)
    assert all(row.more_units is None and "more labels win nothing" in row.why for row in plan.rows)


def test_a_win_on_few_questions_needs_the_rest_of_thirty() -> None:
    plan = plan_verdict(
        noisy(36, {"judge": 0.0, "x": 0.3, "y": 0.3, "z": 0.3}, 1, 2), "judge", ["x", "y", "z"]
    )
    assert plan.decision == "undecided"
    # 18 questions of two units: 12 more.
    assert (plan.more_clusters, plan.more_units) == (12, 24)
    assert {row.why for row in plan.rows} == {"won, but on fewer than 30 questions"}


def test_two_people_are_planned_by_the_difference() -> None:
    table = noisy(120, {"judge": 0.16, "x": 0.1, "y": 0.1}, seed=2, per_question=2)
    plan = plan_verdict(table, "judge", ["x", "y"])
    (row,) = plan.rows
    difference = plan.verdict.comparison.difference
    assert (plan.regime, plan.decision) == ("difference", "undecided")
    assert (row.value, row.limit, row.n_clusters, row.n_units) == (difference.value, -0.1, 60, 120)
    assert (row.more_clusters, row.more_units) == still_needed(difference, -0.1)
    assert (plan.more_clusters, plan.people_needed) == (row.more_clusters, 2)
    wide = plan_verdict(table, "judge", ["x", "y"], margin=-0.6)
    assert (wide.decision, wide.more_units, wide.rows[0].why) == ("trust", 0, "decided")


def test_gold_alone_is_planned_by_the_threshold() -> None:
    table = noisy(80, {"judge": 0.12, "gold": 0.0}, seed=4)
    plan = plan_verdict(table, "judge", reference="gold")
    (row,) = plan.rows
    assert (plan.regime, plan.decision, plan.people_needed) == ("threshold", "undecided", 1)
    assert (row.more_clusters, row.more_units) == still_needed(plan.verdict.measures[0], 0.667)
    few = plan_verdict(noisy(8, {"judge": 0.12, "gold": 0.0}, seed=4), "judge", reference="gold")
    assert few.more_units >= 2
    assert "too few for an interval" in few.rows[0].why
    same = noisy(60, {"judge": 0.0, "gold": 0.0})
    codes = np.where(np.arange(60)[:, None] % 5 == 0, 0, same.codes)
    constant = plan_verdict(
        Ratings.from_codes(np.zeros_like(codes), ["a", "b"], ["judge", "gold"]), "judge", reference="gold"
    )
    assert constant.more_units is None
    assert constant.rows[0].why.startswith("undefined: every label is 'a'")


@pytest.mark.parametrize(
    ("noise", "people", "reference"),
    [
        (CLOSE, ["x", "y", "z"], None),
        ({"judge": 0.07, "x": 0.1, "y": 0.1}, ["x", "y"], None),
        ({"judge": 0.12, "gold": 0.0}, [], "gold"),
    ],
)
def test_the_labels_asked_for_decide(
    noise: dict[str, float], people: list[str], reference: str | None
) -> None:
    # Pilots of 60 that leave it undecided, and then 60 and as many more as the plan says, drawn anew. A pilot's
    # value is an estimate: of 100 pilots 94, 94 and 77 % were decided so, and not one of them before.
    decided = asked = 0
    for seed in range(60):
        first = plan_verdict(noisy(60, noise, seed), "judge", people, reference=reference, replicates=300)
        if first.decision != "undecided" or first.more_units is None or first.more_units > 5000:
            continue
        whole = noisy(60 + first.more_units, noise, 1000 + seed)
        asked += 1
        found = verdict(whole, "judge", people, reference=reference, replicates=300)
        decided += found.decision != "undecided"
        if asked == 20:
            break
    assert asked >= 10
    assert decided / asked >= 0.6


def test_a_chance_below_one_half_is_refused() -> None:
    with pytest.raises(BadInput, match=r"a chance from 0\.5 and below 1, not 0\.3"):
        plan_verdict(noisy(60, CLOSE), "judge", ["x", "y", "z"], power=0.3)
