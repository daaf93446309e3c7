"""Compare several runs of a task with a reference on the same units, and report what the runs cost.

    found = compare(store, panel, "decided")       # every judge of the panel
    found = compare(store, panel, part="test")     # opens the sealed test: a look is logged first

All results are computed on the units that the reference and every run labelled. A note gives the number of units left out.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judge.commands import command
from judge.errors import UsageError
from judge.labels.panel import Panel
from judge.labels.reference import Reference, resolve
from judge.labels.split import Split
from judge.notes import Note, code_of
from judge.stats import MISSING, measures
from judge.stats.bootstrap import FEW_CLUSTERS
from judge.stats.paired import Duel, contest
from judge.stats.ratings import BoolArray, Ratings
from judge.store.derived import sources
from judge.store.splits import Look
from judge.store.study import Store
from judge.types import Json, Measure, attributes

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class RunSpent:
    """The number of units that a run judged, and its average cost per unit.

    The cost consists of US dollars, seconds of model calls, and tokens. Each is None if it is unknown. The
    cost of a derived run is the sum of the costs of its parents.
    """

    n_units: int
    cost: float | None
    seconds: float | None
    tokens: float | None


@dataclass(frozen=True, slots=True)
class Contender:
    """One of the compared runs, with its results on the shared units.

    `kappa` is the run's agreement with the reference (as in `annotate agreement`), and `agreement` is the
    share of units with equal labels. `n_labels` is the number of different labels that the run gave.
    `n_asked` is the number of units with a reference label that the run was asked about. The run labelled
    `n_labelled` of these units.
    """

    name: str
    run_id: str
    model: str
    kappa: Measure
    agreement: float
    n_labels: int
    n_asked: int
    n_labelled: int
    spent: RunSpent
    front: frozenset[str] = frozenset()
    """The axes (`cost`, `seconds`) for which the run is on the Pareto front: no other run has at least the same
    kappa for less.
    """


@dataclass(frozen=True, eq=False)
class Contest:
    """The result of a comparison of runs. A difference is significant if its Holm-adjusted p value is at most
    `level`.
    """

    panel: Panel
    reference: Reference
    coefficient: str
    part: str | None
    look: Look | None
    level: float
    table: Ratings
    """The labels on the shared units. The first column is the reference, and the others are the runs."""
    contenders: Sequence[Contender]
    duels: Sequence[Duel]
    n_reference: int
    n_clusters: int
    notes: Sequence[str]

    @property
    def n_shared(self) -> int:
        """The number of shared units, on which all results are computed."""
        return self.table.n_units

    def is_shown(self, duel: Duel) -> bool:
        """Return whether the difference is significant, i.e. whether its adjusted p value is at most the level."""
        return duel.kappa.adjusted is not None and duel.kappa.adjusted <= self.level

    def units(self) -> Iterator[dict[str, Json]]:
        """Yield each shared unit with its labels from the reference and from each run."""
        names = ["reference", *(c.run_id for c in self.contenders)]
        for unit, row in zip(self.table.units, self.table.codes.tolist(), strict=True):
            yield {
                "unit_id": unit,
                **{n: self.table.domain[code] for n, code in zip(names, row, strict=True)},
            }

    def examples(self, duel: Duel) -> list[str]:
        """Return up to three units that the first run of a pair labelled correctly and the second run labelled
        incorrectly.
        """
        truth, codes = self.table.codes[:, 0], self.table.codes[:, 1:]
        places = np.flatnonzero((codes[:, duel.first] == truth) & (codes[:, duel.second] != truth))
        return [self.table.units[at] for at in places[:3].tolist()]


def compare(
    store: Store,
    panel: Panel,
    wanted: str | None = None,
    *,
    split: Split | None = None,
    part: str | None = None,
    confidence: float = 0.95,
    purpose: str = "compare",
    named: bool = True,
) -> Contest:
    """Compare the judges of a panel on the units that all of them and the reference labelled.

    If `named` is False, the user did not name these runs: runs that labelled no unit with a reference label
    are then left out, and a note says so. `part` is one of PARTS; for a split task the default is `open`.

    The parts `test` and `all` contain the sealed test. For them, a look at the test (for `purpose`) is logged
    before anything is computed, and the tests use the level of that look. Comparing exactly the same runs and
    labels again uses the logged look, not a new one.

    Raises UsageError if there are fewer than two runs, if the field is numeric, if there is no reference, if
    a part is requested without a split, or if the runs share no unit.
    """
    if len(panel.judges) < 2:
        raise UsageError(
            f"a comparison needs at least two runs, but '{panel.field}' has {len(panel.judges)}: name runs with --run (to "
            f"list them: {command('judge runs list')})"
        )
    if panel.numeric:
        raise UsageError(
            f"'{panel.field}' is numeric and has no labels; to compare numbers: {command('judge score compare RUN RUN')}"
        )
    reference = resolve(panel, wanted)
    if reference is None:
        raise UsageError(
            f"'{panel.field}' has neither gold nor human labels, so there is nothing to compare the runs with"
        )
    if reference.name in panel.judges:
        raise UsageError(f"--reference {wanted}: this is one of the compared runs; choose another reference")
    if part is not None and split is None:
        raise UsageError(
            f"--part {part}: {store.path}: the task is not split; to split it: {command('judge split', panel.task.task_id if panel.task else 'TASK')}"
        )
    chosen = None if split is None else part or "open"
    inside = _inside(panel, split, chosen)
    left_out: list[str] = []
    names = list(panel.judges)
    if not named:
        some = panel.with_labels(names, reference.name, inside)
        # With fewer than two runs left, the message below says which of them lack labels.
        names = some if len(some) > 1 else names
        left_out = [name for name in panel.judges if name not in names]
    labelled = panel.table.select([reference.name, *names]).codes != MISSING
    # Kappa depends on the units that it is computed on: a run that skipped the hard units would look better.
    shared = labelled.all(axis=1) & inside
    ids = {name: run for run, name in panel.shown.items()}
    n_reference = int((labelled[:, 0] & inside).sum())
    if not shared.any():
        n_by_run = ", ".join(
            f"{n}: {int((labelled[:, 0] & labelled[:, 1 + i] & inside).sum())}" for i, n in enumerate(names)
        )
        raise UsageError(
            f"no unit has labels from every run and from {reference.word}; number of units with labels from {reference.word} and from each run: {n_by_run}"
        )
    table = panel.table.select([reference.name, *names]).subset(shared).with_ids()
    table = panel.add_weights(table, reference.name)
    look = None
    # The look is logged before anything is computed, so that a crash afterwards does not give a free second look.
    if split is not None and chosen in ("test", "all"):
        look = split.open(purpose, [ids[n] for n in names], reference.word, _question(panel, table, ids))
    # The interval uses the level of the look; at a different level it could contradict the test.
    sure = look.confidence if look else confidence
    duels = contest(table, reference.name, panel.coefficient, level=panel.level, confidence=sure)
    was_asked = np.column_stack([panel.asked_units[name] for name in names])
    contenders = []
    for i, name in enumerate(names):
        has_reference = labelled[:, 0] & inside
        pair_table = table.select([name, reference.name])
        kappa, agreement = measures(
            pair_table, [panel.coefficient, "percent"], level=panel.level, field=panel.field, confidence=sure
        )
        model = str(store.conn.execute("SELECT model FROM runs WHERE run_id = ?", [ids[name]]).fetchone()[0])
        contenders.append(
            Contender(
                name,
                ids[name],
                model,
                kappa,
                agreement.value or 0.0,
                len(np.unique(pair_table.column(name))),
                int((has_reference & was_asked[:, i]).sum()),
                int((has_reference & labelled[:, 1 + i]).sum()),
                compute_cost(store, ids[name]),
            )
        )
    n_clusters = len(np.unique(table.clusters))
    return Contest(
        panel=panel,
        reference=reference,
        coefficient=panel.coefficient,
        part=chosen,
        look=look,
        level=look.level if look else ALPHA,
        table=table,
        contenders=_fronts(contenders),
        duels=duels,
        n_reference=n_reference,
        n_clusters=n_clusters,
        notes=[
            *(
                f"{name}: left out, because it labelled no unit that has a reference label"
                for name in left_out
            ),
            *_notes(
                panel, contenders, labelled[:, 1:], labelled[:, 0] & inside, table, n_clusters, split, chosen
            ),
        ],
    )


def _question(panel: Panel, table: Ratings, ids: Mapping[str, str]) -> Iterator[object]:
    """Yield the data of a comparison (the units and all their labels) in an order that does not depend on the
    order of the runs.
    """
    # The same comparison with its runs in a different order is the same look, so it must not spend error rate again.
    order = [0, *(1 + np.argsort([ids[name] for name in table.annotators[1:]]))]
    yield from (
        panel.field,
        panel.coefficient,
        list(table.domain),
        list(table.units),
        table.codes[:, order].astype(np.int64),
    )


def _inside(panel: Panel, split: Split | None, part: str | None) -> BoolArray:
    inside = np.ones(panel.ratings.n_units, dtype=np.bool_) if panel.inside is None else panel.inside
    if split is None or part == "all":
        return inside
    return inside & split.mask(panel, *(("learn", "tune") if part == "open" else (str(part),)))


def _notes(
    panel: Panel,
    contenders: Sequence[Contender],
    labelled: BoolArray,
    has_reference: BoolArray,
    table: Ratings,
    n_clusters: int,
    split: Split | None,
    part: str | None,
) -> list[str]:
    """Return notes on the shared units, on runs that gave the same label to every unit, and on small samples."""
    notes = [*panel.notes, *panel.remarks]
    if split is not None:
        # The note on looks, which is added below, replaces these notes.
        notes = [text for text in notes if code_of(text) not in ("sealed", "closed")]
        if part in ("open", "learn", "tune"):
            notes.append(f"the sealed test is left out (--part test opens it); {split.look_note}")
        else:
            notes.append(split.look_note)
    n = int(has_reference.sum())
    if table.n_units < n:
        alone = Counter(
            ", ".join(c.name for c, has in zip(contenders, row, strict=True) if not has)
            for row in labelled[has_reference].tolist()
            if not all(row)
        )
        notes.append(
            f"{table.n_units:,} of {n:,} units with a reference label have labels from every run; the other units lack labels from:"
        )
        notes += [f"  {who}: {count:,} units" for who, count in alone.most_common(10)]
    for c in contenders:
        if c.n_labels == 1:
            notes.append(
                f"{c.name} gave the same label to every unit, so its kappa is undefined; in differences it counts as 0 (no skill)"
            )
    if n_clusters < FEW_CLUSTERS:
        notes.append(Note("few_questions", n=n_clusters, least=FEW_CLUSTERS))
    if panel.weights:
        notes.append(
            "the units have different design weights (stratified sample), but the weights are not used here"
        )
    return notes


def compute_cost(store: Store, run: str) -> RunSpent:
    """Return a run's cost per unit, including all attempts. The cost of a derived run is the sum of its
    parents' costs.
    """
    query = (
        "SELECT count(*), sum(n), sum(cost), sum(n_cost), sum(latency), sum(n_latency), sum(tokens), sum(n_tokens) FROM ("
        "SELECT count(*) AS n, sum(cost) AS cost, count(cost) AS n_cost, sum(latency) AS latency, count(latency) AS n_latency, "
        "sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) AS tokens, count(input_tokens) AS n_tokens FROM judgements "
        # A reused answer needed no call: its cost and time belong to the run that made the call.
        "WHERE run_id = ? AND reused = 0 GROUP BY unit_id)"
    )
    units, cost, seconds, tokens = 0, 0.0, 0.0, 0.0
    known = [True, True, True]
    for source in sources(store.conn, run):
        n, rows, dollars, n_dollars, time, n_time, used, n_used = store.conn.execute(
            query, [source]
        ).fetchone()
        # A parent without calls, such as imported labels, has no known cost.
        if not n:
            return RunSpent(units, None, None, None)
        # Parents label the same units, so their numbers of units are not added.
        units = max(units, n)
        # A sum over only some judgements would look like a lower cost.
        known = [a and b == rows for a, b in zip(known, (n_dollars, n_time, n_used), strict=True)]
        cost, seconds, tokens = (
            total + (value or 0.0) / n
            for total, value in zip((cost, seconds, tokens), (dollars, time, used), strict=True)
        )
    shown = [value if sure else None for value, sure in zip((cost, seconds, tokens), known, strict=True)]
    return RunSpent(units, *shown)


AXES: Mapping[str, Callable[[Contender], float | None]] = {
    "cost": lambda c: c.spent.cost,
    "seconds": lambda c: c.spent.seconds,
}


def _fronts(contenders: Sequence[Contender]) -> list[Contender]:
    """Return the contenders with `front` set to the axes on which they are Pareto-optimal.

    The axes are cost and time. A contender is Pareto-optimal on an axis if no other contender is
    better in kappa without being worse on the axis, or better on the axis without being worse in kappa.
    """
    fronts: list[set[str]] = [set() for _ in contenders]
    for axis, value in AXES.items():
        places = [(value(c), c.kappa.value) for c in contenders]
        for i, (price, kappa) in enumerate(places):
            if price is None or kappa is None:
                continue
            # Runs with equal kappa and cost do not beat each other, so all of them are on the front.
            beaten = any(
                p is not None and k is not None and p <= price and k >= kappa and (p < price or k > kappa)
                for j, (p, k) in enumerate(places)
                if j != i
            )
            if not beaten:
                fronts[i].add(axis)
    return [replace(c, front=frozenset(axes)) for c, axes in zip(contenders, fronts, strict=True)]


def as_json(comparison: Contest) -> dict[str, Json]:
    """Return the documented JSON representation."""
    names = [c.run_id for c in comparison.contenders]
    domain = comparison.table.domain
    return {
        "field": comparison.panel.field,
        "reference": comparison.reference.word,
        "measure": comparison.coefficient,
        "part": comparison.part,
        "look": comparison.look and comparison.look.look,
        "level": comparison.level,
        "units": comparison.n_shared,
        "questions": comparison.n_clusters,
        "units_with_reference": comparison.n_reference,
        "runs": [
            {
                "run": c.run_id,
                "model": c.model,
                "kappa": c.kappa.value,
                **attributes(c.kappa, "low", "high", "reason"),
                "agreement": c.agreement,
                "asked": c.n_asked,
                "labelled": c.n_labelled,
                "cost_usd_per_unit": c.spent.cost,
                "seconds_per_unit": c.spent.seconds,
                "tokens_per_unit": c.spent.tokens,
                "front": sorted(c.front),
            }
            for c in comparison.contenders
        ],
        "pairs": [
            {
                "first": names[d.first],
                "second": names[d.second],
                "difference": d.kappa.difference.value,
                "low": d.kappa.difference.low,
                "high": d.kappa.difference.high,
                "p": d.kappa.p_value,
                "p_holm": d.kappa.adjusted,
                "shown": comparison.is_shown(d),
                "reason": d.kappa.difference.reason,
                "agreement_difference": d.agreement.difference.value,
                "agreement_low": d.agreement.difference.low,
                "agreement_high": d.agreement.difference.high,
                "errors": [
                    {
                        "label": label,
                        "both_right": d.both[k],
                        "only_first_right": d.only_first[k],
                        "only_second_right": d.only_second[k],
                        "both_wrong": d.neither[k],
                    }
                    for k, label in enumerate(domain)
                ],
            }
            for d in comparison.duels
        ],
        "notes": list(comparison.notes),
    }
