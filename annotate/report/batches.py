"""The origin of human labels: a study's annotation batches, how they were drawn, and whether labels are blind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import combinations

from annotate.batch_plan import BatchPlan, Policy
from annotate.drawing.eligible import list_left_out
from judge.document.blocks import Block, Facts, Paragraph, Table, heads
from judge.document.cells import format_count
from judge.prompts.load import Task
from judge.store import Store
from judge.store.export import read_stored_task
from judge.store.study import dumps
from judge.types import Json

NONE = (
    "The study has no annotation batch for this field: its human labels and gold labels were imported with the data. "
    "The study does not record how these units were drawn, or whether people could see a judge's labels."
)
NAMED = 10
"""The number of units in several batches that a text names. JSON, CSV and pages list all of them."""
OPTIONS = {
    "by": "strata by",
    "where": "condition",
    "by_question": "whole questions",
    "overlap": "people per unit",
    "frame": "sampling frame",
    "repeats": "share of hidden repeats",
}


def batch_facts(store: Store, name: str | None, field: str) -> list[Block]:
    """Return facts about sampling, blindness, overlap and checks in each batch whose task contains the field.

    If `name` is given, only the batch with this name is described.
    """
    blocks: list[Block] = []
    purposes = dict(store.conn.execute("SELECT batch, purpose FROM batches").fetchall())
    frames: dict[str, BatchPlan] = {}
    query = "SELECT batch, task, purpose, seed, options, reveal_run, created, closed FROM batches ORDER BY created"
    for batch, task_name, purpose, seed, text, reveal, created, closed in store.conn.execute(query):
        task = read_stored_task(store, task_name)
        if field not in task.fields:
            continue
        plan = BatchPlan.from_json(text)
        frames[batch] = plan
        if name not in (None, batch):
            continue
        rows = [("task", task_name), ("made", created), ("closed", closed or "still open")]
        earlier = [(b, purposes[b]) for b in list_left_out(store, task, plan, batch)]
        rows.append(("sampling", _sampling(purpose, seed, plan, earlier)))
        rows += [(caption, str(value)) for key, caption in OPTIONS.items() if (value := getattr(plan, key))]
        if plan.by in ("label", "confidence") and plan.run:
            rows.append(("strata of run", plan.run))
        if plan.training:
            rows.append(("training pass mark", str(plan.pass_mark)))
        rows += _counts(store, batch)
        rows += _shared_units(store, batch, field)
        rows.append(("blind", _blind(store, batch, task, reveal, plan.assisted)))
        rows += _decisions(store, batch, plan.adjudication)
        rows += _changes(store, batch)
        rows += _imports(store, batch)
        blocks.append(Facts(f"batch_{batch}", f"Batch {batch}", rows))
        blocks += [Paragraph(caution, "note") for caution in _cautions(store, batch, purpose, task, earlier)]
    blocks += _list_shared_units(store, name, frames)
    blocks += [Paragraph(text, "note") for text in _drawn_apart(frames) if name is None]
    return blocks or [Paragraph(NONE, "note")]


def read_revealed(store: Store, name: str | None, field: str) -> set[str]:
    """Return the judge runs whose labels people saw after they had given their own labels for the field.

    Only the batch `name` is searched, or all batches if `name` is None.
    """
    rows = store.conn.execute(
        "SELECT batch, task, reveal_run FROM batches WHERE reveal_run IS NOT NULL"
    ).fetchall()
    return {
        str(run)
        for batch, task, run in rows
        if name in (None, batch) and field in read_stored_task(store, task).fields
    }


def _sampling(purpose: str, seed: int, plan: BatchPlan, earlier: list[tuple[str, str]]) -> str:
    """Describe how the units were drawn. `earlier` lists the earlier batches, whose units are excluded."""
    # A route and a queue select units by the judge's labels, so neither is a random sample.
    if plan.from_route:
        return f"units that the route {plan.from_route} left for people to label: not a random sample"
    if purpose == "queue":
        return "the units the judge is least sure of: not a random sample"
    how = "a random sample"
    if plan.purpose == "ppi":
        how += ", by the judge's uncertainty, with known probabilities"
    if earlier:
        earlier_batches = ", ".join(
            f"{batch} (the units the judge was least sure of)" if kind == "queue" else batch
            for batch, kind in earlier
        )
        how += f" of the units that were in no earlier batch ({earlier_batches})"
    if plan.by:
        how += ", the same number from each stratum" if plan.equal_parts else ", in proportion to the strata"
    return f"{how} (seed {seed})"


def _shared_units(store: Store, batch: str, field: str) -> list[tuple[str, str]]:
    """Return a row with the number of sampled units that are also in the sample of another batch with the field, as
    after a merge of two studies. The list is empty if there are none.
    """
    query = (
        "SELECT o.batch, b.task, count(*) FROM batch_units AS u JOIN batch_units AS o ON o.unit_id = u.unit_id "
        "AND o.batch <> u.batch JOIN batches AS b ON b.batch = o.batch WHERE u.batch = ? AND u.role = 'sample' "
        "AND o.role = 'sample' GROUP BY o.batch ORDER BY o.batch"
    )
    shared = [
        f"{format_count(n, 'unit')} in {other}"
        for other, task, n in store.conn.execute(query, [batch])
        if field in read_stored_task(store, task).fields
    ]
    return [("units that are also in other batches", "; ".join(shared))] if shared else []


def _list_shared_units(store: Store, name: str | None, batches: Mapping[str, BatchPlan]) -> list[Block]:
    """Return a table of the units that are in the samples of several of these batches, or of the batch `name` and others."""
    query = (
        "SELECT u.unit_id, json_group_array(b.batch) FROM batch_units AS b JOIN units AS u USING (unit_id) "
        "WHERE b.role = 'sample' AND b.batch IN (SELECT value FROM json_each(?1)) GROUP BY u.unit_id HAVING count(*) > 1 "
        "AND (?2 IS NULL OR max(b.batch = ?2)) ORDER BY u.rowid"
    )
    batches_of = {
        unit: json.loads(among) for unit, among in store.conn.execute(query, [dumps(list(batches)), name])
    }
    rows = [(unit, ", ".join(b for b in batches if b in among)) for unit, among in batches_of.items()]
    caption = "Units in several batches. The labels of each of them count once"
    return (
        [Table("shared_units", caption, heads("text", "unit", "batches"), rows, fold=NAMED)] if rows else []
    )


def _drawn_apart(plans: Mapping[str, BatchPlan]) -> list[str]:
    """Return a sentence for each two batches from one frame of which neither draw left out the other's units."""
    return [
        f"Batches {first} and {second} were drawn from the same units, but apart from each other, as on two machines: "
        "they are two samples and not one, a unit may be in both, and its labels count once."
        for first, second in combinations(plans, 2)
        if plans[first].frame_id is not None
        and plans[first].frame_id == plans[second].frame_id
        and None not in (plans[first].after, plans[second].after)
        and first not in (plans[second].after or ())
        and second not in (plans[first].after or ())
    ]


