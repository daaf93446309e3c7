"""What measures are about, and what intervals resample: units in questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from judge.errors import BadInput
from judge.stats.ratings import BoolArray, IntArray

Column = pd.Series | np.ndarray[Any, Any] | Sequence[Any]


@dataclass(frozen=True, eq=False)
class Units:
    """What is resampled: `clusters[u]` is the position in `questions` of the question that unit u belongs to.

    `parts` holds the names of the units; more than one list where several kinds of units stand one after the other.
    """

    parts: tuple[pd.Index[Any], ...]
    clusters: IntArray
    questions: pd.Index[Any]

    @classmethod
    def of(cls, ids: Column, questions: Column | None = None) -> Units:
        """One unit a row; a unit without a question is a question of its own."""
        names = pd.Series(ids)
        if questions is None:
            index = pd.Index(names.to_numpy())
            return cls((index,), np.arange(len(index), dtype=np.int64), index)
        groups = pd.Series(questions)
        if len(groups) != len(names):
            raise BadInput(f"{len(names)} units, but {len(groups)} questions")
        missing = groups.isna().to_numpy()
        if missing.any():
            groups = pd.Series(np.where(missing, names.astype(object), groups.astype(object)))
        codes, distinct = pd.factorize(groups.to_numpy())
        return cls((pd.Index(names.to_numpy()),), codes.astype(np.int64), pd.Index(distinct))

    def __len__(self) -> int:
        return len(self.clusters)

    @cached_property
    def ids(self) -> pd.Index[Any]:
        """The name of each unit; (number of the list, name) where there are several lists."""
        if len(self.parts) == 1:
            return self.parts[0]
        number = np.repeat(np.arange(len(self.parts)), [len(part) for part in self.parts])
        return pd.MultiIndex.from_arrays([number, np.concatenate([part.to_numpy() for part in self.parts])])

    def take(self, which: BoolArray) -> Units:
        """The units that a mask marks."""
        ends = np.cumsum([len(part) for part in self.parts])[:-1]
        kept = zip(self.parts, np.split(which, ends), strict=True)
        return Units(tuple(part[mask] for part, mask in kept), self.clusters[which], self.questions)

    def parts_of(self, ids: pd.Index[Any], whole: IntArray) -> Units:
        """Parts of these units, in their questions; `whole[p]` is the position of what part p belongs to."""
        return Units((ids,), self.clusters[whole], self.questions)
