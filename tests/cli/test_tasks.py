"""judge tasks: list, show, check, render; and a new task that is one file and no Python."""

import json
from pathlib import Path

import pytest

from tests.cli.helpers import ROWS, Judge, checked, script, write_rows
from tests.prompts.helpers import STANCE, changed, write
from tests.real import ROOT

RAG = ROOT / "data" / "examples" / "rag.jsonl"
SHIPPED = ["garage_relevance.v2", "mirage_support.v2", "raguard_exam.v2", "stance.v2"]


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "jsonl", write_rows(tmp_path / "pairs.jsonl"))


def test_list(judge: Judge, tmp_path: Path) -> None:
    names = [r["task"] for r in checked(judge("tasks", "show", "--json").out, "tasks")["rows"]]
    assert set(SHIPPED) <= set(names)
    write(tmp_path / "own", "mine.v1")
    more = [
        r["task"] for r in checked(judge("tasks", "show", "--prompts", "own", "--json").out, "tasks")["rows"]
    ]
    assert more == [*names, "mine.v1"]
    assert "no such folder" in judge("tasks", "show", "--prompts", "gone", code=2).err


def test_show(judge: Judge) -> None:
    assert judge("tasks", "show", "stance").out == (ROOT / "prompts" / "stance.v2.md").read_text("utf-8")
    document = checked(judge("tasks", "show", "stance", "--json").out, "task")
    assert document["front_matter"]["questions"][0]["field"] == "stance"
    assert document["answer_schema"]["properties"]["stance"]["enum"] == ["support", "refute", "neutral"]
    derived = checked(judge("tasks", "show", "raguard_exam", "--json").out, "task")
    assert derived["front_matter"]["derive"]["raguard.role"]["from"] == "verdict", "as in the file"
    assert (
        "unknown task 'stanze' (did you mean stance?); available: "
        in judge("tasks", "show", "stanze", code=2).err
    )


def test_check(judge: Judge, tmp_path: Path) -> None:
    assert judge("tasks", "check").out.count("ok ") == len(
        checked(judge("tasks", "show", "--json").out, "tasks")["rows"]
    )
    good = write(tmp_path / "own", "good.v1")
    bad = write(tmp_path / "own", "bad.v1", changed("inputs", ["claim", "passage", "gold"]))
    done = judge("tasks", "check", good, bad, code=2)
    assert done.out.splitlines()[0].split() == ["ok", "good.v1"]
    assert f"problem  {bad}: inputs: 'gold' cannot be an input" in done.out
    rows = checked(judge("tasks", "check", "--prompts", "own", "--json", code=2).out, "task_check")["rows"]
    assert {r["task"]: r["ok"] for r in rows}["good.v1"] is True
    assert [r["task"] for r in rows if not r["ok"]] == [str(Path("own") / "bad.v1.md")]


def test_render(judge: Judge, study: None) -> None:
    document = checked(judge("tasks", "render", "stance", "--json").out, "prompt")
    assert document["unit"] == "pairs:moon/a"
    assert "Earth has one natural satellite." in document["messages"][-1]["content"]
    codes = checked(judge("tasks", "render", "stance", "--answers", "codes", "--json").out, "prompt")
    assert codes["codes"] == "ABC"
    assert "A = support" in codes["messages"][0]["content"]
    turned = judge("tasks", "render", "stance", "--answers", "codes", "--label-order", "reversed").out
    assert "A = neutral" in turned
    other = judge("tasks", "render", "stance", "--unit", "pairs:tomato/b")
    assert "Italy grows many tomatoes." in other.out
    assert other.err == "unit pairs:tomato/b\n"
    assert "with the id 'pairs:x'" in judge("tasks", "render", "stance", "--unit", "pairs:x", code=2).err
    assert "no unit for mirage_support.v2" in judge("tasks", "render", "mirage_support", code=2).err
    assert (
        "declared, reversed or shuffled:SEED"
        in judge("tasks", "render", "stance", "--label-order", "z", code=2).err
    )


def test_a_task_with_several_questions_has_no_codes(judge: Judge, study: None, tmp_path: Path) -> None:
    questions = [*STANCE["questions"], {"field": "why", "level": "text"}]
    write(tmp_path / "own", "two.v1", {**STANCE, "questions": questions})
    words = ["./own/two.v1.md", "--answers", "codes"]
    assert "use --answers json" in judge("tasks", "render", *words, code=2).err
    assert "use --answers json" in judge("run", *words, "-m", "scripted/hash", code=2).err


# --- a new task: one file, no Python


MOOD = """---
title: What is the mood of the passage?
unit: passage
inputs: [passage]
questions:
  - field: mood
    labels: [{value: gay, key: g}, {value: grave, key: v}]
  - field: strength
    level: ordinal
    labels: [{value: weak}, {value: strong}]
  - {field: score, level: interval, ask: "How long is it, in words?"}
  - {field: word, level: text, ask: "Which word tells?"}
rationale: before
derive:
  tone:
    from: mood
    table: {gay: light, grave: heavy}
examples:
  - item_id: pairs:tomato
    inputs: {passage: A sunny day.}
    answers: {mood: gay, strength: strong, score: "3", word: sunny}
    rationale: It shines.
---
You read moods.
<!-- unit -->
{{ passage }}
{{ answer_cue }}
"""
REPLY = {"rationale": "So it is.", "mood": "grave", "strength": "weak", "score": 4, "word": "moons"}


