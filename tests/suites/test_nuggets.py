"""judge score nuggets and judge suite nuggets: systems, topics, rankings by judge and people, and nuggetizer's numbers."""

import json
import math
import shlex
from pathlib import Path
from typing import Any

import pytest

from judge.papers.engine.paper import ScoreRequest
from judge.papers.engine.paper_study import PaperStudy
from judge.papers.engine.papers import PAPERS
from judge.store import Store
from tests.formats import write_jsonl
from tests.real import ROOT
from tests.suites.helpers import Judge, Scored, answers, commands, give, items, people, score

FILES = ROOT / "tests" / "importers" / "nuggets"
EXAMPLE = ROOT / "data" / "examples" / "nuggets"
S, P, N = "support", "partial_support", "not_support"
TASK = "nugget_assignment"


def example(judge: Judge) -> None:
    judge("items", "import", "jsonl", EXAMPLE / "topics.jsonl", "--dataset", "tides")
    judge("systems", "import", EXAMPLE / "answers.jsonl")
    judge("nuggets", "import", EXAMPLE / "nuggets.csv")


def by_topic() -> dict[str, dict[str, float]]:
    """Measure -> topic -> its value, out of the scores themselves: the table prints means over topics."""
    with Store.open("study.db", create=False) as store:
        paper = PAPERS["nuggets"]
        scores = paper.compute_scores(PaperStudy(store, paper, ScoreRequest()))
    topics = [[str(q).removeprefix("x:") for q in s.units.questions[s.units.clusters]] for s in scores]
    return {s.measure: dict(zip(t, s.rows[:, 0], strict=True)) for s, t in zip(scores, topics, strict=True)}


def test_against_nuggetizer(judge: Judge, tmp_path: Path) -> None:
    """The same numbers from the same files, but for two differences, which are named here."""
    maps = shlex.split("--dataset x --map id=qid --map question=query")
    judge("items", "import", "jsonl", FILES / "nuggets.jsonl", *maps)
    files = [FILES / "first.jsonl", FILES / "second.jsonl"]
    maps = shlex.split("--map id=qid --map text=answer_text --system-column run_id")
    judge("systems", "import", *files, *maps)
    judge("nuggets", "import", *files, "--judge", "gpt-4o")
    result = score(judge, "nuggets")
    topics = by_topic()
    theirs: dict[str, list[dict[str, Any]]] = json.loads((FILES / "metrics.json").read_text("utf-8"))
    names = {
        "all": "all_score",
        "all_strict": "strict_all_score",
        "vital": "vital_score",
        "vital_strict": "strict_vital_score",
    }
    for system, records in theirs.items():
        *each, every = records
        for ours, name in names.items():
            for record in each:
                value = topics[f"nugget_{ours}[{system}]"][record["qid"]]
                if (ours.startswith("vital"), record["qid"]) == (True, "emma"):
                    # Difference 1: emma has no vital nugget. It has no Vital score; nuggetizer's is 0.
                    assert (math.isnan(value), record[name]) == (True, 0.0)
                else:
                    assert value == pytest.approx(record[name])
            value = result.value(f"nugget_{ours}[{system}]")
            # Of the two topics, ours is the mean of the one that has vital nuggets.
            assert value == pytest.approx(every[name] * (2 if ours.startswith("vital") else 1))
        # Difference 2: it has no Weighted.
        assert not any("weight" in name for name in every)
        assert result.value(f"nugget_weighted[{system}]") is not None
    # mars of `first`: (1 + .5 + .5 x 0)/(2 + .5); emma has okay ones alone: 1. (.6 + 1)/2
    assert result.value("nugget_weighted[first]") == pytest.approx(0.8)
    assert any(
        "these topics have no vital nugget" in note and "x:emma" in note for note in result.document["notes"]
    )


def test_step_by_step(judge: Judge) -> None:
    judge("items", "import", "jsonl", EXAMPLE / "topics.jsonl", "--dataset", "tides")
    judge("systems", "import", EXAMPLE / "answers.jsonl")
    assert "judge nuggets import FILE" in judge("score", "nuggets", code=2).err
    judge("nuggets", "import", EXAMPLE / "nuggets.csv")
    steps = commands(judge, "nuggets", "-m", "scripted/hash")
    assert len(steps) == 5 and all(line.startswith(f"judge run {TASK} -m scripted/hash ") for line in steps)
    judge("suite", "nuggets", "-m", "scripted/hash")
    result = score(judge, "nuggets")
    scored = {name.partition("[")[2] for name in result.names}
    assert scored == {f"{system}]" for system in ("alpha", "beta", "gamma", "delta", "omega")}
    assert any("there are no human labels" in note for note in result.document["notes"])
    alone = score(judge, "nuggets", "--system", "omega")
    assert alone.value("nugget_all") == result.value("nugget_all[omega]")
    assert "order" in judge("score", "nuggets", "--system", "omega", "--part", "order", code=2).err


