"""The verdict: conditions with their intervals, what they decide together, and what is still needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from judge.errors import BadInput
from judge.stats import Ratings, Verdict, verdict
from judge.stats.looks import Draw
from judge.stats.verdict_text import group_by_state, labels_text


def noisy(n: int, noise: dict[str, float], seed: int = 0, per_question: int = 1) -> Ratings:
    """Two labels; each annotator turns the true one around with the chance given."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    columns = [np.where(rng.random(n) < chance, 1 - truth, truth) for chance in noise.values()]
    return Ratings.from_codes(
        np.column_stack(columns), ["a", "b"], list(noise), clusters=np.arange(n) // per_question
    )


def copied(
    n: int, skills: dict[str, float], shares: list[float], seed: int = 0, per_question: int = 1
) -> Ratings:
    """Each annotator knows the truth with the chance given and else guesses by the shares: kappa is the product."""
    rng = np.random.default_rng(seed)
    labels = [f"l{i}" for i in range(len(shares))]
    truth = rng.choice(len(shares), n, p=shares)
    columns = [
        np.where(rng.random(n) < s, truth, rng.choice(len(shares), n, p=shares)) for s in skills.values()
    ]
    return Ratings.from_codes(
        np.column_stack(columns), labels, list(skills), clusters=np.arange(n) // per_question
    )


def condition(result: Verdict, name: str) -> object:
    (one,) = [c for c in result.conditions if c.name == name]
    return one


def test_pooled_agreement_by_hand() -> None:
    # 20 units a a | a, 10 units a b | b, 10 units b b | b (two people, then the judge).
    # Judge with people: 20 1 + 10 .5 + 10 1 = 35 of 40. People's shares: a .625, b .375; the judge's .5 and .5.
    # Chance .5; kappa (.875 - .5) / .5 = .75. People: 30 of 40 agree; chance .625^2 + .375^2 = .53125:
    # (.75 - .53125) / .46875 = .46667. Recalls of b: judge (10 .5 + 10) / 15 = 1, people 10 / 15.
    codes = np.repeat([[0, 0, 0], [0, 1, 1], [1, 1, 1]], [20, 10, 10], axis=0)
    result = verdict(Ratings.from_codes(codes, ["a", "b"], ["x", "y", "judge"]), "judge", ["x", "y"])
    difference, with_people, among = result.measures
    assert with_people.value == pytest.approx(0.75)
    assert among.value == pytest.approx(0.21875 / 0.46875)
    assert difference.value == pytest.approx(0.75 - 0.21875 / 0.46875)
    # The judge says b on 20 units, on 15 of which a person does, counted by shares; where one person does another does on 10
    # of 15.
    finds, means = result.labels[2:]
    assert (finds.n_units, finds.judge, finds.people) == pytest.approx((15, 1.0, 10 / 15))
    assert (means.n_units, means.judge, means.people) == pytest.approx((20, 15 / 20, 10 / 15))


def test_the_jackknife_by_hand() -> None:
    # Against one person: the pseudo-values of kappa, leaving out one question after the other.
    table = noisy(60, {"judge": 0.2, "gold": 0.0}, seed=3, per_question=2)
    result = verdict(table, "judge", reference="gold")

    def kappa(rows: np.ndarray) -> float:
        a, b = rows.T
        chance = sum((a == k).mean() * (b == k).mean() for k in (0, 1))
        return float(((a == b).mean() - chance) / (1 - chance))

    left_out = np.array([kappa(table.codes[table.clusters != g]) for g in range(30)])
    error = np.sqrt(29 / 30 * ((left_out - left_out.mean()) ** 2).sum())
    (measure,) = result.measures
    assert measure.value == pytest.approx(kappa(table.codes))
    # The quantile is that of as many questions as the rarer label is spread over: (sum x)^2 / sum x^2.
    x = np.bincount(table.clusters, weights=table.codes[:, 1] == np.bincount(table.codes[:, 1]).argmin())
    from scipy.special import stdtrit

    effective = int(x.sum() ** 2 / (x**2).sum())
    assert measure.high - measure.value == pytest.approx(stdtrit(effective - 1, 0.975) * error, abs=1e-6)


