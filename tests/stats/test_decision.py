"""The verdict: trust, do not trust, undecided and how many labels more."""

from __future__ import annotations

import numpy as np
import pytest

from judge.errors import BadInput
from judge.stats import Ratings, verdict


def people(n: int, noise: dict[str, float], seed: int = 0, per_cluster: int = 1) -> Ratings:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    columns = [np.where(rng.random(n) < chance, 1 - truth, truth) for chance in noise.values()]
    clusters = np.arange(n) // per_cluster
    return Ratings.from_codes(np.column_stack(columns), ["a", "b"], list(noise), clusters=clusters)


GOLD = {"judge": 0.0, "gold": 0.0}


@pytest.mark.parametrize(
    ("error", "n", "decision"),
    # kappa = 1 - 2 error: .9, .4 and .7 against .667.
    [(0.05, 300, "trust"), (0.3, 300, "do not trust"), (0.15, 300, "undecided")],
)
def test_gold_only(error: float, n: int, decision: str) -> None:
    found = verdict(people(n, {"judge": error, "gold": 0.0}), "judge", reference="gold")
    assert found.decision == decision
    assert not found.ceiling_known
    assert "0.667" in found.rule
    assert "unknown" in found.rule
    (kappa,) = found.measures
    assert f"{kappa.value:.3f} ({kappa.low:.3f} to {kappa.high:.3f}, 300 units)" in found.because
    if decision == "undecided":
        assert found.more_units == found.more_clusters > 0
    else:
        assert found.more_units is None


def test_the_labels_asked_for_decide() -> None:
    table = people(100, {"judge": 0.12, "gold": 0.0}, seed=4)
    first = verdict(table, "judge", reference="gold")
    assert first.decision == "undecided"
    whole = 100 + first.more_units
    decided = [
        verdict(
            people(whole, {"judge": 0.12, "gold": 0.0}, seed=s), "judge", reference="gold", replicates=400
        ).decision
        for s in range(40)
    ]
    # The first kappa is an estimate, so the power of .8 is a guess; most of them must be decided.
    assert decided.count("trust") >= 20


def test_a_perfect_judge_on_few_units_is_not_trusted() -> None:
    few = verdict(people(9, GOLD), "judge", reference="gold")
    assert few.decision == "undecided"
    assert few.because == "cohen_kappa 1.000 rests on 9 questions, too few for an interval"
    assert (few.more_clusters, few.more_units) == (21, 21)
    # 15 of 15: the exact bound 1 - 2 (1 - .025^(1/15)) = .56 is below .667; 40 of 40 gives .82.
    assert verdict(people(15, GOLD), "judge", reference="gold").decision == "undecided"
    assert verdict(people(40, GOLD), "judge", reference="gold").decision == "trust"


def test_one_annotator_is_the_reference() -> None:
    found = verdict(people(300, {"judge": 0.05, "h1": 0.0, "gold": 0.5}), "judge", ["h1"], reference="gold")
    assert found.decision == "trust"
    assert found.measures[0].annotators == ("judge", "h1")


def test_an_undefined_kappa_is_undecided() -> None:
    codes = np.zeros((50, 2), dtype=int)
    found = verdict(Ratings.from_codes(codes, ["a", "b"], ["judge", "gold"]), "judge", reference="gold")
    assert found.decision == "undecided"
    assert "is undefined: every label is 'a'" in found.because
    assert found.more_units is None


@pytest.mark.parametrize(
    ("judge", "n", "decision"),
    # People err on 10 % each: kappa .64 with each other. A judge of 5 %: .72; of 40 %: .16; of 12 %: .61.
    [(0.05, 400, "trust"), (0.4, 400, "do not trust"), (0.12, 100, "undecided")],
)
def test_two_annotators(judge: float, n: int, decision: str) -> None:
    found = verdict(people(n, {"judge": judge, "h1": 0.1, "h2": 0.1}, seed=2), "judge", ["h1", "h2"])
    assert found.decision == decision
    assert found.ceiling_known
    assert "-0.1" in found.rule
    assert found.comparison.plus == (("judge", "h1"), ("judge", "h2"))
    assert found.comparison.minus == (("h1", "h2"),)
    if decision == "undecided":
        assert found.more_units > 0


def test_the_margin_is_an_option() -> None:
    # kappa .7 * .9 = .63 with the judge, .9 * .9 = .81 among people
    table = people(1500, {"judge": 0.15, "h1": 0.05, "h2": 0.05})
    assert verdict(table, "judge", ["h1", "h2"]).decision == "do not trust"
    assert verdict(table, "judge", ["h1", "h2"], margin=-0.4).decision == "trust"