def test_a_new_task_is_one_file(judge: Judge, study: None, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mood.v1.md").write_text(MOOD, encoding="utf-8")
    assert "ok" in judge("tasks", "check", "own/mood.v1.md").out
    replies = script(
        tmp_path / "replies.jsonl", [("Mars", json.dumps(REPLY)), ("", json.dumps({**REPLY, "mood": "gay"}))]
    )
    words = ["./own/mood.v1.md", "-m", "scripted/file", "--option", f"script={replies}"]
    document = checked(judge("run", *words, "--json").out, "run")
    # Four passages; the two of the item that the example was taken from are left out of scoring.
    assert (document["units"], document["ok"], document["left_out"]) == (2, 2, 2)
    exported = [json.loads(line) for line in judge("runs", "export").out.splitlines()]
    assert [row["unit_id"] for row in exported] == ["pairs:moon/a", "pairs:moon/b"]
    assert [row["labels"]["mood"] for row in exported] == ["gay", "grave"]
    assert [row["labels"]["tone"] for row in exported] == ["light", "heavy"]
    answers = {name: str(value) for name, value in REPLY.items() if name != "rationale"}
    assert exported[1]["labels"] == {**answers, "tone": "heavy"}
    assert exported[1]["rationale"] == "So it is."
    shown = checked(judge("runs", "show", "--json").out, "run_show")
    assert {f["field"]: f["labels"] for f in shown["fields"]} == {
        "mood": {"gay": 1, "grave": 1},
        "strength": {"weak": 2, "strong": 0},
        "score": {"4": 2},
        "word": {"moons": 2},
        "tone": {"light": 1, "heavy": 1},
    }


def test_a_task_on_items(judge: Judge, study: None, tmp_path: Path) -> None:
    front = {**STANCE, "unit": "item", "inputs": ["claim"]}
    write(tmp_path / "own", "claims.v1", front, "Judge.\n<!-- unit -->\n{{ claim }}\n")
    judge("run", "./own/claims.v1.md", "-m", "scripted/hash")
    exported = [json.loads(line) for line in judge("runs", "export").out.splitlines()]
    assert [(r["unit_id"], r["passage_id"]) for r in exported] == [
        ("pairs:moon", None),
        ("pairs:tomato", None),
    ]


@pytest.mark.parametrize("first", [("-n", "1"), ()], ids=["unfinished", "finished"])
def test_a_study_refuses_another_text_under_a_version_it_has_used(
    judge: Judge, study: None, tmp_path: Path, first: tuple[str, ...]
) -> None:
    path = write(tmp_path / "own", "mine.v1")
    judge("run", path, "-m", "scripted/hash", *first)
    path.write_text(path.read_text("utf-8").replace("You judge", "You weigh"), encoding="utf-8")
    done = judge("run", path, "-m", "scripted/hash", code=2)
    assert (
        "the study already contains mine.v1 with different text; save the changed file as mine.v2.md"
        in done.err
    )
    path.rename(path.with_name("mine.v2.md"))
    judge("run", path.with_name("mine.v2.md"), "-m", "scripted/hash")
    assert "mine.v1" in judge("runs", "list").out, "and the old run can still be read"
    assert len(judge("runs", "export").out.splitlines()) == len(ROWS) * 2


@pytest.mark.parametrize(
    "words",
    [
        ("tone",),
        ("tone", "--labels", "friendly,neutral,hostile", "--inputs", "question,passage"),
        ("grade", "--labels", "0,1,2", "--ordinal"),
        ("odd", "--labels", 'yes: "really",no {x},no {{y}}'),
        ("use", "--unit", "answer"), ("s", "--unit", "sentence"), ("c", "--unit", "citation"), ("k", "--unit", "claim"),
        ("p", "--unit", "pair"), ("i", "--unit", "item"),
    ],
)  # fmt: skip
def test_a_new_task_is_checked_and_runs(judge: Judge, words: tuple[str, ...]) -> None:
    done = judge("tasks", "new", *words)
    path = f"{words[0]}.v1.md"
    assert path in done.out and f"judge run ./{path} -m MODEL" in done.err
    assert f"ok       {words[0]}.v1" in judge("tasks", "check", path).out
    assert "already exists" in judge("tasks", "new", *words, code=2).err
    if "--unit" not in words and "{" not in str(words):
        judge("items", "import", "jsonl", RAG)
        ran = json.loads(judge("run", f"./{path}", "-m", "scripted/hash", "--json").out)
        assert ran["labelled"] == ran["units"] == 6


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("x", "--labels", "one"), "at least two different labels"),
        (("x", "--labels", "a,a"), "at least two different labels"),
        (("x", "--inputs", "answer"), "--inputs answer"),
        (("X y",), "X y"),
        (("x", "--folder", "nowhere"), "this folder does not exist"),
    ],
)
def test_what_is_no_new_task(judge: Judge, tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    assert told in judge("tasks", "new", *words, code=2).err
    assert not list(tmp_path.glob("*.md"))