@pytest.mark.parametrize(
    ("error", "n", "decision"),
    # kappa = 1 - 2 error: .9, .4 and .7 against .667.
    [(0.05, 300, "trust"), (0.3, 300, "do not trust"), (0.16, 300, "undecided")],
)
def test_gold_alone_is_a_threshold(error: float, n: int, decision: str) -> None:
    result = verdict(noisy(n, {"judge": error, "gold": 0.0}), "judge", reference="gold")
    assert (result.decision, result.regime, result.source) == (decision, "threshold", "gold")
    assert "how well people would agree is unknown" in result.rule
    (kappa,) = result.measures
    assert f"{kappa.value:.3f} ({kappa.low:.3f} to {kappa.high:.3f})" in condition(result, "threshold").why
    assert [c.name for c in result.conditions] == ["evidence", "coverage", "threshold"]
    assert (result.outlook is not None) == (decision == "undecided")


def test_gold_is_never_a_person() -> None:
    table = noisy(300, {"judge": 0.05, "h1": 0.0, "gold": 0.5})
    result = verdict(table, "judge", ["h1"], reference="gold")
    assert (result.decision, result.source, result.people) == ("trust", "h1", ())


def test_gold_that_contradicts_all_people_prevents_trust() -> None:
    # Two people and the judge follow a cue that is right on 57 % of the units (kappa .14 with gold), and agree on it.
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 1000)
    cue = np.where(rng.random(1000) < 0.43, 1 - gold, gold)
    columns = [np.where(rng.random(1000) < 0.08, 1 - cue, cue) for _ in range(3)]
    names = ["h1", "h2", "judge"]
    table = Ratings.from_codes(np.column_stack([*columns, gold]), ["a", "b"], [*names, "gold"])
    assert verdict(table, "judge", ["h1", "h2"]).decision == "trust"
    result = verdict(table, "judge", ["h1", "h2"], gold="gold")
    assert (result.decision, result.held_up) == ("undecided", "people contradict 'gold'")
    assert "people's agreement with 'gold' is 0." in condition(result, "gold").why
    # Gold that is right where people err now and then contradicts nobody: kappa of a person with it is above theirs.
    right = Ratings.from_codes(np.column_stack([*columns, cue]), ["a", "b"], [*names, "gold"])
    assert verdict(right, "judge", ["h1", "h2"], gold="gold").decision == "trust"


def test_a_perfect_judge_on_few_questions_is_not_trusted() -> None:
    few = verdict(noisy(9, {"judge": 0.0, "gold": 0.0}), "judge", reference="gold")
    assert few.decision == "undecided"
    assert "9 questions" in few.because
    # Thirty make a pilot.
    assert (few.more_clusters, few.more_units) == (21, 21)
    # Nothing differs, so the exact binomial bound stands: 1 - 2 (1 - .025^(1/40)) = .82 on forty.
    forty = verdict(noisy(40, {"judge": 0.0, "gold": 0.0}), "judge", reference="gold")
    assert forty.decision == "trust"
    assert forty.measures[0].low == pytest.approx(1 - (1 - 0.025 ** (1 / 40)) / 0.5, abs=0.01)


RARE = [0.9, 0.1]
PEOPLE = {"h1": 0.8185, "h2": 0.8185, "h3": 0.8185}


@pytest.mark.parametrize("people", [2, 3])
def test_no_judge_that_guesses_is_trusted(people: int) -> None:
    # The alt-test alone trusts it in 78 to 98 % of these studies; kappa .67 between people, 0 for the judge.
    names = list(PEOPLE)[:people]
    skills = {name: PEOPLE[name] for name in names} | {"judge": 0.0}
    result = [verdict(copied(300, skills, RARE, s), "judge", names, power=None) for s in range(20)]
    decisions = [v.decision for v in result]
    assert "trust" not in decisions and "trust in part" not in decisions
    assert decisions.count("do not trust") >= 17
    if people == 3:
        assert sum(v.alt_test.passed for v in result) >= 10  # what the rule was before


