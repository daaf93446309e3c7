"""Everything `annotate agreement` says about one field, as data: groups, pairs, judges, classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Unpack

import numpy as np

from annotate.decided import DECIDED, decisions
from annotate.pairs import Pairs, all_pairs
from annotate.sheet import NUMERIC, Sheet
from judge.errors import BadInput, UsageError
from judge.stats import (
    METRICS,
    MISSING,
    Confusion,
    Ratings,
    class_agreement,
    class_scores,
    confusion,
    label_shares,
    majority,
    measures,
    scores_alpha,
)
from judge.stats.bootstrap import How
from judge.stats.metrics import metric_key
from judge.stats.ratings import BoolArray
from judge.types import AnnotatorKind, Measure

MAJORITY = "majority"
# Past this many pairs in one list they are summarised: nobody reads more rows, and intervals take time.
MOST_PAIRS = 28
# Past this many different numbers they are scores, not labels: nothing that counts labels is computed.
MOST_LABELS = 200
GROUP = {
    "nominal": ("percent", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1", "pabak"),
    "ordinal": ("percent", "krippendorff_alpha", "gwet_ac2"),
    "interval": ("percent", "krippendorff_alpha"),
    "ratio": ("percent", "krippendorff_alpha"),
}
PAIR = {
    "nominal": ("percent", "cohen_kappa", "krippendorff_alpha", "gwet_ac1"),
    "ordinal": ("percent", "cohen_kappa", "cohen_kappa:quadratic", "krippendorff_alpha", "gwet_ac2"),
    "interval": ("percent", "krippendorff_alpha"),
    "ratio": ("percent", "krippendorff_alpha"),
}


@dataclass(frozen=True)
class Block:
    """Measures under a heading. In a list of pairs all measures of a pair follow each other."""

    title: str
    annotators: Sequence[str]
    measures: list[Measure]


@dataclass(frozen=True)
class Many:
    """Pairs under a heading that are too many to list."""

    title: str
    pairs: Pairs


class Field:
    """One sheet with its majority vote, ready to measure any two annotators of it."""

    def __init__(self, sheet: Sheet, reference: str | None = None) -> None:
        """Raises UsageError for a reference that is not there, BadInput for what is no set of labels."""
        self.sheet, self.notes = sheet, list(sheet.notes)
        self.ratings, self.asked = sheet.ratings, sheet.asked
        self.people = sheet.of_kind(AnnotatorKind.HUMAN)
        self.judges = sheet.of_kind(AnnotatorKind.JUDGE)
        self.references = sheet.of_kind(AnnotatorKind.ADJUDICATED) + sheet.of_kind(AnnotatorKind.GOLD)
        self.are_scores = sheet.level in NUMERIC and len(sheet.ratings.domain) > MOST_LABELS
        if len(sheet.ratings.domain) > MOST_LABELS and not self.are_scores:
            raise BadInput(
                f"'{sheet.field}' has {len(sheet.ratings.domain):,} different labels: is it the right column? "
                "Numbers take --level interval",
                path=sheet.source,
            )
        if len(sheet.ratings.annotators) < 2:
            raise BadInput(
                f"'{sheet.field}' has one annotator, '{sheet.ratings.annotators[0]}': nothing to compare",
                path=sheet.source,
            )
        if len(self.people) >= 2 and sheet.level not in NUMERIC and MAJORITY not in sheet.kinds:
            self._add_majority()
        self._add_decisions()
        self.reference = self._reference(reference)

    def _add_decisions(self) -> None:
        ruled = self.sheet.of_kind(AnnotatorKind.ADJUDICATED)
        if not ruled or self.sheet.level in NUMERIC or DECIDED in self.sheet.kinds:
            return
        found = decisions(self.ratings, self.people, ruled[0])
        if found is None:
            return
        self.ratings = self.ratings.with_annotator(DECIDED, found.codes)
        self.asked = np.column_stack([self.asked, found.codes != MISSING])
        self.references = [DECIDED, *(name for name in self.references if name not in ruled)]
        self.notes.append(
            f"{DECIDED}: {found.n_ruled:,} units were adjudicated, because people differ on them, and on "
            f"{found.n_agreed:,} others two or more agree; the adjudicated units alone are the hardest ones"
        )

    def _add_majority(self) -> None:
        vote = majority(self.ratings, self.people)
        columns = [self.ratings.annotators.index(name) for name in self.people]
        voted = (self.ratings.codes[:, columns] != MISSING).any(axis=1)
        self.ratings = self.ratings.with_annotator(MAJORITY, vote.codes)
        self.asked = np.column_stack([self.asked, voted])
        if vote.n_tied:
            self.notes.append(
                f"majority of the people: {vote.n_tied} of {int(voted.sum())} units are tied and have none"
            )

    def _reference(self, wanted: str | None) -> str | None:
        kinds = self.sheet.kinds
        if wanted is None:
            others = [MAJORITY] if MAJORITY in self.ratings.annotators else self.people
            return next(iter([*self.references, *others]), None)
        if self.judges == [wanted]:
            raise UsageError(f"--reference {wanted}: that is the judge, and nothing is held against itself")
        if wanted in self.ratings.annotators:
            return wanted
        named = [n for n, kind in kinds.items() if kind == wanted]
        if named and wanted in (AnnotatorKind.GOLD, AnnotatorKind.ADJUDICATED):
            return named[0]
        raise UsageError(
            f"--reference {wanted}: '{self.sheet.field}' has {', '.join(self.ratings.annotators)}"
        )

    def table(self, names: Sequence[str]) -> Ratings:
        """These annotators on the units they were asked about: all of a pair, any of a group."""
        return self.ratings.select(names).subset(self._rows(names))

    def _rows(self, names: Sequence[str]) -> BoolArray:
        asked = self.asked[:, [self.ratings.annotators.index(name) for name in names]]
        # Two who share nothing keep their rows, so that the reason can say just that.
        every = asked.all(axis=1) if len(names) == 2 else asked.any(axis=1)
        return np.asarray(every if every.any() else asked.any(axis=1))

    def measure(self, names: Sequence[str], keys: Sequence[str], **how: Unpack[How]) -> list[Measure]:
        """Coefficients of these annotators; those of pairs only when there are two."""
        level, name = self.sheet.level, self.sheet.field
        if not self.are_scores:
            return measures(self.table(names), keys, level=level, pairwise=False, field=name, **how)
        if self.sheet.scores is None or list(keys) != ["krippendorff_alpha:interval"]:
            raise BadInput(
                f"'{name}' has {len(self.ratings.domain):,} different numbers; above {MOST_LABELS} there is "
                "krippendorff_alpha with --level interval; for more, bin them into labels",
                path=self.sheet.source,
            )
        rows = self._rows(names)
        columns = [self.ratings.annotators.index(name) for name in names]
        clusters = self.ratings.clusters[rows] if self.ratings.clustered else None
        scores = self.sheet.scores[rows][:, columns]
        return [scores_alpha(scores, clusters=clusters, annotators=tuple(names), field=name, **how)]

    def class_agreement(self, names: Sequence[str], **how: Unpack[How]) -> list[Measure]:
        """How often another annotator gives the same label, label by label."""
        return class_agreement(self.table(names), field=self.sheet.field, **how)

    def keys(self, wanted: Sequence[str] | None, pair: bool) -> list[str]:
        """The coefficients to compute, as keys of METRICS: the wanted ones, else the usual ones of the level.

        Raises UsageError for weights without an order: the alphabet is none, nor are the numbers found.
        """
        usual = (PAIR if pair else GROUP)[self.sheet.level]
        if self.are_scores:
            usual = ("krippendorff_alpha",)
        keys = [metric_key(name, self.sheet.level) for name in wanted or usual]
        weighted = [key for key in keys if METRICS[key].weights and self.sheet.level != "ordinal"]
        if weighted:
            raise UsageError(
                f"{weighted[0]} weighs by the order of the labels: --level ordinal --order LOW,...,HIGH"
            )
        return keys


@dataclass(eq=False)
class Agreement:
    """What was computed on one field."""

    found: Field
    groups: list[Block] = field(default_factory=list)
    pairs: list[Block | Many] = field(default_factory=list)
    classes: list[Block] = field(default_factory=list)
    confusions: list[Confusion] = field(default_factory=list)
    shares: dict[str, dict[str, float] | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def measures(self) -> list[Measure]:
        """Every Measure, in the order of the sections."""
        listed = [block for block in self.pairs if isinstance(block, Block)]
        return [m for block in (*self.groups, *listed, *self.classes) for m in block.measures]

    @property
    def many(self) -> list[Many]:
        """The lists of pairs that are summarised."""
        return [block for block in self.pairs if isinstance(block, Many)]


def analyse(
    sheet: Sheet,
    *,
    reference: str | None = None,
    names: Sequence[str] | None = None,
    pairwise: bool = True,
    per_class: bool = False,
    **how: Unpack[How],
) -> Agreement:
    """Agreement of everybody with everybody: groups, pairs, judges with references, labels.

    `names` are the coefficients (default: the usual ones of the level). `pairwise=False` leaves out the
    pairs of single annotators; `per_class` adds precision, recall and F1 of each judge against the
    reference. `how` as in judge.stats.measures. Raises BadInput and UsageError as Field does.
    """
    found = Field(sheet, reference)
    result = Agreement(found)
    told: set[frozenset[str]] = set()
    for title, group in _groups(found):
        keys = list(
            dict.fromkeys(found.keys(names, False) + (found.keys(names, True) if len(group) == 2 else []))
        )
        result.groups.append(Block(title, group, found.measure(group, keys, **how)))
        if len(group) == 2:
            told.add(frozenset(group))
    for title, pairs in _lists(found, pairwise):
        left = [pair for pair in pairs if frozenset(pair) not in told]
        told.update(frozenset(pair) for pair in left)
        _add_pairs(result, title, left, found.keys(names, True), how)
    if found.sheet.level in NUMERIC:
        return result
    held = [(judge, found.reference) for judge in found.judges if found.reference not in (None, judge)]
    if not held and len(sheet.ratings.annotators) == 2:
        held = [(sheet.ratings.annotators[1], sheet.ratings.annotators[0])]
    elif not held and found.references and MAJORITY in found.ratings.annotators:
        held = [(MAJORITY, found.references[0])]
    title, group = _groups(found)[0]
    result.classes.append(Block(title, group, found.class_agreement(group, **how)))
    for one, other in held:
        if other is None:
            continue
        pair = [one, other]
        result.confusions.append(confusion(found.table(pair), one, other))
        if set(pair) != set(group):
            result.classes.append(Block(_with(one, other), pair, found.class_agreement(pair, **how)))
        if per_class:
            scores = class_scores(found.table(pair), one, other, field=sheet.field, **how)
            result.classes.append(Block(f"{one} against {other}", pair, scores))
    result.shares = label_shares(found.ratings)
    return result


def _groups(found: Field) -> list[tuple[str, list[str]]]:
    groups = [("people", found.people)] if len(found.people) >= 2 else []
    everyone = found.people + found.judges
    if found.judges and len(everyone) >= 2:
        groups.append(("people and judges" if found.people else "judges", everyone))
    return groups or [("all annotators", list(found.sheet.ratings.annotators))]


def _lists(found: Field, pairwise: bool) -> list[tuple[str, list[tuple[str, str]]]]:
    """Every pair worth telling, under headings: people first, since they are the judge's ceiling."""
    vote = [MAJORITY] if MAJORITY in found.ratings.annotators and MAJORITY not in found.people else []
    fixed = vote + found.references
    lists: list[tuple[str, list[tuple[str, str]]]] = []
    if pairwise:
        lists.append(("people with each other", list(combinations(found.people, 2))))
    for judge in found.judges:
        if pairwise:
            lists.append((f"{judge} with people", list(product([judge], found.people))))
        lists.append((_with(judge, " and ".join(fixed)), list(product([judge], fixed))))
    for other in found.references:
        if pairwise:
            lists.append((f"people with {other}", list(product(found.people, [other]))))
        lists.append((f"majority of the people with {other}", list(product(vote, [other]))))
    if pairwise:
        lists.append(("judges with each other", list(combinations(found.judges, 2))))
        lists.append(("references with each other", list(combinations(found.references, 2))))
    return [(title, pairs) for title, pairs in lists if pairs]


def _with(one: str, other: str) -> str:
    return f"{one} with {other}"


def _add_pairs(
    result: Agreement, title: str, pairs: Sequence[tuple[str, str]], keys: Sequence[str], how: How
) -> None:
    found = result.found
    if not pairs:
        return
    if len(pairs) <= MOST_PAIRS:
        every = [m for pair in pairs for m in found.measure(pair, keys, **how)]
        result.pairs.append(Block(title, list(dict.fromkeys(n for pair in pairs for n in pair)), every))
    elif found.are_scores:
        result.notes.append(f"{title}: {len(pairs)} pairs of scores are too many to list")
    else:
        first, second = zip(*pairs, strict=True)
        table = all_pairs(
            found.ratings, keys, level=found.sheet.level, first=sorted(set(first)), second=sorted(set(second))
        )
        result.pairs.append(Many(title, table))
