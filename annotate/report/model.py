"""The verdicts of a report as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from judge.document.blocks import Document, Figure, NextStep, Table, VerdictBox
from judge.stats.bootstrap import IntervalSettings
from judge.stats.outlook import Chance
from judge.stats.verdict_rows import Condition, Decision, LabelRow
from judge.stats.verdict_text import group_by_state
from judge.types import Json, Measure, attributes


@dataclass(frozen=True)
class Ruling:
    """The verdict on one judge: one sentence, the evidence, the rule that was applied, and the numbers.

    `draw` describes how many units the verdict is based on, and how they were drawn. `next_place` is the number of
    labelled units at which the rule will be applied again. `numbers` is the table of agreements beside the verdict.
    The section `summary` shows the agreements for all judges.
    """

    judge: str
    decision: Decision
    headline: str
    evidence: str
    rule: str
    because: str
    draw: str = ""
    next_place: int | None = None
    more_units: int | None = None
    more_questions: int | None = None
    ceiling_known: bool = False
    measures: Sequence[Measure] = ()
    warnings: Sequence[str] = ()
    conditions: Sequence[Condition] = ()
    labels: Sequence[LabelRow] = ()
    chances: Sequence[Chance] = ()
    numbers: Table | None = None
    conflicts: int = 0
    """The number of labels in conflict. While any label is in conflict, the verdict is undecided."""
    is_tested: bool = True
    """Whether the units were drawn for this judge. If not, its numbers are only estimates."""
    no_labels: bool = False
    """Whether the judge has no label for any of the units that others labelled."""
    confidence: float = IntervalSettings().confidence
    """The confidence level of the intervals that the verdict uses."""
    steps: Sequence[NextStep] = ()
    """What the reader can do next."""
    shared_by: str = ""
    """The tests that share the error rate of 5 %, in words, such as 'several looks at the units'. Empty for a single test."""

    @property
    def sentence(self) -> str:
        """The verdict and the evidence as one text."""
        return f"{self.headline} {self.evidence}".rstrip()

    @property
    def detail(self) -> str:
        """The reason for the verdict, with the numbers of units and questions.

        If the sentence already contains the reason, only these numbers are given.
        """
        reason, _, units = self.because.partition(" (n = ")
        if not units or reason.lower() not in self.sentence.lower():
            return self.because
        return f"n = {units.replace(')', '', 1)}"

    def box(self) -> VerdictBox:
        """Return the verdict as a box for all writers."""
        return VerdictBox(
            self.judge,
            self.decision,
            self.headline,
            f"{self.detail}.",
            self.evidence,
            self.rule,
            numbers=self.numbers,
            warnings=self.warnings,
            rows=[
                ("decision", self.decision),
                ("sentence", self.sentence),
                ("rule", self.rule),
                ("because", self.because),
                *((f"condition {c.name}", c.why) for c in self.conditions),
                *((f"label {row.label} {row.direction}", row.state) for row in self.labels),
                ("more units", self.more_units),
                ("more questions", self.more_questions),
                *((m.measure, m) for m in self.measures),
                *(("warning", w) for w in self.warnings),
            ],
            facts={
                **attributes(self, "judge", "decision", "sentence", "rule", "because", "draw", "next_place"),
                **attributes(self, "more_units", "more_questions", "ceiling_known", "is_tested"),
                "conditions": [asdict(c) for c in self.conditions],
                "labels": [asdict(row) for row in self.labels],
                **group_by_state(self.labels),
                "power": [asdict(c) for c in self.chances],
                "warnings": list(self.warnings),
            },
            measures=self.measures,
            figure=self._draw_agreement(),
            failed=[c.why for c in self.conditions if c.state in ("fails", "open") and c.why],
            steps=self.steps,
        )

    def _draw_agreement(self) -> Figure | None:
        """Return a drawing of the judge's agreement with people and of people's agreement with each other."""
        if self.numbers is None:
            return None
        # The first two rows are the agreement of the judge, and of people with each other.
        rows: list[Json] = [
            {
                "label": str(name),
                "value": m.value,
                "low": m.low,
                "high": m.high,
                "group": "judge" if str(name).startswith(self.judge) else "people",
            }
            for name, _, m, _ in self.numbers.rows[:2]
            if isinstance(m, Measure)
        ]
        if all(row["value"] is None for row in rows):
            return None
        data: dict[str, Json] = {
            "rows": rows,
            "threshold": None,
            "label": "agreement beyond chance (1 is perfect)",
        }
        text = "A mark is the value with its interval: a circle with a judge, a diamond without one."
        return Figure(
            f"drawn_{self.numbers.key}", "The agreement of the judge and of people", text, "forest", data
        )


@dataclass(frozen=True, eq=False)
class ReportDocument(Document):
    """The report on one field: a document with the verdict on each judge."""

    rulings: Sequence[Ruling] = ()
