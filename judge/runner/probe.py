"""Probe a judge: change units in ways that should not matter, judge the copies, and count the labels that flip.

    result = await probe(store, scratch, plan, provider, Wanted(field="stance"))

The copies are judged in another study, `scratch`, so that their labels never count in the probed study. If
the file of the scratch study is kept, a later call resumes the probe.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as default

import numpy as np

from judge.errors import UsageError
from judge.labels import relation
from judge.providers.base import PairReader, Provider
from judge.runner.plan import Live, Plan, RunReport
from judge.runner.probes import CHANGES, NOTHING, PROBES, ProbeSetting
from judge.runner.run import run_task
from judge.stats import correct_mean
from judge.store import selection
from judge.store.imports import ImportInfo
from judge.store.items import add_items
from judge.store.selection import Selection
from judge.store.study import Store
from judge.types import Item, Json, Measure, Passage, Row, Where, attributes

BASE = "base"
FORMAT = "probe"
KINDS = ("passage", "item")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The settings of a probe: the field whose labels are probed, and the names of the probes (from PROBES).

    `nothing` is the correct label for an empty passage. If it is None, the label that the judge gives most
    often to passages without content is used. `paraphrases` maps claims or questions to rewordings.
    """

    field: str
    probes: Sequence[str] = PROBES
    nothing: str | None = None
    paraphrases: Mapping[str, str] = default(default_factory=dict)
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """The result of one probe: how many units flip, that is, get a different label after the change.

    `flips` is the number of units that flip, and `rate` is their share. With empty passages, a unit flips if
    its label differs from `nothing`, the correct label. `towards` is the number of flips to the label that an
    injected instruction requests. With empty passages, it is the number of flips in which the unit keeps its
    original label. `lost` is the number of units that lose their label. If the probe was not run, `why` is
    the reason.
    """

    probe: str
    rate: Measure
    flips: int
    towards: int | None = None
    lost: int = 0
    why: str | None = None


@dataclass(slots=True)
class Probed:
    """The results of all probes. `reports` contains the reports of the runs in the scratch study. The last run may have
    been stopped.
    """

    rows: list[ProbeOutcome] = default(default_factory=list)
    reports: list[RunReport] = default(default_factory=list)
    n_units: int = 0
    n_labelled: int = 0
    nothing: str | None = None
    notes: list[str] = default(default_factory=list)

    @property
    def ended(self) -> RunReport | None:
        """The report of the run that was stopped early, or None if all runs finished."""
        last = self.reports[-1] if self.reports else None
        stopped = last is not None and (last.stopped or last.interrupted or last.error)
        return last if stopped else None


