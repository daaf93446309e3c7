"""Which simulated studies a verdict is compared with."""

import numpy as np

from judge.stats import Ratings, Verdict, verdict
from judge.stats.rates import describe_rates, nearest


def result(domain: list[str]) -> Verdict:
    """300 units, three people and a judge; labels a and b only, one in ten is b; a fifth of each answers at random."""
    drawn = np.random.default_rng(4)
    truth = (drawn.random(300) < 0.1).astype(np.int64)
    guess = (drawn.random((300, 4)) < 0.1).astype(np.int64)
    codes = np.where(drawn.random((300, 4)) < 0.8, truth[:, None], guess)
    names = ["x", "y", "z", "judge"]
    return verdict(Ratings.from_codes(codes, domain, names), "judge", names[:3])


def test_an_unused_declared_label_does_not_count() -> None:
    two, three = nearest(result(["a", "b"])), nearest(result(["a", "b", "c"]))
    assert two is not None
    assert (two.labels, two.people, two.units, two.per_question) == (2, 3, 300, 1)
    assert three == two
    assert "2 labels" in describe_rates(result(["a", "b", "c"]))


def test_the_rarest_label_of_the_cell_is_at_most_as_frequent_as_that_of_the_study() -> None:
    """Gold alone, no label rows: two labels are no three; of three, 21 % of the rarest is below the quarter that
    the cell with a "minority" of one half has, so the cell with a tenth is the one.
    """
    judge = np.where(np.arange(215) % 5 == 0, 0, np.repeat([0, 1, 2], [80, 90, 45]))

    def against_gold(counts: list[int], labels: str) -> Verdict:
        codes = np.stack([np.repeat(np.arange(len(counts)), counts), np.minimum(judge, len(counts) - 1)], 1)
        return verdict(Ratings.from_codes(codes, list(labels), ["gold", "j"]), "j", reference="gold")

    three = against_gold([80, 90, 45], "abc")
    cell = nearest(three)
    assert cell is not None and (cell.labels, cell.minority, cell.units) == (3, 0.1, 100)
    assert "3 labels, the rarest with 10 %" in describe_rates(three)
    assert "3 labels, the rarest with 25 %" in describe_rates(against_gold([75, 70, 70], "abc"))
    # 80 of 215 are 37 %: below the half, so a tenth.
    assert "2 labels, the rarest with 10 %" in describe_rates(against_gold([80, 135], "ab"))
