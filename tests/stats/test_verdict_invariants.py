"""What must not change a verdict: names, order, and who is counted how often."""

from collections.abc import Callable

import numpy as np
import pytest

from judge.stats import Ratings, verdict
from judge.stats.conditions import rule
from judge.stats.ratings import IntArray
from judge.stats.verdict_inputs import IN_PART, TRUST, Limits, sums

from .test_decision import copied

SKILLS = {"h1": 0.8, "h2": 0.7, "h3": 0.8, "judge": 0.75}


@pytest.mark.parametrize("seed", range(9))
def test_names_and_order_change_nothing(seed: int) -> None:
    table = copied(150, SKILLS, [0.6, 0.3, 0.1], seed, per_question=1 + seed % 3)
    rng = np.random.default_rng(seed)
    rows, labels = rng.permutation(150), rng.permutation(3)
    people = ["h1", "h2", "h3"]
    places = np.argsort(labels)
    mixed = Ratings.from_codes(
        places[table.codes[rows]],
        [table.domain[i] for i in labels],
        table.annotators,
        clusters=(7 * table.clusters[rows] + 3) % 1009,
    )
    first = verdict(table, "judge", people)
    other = verdict(mixed, "judge", list(rng.permutation(people)))
    assert (first.decision, first.conditions) == (other.decision, other.conditions)
    assert sorted(first.labels, key=lambda row: row.label) == sorted(other.labels, key=lambda row: row.label)
    assert (first.more_clusters, first.more_units) == (other.more_clusters, other.more_units)


def added(people: IntArray, rng: np.random.Generator) -> IntArray:
    """Somebody who guesses."""
    return np.concatenate([people, (rng.random((*people.shape[:2], 1)) < 0.1).astype(np.int64)], axis=2)


def duplicated(people: IntArray, rng: np.random.Generator) -> IntArray:
    return np.concatenate([people, people[..., :1]], axis=2)


def split(people: IntArray, rng: np.random.Generator) -> IntArray:
    """The first person under two names, half of the units each."""
    half = np.arange(people.shape[1]) % 2 == 0
    first = np.where(half, people[..., 0], -1)
    second = np.where(half, -1, people[..., 0])
    return np.concatenate([np.stack([first, second], axis=2), people[..., 1:]], axis=2)


@pytest.mark.parametrize("change", [added, duplicated, split])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_change_of_people_makes_no_random_judge_trusted(change: Callable[..., IntArray], k: int) -> None:
    # The full thousand is in benchmarks/verdict.py --panels.
    rng = np.random.default_rng(k)
    shape = (100, 300)
    truth = rng.random(shape) < 0.1
    people = np.stack(
        [np.where(rng.random(shape) < 0.8185, truth, rng.random(shape) < 0.1) for _ in range(k)], axis=2
    ).astype(np.int64)
    judge = (rng.random(shape) < 0.1).astype(np.int64)
    result = rule(sums(judge, change(people, rng), np.arange(300), np.eye(2), 1 - np.eye(2)), Limits())
    assert np.isin(result.decision, (TRUST, IN_PART)).sum() <= 1


def test_splitting_a_person_does_not_change_the_pooled_agreement() -> None:
    rng = np.random.default_rng(0)
    table = copied(200, SKILLS, [0.7, 0.3])
    judge, people = table.codes[None, :, 3], table.codes[None, :, :3]
    whole = rule(sums(judge, people, table.clusters, np.eye(2), 1 - np.eye(2)), Limits())
    parts = rule(sums(judge, split(people, rng), table.clusters, np.eye(2), 1 - np.eye(2)), Limits())
    assert whole.difference is not None and parts.difference is not None
    assert np.array_equal(whole.difference.low, parts.difference.low)


def test_one_study_equals_the_same_study_in_a_batch() -> None:
    tables = [copied(120, SKILLS, [0.7, 0.3], seed) for seed in range(5)]
    codes = np.stack([t.codes for t in tables])
    many = rule(sums(codes[..., 3], codes[..., :3], tables[0].clusters, np.eye(2), 1 - np.eye(2)), Limits())
    for i, table in enumerate(tables):
        result = verdict(table, "judge", ["h1", "h2", "h3"], power=None)
        states = {c.name: c.state for c in result.conditions}
        words = {1: "holds", 0: "open", -1: "fails"}
        batched = {name: words[int(s[i])] for name, s in many.states.items() if name in states}
        assert batched == {name: states[name] for name in ("evidence", "non_inferiority", "people_agree")}


def test_the_batched_alt_test_equals_the_single_alt_test() -> None:
    for seed in range(10):
        table = copied(90, SKILLS, [0.7, 0.3], seed, per_question=2)
        result = verdict(table, "judge", ["h1", "h2", "h3"], power=None, epsilon=0.05 + 0.03 * (seed % 5))
        test = result.alt_test
        assert test is not None
        won = 2 * sum(row.won for row in test.compared) >= 3
        lost = 2 * sum(row.lost for row in test.compared) >= 3
        state = int(rule(result.of.sums, result.limits).states["alt_test"][0])
        assert state == (1 if won else -1 if lost else 0)