def _counts(store: Store, batch: str) -> list[tuple[str, str]]:
    roles = store.conn.execute(
        "SELECT role, count(*) FROM batch_units WHERE batch = ? GROUP BY role ORDER BY role", [batch]
    )
    rows = [(f"units, {role}", f"{n:,}") for role, n in roles]
    done = store.conn.execute(
        "SELECT annotator_id, sum(status = 'done'), sum(status = 'skipped'), count(*) FROM assignments "
        "WHERE batch = ? GROUP BY annotator_id ORDER BY annotator_id",
        [batch],
    )
    return rows + [
        (who, f"{n_done:,} of {n:,} done, {skipped:,} skipped") for who, n_done, skipped, n in done
    ]


def _blind(store: Store, batch: str, task: Task, reveal: str | None, assisted: Json) -> str:
    """Describe whether the labels in a batch are blind. For imported labels, only the declared blindness is known."""
    if task.people_only:
        return f"no: people are shown gold ({', '.join(task.spec.shows_gold)}) while they label"
    if assisted:
        return f"no: people see predictions in {assisted}"
    # The version of an import's sessions contains the import's name (`standing.make_session`).
    here, elsewhere = store.conn.execute(
        "SELECT coalesce(sum(version NOT LIKE '% import %'), 0), coalesce(sum(version LIKE '% import %'), 0) FROM sessions "
        "WHERE batch = ? AND annotator_id <> 'adjudicated'",
        [batch],
    ).fetchone()
    if elsewhere and not here:
        return "as declared for labels made elsewhere; no labels were made here"
    start = (
        "yes: while labelling a unit here, nobody can see the judge's labels, gold or another person's labels"
    )
    start += _elsewhere(store, batch)
    if elsewhere:
        start = f"labels made elsewhere: as declared; labels made here: {start}"
    if reveal is None:
        return f"{start}; nothing is shown afterwards"
    return (
        f"{start}; after a label was committed, the label of run {reveal} was shown, and changed labels are stored "
        "in addition to the first labels"
    )


def _elsewhere(store: Store, batch: str) -> str:
    """Return the end of a sentence that says what people saw of the units before they labelled them.

    The facts are from the table of exposures.
    """
    query = "SELECT exposure FROM batches WHERE batch = ?"
    if store.conn.execute(query, [batch]).fetchone()[0] == "unknown":
        return (
            "; it is not known what people had seen of these units elsewhere, because the batch was drawn before "
            "exposures were recorded"
        )
    n = store.conn.execute(
        "SELECT count(*) FROM events AS e JOIN sessions AS s USING (session_id) WHERE e.batch = ? AND e.kind = 'label' "
        "AND e.reason = 'assisted' AND s.version NOT LIKE '% import %'",
        [batch],
    ).fetchone()[0]
    if n:
        return f"; {n:,} answers count as assisted, because another batch had shown gold or the judge's label of the unit"
    other = store.conn.execute(
        "SELECT group_concat(batch, ', ') FROM (SELECT batch FROM batches WHERE exposure = 'unknown' ORDER BY created)"
    ).fetchone()[0]
    seen = "; no other batch, pack, push or import had shown gold or the judge's label of a unit before it was labelled"
    return f"{seen}, as far as is known: exposures were not yet recorded for {other}" if other else seen


