"""Real data sets imported, scored through the command line, against the counts that the papers print."""

import ast
import csv
import json
from pathlib import Path

import pytest

from judge.store import Store
from tests import formats
from tests.cli.helpers import script
from tests.real import require
from tests.suites.helpers import Judge, score

pytestmark = pytest.mark.real


def test_deflection_on_nomiracl(judge: Judge, tmp_path: Path) -> None:
    source = require("shared-data") / "nomiracl_en" / "questions.jsonl"
    judge("items", "import", "garage", formats.nomiracl_as_garage(source, tmp_path / "garage.jsonl"))
    rows = formats.nomiracl_answers(source, tmp_path / "answers.jsonl").read_text("utf-8").splitlines()
    some = tmp_path / "gpt-4.jsonl"
    some.write_text("".join(row + "\n" for row in rows if '"gpt-4-azure"' in row), "utf-8")
    judge("systems", "import", some)
    refusals = ("I don't know.", "Unable to generate response.", "No, the answer is not present.")
    lines = [(text, '{"deflection": "missing"}') for text in refusals] + [("", '{"deflection": "attempted"}')]
    replies = script(tmp_path / "s.jsonl", lines)
    part = ("garage", "--part", "deflection")
    judge("suite", *part, "-m", "scripted/file", "--option", f"script={replies}")
    result = score(judge, *part, "--by", "question_type")
    # GPT-4 says one of four things (counted in the file): of the 250 unanswerable questions 142 times "I don't know.",
    # once each that it cannot generate a response and that no answer is present; of the 250 answerable ones 12 and 1.
    assert result.value("deflection_true_positive_rate") == 144 / 250
    assert result.value("deflection_false_positive_rate") == 13 / 250
    assert result["deflection_true_positive_rate"]["n_units"] == 250
    assert result.value("deflection_true_positive_rate", "unanswerable") == 144 / 250


def test_raguards_claims_and_documents(judge: Judge, tmp_path: Path) -> None:
    claims = require("shared-data") / "raguard" / "claims.csv"
    documents = formats.raguard_documents(tmp_path / "documents.csv", claims)
    judge("items", "import", "raguard", claims, documents)
    # A ranking that gives each claim all of its own documents, as the oracle task does.
    run = tmp_path / "own.run"
    with claims.open(encoding="utf-8", newline="") as file, run.open("w") as out:
        for row in csv.DictReader(file):
            for rank, name in enumerate(ast.literal_eval(row["Document IDs"]), 1):
                out.write(f"{row['Claim ID']} Q0 {name} {rank} {1000 - rank} own\n")
    judge("systems", "import", "--stage", "retrieve", "--skip-bad", run)
    result = score(judge, "raguard", "--part", "retrieval", "--k", "1000", "--by", "claim_verdict")
    # 788 claims own a misleading document, and the task gives it to all of them: 100 % of them, 788 of 2,648.
    owning = result["misleading_retrieval_recall@1000[own/owning]"]
    assert (owning["value"], owning["n_units"]) == (1.0, 788)
    lists = {m["stratum"]: m for m in result.document["measures"] if m["measure"].endswith("[own/all]")}
    assert {s: m["n_units"] + sum(m["missing"].values()) for s, m in lists.items()} == {
        None: 2648,
        "true": 1333,
        "false": 1315,
    }
    with Store.open("study.db", create=False) as store:
        query = "SELECT value, count(*) FROM labels WHERE annotator_id = 'gold' AND field = 'raguard.role' GROUP BY 1"
        exam = dict(store.conn.execute(query))
    assert exam == {"supporting": 2685, "misleading": 1812, "irrelevant": 11834}


def test_mirages_questions_by_source(judge: Judge, tmp_path: Path) -> None:
    source = require("shared-data") / "mirage" / "dataset.json"
    rows = json.loads(source.read_text(encoding="utf-8"))
    judge("items", "import", "mirage", source)
    path = tmp_path / "answers.jsonl"
    texts = {"none": "I cannot say.", "oracle": "It is {}.", "fixed5": "It is {}."}
    with path.open("w", encoding="utf-8") as out:
        for condition, text in texts.items():
            for row in reversed(rows):
                message = {"id": str(row["query_id"]), "system": "s", "condition": condition}
                out.write(json.dumps({**message, "text": text.format(row["answer"][0])}) + "\n")
    judge("systems", "import", path)
    result = score(judge, "mirage", "--system", "s", "--by", "source")
    acceptable = {
        m["stratum"]: (m["value"], m["n_units"])
        for m in result.document["measures"]
        if m["measure"] == "accuracy_oracle"
    }
    # Every answer is found in the sentence that holds it.
    assert acceptable == {
        None: (1.0, 7560),
        "drop": (1.0, 75),
        "ifqa": (1.0, 248),
        "naturalqa": (1.0, 3578),
        "popqa": (1.0, 3075),
        "triviaqa": (1.0, 584),
    }
