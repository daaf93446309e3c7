"""The alternative annotator test, against a plain reading of the paper's rules."""

import numpy as np
import pytest
from scipy import stats

from judge.errors import BadInput
from judge.notes import code_of
from judge.stats import Ratings, alt_test
from judge.stats.alternative import EPSILON, _exact_signed_rank

LABELS = ["a", "b", "c"]


def simulated(
    n: int, noise: tuple[float, ...], judge_noise: float, seed: int = 0, missing: float = 0.0
) -> Ratings:
    """Annotators h0, h1, ... and a judge who see the truth and guess with the probability given."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    columns = []
    for chance in (*noise, judge_noise):
        columns.append(np.where(rng.random(n) < chance, rng.integers(0, 3, n), truth))
    codes = np.column_stack(columns)
    codes[:, :-1][rng.random((n, len(noise))) < missing] = -1
    return Ratings.from_codes(codes, LABELS, [*(f"h{i}" for i in range(len(noise))), "judge"])


def by_the_paper(
    table: Ratings, epsilon: float, least_others: int, squared: bool = False
) -> dict[str, tuple[float, float]]:
    """Section 3: for each annotator (advantage probability, p-value), one unit after the other."""
    result = {}
    for j, name in enumerate(table.annotators[:-1]):
        judge_wins, differences = [], []
        for row in table.codes:
            others = [c for k, c in enumerate(row[:-1]) if k != j and c >= 0]
            if row[j] < 0 or len(others) < least_others:
                continue
            if squared:
                score = [-np.sqrt(np.mean([(label - o) ** 2 for o in others])) for label in (row[-1], row[j])]
            else:
                score = [np.mean([label == o for o in others]) for label in (row[-1], row[j])]
            judge_wins.append(score[0] >= score[1])
            differences.append(int(score[1] >= score[0]) - int(score[0] >= score[1]))
        result[name] = (
            np.mean(judge_wins),
            stats.ttest_1samp(differences, epsilon, alternative="less").pvalue,
        )
    return result


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
@pytest.mark.parametrize("judge_noise", [0.1, 0.5, 0.9])
def test_it_follows_the_paper(level: str, judge_noise: float) -> None:
    table = simulated(140, (0.3, 0.4, 0.2, 0.6), judge_noise, seed=3, missing=0.2)
    result = alt_test(table, "judge", epsilon=0.15, level=level, least_others=1)
    expected = by_the_paper(table, 0.15, 1, squared=level == "ordinal")
    assert [row.annotator for row in result.compared] == ["h0", "h1", "h2", "h3"]
    for row in result.compared:
        assert (row.judge_wins, row.p_value) == pytest.approx(expected[row.annotator], abs=1e-12)
    adjusted = stats.false_discovery_control([p for _, p in expected.values()], method="by")
    assert [row.adjusted for row in result.compared] == pytest.approx(adjusted.tolist())
    assert result.winning_rate == np.mean(adjusted <= 0.05)
    assert result.advantage == pytest.approx(np.mean([rho for rho, _ in expected.values()]))
    assert result.passed == (np.mean(adjusted <= 0.05) >= 0.5)


def test_a_larger_epsilon_makes_the_test_easier_to_pass() -> None:
    table = simulated(200, (0.2, 0.2, 0.2), 0.3, seed=1)
    rates = [
        alt_test(table, "judge", epsilon=EPSILON[kind]).winning_rate
        for kind in ("crowd", "skilled", "expert")
    ]
    assert rates == sorted(rates)
    p = [alt_test(table, "judge", epsilon=e).compared[0].p_value for e in (0.0, 0.1, 0.2)]
    assert p[0] > p[1] > p[2]


def test_wilcoxon_is_used_below_thirty_units() -> None:
    table = simulated(25, (0.4, 0.4, 0.4), 0.0, seed=2)
    result = alt_test(table, "judge", epsilon=0.2)
    assert {row.test for row in result.compared} == {"wilcoxon"}
    codes = table.codes
    others = codes[:, 1:3]
    judge, person = ((others == codes[:, [k]]).mean(axis=1) for k in (3, 0))
    d = (person >= judge).astype(float) - (judge >= person)
    assert result.compared[0].p_value == pytest.approx(stats.wilcoxon(d - 0.2, alternative="less").pvalue)
    assert {row.test for row in alt_test(simulated(30, (0.4,) * 3, 0.0), "judge").compared} == {"t"}


def test_wilcoxon_ranks_the_means_of_questions() -> None:
    # 14 questions of 1 to 7 units: their sums would rank otherwise than their means.
    table = simulated(56, (0.5, 0.5, 0.5), 0.4, seed=5)
    clusters = np.repeat(np.arange(14), [1, 2, 3, 4, 5, 6, 7] * 2)
    grouped = Ratings.from_codes(table.codes, LABELS, table.annotators, clusters=clusters)
    row = alt_test(grouped, "judge", epsilon=0.2).compared[0]
    assert (row.test, row.n_clusters, row.n_units) == ("wilcoxon", 14, 56)
    others = table.codes[:, 1:3]
    judge, person = ((others == table.codes[:, [k]]).mean(axis=1) for k in (3, 0))
    d = (person >= judge).astype(float) - (judge >= person)
    means = np.array([d[clusters == c].mean() for c in range(14)])
    sums = np.array([d[clusters == c].sum() for c in range(14)])
    expected, wrong = (stats.wilcoxon(x - 0.2, alternative="less").pvalue for x in (means, sums))
    assert row.p_value == pytest.approx(expected)
    assert expected != pytest.approx(wrong, rel=0.05)


def test_a_win_on_few_questions_is_marked() -> None:
    few = alt_test(simulated(25, (0.4,) * 3, 0.0), "judge")
    (note,) = few.notes
    assert note.parameters == {"n": 3, "of": 3, "fewest": 25, "least": 30, "noun": "unit"}
    assert alt_test(simulated(30, (0.4,) * 3, 0.0), "judge").notes == ()
    table = simulated(60, (0.4,) * 4, 0.0)
    codes = table.codes.copy()
    codes[20:, 0] = -1
    clusters = np.arange(60)
    clusters[59] = 58
    some = alt_test(Ratings.from_codes(codes, LABELS, table.annotators, clusters=clusters), "judge")
    assert some.notes[0].parameters == {"n": 1, "of": 4, "fewest": 20, "least": 30, "noun": "question"}


def test_each_of_two_people_is_compared_with_the_other() -> None:
    table = simulated(60, (0.2, 0.2), 0.1)
    assert alt_test(table, "judge", least_others=2).winning_rate is None
    result = alt_test(table, "judge")
    assert (result.least_others, result.notes) == (1, ())
    (two,) = alt_test(simulated(60, (0.2,) * 3, 0.1), "judge", least_others=2).notes
    assert (code_of(two), two.parameters) == ("least_others", {"n": 2})


def test_a_judge_that_guesses_loses_the_mirrored_test() -> None:
    bad = alt_test(simulated(120, (0.1, 0.1, 0.1), 1.0), "judge")
    assert all(row.lost and not row.won for row in bad.compared) and bad.passed is False
    good = alt_test(simulated(120, (0.3, 0.3, 0.3), 0.1), "judge")
    assert not any(row.lost for row in good.compared) and good.passed
    # Ties everywhere: nobody loses, whatever epsilon, and with any epsilon above 0 the judge wins.
    same = Ratings.from_codes(np.zeros((40, 4), dtype=int), LABELS, ["h0", "h1", "h2", "judge"])
    assert not any(row.lost or row.won for row in alt_test(same, "judge", epsilon=0).compared)
    ties = alt_test(same, "judge")
    assert ties.winning_rate == 1.0 and all(row.p_value == row.error == 0.0 for row in ties.compared)


@pytest.mark.parametrize("seed", range(8))
def test_small_samples_are_exact(seed: int) -> None:
    # Differences as they come with three labels and epsilon 0.2: many ties, here and there a zero.
    draw = np.random.default_rng(seed)
    d = draw.choice([-1.0, 0.0, 0.2, 0.5, 1.0], size=8 + seed % 4) - 0.2
    expected = stats.wilcoxon(d, alternative="less", method=stats.PermutationMethod(n_resamples=2**12)).pvalue
    assert _exact_signed_rank(d) == pytest.approx(expected, abs=1e-12)
    # By hand: of 1, 2 and -3 the positive ranks sum to 3; 0, 1, 2, 3, 3 of the eight sums are no larger.
    assert _exact_signed_rank(np.array([1.0, 2.0, -3.0])) == 5 / 8


def test_annotators_with_too_few_units_are_skipped_and_named() -> None:
    table = simulated(60, (0.2, 0.2, 0.2, 0.2), 0.1)
    codes = table.codes.copy()
    codes[9:, 3] = -1
    result = alt_test(Ratings.from_codes(codes, LABELS, table.annotators), "judge")
    assert [row.annotator for row in result.compared] == ["h0", "h1", "h2"]
    assert result.skipped == (("h3", "shares only 9 units with the judge and another annotator"),)


def test_units_need_two_others() -> None:
    # Three annotators, but never more than two on a unit.
    codes = np.zeros((60, 4), dtype=int)
    for i in range(60):
        codes[i, i % 3] = -1
    table = Ratings.from_codes(codes, LABELS, ["h0", "h1", "h2", "judge"])
    result = alt_test(table, "judge", least_others=2)
    assert result.passed is None
    assert result.winning_rate is None
    assert result.reason == "no annotator shares 10 units with the judge and 2 other annotators"
    assert len(result.skipped) == 3
    assert alt_test(table, "judge", least_others=1).passed


def test_questions_make_the_test_harder_to_pass_and_can_be_left_out() -> None:
    # Every unit eight times, as one question: taken as independent the standard error is that of 400 units.
    table = simulated(50, (0.3, 0.3, 0.3), 0.3, seed=4)
    codes = np.repeat(table.codes, 8, axis=0)
    alone = Ratings.from_codes(codes, LABELS, table.annotators)
    grouped = Ratings.from_codes(codes, LABELS, table.annotators, clusters=np.arange(400) // 8)
    single_label, eight = alt_test(table, "judge"), alt_test(grouped, "judge")
    assert [code_of(note) for note in eight.notes] == ["by_question"]
    # Copies of a unit add nothing: the cluster-robust test sees fifty units, the plain one four hundred.
    for single, copied in zip(single_label.compared, eight.compared, strict=True):
        assert copied.p_value == pytest.approx(single.p_value, abs=1e-12)
        assert copied.n_clusters == 50
        assert copied.n_units == 400
    plain, without = alt_test(grouped, "judge", clustered=False), alt_test(alone, "judge")
    assert plain.compared == without.compared and [code_of(note) for note in plain.notes] == ["by_unit"]
    assert without.compared[0].p_value < single_label.compared[0].p_value


def test_bad_calls_are_refused() -> None:
    table = simulated(40, (0.2, 0.2), 0.1)
    with pytest.raises(BadInput, match="no annotator 'robot'"):
        alt_test(table, "robot")
    with pytest.raises(BadInput, match="at least two annotators"):
        alt_test(table, "judge", ["h0"])
    with pytest.raises(BadInput, match="epsilon"):
        alt_test(table, "judge", epsilon=2)
    with pytest.raises(BadInput, match="nominal, ordinal and interval"):
        alt_test(table, "judge", level="ratio")