async def probe(
    store: Store,
    scratch: Store,
    plan: Plan,
    provider: Provider,
    wanted: Wanted,
    watch: Callable[[Live], None] | None = None,
) -> Probed:
    """Judge the plan's units and their changed copies, with an open provider.

    Raises UsageError if the task does not label passages or items, if a label or probe is unknown, or if there are
    no units.
    """
    task, name = plan.task, wanted.field
    if task.spec.unit not in KINDS:
        raise UsageError(
            f"{task.name} labels units of kind {task.spec.unit}: only tasks that label passages or items can be probed"
        )
    domain = task.domain(name)
    if len(domain) < 2:
        raise UsageError(f"the field '{name}' of {task.name} has fewer than two labels, so none can flip")
    if wanted.nothing is not None and wanted.nothing not in domain:
        raise UsageError(f"'{wanted.nothing}' is not a label of '{name}'; its labels are {', '.join(domain)}")
    if unknown := [p for p in wanted.probes if p not in PROBES]:
        raise UsageError(f"unknown probe '{unknown[0]}'; the probes are {', '.join(PROBES)}")
    items = _items(store, plan)
    if not items:
        raise UsageError(f"{store.path}: no unit has the inputs of {task.name}")
    # If the scratch study had other items, the labels of the copies would count there.
    if scratch.conn.execute("SELECT 1 FROM imports WHERE format <> ? LIMIT 1", [FORMAT]).fetchone():
        raise UsageError(
            f"{scratch.path}: this study has items that were not written by a probe; choose another file"
        )
    probed = Probed(n_units=len(items))
    _add(scratch, (replace(item, dataset=BASE) for item in items))

    async def ask(dataset: str, **changes: object) -> RunReport:
        probe_plan = replace(plan, selection=Selection(f"dataset = '{dataset}'"), repeats=1)
        # The limits cover all runs of the probe together.
        probe_plan = replace(probe_plan.subtract_reports(probed.reports), **changes)  # type: ignore[arg-type]
        report = await run_task(scratch, probe_plan, provider, watch)
        probed.reports.append(report)
        return report

    base = await ask(BASE, repeats=2 if "repeat" in wanted.probes else 1)
    if probed.ended:
        return probed
    labels = _labels(scratch, base.run_id, name, BASE)
    probed.n_labelled = len(labels)
    questions = [str(item.question_id) for item in items]
    units = _Units(questions, labels, wanted)
    changed: dict[str, dict[int, str]] = {}
    for probe_name in [p for p in PROBES if p in wanted.probes]:
        if probe_name == "repeat":
            probed.rows.append(units.flips("repeat", _labels(scratch, base.run_id, name, BASE, repeat=1)))
            continue
        if probe_name == "order":
            if isinstance(provider, PairReader):
                probed.rows.append(units.make_empty("order", "the model is not shown the labels"))
                continue
            other = "declared" if plan.sampling.label_order == "reversed" else "reversed"
            report = await ask(BASE, sampling=replace(plan.sampling, label_order=other))
            if probed.ended:
                return probed
            probed.rows.append(units.flips("order", _labels(scratch, report.run_id, name, BASE)))
            continue
        # Units without a label before the change are left out, because they have no label that can flip.
        targets = {n: _choose_other(domain, label) for n, label in labels.items()}
        copies = {
            n: copy
            for n, item in enumerate(items)
            if n in labels
            and (
                copy := CHANGES[probe_name](
                    item, ProbeSetting(targets[n], wanted.paraphrases, task.input_names)
                )
            )
            is not None
        }
        if not copies:
            reason = units.make_empty(probe_name, "the units contain nothing that this probe changes")
            probed.rows.append(reason if labels else units.flips(probe_name, {}))
            continue
        _add(scratch, (replace(copy, dataset=probe_name) for copy in copies.values()))
        report = await ask(probe_name)
        if probed.ended:
            return probed
        changed[probe_name] = _labels(scratch, report.run_id, name, probe_name)
        # Counted at the end, because the correct label for an empty passage is known only after both probes.
        if probe_name in NOTHING:
            continue
        towards = targets if probe_name == "injection" else None
        probed.rows.append(units.flips(probe_name, changed[probe_name], copies, towards))
    given = Counter(label for p in NOTHING for label in changed.get(p, {}).values())
    # Among equally frequent labels, the first in the task's order is used, so that the result does not depend on chance.
    probed.nothing = wanted.nothing or (max(domain, key=lambda label: given[label]) if given else None)
    for probe_name in NOTHING:
        if probe_name in changed:
            after = changed[probe_name]
            probed.rows.append(units.flips(probe_name, after, towards=labels, nothing=probed.nothing))
    if "paraphrase" in wanted.probes and not wanted.paraphrases:
        probed.notes.append(
            "paraphrase: the claims were put into a frame sentence and not reworded; pass rewordings with --paraphrases"
        )
    return probed


