"""judge start: from a file to the first report, by commands that a user can type alone."""

import csv
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import annotate.cli
from judge.cli.start import start
from judge.errors import Exit
from tests.cli.helpers import Judge
from tests.forks import Command, together
from tests.loopback.process import ServerProcess
from tests.real import ROOT, require
from tests.runner.helpers import select
from tests.tui.terminal import Terminal

RAGAS = ROOT / "data" / "examples" / "ragas.csv"


COLUMNS = ("user_input", "retrieved_contexts", "response")


def table(
    path: Path,
    rows: int,
    columns: Sequence[str] = COLUMNS,
    first: int = 0,
    answer: str = "Town {n} has {n}.",
) -> Path:
    """A RAGAS table as pandas writes it: questions from `first` on, with two contexts and an answer each."""
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(columns)
        for n in range(first, first + rows):
            contexts = [f"Town {n} has {n} churches.", f"It's said that town {n} is old."]
            writer.writerow([f"How many churches has town {n}?", repr(contexts), answer.format(n=n)])
    return path


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess("openai", "--logprobs", "none") as running:
        yield running


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    table(tmp_path / "mine.csv", 12)
    return tmp_path / "study.db"


def printed(err: str) -> list[list[str]]:
    return [shlex.split(line.removeprefix("$ ")) for line in err.splitlines() if line.startswith("$ ")]


def contents(db: Path) -> list[list[tuple[object, ...]]]:
    """What a study has, without its times and ids of runs."""
    return [
        select(db, "SELECT item_id, question FROM items ORDER BY 1"),
        select(db, "SELECT answer_id, text FROM answers ORDER BY 1"),
        select(db, "SELECT batch, unit_id, role FROM batch_units ORDER BY 1, 2"),
        select(
            db,
            "SELECT r.task, r.model, j.unit_id, j.status FROM judgements j JOIN runs r USING (run_id) ORDER BY 1, 3",
        ),
    ]


def test_it_has_few_options() -> None:
    assert len([p for p in start.params if p.param_type_name == "option"]) <= 8


def test_the_printed_commands_typed_alone_make_the_same_study(judge: Judge, study: Path) -> None:
    done = judge("start", "mine.csv", "-m", "scripted/hash")
    typed = printed(done.err)
    assert [words[:3] for words in typed] == [
        ["judge", "items", "import"],
        ["judge", "run", "claim_decomposition"],
        ["judge", "run", "claim_decomposition"],
        ["judge", "answers", "claims"],
        ["judge", "run", "claim_support"],
        ["judge", "run", "claim_support"],
        ["annotate", "batches", "new"],
        ["judge", "score", "faithfulness"],
        ["annotate", "report", "--task"],
    ]
    assert "question = user_input, passages = retrieved_contexts, answer = response" in done.err
    assert "ragas_faithfulness" in done.out
    assert "No verdict yet" in done.err
    assert "No verdict yet" in study.with_suffix(".html").read_text("utf-8")
    # The batch is there, and who has no terminal gets the line to type.
    assert "annotate open pilot-claim_support --as me" in done.err
    # No step suggests a next command that the script types itself.
    assert "next:" not in done.err + done.out
    made = contents(study)
    (study.parent / "alone").mkdir()
    shutil.move(study, study.parent / "alone" / "first.db")
    for words in typed:
        if words[1:3] == ["answers", "claims"]:
            words[3] = "last"
        if words[0] == "judge":
            judge(*words[1:])
        else:
            with pytest.raises(SystemExit) as ended:
                annotate.cli.main(words[1:], prog_name="annotate")
            assert not ended.value.code
    assert contents(study) == made


def test_calls_that_may_cost_money_need_a_yes(judge: Judge, study: Path, server: ServerProcess) -> None:
    words = ("start", "mine.csv", "-m", "openai/loopback-1", "--base-url", server.url, "--task", "relevant")
    refused = judge(*words, code=Exit.USAGE)
    assert "24 calls to openai/loopback-1 may cost money" in refused.err
    assert "--yes" in refused.err.splitlines()[-1]
    assert server.stats()["requests"] == 0
    done = judge(*words, "--yes")
    # 24 passages, and the short questions that find out what the server can do.
    paid = server.stats()["requests"]
    assert paid >= 24
    assert select(study, "SELECT count(*) FROM judgements WHERE status = 'ok'") == [(24,)]
    assert "already imported" in done.err
    # Typed again: nothing is asked, nothing is drawn, and the report is written anew.
    study.with_suffix(".html").unlink()
    again = judge(*words)
    assert server.stats()["requests"] == paid
    assert [words[:3] for words in printed(again.err)] == [["annotate", "report", "--task"]]
    assert select(study, "SELECT count(*) FROM batches") == [(1,)]
    assert study.with_suffix(".html").exists()


