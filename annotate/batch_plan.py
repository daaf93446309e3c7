"""The plan of an annotation batch. It is checked before the draw, and stored in the batch's row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from judge.errors import UsageError
from judge.store.study import dumps


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules that settle disagreements between annotators automatically.

    The policy is empty if there are no rules.
    """

    majority: bool = False
    tolerance: Mapping[str, float] = field(default_factory=dict)
    """The largest difference between numbers that still counts as agreement, by numeric field."""

    def __bool__(self) -> bool:
        return self.majority or bool(self.tolerance)

    def __str__(self) -> str:
        parts = ["the label that more than half of the people chose counts"] if self.majority else []
        parts += [
            f"numbers for '{name}' that differ by at most {most:g} agree, and their median counts"
            for name, most in self.tolerance.items()
        ]
        return "; ".join(parts)

    def to_stored(self) -> dict[str, Any]:
        """Return the policy as it is stored, without empty parts."""
        return {name: value for name, value in asdict(self).items() if value}


DRAWS = ("equal-parts", "least-sure", "ppi", "route")
"""The values of --draw. All of them draw with unequal probabilities. Without --draw, all units have the same
probability.
"""


def plan_draw(draw: str | None, run: str | None) -> dict[str, Any]:
    """Return the fields of a `BatchPlan` that --draw and --run determine.

    Raises UsageError if the value of --draw is unknown, or if --draw route is given without --run.
    """
    if draw is not None and draw not in DRAWS:
        raise UsageError(f"--draw {draw}: must be one of {', '.join(DRAWS)}")
    if draw == "route":
        if run is None:
            raise UsageError(
                "--draw route draws the units that a route left to people: name the route with --run RUN"
            )
        return {"from_route": run}
    return {
        "run": run,
        "equal_parts": draw == "equal-parts",
        "queue": draw == "least-sure",
        "purpose": "ppi" if draw == "ppi" else None,
    }


# The hashes of stored batches depend on this list: a field that is added here changes all of them. Ids of runs are not in
# it, because a merge may replace them.
DRAW_RECORD = ("n", "by", "seed", "by_question", "equal_parts", "strata", "queue", "where", "purpose", "left_out", "after",
               "frame", "frame_id")  # fmt: skip
