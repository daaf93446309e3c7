"""Measures on real data: counts that the papers print, and aggregates of labels that people gave."""

import json
from typing import Any

import pandas as pd
import pytest

from judge.papers import faithfulness, raguard
from judge.scores.score import split_by_stratum
from tests.real import require
from tests.scores.helpers import numbers, points

pytestmark = pytest.mark.real


def test_refcheckers_human_labels() -> None:
    path = require("shared-data") / "refchecker" / "answers.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    names = [f"{row['setting']}/{row['system']}/{row['id']}" for row in rows]
    answers = pd.DataFrame({"unit_id": names, "question_id": [row["setting"] + row["id"] for row in rows]})
    claims = pd.DataFrame(
        [
            (f"{n}#c{i}", n, c["label"])
            for n, row in zip(names, rows, strict=True)
            for i, c in enumerate(row["claims"])
        ],
        columns=["unit_id", "answer_id", "label"],
    )
    assert claims["label"].value_counts().to_dict() == {
        "Entailment": 7176,
        "Neutral": 2622,
        "Contradiction": 935,
    }
    score = faithfulness.ragas(answers, claims)
    result = score.measure_score()
    # 195 of the 2,100 answers have no claim; seven systems answered each of 300 questions.
    assert (result.n_units, score.missing, result.n_clusters) == (1905, {"no claim": 195}, 300)
    # Worked out answer by answer, without a table.
    shares = [
        sum(c["label"] == "Entailment" for c in r["claims"]) / len(r["claims"]) for r in rows if r["claims"]
    ]
    assert result.value == pytest.approx(sum(shares) / 1905)
    assert result.low is not None and result.high is not None
    assert result.low < sum(shares) / 1905 < result.high
    # Without any context fewer claims hold than with the right one, and noise lies between.
    strata = split_by_stratum([score], {f"{r['setting']}{r['id']}": r["setting"] for r in rows})
    value: dict[str, Any] = {name: numbers(s)["ragas_faithfulness"] for name, s in strata.items()}
    assert value["zero_context"] < value["noisy_context"] < value["accurate_context"]


def test_support_on_ramdocs() -> None:
    """RAMDocs' documents as a retriever's list in their own order: relevant ones, misleading ones."""
    path = require("shared-data") / "ramdocs" / "documents.jsonl"
    rows = pd.DataFrame([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
    owner = rows["id"].str.rsplit("-", n=1).str[0]
    documents = pd.DataFrame({"document_id": rows["id"], "item_id": owner, "role": rows["label"]})
    ranked = documents.assign(
        passage_id=documents["document_id"], rank=documents.groupby("item_id").cumcount() + 1
    )
    who = pd.DataFrame({"item_id": owner.unique()})
    result = points(raguard.misleading(100, who, documents, ranked))
    # 307 of 2,766 documents mislead; a question's share is averaged over the 500 questions.
    shares = (rows["label"] == "misleading").groupby(owner).mean()
    assert result["misleading_exposure@100[own]"].value == pytest.approx(shares.mean())
    assert result["misleading_exposure@100[own]"].n_units == 500