def test_a_second_export_adds_its_answers_and_asks_about_them_only(judge: Judge, study: Path) -> None:
    judge("start", "mine.csv", "-m", "scripted/hash")
    table(study.parent / "other.csv", 12, answer="It is said that town {n} has {n}.")
    done = judge("start", "other.csv", "-m", "scripted/hash")
    assert select(study, "SELECT count(*), count(DISTINCT item_id), count(DISTINCT system) FROM answers") == [
        (24, 12, 2)
    ]
    assert "12 calls for 24 units" in done.out
    scored = "judge score faithfulness -m scripted/hash --part claims --system all"
    assert scored.split() in [words[:-2] for words in printed(done.err)]


def test_a_table_with_names_of_its_own_goes_on_after_the_import_by_hand(judge: Judge, study: Path) -> None:
    table(study.parent / "mine.csv", 3, ("frage", "texte", "antwort"))
    refused = judge("start", "mine.csv", "-m", "scripted/hash", code=Exit.ERROR)
    [told] = [line for line in refused.err.splitlines() if line.startswith("judge: ")]
    assert "judge items import" in told
    assert not study.exists() or select(study, "SELECT count(*) FROM items") == [(0,)]
    maps = [
        word for pair in ("question=frage", "passages=texte", "answer=antwort") for word in ("--map", pair)
    ]
    judge("items", "import", "csv", "mine.csv", *maps)
    assert "already imported" in judge("start", "mine.csv", "-m", "scripted/hash").err
    assert select(study, "SELECT count(*) FROM answers") == [(3,)]


def test_a_judge_without_a_label_ends_before_anybody_labels(judge: Judge, study: Path) -> None:
    told = judge("start", "mine.csv", "-m", "scripted/garbage", "--task", "relevant", code=Exit.INCOMPLETE)
    assert "judge runs show" in told.err.splitlines()[-1]
    assert select(study, "SELECT count(*) FROM batches") == [(0,)]


def test_a_file_without_passages_for_the_embedded_model(judge: Judge, study: Path) -> None:
    (study.parent / "claims.jsonl").write_text('{"id": "1", "claim": "Tea is hot."}\n')
    told = judge("start", "claims.jsonl", code=Exit.USAGE).err.splitlines()[-1]
    assert "choose another judge with -m MODEL" in told


@pytest.mark.real
def test_without_a_model_it_says_what_the_embedded_one_is_worth(judge: Judge, study: Path) -> None:
    require("embedded-model")
    done = judge("start", "mine.csv")
    assert "kappa) is about 0.3" in done.err
    assert "--yes" not in done.err
    assert select(study, "SELECT task, model FROM runs") == [("relevant.v2", "embedded/minilm")]


@together
def test_killed_between_its_calls_it_pays_each_once(study: Path) -> None:
    table(study.parent / "mine.csv", 40)
    with ServerProcess("openai", "--logprobs", "none", "--delay", "0.2") as server:
        words = ["start", str(study.parent / "mine.csv"), "-m", "openai/loopback-1", "--base-url", server.url]
        words += ["--task", "relevant", "--yes", "-d", str(study)]
        first = Command("judge", *words)
        end = time.monotonic() + 60
        while server.stats()["requests"] < 20 and time.monotonic() < end:
            time.sleep(0.05)
        first.kill()
        first.communicate(10)
        kept = select(study, "SELECT count(*) FROM judgements WHERE status = 'ok'")[0][0]
        before = server.stats()["requests"]
        out, err = Command("judge", *words).communicate(60)
        assert "The report, to open in a browser" in err, out + err
        assert select(study, "SELECT count(*), count(DISTINCT unit_id) FROM judgements") == [(80, 80)]
        # The second time asks for what the first did not keep, and the eleven short questions to a new server.
        assert 80 - kept <= server.stats()["requests"] - before <= 80 - kept + 11
    assert select(study, "SELECT count(*) FROM batch_units") == [(80,)]