def test_missing_and_empty_answers_score_zero(judge: Judge) -> None:
    example(judge)
    judge("nuggets", "import", EXAMPLE / "people.csv", "--judge", "m")
    result = score(judge, "nuggets")
    # delta: tides is empty; bread P N / N, sky P / N, salt - / N S. Vital (0 + .25 + .5)/3, strict 0.
    # All (0 + 1/6 + 1/4 + 1/2)/4; Weighted (0 + .5/2.5 + .5/1.5 + .5)/4.
    assert result.value("nugget_vital[delta]") == pytest.approx(0.25)
    assert result.value("nugget_vital_strict[delta]") == 0
    assert result.value("nugget_all[delta]") == pytest.approx((1 / 6 + 1 / 4 + 1 / 2) / 4)
    assert result.value("nugget_weighted[delta]") == pytest.approx((0.2 + 1 / 3 + 0.5) / 4)
    # omega has no answer to bread: salt alone is in the answers, 1 of 4 topics.
    assert (result.value("nugget_all[omega]"), result["nugget_all[omega]"]["n_units"]) == (0.25, 4)


def ladder(judge: Judge, folder: Path) -> dict[str, list[str]]:
    """One topic with four vital nuggets and five systems, s0 to s4; the units by system."""
    items(judge, folder, "d", [{"id": "t", "question": "What?"}])
    answers(judge, folder, [("t", f"s{n}", "default", f"Answer {n}.") for n in range(5)])
    nuggets = [{"text": f"Nugget {n}", "importance": "vital"} for n in range(4)]
    judge("nuggets", "import", write_jsonl(folder / "n.jsonl", [{"qid": "t", "nuggets": nuggets}]))
    return {f"s{n}": [f"d:t@s{n}@default#n{k}" for k in range(4)] for n in range(5)}


def supported(units: dict[str, list[str]], counts: list[int]) -> dict[str, str]:
    """The first so many nuggets of each system are supported."""
    return {
        unit: S if place < count else N
        for count, units_of_answer in zip(counts, units.values(), strict=True)
        for place, unit in enumerate(units_of_answer)
    }


def test_rankings_by_judge_and_people(judge: Judge, tmp_path: Path) -> None:
    units = ladder(judge, tmp_path)
    give(TASK, supported(units, [0, 1, 2, 3, 4]))
    people(TASK, {"ann": supported(units, [0, 1, 2, 4, 3])})
    result = score(judge, "nuggets")
    assert [result.value(f"nugget_vital_strict[s{n}]") for n in range(5)] == [0, 0.25, 0.5, 0.75, 1]
    # Ten pairs of systems, of which people order one the other way: (9 - 1)/10.
    assert result.value("tau_b[nugget_vital_strict]") == pytest.approx(0.8)


def test_a_topic_that_people_labelled_in_part_ranks_nobody(judge: Judge, tmp_path: Path) -> None:
    units = ladder(judge, tmp_path)
    give(TASK, supported(units, [0, 1, 2, 3, 4]))
    labels = supported(units, [0, 1, 2, 3, 4])
    del labels[units["s2"][3]]
    people(TASK, {"ann": labels})
    result = score(judge, "nuggets")
    assert result.value("tau_b[nugget_vital]") is None
    assert any("1 more topic is left out" in note for note in result.document["notes"])


