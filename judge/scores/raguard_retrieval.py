"""RAGuard's retrieval: how often a retriever brings misleading documents, and what else it brings.

Misleading Retrieval Recall is "the fraction of claims retrieving at least one misleading document" (arXiv 2502.16101).
Whose misleading documents (the claim's own, or any claim's) and over which claims (all, or those that own
one) is not said; only own / owning gives the 100 % that the paper prints for the oracle task. All four are here.

Tables: claims (item_id, question_id), documents (document_id, item_id: its claim, role) and rankings (item_id,
rank, passage_id: a document_id); see `judge.scores.retrieval`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from judge.errors import BadInput
from judge.scores import retrieval
from judge.scores.columns import column, counts, positions, units
from judge.scores.raguard import role_words
from judge.scores.score import STATUSES, Score, scored
from judge.scores.units import Units
from judge.stats.coefficients import ratio

Relevant = Literal["associated", "supporting"]

_NOT_JUDGED = np.int8(len(STATUSES) - 1)


def misleading(k: int, claims: pd.DataFrame, documents: pd.DataFrame, rankings: pd.DataFrame) -> list[Score]:
    """Misleading Retrieval Recall@k in its four readings, own/owning first, and exposure@k.

    misleading_retrieval_recall@k[W/C]  share of claims C with at least one misleading document of W among
                                        the first k; W is own or any, C is owning or all
    misleading_exposure@k[W]            mean share of misleading documents of W among the first k retrieved,
                                        over all claims

    A claim without a ranking has no value. Raises BadInput for a ranked document that is not in `documents`.
    """
    who, owner, role, claim, document = _joined(k, claims, documents, rankings)
    n = len(who)
    bad = role[document] == "misleading"
    own = bad & (owner[document] == claim)
    retrieved = counts(claim, n)
    ranked = retrieved > 0
    status = np.where(ranked, 0, _NOT_JUDGED).astype(np.int8)
    owning = np.zeros(n, dtype=bool)
    owning[owner[(role == "misleading") & (owner >= 0)]] = True
    some = {
        "own": np.where(ranked, counts(claim, n, own) > 0, np.nan),
        "any": np.where(ranked, counts(claim, n, bad) > 0, np.nan),
    }
    found = []
    for over in ("owning", "all"):
        for whose, values in some.items():
            score = scored(f"misleading_retrieval_recall@{k}[{whose}/{over}]", who, values, status)
            found.append(score.where(owning) if over == "owning" else score)
    for whose, marked in (("own", own), ("any", bad)):
        exposure = ratio(counts(claim, n, marked), retrieved)
        found.append(scored(f"misleading_exposure@{k}[{whose}]", who, exposure, status))
    return found


def relevance(
    k: int,
    claims: pd.DataFrame,
    documents: pd.DataFrame,
    rankings: pd.DataFrame,
    *,
    relevant: Relevant = "associated",
) -> list[Score]:
    """Precision, recall, F1 and NDCG at k, where the claim's `associated` or only its `supporting` documents count."""
    if relevant not in ("associated", "supporting"):
        raise BadInput(f"unknown relevant documents '{relevant}'; there are associated and supporting")
    _joined(k, claims, documents, rankings)
    role = role_words(column(documents, "role", "documents"))
    grade = (role == "supporting").astype(int) if relevant == "supporting" else 1
    judged = documents.assign(passage_id=documents["document_id"], grade=grade)
    # Every document of another claim is known to be none of this one's.
    queries = claims.assign(unit_id=claims["item_id"])
    note = f"relevant: {relevant} documents"
    return [
        score.noted(note)
        for score in retrieval.at(k, queries, rankings, judged, prefix=f"{relevant}_", complete=True)
    ]


def _joined(
    k: int, claims: pd.DataFrame, documents: pd.DataFrame, rankings: pd.DataFrame
) -> tuple[Units, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Claims; each document's claim and role; the claim and the document of each of the first k ranks, by position."""
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    who = units(claims, "claims", "item_id")
    files = units(documents.drop(columns="question_id", errors="ignore"), "documents", "document_id")
    owner = who.ids.get_indexer(pd.Index(column(documents, "item_id", "documents").to_numpy()))
    role = role_words(column(documents, "role", "documents")).to_numpy()
    claim = retrieval.checked(rankings, who)
    first = rankings["rank"].to_numpy(dtype=np.float64) <= k
    document = positions(rankings["passage_id"][first], files, "rankings", "documents")
    return who, owner, role, claim[first], document
