"""Which simulated studies a verdict is compared with."""

from __future__ import annotations

import numpy as np

from judge.stats import Ratings, verdict
from judge.stats.rates import like_this, nearest


def found(domain: list[str]) -> object:
    """300 units, three people and a judge; labels a and b only, one in ten is b; a fifth of each answers at random."""
    drawn = np.random.default_rng(4)
    truth = (drawn.random(300) < 0.1).astype(np.int64)
    guess = (drawn.random((300, 4)) < 0.1).astype(np.int64)
    codes = np.where(drawn.random((300, 4)) < 0.8, truth[:, None], guess)
    names = ["x", "y", "z", "judge"]
    return verdict(Ratings.from_codes(codes, domain, names), "judge", names[:3])


def test_a_declared_label_that_nobody_uses_makes_no_study_of_three_labels() -> None:
    two, three = nearest(found(["a", "b"])), nearest(found(["a", "b", "c"]))  # type: ignore[arg-type]
    assert two is not None
    assert (two.labels, two.people, two.units, two.per_question) == (2, 3, 300, 1)
    assert three == two
    assert "2 labels" in like_this(found(["a", "b", "c"]))  # type: ignore[arg-type]