@pytest.mark.real
def test_at_a_terminal_it_asks_labels_and_goes_on_after_a_kill(study: Path, server: ServerProcess) -> None:
    require("tmux")
    words = ["start", str(study.parent / "mine.csv"), "-m", "openai/loopback-1", "--base-url", server.url]
    words += ["--task", "relevant", "-d", str(study)]
    done = "SELECT count(*) FROM assignments WHERE status = 'done'"
    first = Terminal(100, 40)
    try:
        first.type("export OPENAI_API_KEY=sk-test", "Enter")
        first.run(*words, program="judge")
        first.until("Make these 24 calls?")
        first.type("n", "Enter")
        first.until("run the same command again to continue")
        assert server.stats()["requests"] == 0
        first.run(*words, program="judge")
        first.until("Make these 24 calls?")
        first.type("y", "Enter")
        first.until("1/24")
        first.type("r")
        first.until(" 1 done")
        first.type("n")
        first.until(" 2 done")
        subprocess.run(["kill", "-9", str(first.child())], check=True)
        first.until("Killed")
    finally:
        first.close()
    assert select(study, done) == [(2,)]
    second = Terminal(100, 40)
    try:
        second.type("export OPENAI_API_KEY=sk-test", "Enter")
        second.run(*words, program="judge")
        second.until("3/24")
        second.type("r")
        second.until(" 3 done")
        second.type("C-q")
        second.until("The report, to open in a browser")
    finally:
        second.close()
    assert select(study, done) == [(3,)]
    assert select(study, "SELECT count(*) FROM batches") == [(1,)]
    page = study.with_suffix(".html").read_text("utf-8")
    assert re.search(r"at 24 units|3 of 24|24 units", page)


def test_the_examples_of_the_data_folder_go_through(judge: Judge, study: Path) -> None:
    """A trace file, several files of one tool, and a table."""
    traces = ROOT / "data" / "examples" / "traces"
    for n, files in enumerate(
        [[RAGAS], [traces / "langfuse.jsonl"], [traces / "otlp.json"], sorted(traces.glob("phoenix*"))]
    ):
        done = judge("start", *files, "-m", "scripted/hash", "-d", f"{n}.db")
        assert "ragas_faithfulness" in done.out, files


def test_the_report_without_a_terminal_comes_from_the_installed_program(study: Path) -> None:
    """As a user runs it: a process of its own, whose output goes into a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "judge", "start", "mine.csv", "-m", "scripted/hash"],
        cwd=study.parent, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.dumps("No verdict yet")[1:-1] in done.stderr


def add_claims(db: Path, system: str, *counts: int) -> None:
    """The system's answers without claims get so many, in turn, as `judge answers claims` stores them."""
    query = (
        "SELECT answer_id, item_id, question_id FROM answers JOIN items USING (item_id) WHERE system = ? "
        "AND answer_id NOT IN (SELECT answer_id FROM units WHERE kind = 'claim') ORDER BY answers.rowid"
    )
    insert = "INSERT INTO units (unit_id, kind, item_id, question_id, answer_id, span) VALUES (?, 'claim', ?, ?, ?, ?)"
    with sqlite3.connect(db) as conn:
        for place, (answer, item, question) in enumerate(conn.execute(query, [system]).fetchall()):
            for n in range(counts[place % len(counts)]):
                span = json.dumps({"n": n, "claim": f"Claim {n}."})
                conn.execute(insert, [f"{answer}#c{n}", item, question, answer, span])


def drawn(db: Path, batch: str) -> list[tuple[str, str]]:
    """(question, unit) of the sample of a batch."""
    query = f"SELECT question_id, unit_id FROM batch_units JOIN units USING (unit_id) WHERE batch = '{batch}' ORDER BY 1, 2"
    return [(str(question), str(unit)) for question, unit in select(db, query)]


def test_claims_are_drawn_as_whole_questions(judge: Judge, study: Path) -> None:
    table(study.parent / "many.csv", 120)
    judge("items", "import", "many.csv")
    add_claims(study, "many", 1, 3)
    judge("start", "many.csv", "-m", "scripted/hash", "--task", "claim_support")
    sample = drawn(study, "pilot-claim_support")
    # Mean 2 and standard deviation 1: 2 k - 2 sqrt(k) is 98.9 at 57 questions and 100.8 at 58.
    [(asked,)] = select(study, "SELECT json_extract(options, '$.by_question') FROM batches")
    assert asked == 58 == len({question for question, _ in sample})
    assert len(sample) >= 100
    # Every claim of a drawn question is in the sample, and all have one probability.
    questions = ",".join(repr(question) for question, _ in sample)
    every = select(study, f"SELECT count(*) FROM units WHERE kind = 'claim' AND question_id IN ({questions})")
    assert every == [(len(sample),)]
    [(low, high)] = select(study, "SELECT min(probability), max(probability) FROM batch_units")
    assert low == high == pytest.approx(58 / 120)


