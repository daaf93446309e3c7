"""How a judge run agrees with the labels the data came with, field by field."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from judge.prompts.load import Task
from judge.stats import Ratings, measures
from judge.store.study import Store
from judge.types import GOLD, Json, Measure

JUDGE = "judge"
NAMES = ("percent", "cohen_kappa", "krippendorff_alpha")


@dataclass(slots=True)
class FieldResult:
    """One field of a run: label counts, and agreement with gold where there is gold.

    `why_none` says in words why there are no measures; `outside` counts gold labels that are not in
    the task's domain, which no measure can use.
    """

    field: str
    level: str
    labels: dict[str, int]
    n_gold: int = 0
    measures: list[Measure] = dataclasses.field(default_factory=list)
    why_none: str | None = None
    outside: dict[str, int] = dataclasses.field(default_factory=dict)

    def as_json(self) -> dict[str, Json]:
        """The documented shape."""
        return {
            "field": self.field,
            "level": self.level,
            "labels": self.labels,
            "n_gold": self.n_gold,
            "measures": [m.as_json() for m in self.measures],
            "reason": self.why_none,
            "gold_outside_domain": self.outside,
        }


def compare(store: Store, task: Task, run_id: str, names: Sequence[str] = NAMES) -> list[FieldResult]:
    """Every asked and derived field of a run against gold.

    The units are those with a judgement and a gold label. One without a label of the judge (not
    parsed, refused, failed) lowers the coverage; it is not dropped from the count. Intervals
    resample questions.
    """
    return [_compare_field(store, task, run_id, name, names) for name in task.fields]


def _compare_field(
    store: Store, task: Task, run_id: str, field_name: str, names: Sequence[str]
) -> FieldResult:
    domain, level = task.domain(field_name), task.level(field_name)
    counts = store.conn.execute(
        "SELECT value, count(*) FROM labels WHERE annotator_id = ? AND field = ? AND layer = 'first' "
        "AND repeat = 0 GROUP BY value",
        [run_id, field_name],
    )
    found = Counter({str(value): int(n) for value, n in counts})
    labels = {v: found.get(v, 0) for v in domain} if domain else dict(found)
    result = FieldResult(field_name, level, labels)
    rows: list[tuple[str, str, str | None, str]] = []
    outside: Counter[str] = Counter()
    for unit_id, question_id, gold, value in _paired(store, run_id, field_name):
        if domain and gold not in domain:
            outside[gold] += 1
            continue
        result.n_gold += 1
        rows += [(unit_id, GOLD, gold, question_id), (unit_id, JUDGE, value, question_id)]
    result.outside = dict(outside)
    if level in ("interval", "text"):
        result.why_none = f"the field is {level}: agreement is not computed here"
    elif not rows:
        result.why_none = "no gold labels of this field on the judged units" + (
            f" (all {sum(outside.values())} are outside the task's labels; see --map-label)"
            if outside
            else ""
        )
    else:
        table = Ratings.from_rows(rows, domain, annotators=[JUDGE, GOLD])
        wanted = [*names, "cohen_kappa:quadratic"] if level == "ordinal" else list(names)
        result.measures = measures(table, wanted, level=level, field=field_name)
    return result


def _paired(store: Store, run_id: str, field_name: str) -> list[tuple[str, str, str, str | None]]:
    """(unit, question, gold, judge's label or None) of every judged unit with gold, in study order."""
    query = """
        SELECT u.unit_id, u.question_id, g.value,
               (SELECT l.value FROM labels AS l WHERE l.annotator_id = :run AND l.field = :field
                AND l.unit_id = u.unit_id AND l.layer = 'first' AND l.repeat = 0)
        FROM labels AS g JOIN units AS u USING (unit_id)
        WHERE g.annotator_id = :gold AND g.field = :field AND g.layer = 'first' AND g.repeat = 0
          AND EXISTS (SELECT 1 FROM judgements AS j
                      WHERE j.run_id = :run AND j.unit_id = u.unit_id AND j.repeat = 0)
        ORDER BY u.rowid
    """
    return store.conn.execute(query, {"run": run_id, "field": field_name, "gold": GOLD}).fetchall()