def test_rankings_use_the_topics_that_people_labelled_fully(judge: Judge, tmp_path: Path) -> None:
    """Topics have different numbers of nuggets; one label on the long topic must not remove the other topic's."""
    numbers = {"t": 4, "long": 6, "none": 5}
    items(judge, tmp_path, "d", [{"id": t, "question": f"What of {t}?"} for t in numbers])
    answers(judge, tmp_path, [(t, f"s{n}", "default", f"{t} {n}.") for t in numbers for n in range(5)])
    nuggets = [
        {"qid": t, "nuggets": [{"text": f"{t} {k}", "importance": "vital"} for k in range(n)]}
        for t, n in numbers.items()
    ]
    judge("nuggets", "import", write_jsonl(tmp_path / "n.jsonl", nuggets))
    units = {
        t: {f"s{n}": [f"d:{t}@s{n}@default#n{k}" for k in range(count)] for n in range(5)}
        for t, count in numbers.items()
    }
    # On the other topics the judge orders the systems the other way round.
    by_judge = {"t": [0, 1, 2, 3, 4], "long": [5, 4, 3, 2, 0], "none": [5, 4, 3, 2, 0]}
    give(TASK, {unit: label for t in numbers for unit, label in supported(units[t], by_judge[t]).items()})
    labels = supported(units["t"], [0, 1, 2, 4, 3])
    people(TASK, {"ann": labels | {units["long"]["s0"][0]: S}})
    result = score(judge, "nuggets", "--part", "order")
    for form in ("vital", "vital_strict", "weighted", "weighted_strict", "all", "all_strict"):
        # As above: nine of ten pairs in the same order.
        assert result.value(f"tau_b[nugget_{form}]") == pytest.approx(0.8)
        assert result[f"tau_b[nugget_{form}]"]["n_units"] == 1
    [note] = [note for note in result.document["notes"] if "labelled fully" in note]
    assert "1 of 3 topics" in note and "1 more topic is left out" in note


def test_corrected_by_people(judge: Judge) -> None:
    example(judge)
    judge("nuggets", "import", EXAMPLE / "people.csv", "--annotator", "cleo")
    with Store.open("study.db", create=False) as store:
        query = "SELECT unit_id FROM units WHERE kind = 'nugget' AND answer_id LIKE '%@alpha@default' ORDER BY rowid"
        units = [unit for (unit,) in store.conn.execute(query)]
        # cleo keeps her labels of alpha's answers to tides and sky.
        store.conn.execute("DELETE FROM labels WHERE unit_id LIKE '%bread%' OR unit_id LIKE '%salt%'")
        store.conn.commit()
    give(TASK, dict.fromkeys(units, P))
    result = score(judge, "nuggets", "--system", "alpha", "--reference", "cleo")
    rows = result.corrected
    # The judge says half of everything. cleo: tides (1 + .5 + 1)/3, sky 1.
    assert rows["nugget_all"]["judge_only"]["value"] == result.value("nugget_all") == 0.5
    by_people = rows["nugget_all"]["human_only"]
    assert (by_people["value"], by_people["n_units"]) == (pytest.approx((2.5 / 3 + 1) / 2), 2)
    assert rows["nugget_vital_strict"]["human_only"]["value"] == 1.0
    # A judge that says the same of all answers tells nothing: the people's mean stays.
    assert rows["nugget_all"]["ppi"]["value"] == pytest.approx((2.5 / 3 + 1) / 2)


def test_a_system_that_nobody_labelled_has_no_corrected_value(judge: Judge, tmp_path: Path) -> None:
    """Its empty answer scores 0 without a label, and was taken for people's opinion of the system."""
    items(judge, tmp_path, "d", [{"id": t, "question": f"What of {t}?"} for t in ("tides", "sky", "salt")])
    answers(judge, tmp_path, [("tides", "beta", "default", ""), ("sky", "beta", "default", "Blue.")])
    nuggets = [
        {"qid": t, "nuggets": [{"text": "n", "importance": "vital"}]} for t in ("tides", "sky", "salt")
    ]
    judge("nuggets", "import", write_jsonl(tmp_path / "n.jsonl", nuggets))
    answers(judge, tmp_path, [("tides", "alpha", "default", "Moon.")])
    give(TASK, {"d:tides@alpha@default#n0": S, "d:sky@beta@default#n0": S})
    people(TASK, {"cleo": {"d:tides@alpha@default#n0": N}})
    rows = score(judge, "nuggets", "--system", "beta", "--reference", "cleo", "--partial").corrected
    assert rows["nugget_all"]["human_only"]["value"] is None
    assert rows["nugget_all"]["ppi"]["value"] is None


def test_claims_of_answers_are_no_nuggets(judge: Judge, tmp_path: Path) -> None:
    example(judge)
    result: Scored
    give(TASK, {"tides:sky@beta@default#n0": S, "tides:sky@beta@default#n1": N})
    result = score(judge, "faithfulness", "--system", "beta", "--part", "claims", "--partial")
    assert all("nugget" not in row["task"] for row in result.document["runs"])
    assert result.value("ragas_faithfulness") is None