def test_what_came_later_gets_a_batch_of_its_own(judge: Judge, study: Path) -> None:
    """A second system's claims were in no batch, and nothing said so."""
    table(study.parent / "one.csv", 100)
    table(study.parent / "two.csv", 100, answer="It has {n} of them.")
    words = ("-m", "scripted/hash", "--task", "claim_support")
    judge("items", "import", "one.csv")
    add_claims(study, "one", 2)
    judge("start", "one.csv", *words)
    first = drawn(study, "pilot-claim_support")
    # 100 claims are wanted, and each question has 2.
    assert (len(first), len({question for question, _ in first})) == (100, 50)
    assert "came since" not in judge("start", "one.csv", *words).err
    judge("items", "import", "two.csv")
    add_claims(study, "two", 2)
    done = judge("start", "two.csv", *words)
    assert "200 units were added after batch 'pilot-claim_support' was drawn" in done.err
    assert "annotate report --task claim_support --batch pilot-claim_support" in done.err
    second = drawn(study, "pilot-claim_support-2")
    # The same half of the questions, so that the systems can be compared pair by pair.
    assert {question for question, _ in second} == {question for question, _ in first}
    assert all("@two@" in unit for _, unit in second)
    # A larger export of the first system: 10 questions more, of which the same half is drawn.
    table(study.parent / "more.csv", 10, first=100)
    judge("items", "import", "more.csv", "--system", "one")
    add_claims(study, "one", 1)
    judge("start", "more.csv", *words)
    assert len(drawn(study, "pilot-claim_support-3")) == 5
    assert select(study, "SELECT DISTINCT probability FROM batch_units") == [(0.5,)]
    assert len(select(study, "SELECT batch FROM batches")) == 3
    judge("start", "more.csv", *words)
    assert len(select(study, "SELECT batch FROM batches")) == 3


def test_a_frame_that_changed_otherwise_is_named(judge: Judge, study: Path) -> None:
    words = ("start", "mine.csv", "-m", "scripted/hash", "--task", "relevant")
    judge(*words)
    with sqlite3.connect(study) as conn:
        conn.execute("UPDATE passages SET text = '' WHERE rowid = 1")
    done = judge(*words)
    assert "pilot-relevant" in done.err
    assert select(study, "SELECT count(*) FROM batches") == [(1,)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--task", "faithfulness"), "for faithfulness, choose a judge with -m MODEL"),
        (("--task", "stance", "-m", "scripted/hash"), "no unit has the inputs of stance.v2"),
        (("--task", "nosuch", "-m", "scripted/hash"), "unknown task 'nosuch'"),
        (("-m", "nosuch/model"), "nosuch"),
    ],
)
def test_what_cannot_be_judged_is_refused_before_anything_is_stored(
    options: tuple[str, ...], reason: str, judge: Judge, study: Path
) -> None:
    assert reason in judge("start", "mine.csv", *options, code=Exit.USAGE).err
    assert not study.exists()


def test_answers_without_contexts_begin_with_what_they_allow(judge: Judge, study: Path) -> None:
    """It stored the file, and then there was no task for it."""
    (study.parent / "aqrm.csv").write_text("question,answer,reference,model\nHow many?,Two.,Two.,gpt\n")
    told = judge("start", "aqrm.csv", "-m", "scripted/hash", "--task", "faithfulness", code=Exit.USAGE).err
    assert "needs answers with contexts" in told
    assert "choose another judge with -m MODEL" in judge("start", "aqrm.csv", code=Exit.USAGE).err
    assert not study.exists()
    done = judge("start", "aqrm.csv", "-m", "scripted/hash")
    assert "task: eligibility (to choose another, use --task: deflection)" in done.err
    assert select(study, "SELECT count(*) FROM batch_units") == [(1,)]


def test_a_copy_of_the_file_is_known(judge: Judge, study: Path) -> None:
    judge("start", "mine.csv", "-m", "scripted/hash")
    shutil.copy(study.parent / "mine.csv", study.parent / "copy.csv")
    assert "already imported" in judge("start", "copy.csv", "-m", "scripted/hash").err
    assert select(study, "SELECT DISTINCT system FROM answers") == [("mine",)]
