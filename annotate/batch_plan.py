"""What a batch was asked for: checked before it is drawn, kept in its row, and read from there ever after."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from judge.errors import UsageError
from judge.store.study import dumps


@dataclass(frozen=True, slots=True)
class Policy:
    """What is decided without a lead; nothing is, where it is empty."""

    majority: bool = False
    tolerance: Mapping[str, float] = field(default_factory=dict)
    """Field with numbers -> how far they may lie apart."""

    def __bool__(self) -> bool:
        return self.majority or bool(self.tolerance)

    def __str__(self) -> str:
        parts = ["what more than half of the people say is decided"] if self.majority else []
        parts += [
            f"numbers of '{name}' within {most:g} agree and their median is decided"
            for name, most in self.tolerance.items()
        ]
        return "; ".join(parts)

    def stored(self) -> dict[str, Any]:
        """As it is kept: what is not there is left out."""
        return {name: value for name, value in asdict(self).items() if value}


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What `annotate batches new` is asked for, and what is known of a batch since. The pack of a batch knows
    its pass mark only."""

    name: str = ""
    annotators: Sequence[str] = ()
    n: int | None = None
    by: str | None = None
    """label, dataset or confidence: what the strata are."""
    seed: int = 0
    overlap: int | None = None
    repeats: float = 0.0
    training: int = 0
    attention: float = 0.0
    by_question: int | None = None
    equal_parts: bool = False
    """Equally many units of each stratum, not in proportion to its size: examples of a rare label, and no verdict."""
    strata: Mapping[str, int] = field(default_factory=dict)
    """What was drawn from: stratum -> its units, or its questions where these are drawn whole."""
    looks: int | None = None
    """1: the verdict is computed once, at the end of this batch, and not at the fixed places."""
    until: int | None = None
    """Drawn in blocks until the verdict is decided, with so many units at most."""
    judges: Sequence[str] = ()
    """Runs whose verdicts on this frame share one level: declared at the draw, or fixed by the first verdict."""
    queue: bool = False
    reveal: bool = False
    run: str | None = None
    where: str | None = None
    pass_mark: float = 0.8
    from_route: str | None = None
    """A routed run: only the units that it left to people, all of them without `n`."""
    purpose: str | None = None
    """`ppi`: draw by the judge's uncertainty, with known probabilities, for corrected numbers."""
    allow_exposed: bool = False
    """Also people who were shown the known answer, or the judge, of these units."""
    fresh: bool = False
    """Only units of which none of the annotators answered a question of the task before."""
    left_out: Sequence[str] | None = None
    """The units that `fresh` left out. None: drawn by 0.2.0, whose frames had no unit of any earlier batch."""
    frame: int = 0
    """How many units it was drawn from."""
    frame_id: str | None = None
    """A hash of the units that it was drawn from, with those that earlier batches took of them. None: drawn by 0.2.0."""
    shares: Sequence[str] = ()
    """Earlier batches of other frames that had drawn some of these units: their verdicts and this one's share one level."""
    level: float = 1.0
    """The share of that level that was left for this frame when its first batch was drawn."""
    adjudication: Policy = Policy()
    assisted: str | None = None
    """The Label Studio project in which people saw predictions."""

    @property
    def people(self) -> list[str]:
        """The annotators, each once."""
        return list(dict.fromkeys(self.annotators))

    @property
    def each(self) -> int:
        """How many people label a unit."""
        return self.overlap or len(self.people)

    @property
    def is_even(self) -> bool:
        """Whether it was drawn so that all units may have the same probability."""
        return not (self.equal_parts or self.queue or self.from_route or self.purpose)

    def in_blocks(self) -> BatchPlan:
        """The same drawn in blocks until the verdict is decided: `n` is the most, the first look's units come first."""
        from judge.stats.looks import PLACES

        return replace(self, until=self.n, n=self.n and min(self.n, PLACES[0]))

    def check(self) -> None:
        """Raises UsageError for what cannot be drawn."""
        if not self.people:
            raise UsageError("--annotators: name at least one, as in --annotators alice,bob")
        if not 1 <= self.each <= len(self.people):
            raise UsageError(f"--overlap {self.each}: there are {len(self.people)} annotators")
        if self.n is None and self.by_question is None and self.from_route is None:
            raise UsageError("say how many: -n UNITS, --by-question QUESTIONS, or both")
        if (self.n is not None and self.n < 1) or (self.by_question is not None and self.by_question < 1):
            raise UsageError("-n and --by-question must be 1 or more")
        if self.by_question and self.by in ("label", "confidence"):
            raise UsageError(
                f"--by-question keeps questions whole, and their units differ by {self.by}: use --by dataset"
            )
        if self.equal_parts and not self.by:
            raise UsageError("--equal-parts is of strata: name them with --by label, dataset or confidence")
        if self.until is not None and (not self.is_even or self.looks or self.by_question or self.n is None):
            raise UsageError(
                "--until-decided draws single units with equal probability: -n N is the most, without --looks"
            )
        if self.looks == 1 and not self.is_even:
            raise UsageError("--looks 1 is a look of a verdict, which takes a draw with equal probabilities")
        if self.queue and (self.by or self.by_question):
            raise UsageError(
                "--queue takes the units the judge is least sure of; --by and --by-question do not apply"
            )
        if self.from_route and (self.by or self.by_question or self.queue or self.purpose):
            raise UsageError(
                "--from-route takes the units that a route left; --by, --by-question, --queue and --for do not apply"
            )
        if self.purpose == "ppi" and (self.by or self.by_question or self.queue):
            raise UsageError(
                "--for ppi draws single units by the judge's uncertainty; --by, --by-question and --queue do not apply"
            )
        if not 0 <= self.repeats <= 0.5:
            raise UsageError(
                f"--repeats {self.repeats:.0%}: at most 50%, because a unit is shown again behind half of the others"
            )
        if self.reveal and self.repeats:
            raise UsageError(
                "--reveal with --repeats: who has seen the judge's label does not label that unit blind again"
            )
        if not self.name.strip() or not self.name.isprintable() or "/" in self.name:
            raise UsageError(f"'{self.name}' cannot be the name of a batch")

    def stored(self) -> str:
        """The JSON of the batch's row."""
        later = {"adjudication": self.adjudication.stored(), "assisted": self.assisted}
        kept = {name: value for name, value in asdict(self).items() if name not in later}
        return dumps(kept | {name: value for name, value in later.items() if value})

    @classmethod
    def read(cls, text: str) -> BatchPlan:
        """The other way. What a study from before does not say is as if it had not been asked for."""
        known = {f.name for f in fields(cls)}
        stored = json.loads(text)
        if "equal_parts" not in stored:
            # Version 0.2.0 drew equal parts unless it was asked for proportions.
            stored["equal_parts"] = bool(stored.get("by")) and not stored.get("proportional", False)
        found = {name: value for name, value in stored.items() if name in known}
        return cls(**found | {"adjudication": Policy(**(found.get("adjudication") or {}))})
