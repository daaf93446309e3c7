"""Plan the labels that a verdict on a judge still needs: the number of questions, the probability, and the
annotators.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from judge.stats.alternative import FEWEST_FOR_T_TEST
from judge.stats.decision import Verdict
from judge.stats.outlook import MOST_UNITS, Chance
from judge.stats.verdict_rows import Decision

MOST_NAMED = 5


@dataclass(frozen=True)
class VerdictPlan:
    """The labels that a verdict still needs.

    `more_*` are the questions and units that people (or the single source) and the judge still have to label.
    They are 0 if the verdict is decided. They are None if no number suffices, and `why` is the reason. `half`
    and `most` are the numbers of units needed to reach a decision with a probability of 50 % and 90 %.
    `curve` contains the probability for each number of added questions.
    """

    verdict: Verdict
    power: float
    labelled_by: tuple[str, ...]
    more_clusters: int | None
    more_units: int | None
    half: int | None
    most: int | None
    curve: tuple[Chance, ...]
    why: str
    assumed: tuple[str, ...]

    @property
    def decision(self) -> Decision:
        """The verdict on the existing labels."""
        return self.verdict.decision


def plan_of(computed: Verdict, power: float) -> VerdictPlan:
    """Return the labels that are still needed to decide the verdict with the probability `power`.

    `power` must be the value with which the verdict was computed. The probability is averaged over all true
    values that are consistent with the existing labels, not only the value that they show.
    """
    who = computed.people or ((computed.source,) if computed.source else ())
    ahead = computed.outlook
    if computed.decision != "undecided" or ahead is None:
        return VerdictPlan(computed, power, who, 0, 0, 0, 0, (), "decided", ())
    n, g = computed.conditions[0].n_units, computed.conditions[0].n_clusters
    assumed = (
        f"new questions are drawn in the same way as the {g:,} questions ({n:,} units) that {_names(who)} and "
        f"{computed.judge} labelled, and the same people label them",
        "the chance of a decision is averaged over all true values consistent with these labels (Bayesian bootstrap of the questions)",
        f"the chance of a decision, for or against, is then {100 * power:g} %; "
        f"plans of up to {MOST_UNITS:,} units are considered",
    )
    reason = ahead.why
    if not ahead.curve and computed.more_units is not None:
        reason = f"there are too few questions for a plan: label {FEWEST_FOR_T_TEST} questions and plan again"
    return VerdictPlan(
        computed,
        power,
        who,
        computed.more_clusters,
        computed.more_units,
        ahead.half,
        ahead.most,
        ahead.curve,
        reason,
        assumed,
    )


def _names(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{len(names)} people"
    return ", ".join(names)
