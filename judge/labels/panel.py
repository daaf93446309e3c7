"""The table of labels from which all statistics are computed.

The table contains the labels for one field, and columns that are computed from them, such as the majority.
All commands that measure agreement use this module. They therefore use the same units: those that all
compared annotators were asked to label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as default
from functools import cached_property
from typing import Unpack

import numpy as np

from judge import stats
from judge.errors import BadInput, UsageError
from judge.labels.values import NUMERIC
from judge.labels.words import DECIDED, MAJORITY
from judge.notes import Note
from judge.prompts.load import Task
from judge.stats import MISSING, BoolArray, Comparison, FloatArray, IntArray, IntervalOptions, Ratings
from judge.stats.bootstrap import IntervalSettings
from judge.stats.metrics import metric_key, pair_kappa
from judge.store.splits import Look
from judge.types import AnnotatorKind, Measure

# With more distinct numbers than this, they are scores and not labels: measures that count labels are not
# computed.
MOST_LABELS = 200


@dataclass(frozen=True, eq=False)
class Derived:
    """A column that is computed from other columns. Its name differs from every annotator's name.

    - The column `majority` contains the majority of the human labels. `n_tied` counts the units that have no
      majority because of a tie.
    - The column `decided` contains the lead annotator's decisions. Without a decision, it contains the label
      that all people assigned, if at least two people labelled the unit. `n_ruled` counts the units with a
      decision, and `n_agreed` counts the other units with a label.

    `requested` marks the units that should have a label. A missing label on such a unit lowers the coverage.
    """

    name: str
    codes: IntArray
    requested: BoolArray
    n_tied: int = 0
    n_ruled: int = 0
    n_agreed: int = 0


@dataclass(frozen=True, eq=False)
class Distributions:
    """A judge's label probabilities on the units of a table.

    They are read when they are needed, because those of a million units take more memory than everything else.
    """

    rowids: IntArray
    """One number for each unit of the table, in ascending order."""
    n_labels: int
    read_masses: Callable[[IntArray | None], Iterable[tuple[IntArray, FloatArray]]]
    """Returns pages of numbers and their probabilities [units, labels], for some of these numbers or for all."""

    def on(self, units: BoolArray | IntArray) -> FloatArray:
        """Return the probabilities of some units, given as a mask or as positions in ascending order.

        A unit without probabilities has a row of nan.
        """
        wanted = self.rowids[units]
        table = np.full((len(wanted), self.n_labels), np.nan)
        for numbers, masses in self.read_masses(wanted):
            table[np.searchsorted(wanted, numbers)] = masses
        return table

    def of_labels(self, codes: IntArray) -> FloatArray:
        """Return, for each unit, the share of its label `codes[u]` in the probability of all labels; nan without a label."""
        shares = np.full(len(codes), np.nan)
        for numbers, masses in self.read_masses(None):
            at = np.searchsorted(self.rowids, numbers)
            there = at < len(self.rowids)
            there[there] = (self.rowids[at[there]] == numbers[there]) & (codes[at[there]] != MISSING)
            at, of_units = at[there], masses[there]
            # Some probability can be on tokens that do not stand for a label.
            shares[at] = of_units[np.arange(len(at)), codes[at]] / of_units.sum(axis=1)
        return shares

    def select(self, units: BoolArray) -> Distributions:
        """Return the probabilities for a table of only these units."""
        return replace(self, rowids=self.rowids[units])


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """The labels for one field: `ratings` is the table, and `kinds` maps each annotator to their kind.

    `requested[u, a]` is true if annotator a should have labelled unit u. A missing label on such a unit
    lowers the coverage. The value is also true if a judge's reply gave no label (unparsed, refused ...).
    `source` is the file, for error messages.

    A panel that was read from a study also has:

    - `task`: the task that defines the field, or None if the study has no such task
    - `shown`: the name of each run in the table, by run id
    - `distributions[name]`: the probabilities of the labels, which are read when they are needed
    - `outside[name]`: the number of labels outside the domain, by label; they are not used in any measure
    - `inside`: a mask of the units that a batch drew; judges keep their labels on other units, which are
      needed to correct estimates with human labels
    - `weights`: the design weight of each unit; empty if all weights are equal
    - `layers[annotator]`: the number of labels that are not used because they may not be blind, by layer
    - `looks[judge]`: the judge's last logged use of the sealed test, if the table has units of that test
    """

    field: str
    level: str
    ratings: Ratings
    requested: BoolArray
    kinds: Mapping[str, AnnotatorKind]
    notes: tuple[str, ...] = ()
    source: str = ""
    task: Task | None = None
    shown: Mapping[str, str] = default(default_factory=dict)
    distributions: Mapping[str, Distributions] = default(default_factory=dict)
    outside: Mapping[str, Mapping[str, int]] = default(default_factory=dict)
    inside: BoolArray | None = None
    weights: Mapping[str, float] = default(default_factory=dict)
    layers: Mapping[str, Mapping[str, int]] = default(default_factory=dict)
    looks: Mapping[str, Look] = default(default_factory=dict)
    conflicts: Mapping[str, int] = default(default_factory=dict)
    """For each annotator, the number of units with conflicting labels. These units count as unlabelled."""
    left_out: Mapping[str, AnnotatorKind] = default(default_factory=dict)
    """The people and judges of a long table that the user left out."""

    @property
    def domain(self) -> tuple[str, ...]:
        """The labels, in order."""
        return self.ratings.domain

    @property
    def numeric(self) -> bool:
        """Whether the labels are numbers instead of classes."""
        return self.level in NUMERIC

    @property
    def are_scores(self) -> bool:
        """Whether the labels are numbers with too many distinct values to be treated as classes."""
        return self.numeric and len(self.domain) > MOST_LABELS

    def select_kinds(self, *kinds: str) -> list[str]:
        """Return the annotators that have one of these kinds, in the table's order."""
        return [name for name in self.ratings.annotators if self.kinds[name] in kinds]

    def kind(self, name: str) -> str:
        """Return the kind of a column of `table`: human, judge, gold, adjudicated, majority or decided."""
        if name in self.kinds:
            return str(self.kinds[name])
        return DECIDED if self.decided is not None and name == self.decided.name else MAJORITY

    @cached_property
    def people(self) -> list[str]:
        """The human annotators."""
        return self.select_kinds(AnnotatorKind.HUMAN)

    @cached_property
    def judges(self) -> list[str]:
        """The judges."""
        return self.select_kinds(AnnotatorKind.JUDGE)

    @cached_property
    def others(self) -> list[str]:
        """The adjudicated and gold columns, as stored."""
        return self.select_kinds(AnnotatorKind.ADJUDICATED) + self.select_kinds(AnnotatorKind.GOLD)

    @cached_property
    def known(self) -> list[str]:
        """The references that judges are compared with.

        These are gold and, if a lead annotator decided any unit, the column `decided`.
        """
        ruled = self.select_kinds(AnnotatorKind.ADJUDICATED)
        if self.decided is None or not ruled:
            return self.others
        return [self.decided.name, *(other for other in self.others if other not in ruled)]

    @cached_property
    def by_people(self) -> BoolArray:
        """The units that at least one person labelled or was asked to label."""
        return np.asarray(
            self.requested[:, [self.kinds[n] == AnnotatorKind.HUMAN for n in self.ratings.annotators]].any(
                axis=1
            )
        )

    @cached_property
    def majority(self) -> Derived | None:
        """The majority of each unit's human labels.

        If only one person labelled a unit, that label is its majority. A unit with a tie has no majority. The
        column is None if there are fewer than two people, or if the labels are numbers.
        """
        # A vote is on labels: numbers have a mean, but no majority.
        if len(self.people) < 2 or self.numeric:
            return None
        # Gold and a lead's decisions are separate references, so they have no vote.
        codes, n_tied = self.vote(self.people)
        return Derived(self._find_unused_name(MAJORITY), codes, self.by_people, n_tied=n_tied)

    def vote(self, people: Sequence[str]) -> tuple[IntArray, int]:
        """Return the label with the most votes of these people for each unit, and the number of units with a tie."""
        # People label a few of the units that judges label.
        of_people, tied = stats.vote(self.among_people.select(people).counts)
        codes = np.full(self.ratings.n_units, MISSING, dtype=self.ratings.codes.dtype)
        codes[self.by_people] = of_people
        return codes, int(tied.sum())

    @cached_property
    def decided(self) -> Derived | None:
        """The lead annotator's decision or, if there is none, the label that all people assigned.

        A label that all people assigned is only used if at least two people labelled the unit. The column is
        None if there is no such unit without a decision.
        """
        if len(self.people) < 2 or self.numeric:
            return None
        human_codes = self.among_people.codes
        labelled = human_codes != MISSING
        codes = np.full(self.ratings.n_units, MISSING, dtype=self.ratings.codes.dtype)
        for name in self.select_kinds(AnnotatorKind.ADJUDICATED)[:1]:
            codes[:] = self.ratings.codes[:, self.ratings.annotators.index(name)]
        ruled = codes != MISSING
        # Equal labels have equal highest and lowest codes, which takes one pass over a table of any number of people.
        highest = human_codes.max(axis=1)
        lowest = np.where(labelled, human_codes, len(self.domain)).min(axis=1)
        # A lead sees only units on which people differ, so the decisions alone would be the hardest units.
        agreed = ~ruled[self.by_people] & (labelled.sum(axis=1) >= 2) & (highest == lowest)
        if not agreed.any():
            return None
        codes[np.flatnonzero(self.by_people)[agreed]] = highest[agreed]
        n_ruled, n_agreed = int(ruled.sum()), int(agreed.sum())
        return Derived(
            self._find_unused_name(DECIDED), codes, self.by_people | ruled, n_ruled=n_ruled, n_agreed=n_agreed
        )

    def _find_unused_name(self, name: str) -> str:
        return name if name not in self.kinds else self._find_unused_name(f"{name} by people")

    @cached_property
    def table(self) -> Ratings:
        """A table of all annotators, the human majority and, if a lead decided any unit, the decided labels."""
        return self._full[0]

    @cached_property
    def asked_units(self) -> Mapping[str, BoolArray]:
        """For each column of `table`, a mask of the units that should have a label. Missing labels on these
        units lower the coverage.
        """
        return self._full[1]

    @cached_property
    def _full(self) -> tuple[Ratings, dict[str, BoolArray]]:
        table = self.ratings
        requested: dict[str, BoolArray] = {
            name: self.requested[:, i] for i, name in enumerate(self.ratings.annotators)
        }
        ruled = self.decided if self.select_kinds(AnnotatorKind.ADJUDICATED) else None
        for made in (self.majority, ruled):
            if made is not None:
                table = table.with_annotator(made.name, made.codes)
                requested[made.name] = made.requested
        return table, requested

    def labels_of(self, name: str, units: BoolArray | IntArray | None = None) -> IntArray:
        """Return the codes of one column of `table`, for all units or for those at a mask or at positions."""
        return self.table.column(name, units)

    def has_label(self, name: str) -> BoolArray:
        """Return a mask of the units that have a label in this column of `table`."""
        return self.table.has_label(name)

    @cached_property
    def by_others(self) -> BoolArray:
        """A mask of the units that have a human, gold or adjudicated label."""
        labelled = np.zeros(self.ratings.n_units, dtype=np.bool_)
        for name in self.ratings.annotators:
            if name not in self.judges:
                labelled |= self.ratings.has_label(name)
        return labelled

    def lacks_labels(self, judge: str) -> bool:
        """Return whether this judge's labels cannot be compared with any human, gold or adjudicated label.

        This is the case if the judge labelled none of the units that have such a label. The result is False
        if no unit has such a label.
        """
        return bool(self.by_others.any()) and not bool(self.ratings.has_label(judge)[self.by_others].any())

    def move_unlabelled_last(self) -> Panel:
        """Return the panel with its unlabelled judges (see `lacks_labels`) moved to the end."""
        lacking = [name for name in self.judges if self.lacks_labels(name)]
        if not lacking or len(lacking) == len(self.judges):
            return self
        judges = iter([*(name for name in self.judges if name not in lacking), *lacking])
        order = [next(judges) if name in self.judges else name for name in self.ratings.annotators]
        return self.select(np.ones(self.ratings.n_units, dtype=np.bool_), order)

    @cached_property
    def _labelled_by_others(self) -> tuple[Ratings, Mapping[str, BoolArray]]:
        """The table of the units that people or references labelled or should have labelled.

        The result also contains, for each column, a mask of the units that should have a label.
        """
        # These units are few compared with those that judges label. Every pair with a person or gold is selected from
        # them.
        others = [mask for name, mask in self.asked_units.items() if name not in self.judges]
        selected = np.logical_or.reduce(others) if others else np.zeros(self.ratings.n_units, dtype=np.bool_)
        return self.table.subset(selected), {name: mask[selected] for name, mask in self.asked_units.items()}

    def select_common(self, *names: str) -> Ratings:
        """Return the labels of these annotators on their common units.

        The common units of two annotators are those that both were asked to label. For more than two
        annotators, they are the units that any of them was asked to label.

        There is one exception. If all annotators are people, the common units are those that any person, even
        one who is not listed here, labelled or was asked to label.
        """
        table, requested = self.table, self.asked_units
        if len(names) > 1 and all(name in self.people for name in names):
            return self.add_weights(self.among_people.select(names))
        only_judges = all(name in self.judges for name in names)
        if len(names) <= 2 and any(name not in self.judges for name in names):
            table, requested = self._labelled_by_others
        elif self.inside is not None:
            # Judges keep their labels outside the batch, which only corrected estimates may use.
            requested = {name: mask & self.inside for name, mask in requested.items()}
        columns_asked = [requested[name] for name in names]
        mask = (np.logical_and if len(names) <= 2 else np.logical_or).reduce(columns_asked)
        # A pair without a common unit keeps its rows, so that the reason for the missing value can say so.
        shared = table.subset(mask if mask.any() else np.logical_or.reduce(columns_asked)).select(names)
        return shared if only_judges else self.add_weights(shared, *names)

    def add_weights(self, table: Ratings, *names: str) -> Ratings:
        """Add design weights to a table if its units were drawn with unequal probabilities.

        If `names` includes gold, the table is returned unchanged.
        """
        # How gold units were chosen is not recorded.
        if any(name in self.select_kinds(AnnotatorKind.GOLD) for name in names):
            return table
        weights = table.spread(self.weights) if self.weights else None
        if weights is None or np.isnan(weights).all():
            return table
        # Units without a weight were not sampled and represent only themselves.
        drawn = np.isfinite(weights)
        return table.subset(drawn).with_weights(weights[drawn])

    def design_weights(self, *names: str) -> FloatArray | None:
        """Return the design weight of each unit in `table`, with nan for units that were not sampled.

        Return None if `add_weights` adds no weights.
        """
        if self.add_weights(self.table, *names).weights is None:
            return None
        return self.table.spread(self.weights)

    @cached_property
    def of_draw(self) -> Ratings:
        """All columns of `table`, with design weights if the units were drawn with unequal probabilities."""
        return self.add_weights(self.table)

    @cached_property
    def among_people(self) -> Ratings:
        """The human labels, on the units that at least one person labelled or was asked to label."""
        return self.ratings.subset(self.by_people).select(self.people)

    @cached_property
    def remarks(self) -> list[Note]:
        """The notes that must accompany the derived columns."""
        notes: list[Note] = []
        if self.majority is not None and self.majority.n_tied:
            n = int(self.by_people.sum())
            notes.append(Note("tied", n=self.majority.n_tied, of=n))
        if self.decided is not None and self.decided.n_ruled:
            d = self.decided
            notes.append(Note("ruled", who=d.name, n=d.n_ruled, agreed=d.n_agreed))
        return notes

    @property
    def coefficient(self) -> str:
        """The coefficient that measures the agreement of two annotators at this level of measurement."""
        if self.numeric:
            return "krippendorff_alpha"
        return pair_kappa(self.level)

    def confidence(self, *names: str) -> float:
        """Return the confidence level for intervals on these annotators.

        If a use of the sealed test is logged for an annotator, the level is at least that of this use.
        """
        # A sealed test was opened at the level of its look, and no interval on that judge may be narrower.
        looks = (self.looks[name].confidence for name in names if name in self.looks)
        return max((IntervalSettings().confidence, *looks))

    def measure(
        self, names: Sequence[str], keys: Sequence[str], **options: Unpack[IntervalOptions]
    ) -> list[Measure]:
        """Compute coefficients for these annotators. Coefficients for a pair require exactly two annotators.

        Raises BadInput if there are too many distinct numbers.
        """
        # Measures that count labels keep a column for each distinct number, so scores have a measure of their own.
        if not self.are_scores:
            cache_keys = [(tuple(names), key, tuple(sorted(options.items()))) for key in keys]
            # A report shows the same number in several new_keys, and each computation needs a bootstrap.
            missing = [
                key
                for key, cache_key in zip(keys, cache_keys, strict=True)
                if cache_key not in self._measured
            ]
            if missing:
                table = self.select_common(*names)
                computed = stats.measures(
                    table, missing, level=self.level, pairwise=False, field=self.field, **options
                )
                new_keys = [cache_key for cache_key in cache_keys if cache_key not in self._measured]
                self._measured.update(zip(new_keys, computed, strict=True))
            # Copies, because a report lists each measure of a section, also one that another section has.
            return [replace(self._measured[cache_key]) for cache_key in cache_keys]
        if self.keys(keys) != ["krippendorff_alpha:interval"]:
            raise BadInput(
                f"'{self.field}' has {len(self.domain):,} different numbers; above {MOST_LABELS}, only "
                f"krippendorff_alpha with --level interval is available; for other measures, bin the numbers into labels",
                path=self.source,
            )
        table = self.select_common(*names)
        clusters = table.clusters if table.clustered else None
        scores = self.numbers(*names)
        return [
            stats.scores_alpha(
                scores, clusters=clusters, annotators=tuple(names), field=self.field, **options
            )
        ]

    @cached_property
    def _measured(self) -> dict[tuple[tuple[str, ...], str, tuple[tuple[str, object], ...]], Measure]:
        """The coefficients that were computed, by the annotators, the key and the options."""
        return {}

    def numbers(self, *names: str) -> FloatArray:
        """Return these annotators' numeric labels on their common units (see `select_common`).

        A missing label is nan.
        """
        table = self.select_common(*names)
        values = np.array([float(v) for v in table.domain])
        return np.where(table.codes == MISSING, np.nan, values[table.codes])

    def class_agreement(self, names: Sequence[str], **options: Unpack[IntervalOptions]) -> list[Measure]:
        """Compute the agreement for each label.

        It says how often an annotator assigns the label to units to which another annotator assigned it.
        """
        return stats.class_agreement(self.select_common(*names), field=self.field, **options)

    def keys(self, wanted: Sequence[str]) -> list[str]:
        """Return the requested coefficients' keys in METRICS.

        Raises UsageError if a weighted coefficient is requested for labels without an order.
        """
        keys = [metric_key(name, self.level) for name in wanted]
        weighted = [key for key in keys if stats.METRICS[key].weights and self.level != "ordinal"]
        if weighted:
            raise UsageError(
                f"{weighted[0]} needs ordered labels; declare their order with --level ordinal:LOW,...,HIGH"
            )
        return keys

    def select_judged(self, judge: str, others: Sequence[str]) -> Ratings:
        """Return the units that the judge or one of `others` labelled or was asked to label."""
        columns = [judge, *others]
        requested = np.logical_or.reduce([self.asked_units[name] for name in columns])
        labelled = (self.table.select(columns).codes != MISSING).any(axis=1)
        return self.add_weights(self.table.subset(np.asarray(requested | labelled)), *others[:1])

    def compare_judges(
        self, judges: Sequence[str], reference: str, **options: Unpack[IntervalOptions]
    ) -> list[Comparison]:
        """Compare each pair of judges by agreement with the reference, on the units that all of them labelled."""
        table = self.table.subset(self.asked_units[reference])
        table = self.add_weights(table, reference)
        return stats.compare(
            table, judges, reference, self.coefficient, level=self.level, field=self.field, **options
        )

    def compare_all_judges(self, reference: str, **options: Unpack[IntervalOptions]) -> list[Comparison]:
        """Compare all judges that share at least one labelled unit with the reference (see `compare_judges`).

        The result is empty if there are fewer than two such judges, or if the labels are scores.
        """
        judges = [name for name in self.with_labels(self.judges, reference) if name != reference]
        return [] if len(judges) < 2 or self.are_scores else self.compare_judges(judges, reference, **options)

    def with_labels(
        self, judges: Sequence[str], reference: str, inside: BoolArray | None = None
    ) -> list[str]:
        """Return the judges that share at least one labelled unit with the reference.

        If the mask `inside` is given, only the units in it are considered.
        """
        in_reference = self.has_label(reference)
        in_reference = in_reference if inside is None else in_reference & inside
        return [name for name in judges if self.has_label(name)[in_reference].any()]

    def select(self, units: BoolArray, annotators: Sequence[str]) -> Panel:
        """Return a panel with only some units and some annotators."""
        columns = [self.ratings.annotators.index(n) for n in annotators]
        return replace(
            self,
            ratings=self.ratings.subset(units).select(annotators),
            requested=self.requested[units][:, columns],
            kinds={n: self.kinds[n] for n in annotators},
            looks={n: look for n, look in self.looks.items() if n in annotators},
            distributions={n: p.select(units) for n, p in self.distributions.items() if n in annotators},
            inside=None if self.inside is None else self.inside[units],
        )

    def drop_undrawn(self) -> Panel:
        """Return the panel with only the units that the batch drew."""
        return self if self.inside is None else self.select(self.inside, self.ratings.annotators)

    def rename(self, names: Mapping[str, str]) -> Panel:
        """Return the panel with some annotators renamed."""

        def named(name: str) -> str:
            return names.get(name, name)

        return replace(
            self,
            ratings=replace(self.ratings, annotators=tuple(map(named, self.ratings.annotators))),
            kinds={named(n): kind for n, kind in self.kinds.items()},
            shown={run: named(n) for run, n in self.shown.items()},
            distributions={named(n): p for n, p in self.distributions.items()},
            outside={named(n): o for n, o in self.outside.items()},
            layers={named(n): by_layer for n, by_layer in self.layers.items()},
            looks={named(n): look for n, look in self.looks.items()},
        )