def test_a_judge_of_one_label_is_not_trusted() -> None:
    table = copied(300, PEOPLE, RARE)
    table = table.with_annotator("judge", np.zeros(300, dtype=np.int64))
    result = verdict(table, "judge", list(PEOPLE))
    assert result.alt_test.passed
    assert (result.decision, result.because) == ("do not trust", "the judge gives only one label")
    # With less evidence than ten units of the other label nothing is said.
    few = verdict(table.subset(np.arange(300) < 40), "judge", list(PEOPLE))
    assert few.decision == "undecided"
    assert condition(few, "evidence").state == "open"


def test_a_judge_as_good_as_a_person_is_trusted() -> None:
    names = list(PEOPLE)
    decisions = [
        verdict(copied(300, {**PEOPLE, "judge": 0.8185}, [0.5, 0.5], s), "judge", names, power=None).decision
        for s in range(20)
    ]
    # 80 % in the table of rates; 10 of 20 is three standard errors below.
    assert decisions.count("trust") > 10
    assert "do not trust" not in decisions


def test_a_judge_blind_to_a_label_is_trusted_for_the_others() -> None:
    # Three labels, one of 10 %: the judge calls it the first. Its kappa loses little, its recall everything.
    names = ["h1", "h2", "h3"]
    table = copied(1500, {**dict.fromkeys(names, 0.75), "judge": 0.9}, [0.45, 0.45, 0.1])
    codes = table.codes.copy()
    codes[codes[:, 3] == 2, 3] = 0
    result = verdict(Ratings.from_codes(codes, table.domain, table.annotators), "judge", names)
    assert result.decision == "trust in part"
    assert group_by_state(result.labels) == {"shown": ["l0", "l1"], "missed": ["l2"], "not_shown": []}
    assert (
        "label by label: 'l0': recall shown (" in result.because and "'l2': recall missed (" in result.because
    )
    assert labels_text(result.labels) == "for 'l0', 'l1'; not for 'l2'"
    assert (result.labels[4].judge, result.labels[5].judge) == (0.0, None)


def test_a_judge_that_gives_a_label_too_often_misses_its_precision() -> None:
    # Two people of kappa .67; the judge says '3' where they do, and on as many other units: 42 % of its '3' is a person's '3'.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        people = copied(1000, {"h1": 0.8185, "h2": 0.8185, "judge": 0.8185}, [0.45, 0.35, 0.2], seed)
        codes = people.codes.copy()
        codes[(codes[:, 2] < 2) & (rng.random(1000) < 0.17), 2] = 2
        table = Ratings.from_codes(codes, ["1", "2", "3"], people.annotators)
        row = verdict(table, "judge", ["h1", "h2"], margin=-0.4, power=None)
        assert (row.labels[4].state, row.labels[5].state) == ("shown", "missed")
        assert "to find '3'" in labels_text(row.labels) and "precision missed (" in row.because


def test_a_label_that_nobody_gave_is_not_part_of_the_verdict() -> None:
    table = copied(600, {**PEOPLE, "judge": 0.9}, [0.5, 0.5])
    wider = Ratings.from_codes(table.codes, ["l0", "l1", "rare"], table.annotators)
    result = verdict(wider, "judge", list(PEOPLE))
    assert (result.decision, group_by_state(result.labels)["not_shown"]) == ("trust", ["rare"])
    assert [row.why for row in result.labels[4:]] == [
        "no person gave the label",
        "the judge never gave the label",
    ]
    assert "rare" not in result.because


def test_a_sentence_names_a_few_labels_and_counts_many() -> None:
    people = copied(3000, {**PEOPLE, "judge": 0.9}, [1 / 9] * 9)
    result = verdict(people, "judge", list(PEOPLE), power=None)
    assert labels_text(result.labels) == "for 9 of 9 labels"


