"""Where the conditions of the verdict lie, and what they can find."""

from __future__ import annotations

from dataclasses import dataclass

HOLDS, OPEN, FAILS = 1, 0, -1
UNDECIDED, TRUST, IN_PART, DISTRUST = 0, 1, 2, 3
FEWEST_QUESTIONS = 10
FEWEST_OTHER = 10
# The alt-test's t-test takes this many questions (units without clusters), as its authors say; (c) is open below.
ENOUGH = 30


@dataclass(frozen=True)
class Limits:
    """Where the conditions lie. `margin` (a), `epsilon`, `q` and `least_others` (c), `label_margin` (d), `ceiling` (e);
    `threshold` stands in place of (a) where there is one source of labels. `clustered` False runs (c) as its authors'
    code does, on units as if each were a question of its own."""

    margin: float = -0.1
    epsilon: float = 0.2
    threshold: float = 0.667
    label_margin: float = -0.2
    ceiling: float = 0.2
    q: float = 0.05
    least_others: int = 1
    clustered: bool = True
    by_label: bool = True
    confidence: float = 0.95
    skill_confidence: float = 0.99