"""The fields of a `BatchPlan` that say how its units were drawn."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The options of `annotate batches new`, and facts about the batch that were recorded later.

    In a batch that was packed for one person to label elsewhere, only `pass_mark` is set.
    """

    name: str = ""
    annotators: Sequence[str] = ()
    n: int | None = None
    by: str | None = None
    """The variable that defines the strata: label, dataset or confidence."""
    seed: int = 0
    overlap: int | None = None
    repeats: float = 0.0
    training: int = 0
    attention: float = 0.0
    by_question: int | None = None
    equal_parts: bool = False
    """Whether to draw the same number of units from each stratum, whatever its size. This gives examples of a
    rare label. No verdict is based on such a draw.
    """
    strata: Mapping[str, int] = field(default_factory=dict)
    """The number of units in the sampling frame by stratum, or the number of questions if whole questions are
    drawn.
    """
    looks: int | None = None
    """If 1, the verdict is computed only once, at the end of this batch. If None, it is computed at the
    scheduled looks.
    """
    until: int | None = None
    """If set, blocks are drawn until the verdict is decided, with at most this many units in all."""
    judges: Sequence[str] = ()
    """The runs that the batch tests, if the user named them. The table `batch_judges` stores them."""
    queue: bool = False
    reveal: bool = False
    run: str | None = None
    where: str | None = None
    pass_mark: float = 0.8
    from_route: str | None = None
    """A routed run. Only units that this run left to people are drawn: `n` of them, or all of them if `n` is
    not set.
    """
    purpose: str | None = None
    """`ppi` if units are sampled by the judge's uncertainty, with known probabilities, for estimates corrected
    by PPI. None for other draws.
    """
    allow_exposed: bool = False
    """Whether to assign units also to people who were shown the gold label or the judge's label for these units."""
    fresh: bool = False
    """Whether to draw only units for which none of the annotators has answered a question of the task."""
    left_out: Sequence[str] | None = None
    """The units that `fresh` left out. None if the batch was drawn by adjudge 0.2.0, whose frames exclude the
    units of earlier batches.
    """
    after: Sequence[str] | None = None
    """The earlier batches on the same questions, whose units the draw left out. None if the draw did not record them."""
    frame: int = 0
    """The number of units in the sampling frame."""
    frame_id: str | None = None
    """A hash of the frame's units, including the units that earlier batches drew. None if the batch was drawn
    by adjudge 0.2.0.
    """
    draw_id: str | None = None
    """A hash of what the draw recorded (`hash_draw`). None if the batch was drawn before such hashes were stored."""
    adjudication: Policy = Policy()
    assisted: str | None = None
    """The Label Studio project in which annotators saw predictions."""

    @property
    def people(self) -> list[str]:
        """The annotators without duplicates."""
        return list(dict.fromkeys(self.annotators))

    @property
    def each(self) -> int:
        """The number of annotators for each unit."""
        return self.overlap or len(self.people)

    @property
    def is_even(self) -> bool:
        """Whether the options allow all units to have the same inclusion probability."""
        return not (self.equal_parts or self.queue or self.from_route or self.purpose)

    def hash_draw(self) -> str:
        """Return a hash of what the draw recorded, so that `annotate verify` finds a record that was changed."""
        record = json.dumps([getattr(self, name) for name in DRAW_RECORD], sort_keys=True)
        return hashlib.sha256(record.encode()).hexdigest()

    def to_blocks(self) -> BatchPlan:
        """Return a plan that draws units in blocks until the verdict is decided or `n` units are drawn.

        The first block contains the units for the first computation of the verdict.
        """
        # The import loads numpy, which no other use of a plan needs.
        from judge.stats.looks import PLACES

        return replace(self, until=self.n, n=self.n and min(self.n, PLACES[0]))

    def check(self) -> None:
        """Raise UsageError for a plan that cannot be drawn."""
        if not self.people:
            raise UsageError("--annotators: name at least one, e.g. --annotators alice,bob")
        # With fewer people than `overlap`, somebody would label a unit twice.
        if not 1 <= self.each <= len(self.people):
            raise UsageError(f"--overlap {self.each}: the batch has only {len(self.people)} annotators")
        if self.n is None and self.by_question is None and self.from_route is None:
            raise UsageError("specify the size of the draw: -n UNITS, --by-question QUESTIONS, or both")
        if (self.n is not None and self.n < 1) or (self.by_question is not None and self.by_question < 1):
            raise UsageError("-n and --by-question must be 1 or more")
        if self.by_question and self.by in ("label", "confidence"):
            raise UsageError(
                f"--by-question keeps questions whole, but the units of one question can differ in {self.by}: use --by dataset"
            )
        if self.equal_parts and not self.by:
            raise UsageError(
                "--draw equal-parts requires strata: specify them with --by label, dataset or confidence"
            )
        if self.until is not None and (not self.is_even or self.looks or self.by_question or self.n is None):
            raise UsageError(
                "--until-decided draws single units with equal probability: specify the maximum with -n N, and omit --looks"
            )
        if self.looks == 1 and not self.is_even:
            raise UsageError(
                "--looks 1 can be used only for a verdict, and a verdict requires a draw with equal probabilities"
            )
        if self.queue and (self.by or self.by_question):
            raise UsageError(
                "--draw least-sure draws the units that the judge is least sure of; --by and --by-question do not apply"
            )
        if self.from_route and (self.by or self.by_question or self.queue or self.purpose):
            raise UsageError(
                "--draw route draws the units that a route left to people; --by and --by-question do not apply"
            )
        if self.purpose == "ppi" and (self.by or self.by_question or self.queue):
            raise UsageError(
                "--draw ppi draws single units by the judge's uncertainty; --by and --by-question do not apply"
            )
        if not 0 <= self.repeats <= 0.5:
            raise UsageError(
                f"--repeats {self.repeats:.0%}: must be at most 50%, because a repeat is shown only after half of the other units"
            )
        if self.reveal and self.repeats:
            raise UsageError(
                "--reveal cannot be used with --repeats: after seeing the judge's label, nobody can label the unit blind again"
            )
        if not self.name.strip() or not self.name.isprintable() or "/" in self.name:
            raise UsageError(f"'{self.name}' cannot be the name of a batch")

    def to_stored(self) -> str:
        """Return the plan as JSON for the batch's row."""
        later = {"adjudication": self.adjudication.to_stored(), "assisted": self.assisted}
        kept = {name: value for name, value in asdict(self).items() if name not in (*later, "judges")}
        return dumps(kept | {name: value for name, value in later.items() if value})

    @classmethod
    def from_json(cls, text: str) -> BatchPlan:
        """Parse the JSON from a batch's row.

        Options that an older study does not contain take their default values.
        """
        known = {f.name for f in fields(cls)}
        stored = json.loads(text)
        if "equal_parts" not in stored:
            # Version 0.2.0 drew equal parts unless proportions were requested.
            stored["equal_parts"] = bool(stored.get("by")) and not stored.get("proportional", False)
        # Keys that are no longer options, such as `proportional`, are ignored, so that old studies can be read.
        options = {name: value for name, value in stored.items() if name in known}
        return cls(**options | {"adjudication": Policy(**(options.get("adjudication") or {}))})
