"""The quantity that a correction estimates: a mean over units, computed from the judge's values and from
human values.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judge.stats.correction import Corrected, correct_mean
from judge.stats.prevalence import rogan_gladen
from judge.stats.ratings import FloatArray, IntArray
from judge.types import Measure


@dataclass(frozen=True, eq=False)
class Estimand:
    """A mean over units. Each unit has a value from the judge, a value from human annotators (nan if missing)
    and a question.

    `weights`: how many units each labelled unit represents (see `correct_mean`), or None for equal weights.
    `rate`: the values are 0 and 1. `bounds`: the least and the greatest possible value. `refused`: the reason
    why the existing human labels give no value.
    """

    measure: str
    judge: FloatArray
    human: FloatArray
    clusters: IntArray
    weights: FloatArray | None = None
    rate: bool = False
    bounds: tuple[float, float] | None = None
    field: str | None = None
    refused: str = ""

    @property
    def n_judged(self) -> int:
        """The number of units with a value from the judge."""
        return int((~np.isnan(self.judge)).sum())

    @property
    def n_labelled(self) -> int:
        """The number of units with a value from human annotators."""
        return int((~np.isnan(self.human)).sum())

    @property
    def _sample(self) -> dict[str, Any]:
        return {"clusters": self.clusters, "weights": self.weights, "field": self.field}

    def correct(self, confidence: float = 0.95) -> Corrected:
        """Return the judge-only, human-only and PPI++ estimates, with the weight of the judge."""
        result = correct_mean(
            self.judge, self.human, bounds=self.bounds, confidence=confidence, **self._sample
        )
        if not self.refused:
            return result
        human, ppi = (replace(measure, reason=self.refused) for measure in (result.human_only, result.ppi))
        return replace(result, human_only=human, ppi=ppi)

    def correct_by_rates(self, confidence: float = 0.95) -> Measure | None:
        """Return Rogan and Gladen's estimate, or None if the values are not 0 and 1."""
        if not self.rate:
            return None
        measure = rogan_gladen(self.judge, self.human, confidence=confidence, **self._sample)
        return replace(measure, reason=self.refused) if self.refused else measure
