"""The agreement on one field, as data for `annotate agreement`: groups, pairs, judges, classes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Unpack

from annotate.agreement.every_pair import Pairs, compute_pairs
from judge import plugins
from judge.errors import AdjudgeError, BadInput, UsageError
from judge.labels import relation
from judge.labels.batches import members
from judge.labels.panel import MOST_LABELS, Panel
from judge.labels.reference import Reference
from judge.labels.scope import Scope, describe_conflicts, fields_of, read_panel
from judge.stats import METRICS, Comparison, Confusion, class_scores, confusion, label_shares
from judge.stats.bootstrap import IntervalOptions
from judge.store import Store
from judge.store.export import find_task
from judge.types import Measure

# Longer lists of pairs are summarised: more rows are hard to read, and intervals take time to compute.
MOST_PAIRS = 28
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
    """A heading and the measures below it, grouped by pair of annotators."""

    title: str
    annotators: Sequence[str]
    measures: list[Measure]


@dataclass(frozen=True)
class Many:
    """A heading for pairs that are too many to list and are therefore summarised."""

    title: str
    pairs: Pairs


def check(panel: Panel) -> None:
    """Raise BadInput if nothing can be compared: the panel has one annotator, or too many different labels."""
    # Ids or texts, in place of labels, have a different value in almost every row.
    if len(panel.domain) > MOST_LABELS and not panel.are_scores:
        raise BadInput(
            f"'{panel.field}' has {len(panel.domain):,} different labels: check that it is the right column. "
            "If it contains numbers, pass --level interval",
            path=panel.source,
        )
    if len(panel.ratings.annotators) < 2:
        raise BadInput(
            f"'{panel.field}' has only one annotator, '{panel.ratings.annotators[0]}': there is nothing to compare",
            path=panel.source,
        )


def check_measures(wanted: Iterable[str]) -> None:
    """Raise UsageError for a name that is not a coefficient in judge.stats."""
    general = ("krippendorff_alpha", "gwet_ac2")
    for name in wanted:
        if name not in general and name not in METRICS:
            known = sorted({*METRICS, *general, *plugins.names("measures")})
            raise UsageError(f"--measure {name}: unknown measure; available: {', '.join(known)}")


def panels_of(
    store: Store,
    *,
    field: str | None = None,
    task: str | None = None,
    batch: str | None = None,
    runs: Sequence[str] = (),
    annotators: Sequence[str] | None = None,
    level: str | None = None,
    order: Sequence[str] | None = None,
) -> tuple[list[Panel], list[str]]:
    """Return a Panel for each field with at least two annotators, and the reasons why other fields are left out.

    Without `field` and `task`, all fields are read. If `task` names a version, only labels that were given under it
    are read (`Scope.version`). Raises UsageError if a name is unknown, and BadInput if there is nothing to compare.
    """
    if batch:
        members(store, batch)
    named_task = find_task(store, task) if task else None
    version = None if named_task is None or task == named_task.task_id else named_task.name
    wanted: list[tuple[str, str | None]]
    if field:
        wanted = [(field, task)]
    else:
        every = fields_of(store)
        if named_task:
            of_task = named_task.fields
            wanted = [(f, task) for f in of_task if any(f == row.field for row in every)]
        else:
            wanted = [(row.field, row.task) for row in every]
    panels: list[Panel] = []
    refused: list[AdjudgeError] = []
    named = None if annotators is None else tuple(annotators)
    domain = None if order is None else tuple(order)
    for name, of in wanted:
        try:
            scope = Scope(name, of, batch, tuple(runs), named, level, domain, version)
            with store.reading_once():
                panel = read_panel(store, scope, distributions=False, only_drawn=True)
            panels.append(panel.drop_undrawn())
        except (BadInput, UsageError) as e:
            refused.append(e)
    # A field that was requested must be measured. Without a request, the other fields still are, and this one
    # is listed.
    if refused and (field or not panels):
        raise refused[0]
    enough = [panel for panel in panels if len(panel.ratings.annotators) >= 2]
    if not enough:
        listed = ", ".join(f"{p.field} ({', '.join(p.ratings.annotators)})" for p in panels) or "none yet"
        conflicts = f"; {in_conflict}" if (in_conflict := describe_conflicts(store)) else ""
        raise BadInput(
            f"{store.path}: no field has labels from at least two annotators; available: {listed}{conflicts}"
        )
    return enough, [*map(str, refused), *_note_unlabelled(store, {name for name, _ in wanted}, field or task)]


def _note_unlabelled(store: Store, wanted: set[str], named: str | None) -> list[str]:
    """Return a note on each field whose labels are all in conflict. Such a field has no results."""
    if named:
        return []
    fields = sorted(relation.conflict_counts(store.conn).keys() - wanted)
    return [f"'{name}' has no label that counts: {describe_conflicts(store, name)}" for name in fields]


def usual(panel: Panel, pair: bool) -> list[str]:
    """Return the default coefficients for a pair or for a group, which depend on the panel's level of measurement."""
    if panel.are_scores:
        return panel.keys(["krippendorff_alpha"])
    return panel.keys((PAIR if pair else GROUP)[panel.level])


