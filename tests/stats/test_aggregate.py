"""Majority vote and Dawid-Skene."""

import numpy as np
import pytest

from judge.errors import BadInput
from judge.stats import MISSING, FloatArray, IntArray, Ratings, aggregate, dawid_skene, vote
from judge.stats.aggregate import dawid_skene_counts

VOTES = Ratings.from_codes(
    np.array([[0, 0, 1], [1, 2, -1], [2, 2, 2], [-1, -1, -1], [0, 1, 2], [-1, 1, -1]]),
    list("abc"),
    list("xyz"),
)


def test_majority_leaves_ties_open() -> None:
    codes, tied = vote(VOTES.counts)
    assert codes.tolist() == [0, MISSING, 2, MISSING, MISSING, 1]
    # The fourth unit has no vote at all.
    assert tied.tolist() == [False, True, False, False, True, False]
    assert vote(VOTES.select(["x"]).counts)[0].tolist() == [0, 1, 2, MISSING, 0, MISSING]


def simulated(n: int = 4000) -> tuple[np.ndarray, np.ndarray, Ratings]:
    rng = np.random.default_rng(2)
    skill = np.array(
        [
            [[0.9, 0.1], [0.2, 0.8]],
            [[0.7, 0.3], [0.05, 0.95]],
            [[0.6, 0.4], [0.4, 0.6]],
            [[0.85, 0.15], [0.1, 0.9]],
        ]
    )
    truth = (rng.random(n) < 0.3).astype(int)
    codes = np.column_stack([(rng.random(n) < skill[a, truth, 1]).astype(int) for a in range(4)])
    codes[rng.random(codes.shape) < 0.1] = MISSING
    return truth, skill, Ratings.from_codes(codes, ["a", "b"], list("wxyz"))


def test_dawid_skene_recovers_the_simulated_rates() -> None:
    truth, skill, table = simulated()
    result = dawid_skene(table)
    assert result.converged
    assert result.prevalence == pytest.approx([0.7, 0.3], abs=0.03)
    assert np.abs(result.confusion - skill).max() < 0.06
    labelled = result.codes >= 0
    votes, tied = vote(table.counts)
    accuracy = (result.codes == truth)[labelled].mean()
    # A tie between two labels is right every other time.
    assert accuracy > np.where(tied, 0.5, votes == truth)[labelled].mean()
    # A posterior that is right says how often it is.
    assert accuracy == pytest.approx(result.posterior[labelled].max(axis=1).mean(), abs=0.015)


def test_dawid_skene_on_collapsed_rows_equals_dawid_skene_on_all_rows() -> None:
    _, _, table = simulated(300)
    one_hot = (table.codes[:, :, None] == np.arange(2)).astype(float)
    every, collapsed = dawid_skene_counts(one_hot), dawid_skene(table)
    assert collapsed.log_likelihood == pytest.approx(every.log_likelihood)
    assert np.allclose(collapsed.posterior, every.posterior, equal_nan=True)
    assert (np.isnan(every.posterior[:, 0]) == (table.codes < 0).all(axis=1)).all()


def test_dawid_skene_never_lowers_the_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, table = simulated(200)
    path = []
    for iterations in range(1, 15):
        monkeypatch.setattr(aggregate, "ITERATIONS", iterations)
        path.append(dawid_skene(table).log_likelihood)
    assert (np.diff(path) >= -1e-9).all()


def by_plain_steps(codes: IntArray, q: int, steps: int) -> FloatArray:
    """Prevalences after so many steps of EM as Dawid and Skene write them, on complete labels."""
    rows, count = np.unique(codes, axis=0, return_counts=True)
    posterior = np.stack([(rows == k).mean(axis=1) for k in range(q)], axis=1)
    given = (rows[:, :, None] == np.arange(q)).astype(float)
    for _ in range(steps):
        weighted = posterior * count[:, None]
        confusion = np.einsum("uk,ual->akl", weighted, given)
        confusion /= confusion.sum(axis=2, keepdims=True)
        joint = weighted.sum(axis=0) * np.einsum("akl,ual->uak", confusion, given).prod(axis=1)
        posterior = joint / joint.sum(axis=1, keepdims=True)
    return np.asarray((posterior * count[:, None]).sum(axis=0) / count.sum())


@pytest.mark.parametrize("seed", [0, 1])
def test_dawid_skene_converges_on_a_flat_ridge(seed: int) -> None:
    """Three annotators who are barely better than chance: a flat ridge, on which steps shrink long before the end."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 400)
    codes = np.where(rng.random((400, 3)) < [0.75, 0.65, 0.6], truth[:, None], 1 - truth[:, None])
    result = dawid_skene(Ratings.from_codes(codes, ["a", "b"], list("xyz")))
    assert result.converged
    assert result.prevalence == pytest.approx(by_plain_steps(codes, 2, 6_000), abs=1e-6)


def test_dawid_skene_needs_a_label() -> None:
    with pytest.raises(BadInput, match="at least one label"):
        dawid_skene(Ratings.from_codes(np.full((3, 2), MISSING), ["a", "b"], ["x", "y"]))