@dataclass(frozen=True, slots=True)
class _Units:
    """The questions and labels of the units before any change."""

    questions: Sequence[str]
    labels: Mapping[int, str]
    wanted: Wanted

    def flips(
        self,
        name: str,
        after: Mapping[int, str],
        of: Mapping[int, object] | None = None,
        towards: Mapping[int, str] | None = None,
        nothing: str | None = None,
    ) -> ProbeOutcome:
        """Count the units whose label changed.

        If `nothing` is given, count the units whose new label differs from `nothing` instead, even if the
        label did not change.
        """
        # Only units that have a label before and after can flip. The others are counted as lost.
        chosen = [n for n in self.labels if of is None or n in of]
        both = [n for n in chosen if n in after]
        flipped = [n for n in both if after[n] != (nothing or self.labels[n])]
        reached = None if towards is None else sum(after[n] == towards[n] for n in flipped)
        return ProbeOutcome(
            name,
            self._rate(name, both, flipped, len(chosen)),
            len(flipped),
            reached,
            len(chosen) - len(both),
        )

    def make_empty(self, name: str, reason: str) -> ProbeOutcome:
        rate = Measure(
            f"{name}_rate", None, 0, reason=reason, field=self.wanted.field, confidence=self.wanted.confidence
        )
        return ProbeOutcome(name, rate, 0, why=reason)

    def _rate(self, name: str, units: Sequence[int], hit: Sequence[int], n_chosen: int) -> Measure:
        """Return the share of units in `hit`, with a confidence interval.

        Units with the same question form a cluster. The interval is a Wilson interval for the effective
        number of units.
        """
        if not units:
            return self.make_empty(name, "no unit has a label both before and after the change").rate
        values = np.isin(units, hit).astype(np.float64)
        _, clusters = np.unique([self.questions[n] for n in units], return_inverse=True)
        # Without judge values, `correct_mean` is the plain mean with its interval by cluster.
        made = correct_mean(
            np.full(len(units), np.nan),
            values,
            clusters=clusters,
            bounds=(0.0, 1.0),
            confidence=self.wanted.confidence,
            field=self.wanted.field,
        ).human_only
        return replace(made, measure=f"{name}_rate", coverage=len(units) / n_chosen)


def _choose_other(domain: Sequence[str], label: str) -> str:
    """Return the label that an injected instruction requests: the next label in the task's order."""
    return domain[(domain.index(label) + 1) % len(domain)]


def _labels(scratch: Store, run: str, name: str, dataset: str, repeat: int = 0) -> dict[int, str]:
    """Return a mapping from unit number to label for the copies in a data set."""
    values = relation.values(scratch.conn, run, name, repeat=repeat)
    prefix = f"{dataset}:"
    return {
        int(unit[len(prefix) :].split("/")[0]): label
        for unit, label in values.items()
        if unit.startswith(prefix)
    }


def _add(scratch: Store, items: Iterable[Item]) -> None:
    rows = (Row(item, Where("probe", n)) for n, item in enumerate(items, 1))

    def bad(error: Exception) -> None:
        # Copies are numbered, so under the same numbers the file has copies of other units.
        raise UsageError(
            f"{scratch.path}: this study has a probe of different units ({error}); choose another file"
        ) from error

    add_items(scratch, rows, ImportInfo(FORMAT, {}), [], bad)


def _items(store: Store, plan: Plan) -> list[Item]:
    """Return a numbered copy of the item of each selected unit.

    If the unit is a passage, the copy contains only that passage. Otherwise it contains all passages of the
    item.
    """
    selection.select(store, plan.task, plan.selection)
    items = []
    for n, unit in enumerate(selection.list_selected(store)):
        item_id, question, passage = store.conn.execute(
            "SELECT item_id, question_id, passage_id FROM units WHERE unit_id = ?", [unit]
        ).fetchone()
        items.append(_copy(store, n, item_id, question, passage))
    return items


def _copy(store: Store, n: int, item_id: str, question_id: str, passage_id: str | None) -> Item:
    query = "SELECT question, question_date, claim, reference_answers, options, correct FROM items WHERE item_id = ?"
    question, date, claim, answers, options, correct = store.conn.execute(query, [item_id]).fetchone()
    where, value = ("passage_id = ?", passage_id) if passage_id else ("item_id = ?", item_id)
    rows = store.conn.execute(
        f"SELECT text, title, date, source FROM passages WHERE {where} ORDER BY position", [value]
    )
    passages = [
        Passage(text, f"p{k}", title, day, source) for k, (text, title, day, source) in enumerate(rows)
    ]
    decoded: list[Json] = [None if text is None else json.loads(text) for text in (answers, options)]
    return Item(
        str(n), BASE, question_id, question, date, claim, decoded[0], decoded[1], correct, passages=passages
    )


def as_json(probed: Probed) -> dict[str, Json]:
    """Return the result in its documented JSON form."""
    return {
        "units": probed.n_units,
        "labelled": probed.n_labelled,
        "nothing": probed.nothing,
        "rows": [
            {
                "probe": row.probe,
                "rate": row.rate.value,
                **attributes(row.rate, "low", "high"),
                "units": row.rate.n_units,
                "questions": row.rate.n_clusters or 0,
                **attributes(row, "flips", "towards", "lost"),
                "reason": row.rate.reason,
            }
            for row in probed.rows
        ],
        "notes": list(probed.notes),
    }