@dataclass(eq=False)
class Agreement:
    """The results for one field."""

    panel: Panel
    reference: Reference | None
    groups: list[Block] = field(default_factory=list)
    pairs: list[Block | Many] = field(default_factory=list)
    classes: list[Block] = field(default_factory=list)
    confusions: list[Confusion] = field(default_factory=list)
    compared: list[Comparison] = field(default_factory=list)
    shares: dict[str, dict[str, float] | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def measures(self) -> list[Measure]:
        """All measures, in the order of the sections."""
        listed = [block for block in self.pairs if isinstance(block, Block)]
        return [m for block in (*self.groups, *listed, *self.classes) for m in block.measures]

    @property
    def many(self) -> list[Many]:
        """The headings whose pairs are summarised instead of listed."""
        return [block for block in self.pairs if isinstance(block, Many)]


def analyse(
    panel: Panel,
    reference: Reference | None,
    *,
    names: Sequence[str] | None = None,
    per_class: bool = False,
    **options: Unpack[IntervalOptions],
) -> Agreement:
    """Compute the agreement on one field: within groups, for each pair, for each judge, and for each label.

    Judges are compared with the reference. `names` lists the coefficients (by default those for the level of
    measurement). `per_class` adds precision, recall and F1 for each judge against the reference. `options`
    are those of judge.stats.measures. Raises BadInput if there is nothing to compare, and UsageError if a
    coefficient is unknown.
    """
    check(panel)
    result = Agreement(panel, reference, notes=[*panel.notes, *panel.remarks])
    wanted = [panel.keys(names) if names else usual(panel, pair) for pair in (False, True)]
    done: set[frozenset[str]] = set()
    for title, group in _groups(panel):
        keys = list(dict.fromkeys(wanted[0] + (wanted[1] if len(group) == 2 else [])))
        result.groups.append(Block(title, group, panel.measure(group, keys, **options)))
        # The block for a group of two also has the coefficients for the pair, so the pair is not listed again.
        if len(group) == 2:
            done.add(frozenset(group))
    for title, pairs in _lists(panel):
        left = [pair for pair in pairs if frozenset(pair) not in done]
        done.update(frozenset(pair) for pair in left)
        _add_pairs(result, title, left, wanted[1], options)
    if reference is not None:
        result.compared = panel.compare_all_judges(reference.name, **options)
    # Numbers have no classes, so there is no confusion matrix, no table by label, and no shares.
    if panel.numeric:
        return result
    vote = panel.majority
    compared = [(judge, reference.name) for judge in panel.judges if reference and reference.name != judge]
    if not compared and len(panel.ratings.annotators) == 2:
        compared = [(panel.ratings.annotators[1], panel.ratings.annotators[0])]
    elif not compared and panel.known and vote is not None:
        compared = [(vote.name, panel.known[0])]
    title, group = _groups(panel)[0]
    result.classes.append(Block(title, group, panel.class_agreement(group, **options)))
    for first, second in compared:
        pair = [first, second]
        result.confusions.append(confusion(panel.select_common(*pair), first, second))
        if set(pair) != set(group):
            result.classes.append(
                Block(f"{first} with {second}", pair, panel.class_agreement(pair, **options))
            )
        if per_class:
            scores = class_scores(panel.select_common(*pair), first, second, field=panel.field, **options)
            result.classes.append(Block(f"{first} against {second}", pair, scores))
    # Judges label all units; people label the sampled ones, which are weighted.
    whole, drawn = label_shares(panel.table), label_shares(panel.of_draw)
    result.shares = {
        name: (whole if name in panel.judges else drawn)[name] for name in panel.table.annotators
    }
    return result


def _groups(panel: Panel) -> list[tuple[str, list[str]]]:
    groups = [("people", panel.people)] if len(panel.people) >= 2 else []
    everyone = panel.people + panel.judges
    if panel.judges and len(everyone) >= 2:
        groups.append(("people and judges" if panel.people else "judges", everyone))
    return groups or [("all annotators", list(panel.ratings.annotators))]


def _lists(panel: Panel) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the pairs to report, grouped under headings.

    Pairs of people come first, because a judge cannot be expected to agree better with people than they agree
    with each other.
    """
    vote = [panel.majority.name] if panel.majority is not None else []
    fixed = vote + panel.known
    lists: list[tuple[str, list[tuple[str, str]]]] = []
    lists.append(("people with each other", list(combinations(panel.people, 2))))
    for judge in panel.judges:
        lists.append((f"{judge} with people", list(product([judge], panel.people))))
        lists.append((f"{judge} with {' and '.join(fixed)}", list(product([judge], fixed))))
    for other in panel.known:
        lists.append((f"people with {other}", list(product(panel.people, [other]))))
        lists.append((f"majority of the people with {other}", list(product(vote, [other]))))
    lists.append(("judges with each other", list(combinations(panel.judges, 2))))
    lists.append(("references with each other", list(combinations(panel.known, 2))))
    return [(title, pairs) for title, pairs in lists if pairs]


def _add_pairs(
    result: Agreement,
    title: str,
    pairs: Sequence[tuple[str, str]],
    keys: Sequence[str],
    options: IntervalOptions,
) -> None:
    panel = result.panel
    if not pairs:
        return
    if len(pairs) <= MOST_PAIRS:
        every = [m for pair in pairs for m in panel.measure(pair, keys, **options)]
        result.pairs.append(Block(title, list(dict.fromkeys(n for pair in pairs for n in pair)), every))
    # `compute_pairs` counts labels in a matrix, which scores with many values would make too large.
    elif panel.are_scores:
        result.notes.append(f"{title}: {len(pairs)} pairs of scores are too many to list")
    else:
        first, second = zip(*pairs, strict=True)
        table = compute_pairs(
            panel.of_draw, keys, level=panel.level, first=sorted(set(first)), second=sorted(set(second))
        )
        result.pairs.append(Many(title, table))
