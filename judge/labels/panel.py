"""The table that every number is computed on: labels of one field, who gave them, who was asked, and what is derived.

Who agrees with whom is asked in many commands; it is answered here alone, on one set of units: those that all of the
annotators a measure names were asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as default
from functools import cached_property
from typing import Unpack

import numpy as np

from judge.errors import BadInput, UsageError
from judge.labels.values import NUMERIC
from judge.labels.words import DECIDED, MAJORITY
from judge.notes import Note
from judge.prompts.load import Task
from judge.stats import (
    METRICS,
    MISSING,
    Comparison,
    Ratings,
    class_agreement,
    compare,
    measures,
    scores_alpha,
    vote,
)
from judge.stats.bootstrap import How, IntervalSettings
from judge.stats.metrics import metric_key
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.store.splits import Look
from judge.types import AnnotatorKind, Measure

# Past this many different numbers they are scores, not labels: nothing that counts labels is computed.
MOST_LABELS = 200


@dataclass(frozen=True, eq=False)
class Derived:
    """A column made of others, under a name that nobody in the table has.

    `majority` of the people: `n_tied` units have none. `decided`: `n_ruled` units were decided by a lead, on `n_agreed`
    others two people or more agree. `asked`: the units whose missing label counts against the coverage.
    """

    name: str
    codes: IntArray
    asked: BoolArray
    n_tied: int = 0
    n_ruled: int = 0
    n_agreed: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """Labels of one field: `ratings` is the table as it was read, `kinds` says who is who.

    `asked[u, a]` says whether a missing label counts: a judgement without a label (unparsed, refused ...) was asked for,
    a unit that nobody gave to that annotator was not. `source` is the file that it was read from, for complaints. From a study: `task` (None when no task
    of the study defines the field), `shown` (run id -> the run's name in the table), `distributions[name][u, k]` (the
    probability of `domain[k]`, nan where none is stored), `outside[name]` (labels that are not in the domain: they are in
    no measure), `inside` (the units that a batch drew; judges keep their labels elsewhere, which is what the others correct),
    `weights` (unit -> for how many it stands, empty when all for as many), `layers` (annotator -> layer -> labels that
    are not known to be blind, and are used nowhere), `looks` (judge -> the last look that opened the sealed test for it,
    where the table has units of that test).
    """

    field: str
    level: str
    ratings: Ratings
    asked: BoolArray
    kinds: Mapping[str, AnnotatorKind]
    notes: tuple[str, ...] = ()
    source: str = ""
    task: Task | None = None
    shown: Mapping[str, str] = default(default_factory=dict)
    distributions: Mapping[str, FloatArray] = default(default_factory=dict)
    outside: Mapping[str, Mapping[str, int]] = default(default_factory=dict)
    inside: BoolArray | None = None
    weights: Mapping[str, float] = default(default_factory=dict)
    layers: Mapping[str, Mapping[str, int]] = default(default_factory=dict)
    looks: Mapping[str, Look] = default(default_factory=dict)
    conflicts: Mapping[str, int] = default(default_factory=dict)
    """Annotator -> units with labels that contradict each other, which count as unlabelled."""

    @property
    def domain(self) -> tuple[str, ...]:
        """The labels, in order."""
        return self.ratings.domain

    @property
    def numeric(self) -> bool:
        """Whether the labels are numbers, which have no classes."""
        return self.level in NUMERIC

    @property
    def are_scores(self) -> bool:
        """Whether there are so many numbers that nothing which counts labels is computed."""
        return self.numeric and len(self.domain) > MOST_LABELS

    def of_kind(self, *kinds: str) -> list[str]:
        """The annotators of these kinds, in the order of the table."""
        return [name for name in self.ratings.annotators if self.kinds[name] in kinds]

    def kind(self, name: str) -> str:
        """Who a column of `table` is: human, judge, gold, adjudicated, majority or decided."""
        if name in self.kinds:
            return str(self.kinds[name])
        return DECIDED if self.decided is not None and name == self.decided.name else MAJORITY

    @cached_property
    def people(self) -> list[str]:
        return self.of_kind(AnnotatorKind.HUMAN)

    @cached_property
    def judges(self) -> list[str]:
        return self.of_kind(AnnotatorKind.JUDGE)

    @cached_property
    def others(self) -> list[str]:
        """Decisions and gold, as they were read."""
        return self.of_kind(AnnotatorKind.ADJUDICATED) + self.of_kind(AnnotatorKind.GOLD)

    @cached_property
    def known(self) -> list[str]:
        """What judges are held against: decisions with what people agree on, and gold."""
        ruled = self.of_kind(AnnotatorKind.ADJUDICATED)
        if self.decided is None or not ruled:
            return self.others
        return [self.decided.name, *(other for other in self.others if other not in ruled)]

    @cached_property
    def by_people(self) -> BoolArray:
        """The units that at least one person labelled, or was asked about."""
        return np.asarray(
            self.asked[:, [self.kinds[n] == AnnotatorKind.HUMAN for n in self.ratings.annotators]].any(axis=1)
        )

    def _labelled(self, names: Sequence[str]) -> BoolArray:
        return np.asarray(self.ratings.select(names).codes != MISSING)

    @cached_property
    def majority(self) -> Derived | None:
        """What most of two people or more say; a tie is left open."""
        if len(self.people) < 2 or self.numeric:
            return None
        codes, tied = vote(self.ratings.select(self.people).counts)
        return Derived(self._free(MAJORITY), codes, self.by_people, n_tied=int(tied.sum()))

    @cached_property
    def decided(self) -> Derived | None:
        """What a lead decided and, elsewhere, what two people or more agree on; None where nothing is so agreed.

        Only units on which people differ come to a lead, so decisions alone would be the hardest units.
        """
        if len(self.people) < 2 or self.numeric:
            return None
        own, given = self.ratings.select(self.people).codes, self._labelled(self.people)
        codes = np.full(len(own), MISSING, dtype=np.int64)
        for name in self.of_kind(AnnotatorKind.ADJUDICATED)[:1]:
            codes = self.ratings.column(name).copy()
        ruled = codes != MISSING
        highest, lowest = own.max(axis=1), np.where(given, own, np.iinfo(own.dtype).max).min(axis=1)
        agreed = ~ruled & (given.sum(axis=1) >= 2) & (highest == lowest)
        if not agreed.any():
            return None
        codes[agreed] = highest[agreed]
        n_ruled, n_agreed = int(ruled.sum()), int(agreed.sum())
        return Derived(self._free(DECIDED), codes, self.by_people | ruled, n_ruled=n_ruled, n_agreed=n_agreed)

    def _free(self, name: str) -> str:
        return name if name not in self.kinds else self._free(f"{name} by people")

    @cached_property
    def table(self) -> Ratings:
        """Everybody, with the people's majority and what is decided (where a lead decided anything)."""
        return self._full[0]

    @cached_property
    def asked_units(self) -> Mapping[str, BoolArray]:
        """For each column of `table`, the units whose missing label counts against the coverage."""
        return self._full[1]

    @cached_property
    def _full(self) -> tuple[Ratings, dict[str, BoolArray]]:
        table = self.ratings
        asked: dict[str, BoolArray] = {
            name: self.asked[:, i] for i, name in enumerate(self.ratings.annotators)
        }
        ruled = self.decided if self.of_kind(AnnotatorKind.ADJUDICATED) else None
        for made in (self.majority, ruled):
            if made is not None:
                table = table.with_annotator(made.name, made.codes)
                asked[made.name] = made.asked
        return table, asked

    def labels_of(self, name: str) -> IntArray:
        """The codes of one column of `table`."""
        return self.table.column(name)

    @cached_property
    def _few(self) -> tuple[Ratings, Mapping[str, BoolArray]]:
        """The units that anybody but a judge was asked about, which are few beside those that judges labelled."""
        others = [mask for name, mask in self.asked_units.items() if name not in self.judges]
        some = np.logical_or.reduce(others) if others else np.zeros(self.ratings.n_units, dtype=np.bool_)
        return self.table.subset(some), {name: mask[some] for name, mask in self.asked_units.items()}

    def together(self, *names: str) -> Ratings:
        """These annotators on the units that all of a pair were asked about, or any of a larger group.

        People among themselves are on the units that any person labelled: what they left out is seen in the coverage.
        """
        table, asked = self.table, self.asked_units
        if len(names) > 1 and all(name in self.people for name in names):
            return self.weighted(self.among_people.select(names))
        everybody = all(name in self.judges for name in names)
        if len(names) <= 2 and any(name not in self.judges for name in names):
            table, asked = self._few
        elif self.inside is not None:
            asked = {name: mask & self.inside for name, mask in asked.items()}
        every = [asked[name] for name in names]
        mask = (np.logical_and if len(names) <= 2 else np.logical_or).reduce(every)
        # Two who share nothing keep their rows, so that the reason can say just that.
        found = table.subset(mask if mask.any() else np.logical_or.reduce(every)).select(names)
        return found if everybody else self.weighted(found, *names)

    def weighted(self, table: Ratings, *names: str) -> Ratings:
        """Units of a table, each weighted by how many it stands for where they were drawn with unequal probabilities.

        Units that no draw brought stand for themselves alone, and are left out there. How units came by gold is not
        recorded, so that with gold among the `names` they stay as they are.
        """
        if any(name in self.of_kind(AnnotatorKind.GOLD) for name in names):
            return table
        drawn = (
            np.array([unit in self.weights for unit in table.units], dtype=np.bool_) if self.weights else None
        )
        if drawn is None or not drawn.any():
            return table
        kept = table.subset(drawn)
        return kept.weighted(np.array([self.weights[unit] for unit in kept.units]))

    @cached_property
    def of_draw(self) -> Ratings:
        """`table`, weighted where units were drawn with unequal probabilities."""
        return self.weighted(self.table)

    @cached_property
    def among_people(self) -> Ratings:
        """The people's labels, on the units that at least one of them labelled."""
        return self.ratings.subset(self.by_people).select(self.people)

    def coverage(self, *names: str) -> float | None:
        """Of the units of `together`, the share that all of these labelled."""
        codes = self.together(*names).codes
        return float((codes != MISSING).all(axis=1).mean()) if len(codes) else None

    @cached_property
    def remarks(self) -> list[Note]:
        """What must be said of the columns that are derived."""
        told: list[Note] = []
        if self.majority is not None and self.majority.n_tied:
            n = int(self.by_people.sum())
            told.append(Note("tied", n=self.majority.n_tied, of=n))
        if self.decided is not None and self.decided.n_ruled:
            d = self.decided
            told.append(Note("ruled", who=d.name, n=d.n_ruled, agreed=d.n_agreed))
        return told

    @property
    def coefficient(self) -> str:
        """The coefficient of a pair that the level asks for: the verdict rests on it."""
        if self.numeric:
            return "krippendorff_alpha"
        return "cohen_kappa:quadratic" if self.level == "ordinal" else "cohen_kappa"

    def confidence(self, *names: str) -> float:
        """Of intervals on these annotators: that of the last look where a sealed test was opened for one of them."""
        looks = (self.looks[name].confidence for name in names if name in self.looks)
        return max((IntervalSettings().confidence, *looks))

    def measure(self, names: Sequence[str], keys: Sequence[str], **how: Unpack[How]) -> list[Measure]:
        """Coefficients of these annotators; those of pairs only when there are two.

        Raises BadInput where numbers are too many to be labels.
        """
        if not self.are_scores:
            table = self.together(*names)
            return measures(table, keys, level=self.level, pairwise=False, field=self.field, **how)
        if self.keys(keys) != ["krippendorff_alpha:interval"]:
            raise BadInput(
                f"'{self.field}' has {len(self.domain):,} different numbers; above {MOST_LABELS} there is "
                "krippendorff_alpha with --level interval; for more, bin them into labels",
                path=self.source,
            )
        table = self.together(*names)
        clusters = table.clusters if table.clustered else None
        found = self.numbers(*names)
        return [scores_alpha(found, clusters=clusters, annotators=tuple(names), field=self.field, **how)]

    def numbers(self, *names: str) -> FloatArray:
        """The numbers of these annotators on the units of `together`, nan for missing."""
        table = self.together(*names)
        values = np.array([float(v) for v in table.domain])
        return np.where(table.codes == MISSING, np.nan, values[table.codes])

    def class_agreement(self, names: Sequence[str], **how: Unpack[How]) -> list[Measure]:
        """How often another annotator gives the same label, label by label."""
        return class_agreement(self.together(*names), field=self.field, **how)

    def keys(self, wanted: Sequence[str]) -> list[str]:
        """Coefficients as keys of METRICS. Raises UsageError for weights without an order: the alphabet is none."""
        keys = [metric_key(name, self.level) for name in wanted]
        weighted = [key for key in keys if METRICS[key].weights and self.level != "ordinal"]
        if weighted:
            raise UsageError(
                f"{weighted[0]} weighs by the order of the labels: --level ordinal --order LOW,...,HIGH"
            )
        return keys

    def judged(self, judge: str, reference: str | None, people: Sequence[str] | None = None) -> Ratings:
        """The units that the judge was asked about and somebody else labelled: what a verdict can rest on."""
        others = [*(self.people if people is None else people), *([reference] if reference else [])]
        labelled = (self.table.select(others).codes != MISSING).any(axis=1)
        table = self.table.subset(np.asarray(labelled & self.asked_units[judge]))
        return self.weighted(table, *others[:1])

    def compared(self, judges: Sequence[str], reference: str, **how: Unpack[How]) -> list[Comparison]:
        """Every two judges by their agreement with the reference, paired on the units that all of them and it labelled."""
        table = self.table.subset(self.asked_units[reference])
        table = self.weighted(table, reference)
        return compare(table, judges, reference, self.coefficient, level=self.level, field=self.field, **how)

    def judges_compared(self, reference: str, **how: Unpack[How]) -> list[Comparison]:
        """`compared` for all judges that label a unit of the reference; none where fewer than two do, or labels are scores."""
        judges = [name for name in self.with_labels(self.judges, reference) if name != reference]
        return [] if len(judges) < 2 or self.are_scores else self.compared(judges, reference, **how)

    def with_labels(
        self, judges: Sequence[str], reference: str, inside: BoolArray | None = None
    ) -> list[str]:
        """Those of the judges that label a unit of the reference (`inside`: of these units): who can be compared."""
        held = self.labels_of(reference) != MISSING
        held = held if inside is None else held & inside
        return [name for name in judges if (self.labels_of(name)[held] != MISSING).any()]

    def only(self, units: BoolArray, annotators: Sequence[str]) -> Panel:
        """Some of the units, of some of the annotators."""
        columns = [self.ratings.annotators.index(n) for n in annotators]
        return replace(
            self,
            ratings=self.ratings.subset(units).select(annotators),
            asked=self.asked[units][:, columns],
            kinds={n: self.kinds[n] for n in annotators},
            looks={n: look for n, look in self.looks.items() if n in annotators},
            distributions={n: p[units] for n, p in self.distributions.items() if n in annotators},
            inside=None if self.inside is None else self.inside[units],
        )

    def cut(self) -> Panel:
        """Without the units that the batch did not draw."""
        return self if self.inside is None else self.only(self.inside, self.ratings.annotators)

    def renamed(self, names: Mapping[str, str]) -> Panel:
        """The same with some annotators under other names."""

        def named(name: str) -> str:
            return names.get(name, name)

        return replace(
            self,
            ratings=replace(self.ratings, annotators=tuple(map(named, self.ratings.annotators))),
            kinds={named(n): kind for n, kind in self.kinds.items()},
            shown={run: named(n) for run, n in self.shown.items()},
            distributions={named(n): p for n, p in self.distributions.items()},
            outside={named(n): o for n, o in self.outside.items()},
            looks={named(n): look for n, look in self.looks.items()},
        )
