"""judge demo: the whole flow on shipped data."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.helpers import Done, checked
from tests.real import require

Judge = Callable[..., Done]
TASKS = ["stance.v1", "mirage_support.v1", "garage_relevance.v1"]
COUNTS = ("ok", "unparsed", "refused", "truncated", "failed", "reused")


def test_json(judge: Judge, tmp_path: Path) -> None:
    document = checked(judge("demo", "-m", "scripted/hash", "--json").out, "demo")
    assert [t["task"] for t in document["tasks"]] == TASKS
    assert (document["study"], document["model"]) == ("demo.db", "scripted/hash")
    for name in ("units", "labelled", "unparsed", "refused", "truncated", "failed", "reused"):
        assert document[name] == sum(t[name] for t in document["tasks"]), name
    for task in document["tasks"]:
        assert sum(task[c] for c in COUNTS) == task["units"] == task["labelled"]
        assert 0 < task["units"] <= 20
        assert {m["measure"] for m in task["measures"]} == {"percent", "cohen_kappa", "krippendorff_alpha"}
        for measure in task["measures"]:
            assert (measure["n_units"], measure["coverage"]) == (task["units"], 1.0)
        [labels] = [v for f, v in task["labels"].items() if f in ("stance", "support", "relevance")]
        assert sum(labels.values()) == task["units"]
    assert (tmp_path / "demo.db").is_file()


def test_again_it_goes_on_where_it_was(judge: Judge) -> None:
    few = checked(judge("demo", "-m", "scripted/hash", "-n", "2", "--json").out, "demo")
    assert (few["units"], few["reused"]) == (6, 0)
    more = checked(judge("demo", "-m", "scripted/hash", "-n", "3", "--json").out, "demo")
    assert (more["units"], more["reused"], more["labelled"]) == (9, 6, 9)
    all_there = judge("demo", "-m", "scripted/hash", "-n", "3")
    assert "all judged before" in all_there.out


def test_what_people_read(judge: Judge) -> None:
    done = judge("demo", "-m", "scripted/hash", "-n", "3")
    for task in TASKS:
        assert f"\n{task}: " in done.out
    assert "3 of 3 units have a label" in done.out
    assert "cohen_kappa" in done.out
    assert "everything is in demo.db" in done.out
    assert "near chance" not in done.out, "that is said of the small model only"
    # The three commands to try next are commands that work.
    commands = re.findall(r"^  judge (.+)$", done.out.partition("Try next:")[2], re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        judge(*command.split())


@pytest.mark.parametrize(("model", "status"), [("garbage", "unparsed"), ("refuse", "refused")])
def test_a_flow_that_ends_without_labels_has_ended(judge: Judge, model: str, status: str) -> None:
    document = checked(judge("demo", "-m", f"scripted/{model}", "-n", "2", "--json").out, "demo")
    assert (document[status], document["labelled"]) == (6, 0)
    for task in document["tasks"]:
        for measure in task["measures"]:
            assert measure["value"] is None
            assert measure["reason"]
    assert "0 of 2 units have a label" in judge("demo", "-m", f"scripted/{model}", "-n", "2").out


def test_a_model_that_is_not_there(judge: Judge, tmp_path: Path) -> None:
    judge("demo", "-m", "openai/m", code=3)
    judge("demo", "-m", "nobody/m", code=2)
    judge("demo", "-d", "no/such/folder/demo.db", "-m", "scripted/hash", code=1)


@pytest.mark.real
def test_the_embedded_model(judge: Judge) -> None:
    require("embedded-model")
    text = judge("demo", "-n", "1").out
    assert "near chance" in text
    assert "judge demo -d better.db -m openai/" in text
    rows = checked(judge("runs", "list", "-d", "demo.db", "--json").out, "runs")["rows"]
    assert [(r["task"], r["model"], r["ok"]) for r in rows] == [(t, "llamacpp/smollm2", 1) for t in TASKS]
