"""`judge score refusals`: the share of answers that decline to answer, by a judge's labels of the task `deflection`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judge.errors import NothingToScore
from judge.papers.engine.papers import declared_beside

if TYPE_CHECKING:
    from judge.papers.engine.paper_study import PaperStudy
    from judge.scores.score import Score


def compute_scores(study: PaperStudy) -> list[Score]:
    """One score, a mean over answers."""
    import numpy as np

    from judge.scores.columns import encode_labels, statuses, units
    from judge.scores.score import score_values

    chosen = study.system()
    if chosen is None:
        raise NothingToScore(f"no system has answered anything in '{study.dataset}'")
    judged = study.labels("deflection", chosen)
    study.check()
    declined = encode_labels(judged["label"], {"missing": 1.0, "attempted": 0.0}, "deflection")
    status = statuses(judged, ~np.isnan(declined))
    return [score_values("rag_refusal_rate", units(judged, "answers"), declined, status)]


# The title, parts, measures and tables stand in refusals.toml, beside this file.
PAPER = declared_beside(__name__, __file__)
