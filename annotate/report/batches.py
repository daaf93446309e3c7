"""What a study's annotation batches say of how its people's labels came about. The one place where they enter.

The tables are optional (migration set `annotate`): a study of imported labels has none.
"""

from __future__ import annotations

import json
from collections import Counter

from annotate.members import batch_rows
from annotate.report.model import Block, Facts, Paragraph
from judge.prompts.load import Task
from judge.store import Store
from judge.store.export import stored_task
from judge.types import Json

NONE = (
    "The study holds no annotation batch of this field: labels of people and gold labels came with the imported data. "
    "How these units were drawn, and whether people could see a judge's labels, is not recorded here."
)
OPTIONS = {
    "by": "strata by",
    "where": "condition",
    "by_question": "whole questions",
    "overlap": "people a unit",
    "frame": "units it was drawn from",
    "repeats": "share repeated unseen",
    "pass_mark": "pass mark of training",
    "assisted": "assisted, not blind: people see predictions in",
}


def batch_facts(store: Store, name: str | None, field: str) -> list[Block]:
    """Sampling, blindness, overlap and checks of one batch, or of all that ask for the field."""
    blocks: list[Block] = []
    query = "SELECT batch, task, purpose, seed, options, reveal_run, created, closed FROM batches ORDER BY created"
    for batch, task_name, purpose, seed, text, reveal, created, closed in batch_rows(store, query):
        task = stored_task(store, task_name)
        if name not in (None, batch) or field not in task.fields:
            continue
        options = json.loads(text)
        rows = [("task", task_name), ("made", created), ("closed", closed or "still open")]
        rows.append(("sampling", _sampling(purpose, seed, options)))
        rows += [(told, str(options[key])) for key, told in OPTIONS.items() if options.get(key)]
        rows += _counts(store, batch)
        rows.append(("blind", _blind(task, reveal)))
        rows += _imports(store, batch)
        blocks.append(Facts(f"batch_{batch}", f"Batch {batch}", rows))
        blocks += [Paragraph(told, "note") for told in _cautions(store, batch, purpose, task)]
    return blocks or [Paragraph(NONE, "note")]


def weights(store: Store, name: str | None, field: str) -> dict[str, float]:
    """Unit -> for how many units of the study it stands, for the samples of one batch, or of all that ask for the field.

    Empty when nobody drew by chance, or when every unit stands for as many. Each of several batches speaks for
    the whole study, with as much say as it has units.
    """
    found: dict[str, float] = {}
    batches = batch_rows(store, "SELECT batch, task, purpose FROM batches ORDER BY created")
    for batch, task_name, purpose in batches:
        if name not in (None, batch) or field not in stored_task(store, task_name).fields:
            continue
        if purpose == "queue":
            return {}
        query = "SELECT unit_id, weight FROM batch_units WHERE batch = ? AND role = 'sample' AND weight IS NOT NULL"
        drawn = dict(store.conn.execute(query, [batch]).fetchall())
        total = sum(drawn.values())
        found |= {unit: weight * len(drawn) / total for unit, weight in drawn.items()}
    even = not found or max(found.values()) - min(found.values()) <= 1e-9
    return {} if even else found


def _sampling(purpose: str, seed: int, options: dict[str, Json]) -> str:
    if purpose == "queue":
        return "the units the judge is least sure of: no random sample"
    how = "a random sample"
    if options.get("by"):
        how += (
            ", in proportion to the strata"
            if options.get("proportional")
            else ", equally many of each stratum"
        )
    return f"{how} (seed {seed})"


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


def _blind(task: Task, reveal: str | None) -> str:
    if task.people_only:
        return f"no: people are shown gold ({', '.join(task.spec.shows_gold)}) while they label"
    start = (
        "yes: while labelling a unit here nobody can read the judge's labels, gold or another person's labels"
    )
    if reveal is None:
        return f"{start}; nothing is shown afterwards"
    return f"{start}; after the label was committed, that of run {reveal} was shown, and changes are a layer of their own"


def _imports(store: Store, batch: str) -> list[tuple[str, str]]:
    """Labels of the batch that were made elsewhere, by format: for them blindness is what was declared."""
    if not store.conn.execute("SELECT 1 FROM sqlite_master WHERE name = 'label_imports'").fetchone():
        return []
    found: dict[str, Counter[str]] = {}
    query = "SELECT format, counts FROM label_imports WHERE batch = ? ORDER BY imported_at"
    for form, text in store.conn.execute(query, [batch]):
        found.setdefault(form, Counter()).update(json.loads(text)["blindness"])
    told = {
        "blind": "declared blind",
        "assisted": "given with suggestions in sight",
        "undeclared": "not declared",
    }
    return [
        (f"made elsewhere, {form}", ", ".join(f"{n:,} labels {told[kind]}" for kind, n in kinds.items() if n))
        for form, kinds in found.items()
        if kinds.total()
    ]


def _cautions(store: Store, batch: str, purpose: str, task: Task) -> list[str]:
    """What the corrected numbers must not be taken for."""
    if purpose == "queue":
        return [
            f"Batch {batch} is no random sample of the units judged: corrected numbers do not hold for them."
        ]
    low, high = store.conn.execute(
        "SELECT min(weight), max(weight) FROM batch_units WHERE batch = ? AND role = 'sample'", [batch]
    ).fetchone()
    if low is None or high <= low * (1 + 1e-9):
        return []
    return [
        f"Batch {batch} drew units with unequal probabilities (one stands for {low:.1f} to {high:.1f} units of {task.name}). "
        "Agreement and the shares of labels are those of the sample, not weighted; the corrected numbers are weighted where it says so."
    ]
