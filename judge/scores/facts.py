"""Aggregate several judges' scores of the same answers, as FACTS Grounding does.

Jacovi et al., "The FACTS Grounding Leaderboard", 2025 (arXiv 2501.03200), section 3: each judge's score is the
share of answers that it labels as accurate, and factuality is the mean over judges. An answer is ineligible
only if all judges label it so; it then counts as inaccurate.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from judge.errors import BadInput
from judge.scores.score import Score, Units, score_values
from judge.stats.coefficients import ratio
from judge.stats.ratings import FloatArray

Pair = tuple[Score, Score]


def several(judges: Mapping[str, Pair]) -> list[Score]:
    """Return factuality over several judges, then the factuality of each judge.

    `judges` maps each judge to a pair (eligibility, unadjusted factuality), as returned by
    `garage.factuality`.

    Factuality is the mean over judges j of the mean over answers i of G_ij (1 - I_i). G_ij is the unadjusted
    factuality. I_i is 1 if all judges call answer i ineligible, and otherwise 0. A judge's mean leaves out
    the answers for which the judge gave no verdict.

    If one judge gave no eligibility verdict and all other judges say ineligible, I_i is unknown, and answer i
    has no value. This cannot happen under the paper's rule, `unparsed="facts"` of `garage.factuality`.
    """
    if not judges:
        raise BadInput("there are no judges")
    who = _everyone(judges)
    eligible = np.column_stack([_on(pair[0], who) for pair in judges.values()])
    grounded = np.column_stack([_on(pair[1], who) for pair in judges.values()])
    n = len(judges)
    notes = (f"{n} judges: {', '.join(judges)}", "aggregated by facts")
    someone = (eligible == 1).any(axis=1)
    # FACTS: one judge that calls an answer eligible is enough.
    unanimous = (eligible == 0).all(axis=1)
    ineligible = np.where(someone, 0.0, np.where(unanimous, 1.0, np.nan))
    # An ineligible answer is inaccurate whatever its grounding, labelled or not.
    accurate = np.where(ineligible[:, None] == 1, 0.0, grounded * (1 - ineligible[:, None]))
    known = ~np.isnan(accurate)
    rows = np.concatenate([np.nan_to_num(accurate), known], axis=1).astype(np.float64)
    # An answer that no judge decided is missing data and lowers the coverage; as a row of zeros it would count as false.
    rows[~known.any(axis=1)] = np.nan

    def over_judges(sums: FloatArray) -> FloatArray:
        means: FloatArray = ratio(sums[:, :n], sums[:, n : 2 * n]).mean(axis=1)
        return means

    every = Score(
        "factuality",
        who,
        rows,
        over_judges,
        why="no verdict from any judge, or unknown eligibility",
        undefined="at least one judge has no verdict at all",
        notes=notes,
    )
    share = score_values("ineligible_by_all", who, ineligible, reason="eligibility unknown", notes=notes[:1])
    values = [
        score_values(f"factuality[{name}]", who, accurate[:, j], reason="no verdict")
        for j, name in enumerate(judges)
    ]
    return [every, share, *values]


def _everyone(judges: Mapping[str, Pair]) -> Units:
    """Return all answers that occur in the scores of at least one judge."""
    every = [score.units for pair in judges.values() for score in pair]
    ids = pd.Index(np.concatenate([units.ids.to_numpy() for units in every]))
    questions = np.concatenate([units.questions[units.clusters] for units in every])
    first = ~ids.duplicated()
    return Units.build(ids[first].to_numpy(), questions[first])


def _on(score: Score, who: Units) -> FloatArray:
    """Return a judge's value for each answer in `who`: 1, 0 or nan."""
    values = np.full(len(who), np.nan)
    values[who.ids.get_indexer(score.units.ids)] = score.rows[:, 0]
    return values
