"""judge answers generate: what the system under test is given, and its replies as answers."""

import json
import random
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.runner import contexts
from judge.store import Store
from tests.answers.helpers import Judge, column, rag, rows
from tests.cli.helpers import checked, script
from tests.formats import write_jsonl
from tests.store.helpers import dump

GENERATE = ("answers", "generate", "qa_answer", "-m", "scripted/hash", "--context")


def given_to(context: str, system: str = "scripted/hash") -> dict[str, list[str]]:
    query = "SELECT item_id, context FROM answers WHERE system = ? AND condition = ?"
    return {item.removeprefix("rag:"): json.loads(c) for item, c in rows(query, system, context)}


def passages(*names: str) -> list[str]:
    return [f"rag:{name}" for name in names]


def test_each_context_gives_its_passages(judge: Judge) -> None:
    rag(judge)
    done = judge(*GENERATE, "none", "--json")
    document = checked(done.out, "answers_generate")
    assert (document["units"], document["ok"], document["new"], document["answers"]) == (3, 3, 3, 3)
    assert (document["system"], document["condition"]) == ("scripted/hash", "none")
    assert given_to("none") == {"tea": [], "bridge": [], "ferry": []}
    assert (
        "1 items were left out, because they have no passage for this context"
        in judge(*GENERATE, "oracle").err
    )
    assert given_to("oracle") == {"tea": passages("tea/cite_1"), "bridge": passages("bridge/cite_1")}
    judge(*GENERATE, "fixed5")
    assert given_to("fixed5")["tea"] == passages("tea/cite_1", "tea/cite_2", "tea/cite_3")
    judge(*GENERATE, "top:2")
    assert given_to("top:2:first:retrieve") == {
        "tea": passages("tea/cite_2", "tea/cite_1"),
        "bridge": passages("bridge/cite_1", "tea/cite_3"),
        "ferry": passages("ferry/cite_1"),
    }
    named = "oracle:relevance=OUTDATED,RELATED-INFORMATION"
    judge(*GENERATE, named)
    assert given_to(named) == {"tea": passages("tea/cite_2"), "ferry": passages("ferry/cite_1")}
    assert column("SELECT count(DISTINCT run_id) FROM runs") == [5]
    assert set(column("SELECT origin FROM answers WHERE system = 'scripted/hash'")) == set(
        column("SELECT run_id FROM runs")
    )
    assert not judge("answers", "show", "--condition", "none").err


def test_noise_comes_from_other_questions_and_is_drawn_with_one_seed(judge: Judge) -> None:
    rag(judge)
    judge(*GENERATE, "oracle+noise:2")
    for item, result in given_to("oracle+noise:2").items():
        assert len(set(result)) == 3
        relevant = [p for p in result if p.startswith(f"rag:{item}/")]
        assert relevant == passages(f"{item}/cite_1"), "noise is never about the same question"
    with Store.open("study.db") as store:
        again = contexts.contexts(store, contexts.parse(store, "oracle+noise:2"))
        assert {k.removeprefix("rag:"): v for k, v in again.items()} == given_to("oracle+noise:2")
    message = judge(*GENERATE, "none+noise:9", code=2).err
    assert "+noise:9: the data set 'rag' has only" in message


