"""Conformal label sets: thresholds, scores, the repository's rules, the promise."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from judge.errors import BadInput
from judge.stats.conformal import members, nonconformity, note_few_questions, threshold, thresholds


def label_sets(
    cal_p: np.ndarray,
    cal_y: np.ndarray,
    p: np.ndarray,
    y: np.ndarray,
    score: Any = "lac",
    alpha: float = 0.1,
    convention: Any = "exact",
    by_class: bool = False,
) -> Any:
    """Calibrated on one half, formed on the other, and counted in plain words."""
    limits = thresholds(cal_p, cal_y, score, alpha, convention, by_class=by_class)
    sets = members(p, limits, score, convention)
    covered = sets[np.arange(len(y)), y]
    return SimpleNamespace(
        sets=sets,
        threshold=limits.max(),
        thresholds=limits.tolist(),
        coverage=covered.mean(),
        of_label=[covered[y == k].mean() for k in range(p.shape[1]) if (y == k).any()],
    )


@pytest.mark.parametrize(
    ("n", "alpha", "rank"),
    # k = ceil((n + 1)(1 - alpha)): 9 of 9 (10 * .9 = 9 exactly), 10 of 10, 18 of 19, 90 of 99, 6 of 10.
    [(9, 0.1, 9), (10, 0.1, 10), (19, 0.1, 18), (99, 0.1, 90), (10, 0.5, 6)],
)
def test_the_exact_threshold_is_the_kth_smallest(n: int, alpha: float, rank: int) -> None:
    scores = np.random.default_rng(n).permutation(np.arange(1, n + 1) / 100)
    assert threshold(scores, alpha) == rank / 100


@pytest.mark.parametrize("n", [1, 5, 8])
def test_too_few_units_give_the_full_set(n: int) -> None:
    # n < 1/.1 - 1 = 9
    assert threshold(np.arange(n) / 10, 0.1) == float("inf")
    p = np.tile([0.7, 0.2, 0.1], (n, 1))
    result = label_sets(p, np.zeros(n, dtype=int), p, np.zeros(n, dtype=int))
    assert result.sets.all()
    # Label by label: one that no unit calibrates is in every set, too.
    assert np.isinf(thresholds(np.tile(p, (20, 1)), np.zeros(20 * n, dtype=int), by_class=True)[1:]).all()


def test_the_repositorys_quantile_is_one_rank_higher() -> None:
    scores = np.arange(1, 20) / 100
    # ceil(20 * .9) / 19 = 18/19; numpy's position (19 - 1) * 18/19 = 17.05, "higher" 18 (from 0): the largest.
    assert threshold(scores, 0.1) == 0.18
    assert threshold(scores, 0.1, "urag_repo") == 0.19
    # Where the exact rule gives the full set the repository stops at the largest score.
    assert threshold(scores[:5], 0.1, "urag_repo") == 0.05


def test_scores_by_hand() -> None:
    p = np.array([[0.5, 0.2, 0.3]])
    assert nonconformity(p, "lac") == pytest.approx(np.array([[0.5, 0.8, 0.7]]))
    # At least as likely: .5; .5 + .3 + .2; .5 + .3
    assert nonconformity(p, "aps") == pytest.approx(np.array([[0.5, 1.0, 0.8]]))
    assert nonconformity(p, "aps", "urag_repo") == pytest.approx(np.array([[0.5, 1.0, 0.8]]))


def test_labels_of_equal_probability_share_a_score() -> None:
    p = np.array([[0.4, 0.4, 0.2]])
    assert nonconformity(p, "aps") == pytest.approx(np.array([[0.8, 0.8, 1.0]]))
    # The repository's reversed argsort puts the later one first.
    assert sorted(nonconformity(p, "aps", "urag_repo")[0]) == pytest.approx([0.4, 0.8, 1.0])


def halves(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 4)) * 1.5
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return p, codes


@pytest.mark.parametrize("score", ["lac", "aps"])
def test_sets_are_those_of_the_repositorys_loop(score: str) -> None:
    cal_p, cal_y = halves(50, 1)
    p, y = halves(200, 2)
    result = label_sets(cal_p, cal_y, p, y, score=score, convention="urag_repo", alpha=0.3)
    # LLM-Uncertainty-Bench, uncertainty_quantification_via_cp.py, which URAG builds on, in plain words.
    scores = []
    for row, truth in zip(cal_p, cal_y, strict=True):
        order = np.argsort(row)[::-1]
        scores.append(1 - row[truth] if score == "lac" else row[order].cumsum()[order.tolist().index(truth)])
    limit = np.quantile(scores, np.ceil(51 * 0.7) / 50, method="higher")
    for row, chosen in zip(p, result.sets, strict=True):
        order = np.argsort(row)[::-1]
        if score == "lac":
            expected = {k for k in range(4) if 1 - row[k] <= limit}
        else:
            expected = {int(k) for k, mass in zip(order, row[order].cumsum(), strict=True) if mass <= limit}
            expected = expected or {int(order[0])}
        assert set(np.flatnonzero(chosen).tolist()) == expected


def test_empty_sets() -> None:
    cal_p, cal_y = halves(50, 1)
    p = np.array([[0.26, 0.25, 0.25, 0.24], [0.97, 0.01, 0.01, 0.01]])
    y = np.array([0, 0])
    lac = label_sets(cal_p, cal_y, p, y, alpha=0.6)
    assert lac.sets.sum(axis=1).tolist() == [0, 1]
    aps = {
        c: label_sets(cal_p, cal_y, p, y, score="aps", alpha=0.9, convention=c)
        for c in ("exact", "urag_repo")
    }
    assert aps["exact"].threshold < 0.97
    assert not aps["exact"].sets[1].any()
    assert aps["urag_repo"].sets[1].tolist() == [True, False, False, False]


@pytest.mark.parametrize("score", ["lac", "aps"])
@pytest.mark.parametrize("alpha", [0.1, 0.25])
def test_the_guaranteed_coverage_is_reached(score: str, alpha: float) -> None:
    covered = []
    for seed in range(150):
        p, y = halves(39 + 60, seed)
        result = label_sets(p[:39], y[:39], p[39:], y[39:], score=score, alpha=alpha)
        covered.append(result.coverage)
    # At least 1 - alpha, at most 1 - alpha + 1/40 for scores without ties; simulation error about .006.
    assert 1 - alpha - 0.02 < np.mean(covered) < 1 - alpha + 0.025 + 0.02


def test_bad_calls_are_refused() -> None:
    p, y = halves(20)
    with pytest.raises(BadInput, match="alpha must be"):
        label_sets(p, y, p, y, alpha=0)
    with pytest.raises(BadInput, match="at least one calibration unit"):
        label_sets(p[:0], y[:0], p, y)
    with pytest.raises(BadInput, match="unknown score 'raps'"):
        label_sets(p, y, p, y, score="raps")
    with pytest.raises(BadInput, match="unknown convention"):
        threshold([0.1], 0.1, "mapie")  # type: ignore[arg-type]


def test_sets_calibrated_by_label_cover_every_label() -> None:
    # The model puts .3 too little on label 3: on average nine of ten sets hold the truth, of that label fewer.
    rng = np.random.default_rng(3)
    codes = rng.choice(4, 4000, p=[0.4, 0.3, 0.2, 0.1])
    logits = rng.normal(size=(4000, 4)) + 2.0 * np.eye(4)[codes] - 1.2 * np.eye(4)[3]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    cal, test = slice(0, 2000), slice(2000, 4000)
    plain = label_sets(p[cal], codes[cal], p[test], codes[test])
    single = label_sets(p[cal], codes[cal], p[test], codes[test], by_class=True)
    assert plain.coverage == pytest.approx(0.9, abs=0.02)
    assert plain.of_label[3] < 0.75
    # About 200 units of label 3 on either side: .9 with an error of .03.
    assert single.of_label[3] == pytest.approx(0.9, abs=0.07)
    assert len(set(single.thresholds)) == 4 and single.threshold == max(single.thresholds)
    assert (
        note_few_questions(np.arange(2000), codes[cal])
        == note_few_questions(np.arange(2000), codes[cal], range(4))
        == ()
    )


def test_few_calibration_questions_give_a_note() -> None:
    codes = halves(30)[1]
    # n = 30, k = ceil(31 .9) = 28: Beta(28, 3). At .805 it is P(Bin(30, .805) >= 28) = .0015 + .0108 + .0381 = .050.
    (note,) = note_few_questions(np.arange(30), codes)
    assert note.startswith("only 30 calibration questions: the coverage of such sets is between 80% and 97%")
    # Six questions of five units are six: thirty units give a threshold (the 28th), six questions promise nothing.
    (few,) = note_few_questions(np.arange(30) // 5, codes)
    assert few == "only 6 calibration questions: too few to state the coverage of such sets"