def _changes(store: Store, batch: str) -> list[tuple[str, str]]:
    """Return the changes that leads made to the batch while it was open, and the annotators whom they stopped."""
    rows = []
    query = "SELECT annotator_id, why, at FROM stopped WHERE batch = ? ORDER BY at"
    for who, reason, at in store.conn.execute(query, [batch]):
        rows.append((f"stopped, {who}", f"{reason} ({at[:10]}); these labels are not used in any number"))
    query = "SELECT what, annotator_id, detail, note, at FROM batch_changes WHERE batch = ? ORDER BY seq"
    changes = []
    for change, who, text, note, at in store.conn.execute(query, [batch]):
        detail = json.loads(text)
        others = ", ".join(f"{p} ({n:,})" for p, n in detail.get("to", {}).items())
        words = [at[:10], change, who or "", f"{detail['units']:,} units" if "units" in detail else ""]
        words += [f"to {others}" if "to" in detail else ""]
        changes.append(" ".join(w for w in words if w) + (f" ({note})" if note else ""))
    return rows + ([("changed while open", "; ".join(changes))] if changes else [])


def _decisions(store: Store, batch: str, policy: Policy) -> list[tuple[str, str]]:
    """Return a list with the rule for adjudication and the number of decided units.

    The list is empty if no unit was queued for adjudication.
    """
    n, done = store.conn.execute(
        "SELECT count(*), coalesce(sum(status = 'done'), 0) FROM assignments WHERE batch = ? AND role = 'adjudication'",
        [batch],
    ).fetchone()
    if not n:
        return []
    who = store.conn.execute(
        "SELECT DISTINCT person FROM sessions WHERE batch = ? AND annotator_id = 'adjudicated' AND person <> 'policy' ORDER BY 1",
        [batch],
    )
    leads = ", ".join(str(row[0]) for row in who)
    return [
        (
            "adjudication",
            f"units on which two people differ in any answer go to a lead{f' ({leads})' if leads else ''}, who sees their labels "
            f"and notes but not who gave them, and decides: {done:,} of {n:,} decided"
            + _describe_policy(store, batch, policy),
        )
    ]


def _describe_policy(store: Store, batch: str, policy: Policy) -> str:
    """Return the end of a sentence that says how many units the batch's policy decided without a lead.

    It is empty if the batch has no policy and never had a policy that decided a unit.
    """
    # A lead can overrule the policy's decision, so all events for a unit must be the policy's.
    n = store.conn.execute(
        "SELECT count(*) FROM (SELECT e.position FROM events AS e JOIN sessions AS s USING (session_id) JOIN assignments AS a "
        "ON a.batch = e.batch AND a.annotator_id = e.annotator_id AND a.position = e.position WHERE e.batch = ? "
        "AND e.annotator_id = 'adjudicated' AND a.status = 'done' GROUP BY e.position HAVING min(s.person = 'policy'))",
        [batch],
    ).fetchone()[0]
    if not n and not policy:
        return ""
    return f"; {n:,} of these were decided by the batch's policy and not by a lead ({str(policy) or 'since removed'})"


def _imports(store: Store, batch: str) -> list[tuple[str, str]]:
    """Return one row per import format that says how many labels were imported into the batch.

    The labels are counted separately by the blindness that the import declared: blind, given with visible
    suggestions, or not declared.
    """
    counts_by_format: dict[str, Counter[str]] = {}
    query = "SELECT format, counts FROM label_imports WHERE batch = ? ORDER BY imported_at"
    for form, text in store.conn.execute(query, [batch]):
        counts_by_format.setdefault(form, Counter()).update(json.loads(text)["blindness"])
    described = {
        "blind": "declared blind",
        "assisted": "given with visible suggestions",
        "undeclared": "not declared",
    }
    return [
        (
            f"made elsewhere, {form}",
            ", ".join(f"{format_count(n, 'label')} {described[kind]}" for kind, n in kinds.items() if n),
        )
        for form, kinds in counts_by_format.items()
        if kinds.total()
    ]


def _cautions(
    store: Store, batch: str, purpose: str, task: Task, earlier: list[tuple[str, str]]
) -> list[str]:
    """Return warnings about ways in which the corrected numbers could be misread."""
    if purpose == "queue":
        return [
            f"Batch {batch} is not a random sample of the judged units, so corrected numbers do not hold for those units."
        ]
    if any(kind == "queue" for _, kind in earlier):
        return [
            f"Batch {batch} was drawn after the units that the judge was least sure of had been removed, so the units that "
            "it represents are easier than the judged units as a whole."
        ]
    low, high = store.conn.execute(
        "SELECT min(weight), max(weight) FROM batch_units WHERE batch = ? AND role = 'sample'", [batch]
    ).fetchone()
    # The weights in a draw with equal probabilities differ only by rounding.
    if low is None or high <= low * (1 + 1e-9):
        return []
    return [
        f"Batch {batch} drew units with unequal probabilities (one unit represents {low:.1f} to {high:.1f} units of "
        f"{task.name}). Estimates are weighted to represent all units; counts describe the sample."
    ]
