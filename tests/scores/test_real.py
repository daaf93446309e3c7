"""Measures on real data: counts that the papers print, and aggregates of labels that people gave."""

import ast
import json
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judge.scores import faithfulness, garage, mirage, raguard
from judge.scores.score import Units, by_stratum, scored
from tests.real import require
from tests.scores.declining import declines
from tests.scores.helpers import compare, numbers, points

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def claims() -> pd.DataFrame:
    return pd.read_csv(require("shared-data") / "raguard" / "claims.csv")


@pytest.fixture(scope="module")
def documents(claims: pd.DataFrame) -> pd.DataFrame:
    lists = claims.assign(
        document_id=claims["Document IDs"].map(ast.literal_eval),
        role=claims["Document Labels"].map(ast.literal_eval),
    )
    long = lists.explode(["document_id", "role"]).dropna(subset="document_id")
    return long.rename(columns={"Claim ID": "item_id"})[["document_id", "item_id", "role"]].reset_index(
        drop=True
    )


TRUE = ("true", "mostly-true", "half-true")
FALSE = ("mostly-false", "false", "pants-on-fire")


def test_raguards_verdicts(claims: pd.DataFrame) -> None:
    # PolitiFact's six grades: half true and above is true.
    found = claims["Original Verdict"].map(dict.fromkeys(TRUE, "true") | dict.fromkeys(FALSE, "false"))
    assert found.notna().all()
    assert found.value_counts().to_dict() == {"true": 1333, "false": 1315}
    # The file's own reading of the six grades is the same, claim by claim.
    assert (found == claims["Verdict"].astype(str).str.lower()).all()


def test_raguards_oracle_task(claims: pd.DataFrame, documents: pd.DataFrame) -> None:
    """All of a claim's own documents: 100 % of the 788 claims that own a misleading one, 29.8 % of all."""
    ranked = documents.assign(
        passage_id=documents["document_id"], rank=documents.groupby("item_id").cumcount() + 1
    )
    who = claims.rename(columns={"Claim ID": "item_id"})[["item_id"]]
    found = points(raguard.misleading(1000, who, documents, ranked))
    own = found["misleading_retrieval_recall@1000[own/owning]"]
    assert (own.value, own.n_units) == (1.0, 788)
    assert found["misleading_retrieval_recall@1000[own/all]"].value == pytest.approx(788 / 2648)


def nomiracl() -> list[dict[str, Any]]:
    path = require("shared-data") / "nomiracl_en" / "questions.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_deflection_on_nomiracl() -> None:
    rows = nomiracl()
    assert Counter(row["label"] for row in rows) == {"answerable": 250, "unanswerable": 250}
    models = list(rows[0]["model_outputs"])
    assert len(models) == 11
    rates = {}
    for model in models:
        said = declines([row["model_outputs"][model] for row in rows])
        answers = pd.DataFrame(
            {
                "unit_id": [row["id"] for row in rows],
                "answerable": [row["label"] == "answerable" for row in rows],
                "deflection": np.where(said == 1, "missing", "attempted"),
            }
        )
        found = points(garage.deflection(answers))
        assert [m.n_units for m in found.values()] == [250, 250]
        rates[model] = [m.value for m in found.values()]
    # GPT-4 says one of four things (counted in the file): over the unanswerable ones "I don't know." 142 times,
    # "Unable to generate response." and "No, the answer is not present." once each, else "Yes, ..."; over the
    # answerable ones 12 and 1.
    assert rates["gpt-4-azure"] == [144 / 250, 13 / 250]
    # Flan-T5 over the unanswerable ones: "I don't know" 38 times and "No, answer is not present" 3 times;
    # "No" and "No, answer is present" do not say that the passages lack it.
    assert rates["flan-t5-xxl"] == [41 / 250, 3 / 250]
    # As the paper found: Mistral declines most, rightly and wrongly.
    assert (
        max(rates, key=lambda m: rates[m][0])
        == max(rates, key=lambda m: rates[m][1])
        == "Mistral-7B-Instruct-v0.2"
    )


def test_two_models_compared_on_the_same_questions() -> None:
    rows = nomiracl()
    who = Units.of([row["id"] for row in rows])
    four, three = (
        scored("declines", who, declines([row["model_outputs"][m] for row in rows]))
        for m in ("gpt-4-azure", "gpt-3.5-turbo-azure")
    )
    found = compare(four, three).difference
    # 157 and 161 of 500 decline, but not the same ones: paired, the interval is within +-.05 and holds 0.
    assert found.value == pytest.approx(4 / 500)
    assert found.low is not None and found.high is not None
    assert -0.05 < found.low < 0 < found.high < 0.05


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
    found = score.measured()
    # 195 of the 2,100 answers have no claim; seven systems answered each of 300 questions.
    assert (found.n_units, score.missing, found.n_clusters) == (1905, {"no claim": 195}, 300)
    # Worked out answer by answer, without a table.
    shares = [
        sum(c["label"] == "Entailment" for c in r["claims"]) / len(r["claims"]) for r in rows if r["claims"]
    ]
    assert found.value == pytest.approx(sum(shares) / 1905)
    assert found.low is not None and found.high is not None
    assert found.low < sum(shares) / 1905 < found.high
    # Without any context fewer claims hold than with the right one, and noise lies between.
    strata = by_stratum([score], {f"{r['setting']}{r['id']}": r["setting"] for r in rows})
    value: dict[str, Any] = {name: numbers(s)["ragas_faithfulness"] for name, s in strata.items()}
    assert value["zero_context"] < value["noisy_context"] < value["accurate_context"]


def test_mirages_questions_by_source() -> None:
    rows = json.loads((require("shared-data") / "mirage" / "dataset.json").read_text(encoding="utf-8"))
    first = mirage.exact_match(
        [f"It is {row['answer'][0]}." for row in rows], [row["answer"] for row in rows]
    )
    nothing = mirage.exact_match([""] * len(rows), [row["answer"] for row in rows])
    table = pd.DataFrame(
        {"unit_id": [row["query_id"] for row in rows], "base": nothing, "oracle": first, "mixed": first}
    )
    scores = mirage.adaptability(table)
    found = points(scores)
    # Every answer is found in a sentence that holds it, and none in an empty one.
    assert (found["context_acceptability"].value, found["context_acceptability"].n_units) == (1.0, 7560)
    assert found["accuracy_base"].value == 0.0
    strata = by_stratum(scores, {row["query_id"]: row["source"] for row in rows})
    assert {name: len(s[0].units) for name, s in strata.items()} == {
        "drop": 75,
        "ifqa": 248,
        "naturalqa": 3578,
        "popqa": 3075,
        "triviaqa": 584,
    }


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
    found = points(raguard.misleading(100, who, documents, ranked))
    # 307 of 2,766 documents mislead; a question's share is averaged over the 500 questions.
    shares = (rows["label"] == "misleading").groupby(owner).mean()
    assert found["misleading_exposure@100[own]"].value == pytest.approx(shares.mean())
    assert found["misleading_exposure@100[own]"].n_units == 500
