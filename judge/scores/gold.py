"""Agreement of a judge run with the gold labels in the data, field by field."""

import dataclasses
from collections import Counter
from dataclasses import dataclass

from judge.labels import relation
from judge.labels.scope import Scope, read_panel
from judge.notes import code_of
from judge.prompts.load import Task
from judge.stats import MISSING
from judge.store.study import Store
from judge.types import GOLD, Json, Measure, attributes

JUDGE = "judge"
MEASURES = ("percent", "cohen_kappa", "krippendorff_alpha")


@dataclass(slots=True)
class FieldResult:
    """A run's labels for one field: the number of each label and, if there are gold labels, the agreement
    with them.

    `why_none` is the reason why there are no measures. `outside` counts the gold labels outside the task's
    domain; no measure can use them.
    """

    field: str
    level: str
    labels: dict[str, int]
    n_gold: int = 0
    measures: list[Measure] = dataclasses.field(default_factory=list)
    why_none: str | None = None
    outside: dict[str, int] = dataclasses.field(default_factory=dict)

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        return {
            **attributes(self, "field", "level", "labels", "n_gold"),
            "measures": [m.as_json() for m in self.measures],
            "reason": self.why_none,
            "gold_outside_domain": self.outside,
        }


def compare(store: Store, task: Task, run_id: str) -> list[FieldResult]:
    """Compare a run's labels with gold labels for every requested and derived field.

    The units are those with a judgement and a gold label. A unit without a label from the judge (unparsed,
    refused, failed) lowers the coverage; it is not left out. Intervals are computed by resampling questions.
    """
    return [_compare_field(store, task, run_id, name) for name in task.fields]


def _compare_field(store: Store, task: Task, run_id: str, field_name: str) -> FieldResult:
    domain, level = task.domain(field_name), task.level(field_name)
    counts = relation.counts(store.conn, run_id, field_name)
    labels = {v: counts.get(v, 0) for v in domain} if domain else dict(counts)
    result = FieldResult(field_name, level, labels)
    given = relation.read_judged_values(store.conn, run_id, GOLD, field_name)
    # Gold labels may be words that the task does not declare. Counting them distinguishes a missing --map-label from
    # missing gold.
    result.outside = dict(Counter(v for v in given if domain and v not in domain))
    result.n_gold = len(given) - sum(result.outside.values())
    if level in ("interval", "text"):
        result.why_none = f"agreement is not computed here, because the field is {level}"
    elif not result.n_gold:
        outside = sum(result.outside.values())
        result.why_none = "no gold labels of this field on the judged units" + (
            f" (all {outside} are outside the task's labels; see --map-label)" if outside else ""
        )
    else:
        scope = Scope(field_name, task.name, annotators=(run_id, GOLD))
        panel = read_panel(store, scope, distributions=False)
        panel = panel.rename({panel.judges[0]: JUDGE})
        wanted = [*MEASURES, "cohen_kappa:quadratic"] if level == "ordinal" else list(MEASURES)
        # If no look has opened the sealed test for this run, the test is left out, and a note says so.
        notes = tuple(text for text in panel.notes if code_of(text) == "closed")
        if notes:
            has_gold = panel.labels_of(GOLD) != MISSING
            result.n_gold = int((has_gold & panel.asked_units[JUDGE]).sum())
        result.measures = [
            dataclasses.replace(m, notes=(*m.notes, *notes)) for m in panel.measure([JUDGE, GOLD], wanted)
        ]
    return result
