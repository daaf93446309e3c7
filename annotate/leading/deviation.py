"""Find the annotators whose labels deviate from those of the others, early enough for a lead to talk to them.

The statistic is that of the lone annotator in the verdict (`judge.stats.objections`), but a lead looks earlier: a person
is named as soon as the interval lies above 0.
"""

from dataclasses import dataclass

import numpy as np

from judge.stats import MISSING, Ratings
from judge.stats.objections import compare_people
from judge.stats.verdict_inputs import label_weights

CONFIDENCE = 0.9
"""The confidence of the interval. Of two sides only one counts, so a person like the others is named in about 5 % of looks."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far one person's labels are from those of the others.

    `n_units` counts the units that the person and at least two others labelled. `value` is the others' agreement with each
    other, minus the person's agreement with them, and `low` and `high` are its interval; None if undefined. `commonest` is
    the share of the label that this person gives most often, and `others` is the share of the same label in the labels of
    the others. `is_named` says whether the lead should look at the person's units.
    """

    person: str
    n_units: int
    value: float | None
    low: float | None
    high: float | None
    commonest: float | None
    others: float | None
    is_named: bool

    def describe(self) -> str:
        """Return a sentence about the person. It names no label."""
        text = f"{self.person} agrees with the others less than they agree with each other"
        if self.value is not None and self.low is not None and self.high is not None:
            text += f", by {self.value:.2f} ({self.low:.2f} to {self.high:.2f}) on {self.n_units:,} units"
        if self.commonest is not None and self.others is not None:
            text += (
                f"; gives one label to {self.commonest:.0%}, where the others give it to {self.others:.0%}"
            )
        return text


def find_deviations(people: Ratings, name: str = "cohen_kappa", level: str = "nominal") -> list[Deviation]:
    """Return the deviation of each person, the most doubtful first. The list is empty with fewer than three people.

    `name` and `level` determine whether similar labels count as partial agreement, as in `judge.stats.verdict`.
    """
    if len(people.annotators) < 3 or not people.n_units:
        return []
    apart = compare_people(people, label_weights(people, name, level)[0], CONFIDENCE)
    deviations = []
    for i, person in enumerate(people.annotators):
        codes = people.codes[:, i]
        rest = np.delete(people.codes, i, axis=1)
        shared = (codes != MISSING) & ((rest != MISSING).sum(axis=1) >= 2)
        value, low, high = (_finite(side[0, i]) for side in apart)
        given, of_others = codes[codes != MISSING], rest[rest != MISSING]
        label = np.bincount(given).argmax() if len(given) else MISSING
        deviations.append(
            Deviation(
                person,
                int(shared.sum()),
                value,
                low,
                high,
                float((given == label).mean()) if len(given) else None,
                float((of_others == label).mean()) if len(of_others) and len(given) else None,
                low is not None and low > 0,
            )
        )
    return sorted(
        deviations, key=lambda d: (not d.is_named, -(d.low if d.low is not None else -np.inf), d.person)
    )


def _finite(value: float) -> float | None:
    return float(np.clip(value, -2, 2)) if np.isfinite(value) else None