def test_questions_can_undo_a_verdict() -> None:
    # Wrong on 4 of 40 questions, on all ten units of each: kappa .8
    gold = np.arange(400) // 10 % 2
    judge = np.where(np.arange(400) // 10 < 4, 1 - gold, gold)
    codes, names = np.column_stack([judge, gold]), ["judge", "gold"]
    by_unit = Ratings.from_codes(codes, ["a", "b"], names)
    by_question = Ratings.from_codes(codes, ["a", "b"], names, clusters=np.arange(400) // 10)
    assert verdict(by_unit, "judge", reference="gold").decision == "trust"
    found = verdict(by_question, "judge", reference="gold")
    assert found.decision == "undecided"
    assert found.more_units == 10 * found.more_clusters


THREE = {"h1": 0.15, "h2": 0.15, "h3": 0.15}


@pytest.mark.parametrize(
    ("judge", "n", "epsilon", "decision"),
    [(0.05, 200, 0.1, "trust"), (0.5, 200, 0.1, "do not trust"), (0.15, 40, 0.1, "undecided")],
)
def test_three_annotators_and_the_alt_test(judge: float, n: int, epsilon: float, decision: str) -> None:
    found = verdict(people(n, {"judge": judge, **THREE}, seed=5), "judge", list(THREE), epsilon=epsilon)
    assert found.decision == decision
    assert found.alt_test is not None
    assert f"epsilon {epsilon}" in found.rule
    assert f"winning rate {found.alt_test.winning_rate:.2f}" in found.because
    assert (found.more_units is None) == (decision != "undecided")
    if decision == "undecided":
        assert found.more_units > 0


def labels_of(table: Ratings, **kept: int) -> Ratings:
    """The same table with only the first so many labels of some."""
    codes = table.codes.copy()
    for name, n in kept.items():
        codes[n:, table.annotators.index(name)] = -1
    return Ratings.from_codes(codes, ["a", "b"], table.annotators)


def test_a_win_on_fewer_than_thirty_questions_is_no_trust_yet() -> None:
    # The third annotator stopped after twelve units: twelve have two others, and the signed-rank test decides.
    found = verdict(labels_of(people(60, {"judge": 0.0, **THREE}), h3=12), "judge", list(THREE))
    assert found.alt_test is not None and found.alt_test.passed
    assert {row.test for row in found.alt_test.compared} == {"wilcoxon"}
    assert found.decision == "undecided"
    assert "won on fewer than 30 questions" in found.because
    assert (found.more_clusters, found.more_units) == (18, 18)


def test_a_third_annotator_with_too_few_units_takes_no_part() -> None:
    table = labels_of(people(400, {"judge": 0.05, "h1": 0.1, "h2": 0.1, "h3": 0.1}, seed=2), h3=8)
    two = verdict(table, "judge", ["h1", "h2"])
    found = verdict(table, "judge", ["h1", "h2", "h3"])
    assert (found.decision, found.because) == (two.decision, two.because) == ("trust", two.because)
    assert found.rule.startswith("Two annotators (h1 and h2) of 3, the others share fewer than 10 questions")
    # Of eight units with three annotators each, 22 are missing to thirty.
    few = verdict(labels_of(table, h1=8, h2=8, judge=8), "judge", ["h1", "h2", "h3"])
    assert few.decision == "undecided"
    assert few.because == "only 0 of 3 annotators share enough units with the others"
    assert few.more_units == 22


def test_people_who_share_no_units_are_one_source_together() -> None:
    codes = np.full((200, 4), -1)
    codes[:, 0] = codes[:, 3] = np.arange(200) % 2
    for i in range(200):
        codes[i, 1 + i % 2] = codes[i, 0]
    codes[::10, 0] ^= 1  # the judge is wrong on a tenth: kappa .8
    table = Ratings.from_codes(codes, ["a", "b"], ["judge", "h1", "h2", "majority"])
    found = verdict(table, "judge", ["h1", "h2"], reference="majority")
    assert found.measures[0].value == pytest.approx(0.8) and found.measures[0].n_units == 200
    assert "of 2 people no two share 10 questions" in found.rule


def test_a_person_with_a_few_units_does_not_hide_gold() -> None:
    table = labels_of(people(300, {"judge": 0.05, "h1": 0.0, "gold": 0.0}), h1=6)
    found = verdict(table, "judge", ["h1"], reference="gold")
    assert found.measures[0].annotators == ("judge", "gold") and found.measures[0].n_units == 300


def test_an_interval_without_width_decides_nothing() -> None:
    # Twelve questions that are all alike: five units right, one wrong. No resample differs.
    gold = np.tile([0, 0, 0, 1, 1, 1], 12)
    judge = np.tile([0, 0, 0, 1, 1, 0], 12)
    table = Ratings.from_codes(
        np.column_stack([judge, gold]), ["a", "b"], ["judge", "gold"], clusters=np.arange(72) // 6
    )
    found = verdict(table, "judge", reference="gold", threshold=0.2)
    assert found.measures[0].low == found.measures[0].high == pytest.approx(2 / 3)
    assert found.decision == "undecided" and "has no width" in found.because


def test_ratio_labels_are_compared_by_their_distance() -> None:
    rng = np.random.default_rng(3)
    t = rng.integers(5, 190, 60)
    columns = np.column_stack([t, t + 1, t + 2, rng.integers(0, 200, 60)])
    table = Ratings.from_codes(columns, [str(i) for i in range(200)], ["h1", "h2", "h3", "judge"])
    found = verdict(table, "judge", ["h1", "h2", "h3"], level="ratio", name="krippendorff_alpha")
    # People are one apart, the judge says anything: as equal labels alone, which nobody has, all would be ties.
    assert found.decision == "do not trust"
    assert found.alt_test is not None and found.alt_test.winning_rate == 0.0


def test_bad_calls_are_refused() -> None:
    table = people(40, GOLD)
    with pytest.raises(BadInput, match="nobody to compare 'judge' with"):
        verdict(table, "judge")
    with pytest.raises(BadInput, match="a verdict needs intervals"):
        verdict(table, "judge", reference="gold", interval=None)
    with pytest.raises(BadInput, match="no annotator 'h1'"):
        verdict(table, "judge", ["h1"])