BAD = [
    ("every", "--context 'every'"),
    ("top:0", "--context 'top:0'"),
    ("none+noise:0", "--context 'none+noise:0'"),
    ("top:3 --ranking x", "available: first (retrieve)"),
    ("none --stage rerank", "--ranking and --stage require --context top:K"),
    ("none --system a@b", "choose another name with --system"),
    ("misleading", "no unit has the inputs of"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_what_cannot_be_asked_for(judge: Judge, words: str, message: str) -> None:
    rag(judge)
    assert message in judge(*GENERATE, *words.split(), code=2).err


def test_a_task_must_fit(judge: Judge) -> None:
    rag(judge)
    start = ("answers", "generate")
    message = judge(*start, "stance", "-m", "scripted/hash", "--context", "none", code=2).err
    assert "labels units of kind 'passage'; answers are generated for items" in message
    for context in ("oracle", "none+noise:2"):
        message = judge(*start, "counter_claim", "-m", "scripted/hash", "--context", context, code=2).err
        assert "'context': use --context none" in message


def test_resuming_asks_for_nothing_twice_and_keeps_what_a_kill_left(judge: Judge) -> None:
    rag(judge)
    judge(*GENERATE, "fixed5", "-n", "2")
    assert len(given_to("fixed5")) == 2
    document = checked(judge(*GENERATE, "fixed5", "--json").out, "answers_generate")
    assert (document["ok"], document["already_judged"], document["new"], document["answers"]) == (1, 2, 1, 3)
    with Store.open("study.db") as store:
        before = [line for line in dump(store) if '"runs"' not in line]
        # As if the process had been killed after the run's last commit, before the answers were kept.
        store.conn.execute("DELETE FROM units WHERE answer_id LIKE '%@scripted/hash@%'")
        store.conn.execute("DELETE FROM answers WHERE system = 'scripted/hash'")
    document = checked(judge(*GENERATE, "fixed5", "--json").out, "answers_generate")
    assert (document["ok"], document["already_judged"], document["new"]) == (0, 3, 3)
    with Store.open("study.db") as store:
        after = [line for line in dump(store) if '"runs"' not in line]
    assert sorted(after) == sorted(before)


def test_answers_of_another_task_are_not_mixed_in(judge: Judge) -> None:
    rag(judge)
    judge(*GENERATE, "none")
    other = ("answers", "generate", "multiple_choice", "-m", "scripted/hash", "--context", "none")
    message = judge(*other, code=2).err
    assert "'scripted/hash' in the condition 'none' from run" in message
    assert column("SELECT count(*) FROM runs") == [1], "nothing was sent"
    judge(*GENERATE, "none", "--temperature", "0.7", code=2)
    judge(*other, "--system", "chooser")


def test_replies_cite_by_the_markers_they_were_shown(judge: Judge, tmp_path: Path) -> None:
    rag(judge)
    replies = script(
        tmp_path / "s.jsonl",
        [
            ("Which country", "Kenya [cite_2]. China [1][cite_9]."),
            ("footbridge", "Quist [1]. See [2]."),
            ("", "Two crowns \0 [cite_1]."),
        ],
    )
    command = ("answers", "generate", "qa_answer", "-m", "scripted/file", "--option", f"script={replies}")
    judge(*command, "--context", "top:2", "--system", "m")
    assert (
        dict(rows("SELECT item_id, text FROM answers WHERE system = 'm'"))["rag:ferry"]
        == "Two crowns \ufffd [cite_1]."
    )
    cited = {item: json.loads(c) for item, c in rows("SELECT item_id, cited FROM answers WHERE system = 'm'")}
    # Shown as cite_2, cite_1: [1] means cite_1. Shown as cite_1, cite_3: there is no 2, so [2] is the second.
    assert cited["rag:tea"] == passages("tea/cite_2", "tea/cite_1")
    assert cited["rag:bridge"] == passages("bridge/cite_1", "tea/cite_3")
    spans = column("SELECT span FROM units WHERE kind = 'sentence' AND answer_id LIKE 'rag:tea@m@%'")
    assert [json.loads(s).get("unknown") for s in spans] == [None, ["cite_9"]]


def test_a_label_is_an_answer_with_its_distribution_and_without_sentences(judge: Judge) -> None:
    rag(judge)
    command = ("answers", "generate", "multiple_choice", "-m", "scripted/hash", "--option", "logprobs=1")
    judge(*command, "--context", "oracle+noise:1")
    result = rows(
        "SELECT a.text, l.value, l.distribution FROM answers AS a JOIN labels AS l "
        "ON l.annotator_id = a.origin AND l.unit_id = a.item_id WHERE l.field = 'choice'"
    )
    assert len(result) == 2
    for text, value, distribution in result:
        masses = json.loads(distribution)
        assert text == value and set(masses) == {*"ABCDEFGHIJ", "unassigned"}
        assert sum(masses.values()) == pytest.approx(1)
    assert column("SELECT count(*) FROM units AS u JOIN answers AS a USING (answer_id) WHERE u.kind = 'sentence' AND a.system LIKE 'scripted%'") == [0]  # fmt: skip


def test_other_fields_go_to_meta(judge: Judge) -> None:
    rag(judge)
    judge("answers", "generate", "distractor", "-m", "scripted/hash", "--context", "none")
    meta = [json.loads(m) for m in column("SELECT meta FROM answers WHERE system = 'scripted/hash'")]
    assert len(meta) == 2 and all(set(m) == {"fake_document", "similarity"} for m in meta)
    judge("run", "distractor_check", "-m", "scripted/hash", "--where", "answer_system = 'scripted/hash'")
    assert column("SELECT count(*) FROM labels WHERE field = 'distractor_check'") == [2]


def test_what_is_no_answer_is_none(judge: Judge) -> None:
    rag(judge)
    for name in ("garbage", "refuse"):
        done = judge("answers", "generate", "verdict", "-m", f"scripted/{name}", "--context", "none", code=2)
        assert "no unit has the inputs of" in done.err, "these items have no claim"
    generate = "answers generate multiple_choice -m scripted/refuse --context none --json"
    done = judge(*shlex.split(generate), code=4)
    document = checked(done.out, "answers_generate")
    assert (document["refused"], document["answers"]) == (2, 0)
    assert column("SELECT count(*) FROM answers WHERE system = 'scripted/refuse'") == [0]


def test_an_estimate_shows_the_passages_and_sends_nothing(judge: Judge) -> None:
    rag(judge)
    out = judge(*GENERATE, "top:1", "--estimate").out
    assert (
        "qa_answer.v2 with scripted/hash: 3 calls for 3 units" in out
        and "[cite_2] " in out
        and "[[" not in out
    )
    document = checked(judge(*GENERATE, "top:1", "--estimate", "--json").out, "estimate")
    assert document["units"] == 3
    assert column("SELECT count(*) FROM runs") == [0]


def test_raguard_and_mirage_gold_choose_the_passages(judge: Judge, tmp_path: Path) -> None:
    def item(name: str, *labelled: tuple[str, str, Any]) -> dict[str, Any]:
        result = [{"id": p, "text": f"{name} {p}", "gold": {field: v}} for p, field, v in labelled if field]
        return {"id": name, "claim": name, "passages": result}

    role = "raguard.role"
    raguard = item("r", ("a", role, "supporting"), ("b", role, "misleading"), ("c", role, "irrelevant"))
    scifact = item("s", ("a", "stance", "neutral"), ("b", "stance", "refute"), ("c", "stance", "support"))
    mirage = item(
        "m", ("a", "support", "supported"), ("b", "support", "supported"), ("c", "support", "not_supported")
    )
    mirage["passages"][1]["meta"] = {"oracle": True}
    judge("items", "import", "jsonl", write_jsonl(tmp_path / "d.jsonl", [raguard, scifact, mirage]))
    with Store.open("study.db") as store:
        oracle = contexts.contexts(store, contexts.parse(store, "oracle"))
        assert oracle == {"d:r": ["d:r/a", "d:r/b", "d:r/c"], "d:s": ["d:s/b", "d:s/c"], "d:m": ["d:m/b"]}
        assert contexts.contexts(store, contexts.parse(store, "misleading")) == {"d:r": ["d:r/b"]}
    judge("answers", "generate", "verdict", "-m", "scripted/hash", "--context", "misleading")
    assert rows("SELECT answer_id, context FROM answers") == [("d:r@scripted/hash@misleading", '["d:r/b"]')]


@given(st.integers(0, 60), st.integers(0, 5))
def test_the_lazy_shuffle_is_a_permutation(size: int, seed: int) -> None:
    assert sorted(contexts._shuffle(random.Random(seed), size)) == list(range(size))