def test_people_who_do_not_agree_leave_the_verdict_undecided() -> None:
    # Two people who know, three who guess: a judge of kappa .16 with them all, better than they are with each other.
    skills = {"h1": 0.8185, "h2": 0.8185, "g1": 0.0, "g2": 0.0, "g3": 0.0, "judge": 0.5}
    result = verdict(copied(300, skills, [0.5, 0.5]), "judge", list(skills)[:5])
    assert condition(result, "non_inferiority").state == "holds"
    assert result.decision == "undecided"
    assert "g1, g2 and g3 agree with nobody" in result.because


def test_the_margin_is_an_option() -> None:
    # kappa .7 * .9 = .63 with the judge, .9 * .9 = .81 among people
    table = noisy(1500, {"judge": 0.15, "h1": 0.05, "h2": 0.05})
    assert verdict(table, "judge", ["h1", "h2"]).decision == "do not trust"
    assert verdict(table, "judge", ["h1", "h2"], margin=-0.4).decision == "trust"


def test_clustering_by_question_can_change_a_verdict() -> None:
    # Wrong on 4 of 40 questions, on all ten units of each: kappa .8
    gold = np.arange(400) // 10 % 2
    judge = np.where(np.arange(400) // 10 < 4, 1 - gold, gold)
    codes, names = np.column_stack([judge, gold]), ["judge", "gold"]
    by_unit = Ratings.from_codes(codes, ["a", "b"], names)
    by_question = Ratings.from_codes(codes, ["a", "b"], names, clusters=np.arange(400) // 10)
    assert verdict(by_unit, "judge", reference="gold").decision == "trust"
    assert verdict(by_question, "judge", reference="gold").decision == "undecided"


def test_identical_annotators_give_a_warning() -> None:
    table = noisy(300, {"judge": 0.1, "h1": 0.1, "h2": 0.1})
    twice = table.with_annotator("h1b", table.column("h1"))
    result = verdict(twice, "judge", ["h1", "h2", "h1b"])
    (warning,) = result.warnings
    assert "h1 and h1b (300 units)" in warning
    assert verdict(table, "judge", ["h1", "h2"]).warnings == ()


def test_people_who_share_no_units_form_a_single_source() -> None:
    codes = np.full((200, 4), -1)
    codes[:, 0] = codes[:, 3] = np.arange(200) % 2
    for i in range(200):
        codes[i, 1 + i % 2] = codes[i, 0]
    codes[::10, 0] ^= 1  # the judge is wrong on a tenth: kappa .8
    table = Ratings.from_codes(codes, ["a", "b"], ["judge", "h1", "h2", "majority"])
    result = verdict(table, "judge", ["h1", "h2"], reference="majority")
    assert (result.source, result.measures[0].n_units) == ("majority", 200)
    assert result.measures[0].value == pytest.approx(0.8)


def test_ratio_labels_are_compared_by_their_distance() -> None:
    rng = np.random.default_rng(3)
    t = rng.integers(5, 190, 60)
    columns = np.column_stack([t, t + 1, t + 2, rng.integers(0, 200, 60)])
    table = Ratings.from_codes(columns, [str(i) for i in range(200)], ["h1", "h2", "h3", "judge"])
    result = verdict(table, "judge", ["h1", "h2", "h3"], level="ratio", name="krippendorff_alpha")
    # People are one apart, the judge says anything: as equal labels alone, which nobody has, all would be ties.
    assert result.decision == "do not trust"
    assert result.labels == ()


def test_bad_calls_are_refused() -> None:
    table = noisy(40, {"judge": 0.0, "gold": 0.0})
    with pytest.raises(BadInput, match="to compare 'judge' with"):
        verdict(table, "judge")
    with pytest.raises(BadInput, match="a verdict needs intervals"):
        verdict(table, "judge", reference="gold", interval=None)
    with pytest.raises(BadInput, match="no annotator 'h1'"):
        verdict(table, "judge", ["h1"])
    with pytest.raises(BadInput, match="the threshold from -1 to 1"):
        verdict(table, "judge", reference="gold", margin=1.1)


def test_no_bound_of_an_agreement_is_above_one() -> None:
    # 24 units; x and y differ on two, x and the judge on two others: t intervals with 23 degrees of freedom reach 1.02, 1.09.
    codes = np.array([[i % 2, i % 2, i % 2] for i in range(24)])
    codes[[0, 12], 1] = 1
    codes[[1, 13], 2] = 0
    result = verdict(Ratings.from_codes(codes, ["a", "b"], ["x", "y", "judge"]), "judge", ["x", "y"])
    difference, *agreements = result.measures
    assert [m.high for m in agreements] == [1.0, 1.0]
    assert difference.value is not None and difference.low is not None and difference.high is not None
    # A difference of two is not cut there: it is symmetric.
    assert difference.high - difference.value == pytest.approx(difference.value - difference.low)
    assert all(c.high is None or c.high <= 1 for c in result.conditions)
    assert "to 1.000)" in next(c.why for c in result.conditions if c.name == "people_agree")


@pytest.mark.parametrize(("honest", "copying"), [(2, 1), (1, 2), (1, 4)])
@pytest.mark.parametrize("changed", [0.0, 0.005, 0.01])
def test_annotators_who_copy_a_judge_that_guesses_are_named(
    honest: int, copying: int, changed: float
) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth, judge = rng.integers(0, 2, (2, 500))

        def turned(labels: np.ndarray, share: float, rng: np.random.Generator = rng) -> np.ndarray:
            return np.where(rng.random(500) < share, 1 - labels, labels)

        copies = [f"copy{i}" for i in range(copying)]
        names = [*(f"own{i}" for i in range(honest)), *copies]
        columns = [turned(truth, 0.05) for _ in range(honest)]
        columns += [turned(judge, changed) for _ in range(copying)]
        table = Ratings.from_codes(np.column_stack([*columns, judge]), ["a", "b"], [*names, "judge"])
        result = verdict(table, "judge", names, power=None)
        assert result.decision in ("undecided", "do not trust") and set(result.copies) == set(copies)


def test_a_judge_as_good_as_people_of_unequal_skill_is_trusted() -> None:
    skills = {"a": 0.9, "b": 0.85, "c": 0.75, "d": 0.75, "e": 0.8, "judge": 0.9}
    names = list(skills)[:5]
    result = [
        verdict(copied(1000, skills, [0.9, 0.1], seed), "judge", names, power=None) for seed in range(8)
    ]
    assert not any(row.copies for row in result)
    assert {row.decision for row in result} == {"trust"}


def test_a_label_that_the_judge_never_gives_is_not_shown_because_one_person_gives_it_alone() -> None:
    """c is said by ann alone, on every tenth unit: nobody else recalls it, so the judge is not behind; its recall is 0."""
    units = np.arange(300)
    others = units % 2
    ann = np.where(units % 10 == 0, 2, others)
    table = Ratings.from_codes(
        np.column_stack(
            [ann, others ^ (units % 31 == 0), others ^ (units % 37 == 0), others ^ (units % 17 == 0)]
        ),
        ["a", "b", "c"],
        ["ann", "bob", "cyd", "judge"],
    )
    result = verdict(table, "judge", ["ann", "bob", "cyd"], power=None)
    assert result.decision == "trust in part"
    row = result.labels[4]
    assert (row.label, row.state) == ("c", "not shown")
    # A third of 30 units is 10 units, as each unit has three people.
    assert (row.n_units, row.judge, row.people) == (10, 0, 0)
    assert row.why.startswith("10 units; ") and "no more often" in row.why


def test_a_lone_annotator_is_an_objection() -> None:
    # Two careful people (kappa .67) and one who guesses on half of the units: a judge of kappa .56 with the careful ones would
    # be trusted in most of these studies, because the careless person lowers people's agreement with each other.
    skills = {"ann": 0.8185, "bob": 0.8185, "cyd": 0.41, "judge": 0.684}
    result = [
        verdict(copied(450, skills, [0.5, 0.5], seed), "judge", list(skills)[:3], power=None)
        for seed in range(20)
    ]
    assert sum(condition(row, "non_inferiority").state == "holds" for row in result) > 10
    assert not any(row.decision.startswith("trust") for row in result)
    named = [row for row in result if condition(row, "lone_annotator").state == "fails"]
    assert len(named) > 15 and all("cyd agrees with the other people less" in row.held_up for row in named)
    # The value by hand: kappa of ann with bob, minus cyd's pooled kappa with them.
    table = copied(450, skills, [0.5, 0.5], 0)
    apart = verdict(table, "cyd", ["ann", "bob"], power=None).measures[0]
    row = condition(result[0], "lone_annotator")
    assert (row.value, row.low, row.high) == pytest.approx((-apart.value, -apart.high, -apart.low))


def test_equal_people_are_no_objection() -> None:
    result = [
        verdict(copied(300, {**PEOPLE, "judge": 0.8185}, RARE, seed), "judge", list(PEOPLE), power=None)
        for seed in range(20)
    ]
    assert all(condition(row, "lone_annotator").state == "holds" for row in result)


@pytest.mark.parametrize(("missing", "trusted"), [(0.09, True), (0.12, False)])
@pytest.mark.parametrize("who", ["judge", "h1"])
def test_nine_tenths_of_the_units_need_labels(missing: float, trusted: bool, who: str) -> None:
    table = copied(600, {**dict.fromkeys(("h1", "h2"), 0.9), "judge": 0.95}, [0.5, 0.5])
    codes = table.codes.copy()
    codes[: round(600 * missing), table.annotators.index(who)] = -1
    result = verdict(replace(table, codes=codes), "judge", ["h1", "h2"], power=None)
    row = condition(result, "coverage")
    assert (result.decision == "trust") == trusted == (row.state == "holds")
    assert row.value == pytest.approx(1 - missing) and row.limit == 0.9
    assert ("of these units have labels" in result.held_up) != trusted


def test_a_share_just_under_nine_tenths_is_not_shown_as_nine_tenths() -> None:
    # 539 of 600 units are .898, which would be rounded to 90 %.
    table = copied(600, {**dict.fromkeys(("h1", "h2"), 0.9), "judge": 0.95}, [0.5, 0.5])
    codes = table.codes.copy()
    codes[:61, table.annotators.index("judge")] = -1
    result = verdict(replace(table, codes=codes), "judge", ["h1", "h2"], power=None)
    assert "only 89% of these units" in result.held_up and "90%" not in result.held_up


def test_the_judge_needs_labels_on_the_units_of_each_label() -> None:
    # It has no label on half of the units of a label of 10 %: on a twentieth of all units.
    table = copied(600, {**dict.fromkeys(("h1", "h2"), 0.95), "judge": 0.95}, RARE)
    codes = table.codes.copy()
    codes[np.flatnonzero(codes[:, 0] == 1)[::2], 2] = -1
    result = verdict(replace(table, codes=codes), "judge", ["h1", "h2"], power=None)
    assert result.decision == "undecided" and "units labelled 'l1'" in result.held_up
    assert condition(result, "coverage").value > 0.9


def test_several_judges_share_the_level() -> None:
    # Five judges: each at 5^-1.75 = .0598 of a two-sided .05, so that the intervals have a confidence of 1 - .00299.
    table = copied(600, {**PEOPLE, "judge": 0.8185}, [0.5, 0.5])
    result = verdict(table, "judge", list(PEOPLE), draw=Draw(judges=5), power=None)
    assert condition(result, "non_inferiority").confidence == pytest.approx(1 - 0.05 * 5**-1.75)
    alone = verdict(table, "judge", list(PEOPLE), power=None)
    # The alt-test keeps the level of its authors; the part of the level stands beside it.
    assert result.alt_test == alone.alt_test and alone.alt_test_at_shared_level is None
    assert result.alt_test.q == 0.05 and result.alt_test_at_shared_level.q == pytest.approx(0.05 * 5**-1.75)
