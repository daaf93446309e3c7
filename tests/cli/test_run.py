"""judge run: options, counts and exit codes, with models that follow a script."""

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest

from judge.store import Store, study
from tests.cli.helpers import ROWS, Judge, checked, process, script, write_rows
from tests.prompts.helpers import write

STATUSES = ("ok", "unparsed", "refused", "truncated", "failed", "reused", "already_judged", "pending")
HASH = ("run", "stance", "-m", "scripted/hash")


@pytest.fixture(autouse=True)
def imported(judge: Judge, tmp_path: Path) -> None:
    """Four units of `stance`, all with gold."""
    judge("items", "import", "jsonl", write_rows(tmp_path / "pairs.jsonl"))


def run(judge: Judge, *args: str | Path, code: int = 0) -> dict[str, Any]:
    """The summary of a run, whose counts add up."""
    document: dict[str, Any] = checked(judge("run", *args, "--json", code=code).out, "run")
    assert sum(document[s] for s in STATUSES) == document["units"]
    return document


def exported(judge: Judge, name: str = "last") -> list[dict[str, Any]]:
    return [json.loads(line) for line in judge("runs", "export", name).out.splitlines()]


def count(table: str, where: str = "1") -> int:
    with closing(sqlite3.connect("study.db")) as conn, conn:
        return int(conn.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0])


def test_every_unit_is_labelled(judge: Judge) -> None:
    document = run(judge, "stance", "-m", "scripted/first")
    assert (document["task"], document["model"]) == ("stance.v2", "scripted/first")
    assert (document["units"], document["ok"], document["labelled"], document["resumed"]) == (4, 4, 4, False)
    assert document["tokens"]["output_tokens"] == 4, "the script counts one token a reply"
    assert [row["labels"]["stance"] for row in exported(judge)] == ["support"] * 4


def test_a_run_starts_without_numeric_libraries() -> None:
    """pandas and numpy were a third of the time that a run of 50 units took to start and end."""
    code = "import sys\nfrom judge.cli import main\ntry: main(['run', 'stance', '-m', 'scripted/first'])\n"
    code += (
        "except SystemExit: pass\nprint(sorted({'numpy', 'pandas', 'scipy', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert count("judgements") == 4


def test_the_same_command_again_asks_for_nothing(judge: Judge) -> None:
    first = run(judge, "stance", "-m", "scripted/hash")
    kept = exported(judge)
    again = run(judge, "stance", "-m", "scripted/hash")
    assert again["run"] == first["run"]
    assert (again["already_judged"], again["ok"], again["labelled"], again["resumed"]) == (4, 0, 4, True)
    assert exported(judge) == kept
    assert count("judgements") == 4


def test_people_get_a_table_and_the_next_step(judge: Judge) -> None:
    done = judge(*HASH)
    assert "4 of 4 units have a label (4 ok)" in done.out
    name = re.search(r"next: judge runs show (\w{26})$", done.out, re.MULTILINE)
    assert name
    judge("runs", "show", name[1])


# --- units without a label


@pytest.mark.parametrize(("model", "status"), [("garbage", "unparsed"), ("refuse", "refused")])
def test_units_without_a_label_end_with_4(judge: Judge, model: str, status: str) -> None:
    document = run(judge, "stance", "-m", f"scripted/{model}", code=4)
    assert (document[status], document["labelled"]) == (4, 0)
    assert {row["labels"]["stance"] for row in exported(judge)} == {None}
    assert count("labels", "annotator_id <> 'gold'") == 0, "and nothing gets a default"


def test_some_labels_and_some_without(judge: Judge, tmp_path: Path) -> None:
    replies = [
        ("Mars", '{"stance": "neutral"}'),
        ("tomato", '{"stance": "maybe"}'),
        ("", '{"stance": "support"}'),
    ]
    words = ["stance", "-m", "scripted/file", "--option", f"script={script(tmp_path / 's.jsonl', replies)}"]
    document = run(judge, *words, code=4)
    assert (document["ok"], document["unparsed"], document["labelled"]) == (2, 2, 2)
    rows = exported(judge)
    assert [row["status"] for row in rows] == ["ok", "ok", "unparsed", "unparsed"]
    assert "not one of the labels: 'maybe'" in rows[2]["reason"]
    assert rows[2]["reply"] == '{"stance": "maybe"}', "the reply is kept"


def test_most_replies_unparsed_end_with_a_sample_and_the_next_step(judge: Judge, tmp_path: Path) -> None:
    """The user saw how many replies were unparsed, but neither one of them nor what to do."""
    replies = [("", "I would \x1b[31msay so. " + "x" * 500)]
    words = ["stance", "-m", "scripted/file", "--option", f"script={script(tmp_path / 's.jsonl', replies)}"]
    for form, advice in (("codes", "--answers json"), ("json", "--retry unparsed")):
        done = judge("run", *words, "--answers", form, code=4)
        assert "4 of 4 replies are unparsed, such as 'I would" in done.err
        line = next(x for x in done.err.splitlines() if x.startswith("  judge run stance"))
        assert line.endswith(advice) and "x" * 130 not in done.err and "\x1b" not in done.err
        shown = judge("runs", "show").out
        assert "an unparsed reply: 'I would" in shown and "\x1b" not in shown and "x" * 130 not in shown
    assert "unparsed" not in judge("run", "stance", "-m", "scripted/first").err


def test_one_repair_is_tried(judge: Judge, tmp_path: Path) -> None:
    # The second request repeats the first reply and says what was wrong with it.
    replies = [("This could not be used", '{"stance": "refute"}'), ("", "I think it may be so.")]
    words = ["stance", "-m", "scripted/file", "--option", f"script={script(tmp_path / 's.jsonl', replies)}"]
    document = run(judge, *words, "-n", "1")
    assert (document["ok"], document["unparsed"]) == (1, 0)
    assert [row["attempt"] for row in exported(judge)] == [2]
    assert count("judgements") == 2, "both replies are kept"


@pytest.fixture
def changing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of scripted/file is no part of the judge: a model that answers differently another time."""
    monkeypatch.setattr("judge.providers.scripted.Provider.describe", lambda self: {"script": self.name})


@pytest.mark.usefixtures("changing")
def test_retry_asks_again_where_it_is_told_to(judge: Judge, tmp_path: Path) -> None:
    replies = tmp_path / "s.jsonl"
    words = ["stance", "-m", "scripted/file", "--option", f"script={replies}"]
    script(replies, [("Mars", "no idea"), ("", '{"stance": "support"}')])
    assert run(judge, *words, code=4)["unparsed"] == 1
    script(replies, [("", '{"stance": "neutral"}')])
    assert run(judge, *words, code=4)["already_judged"] == 4, (
        "an unparsed answer is not asked for again by itself"
    )
    assert run(judge, *words, "--retry", "refused", code=4)["already_judged"] == 4
    again = run(judge, *words, "--retry", "unparsed")
    assert (again["ok"], again["already_judged"], again["labelled"]) == (1, 3, 4)
    labels = [row["labels"]["stance"] for row in exported(judge)]
    assert labels == ["support", "neutral", "support", "support"]
    assert "'ok' is not one of" in judge("run", *words, "--retry", "ok", code=2).err


@pytest.mark.usefixtures("changing")
def test_failed_calls_are_asked_again_by_the_next_run(judge: Judge, tmp_path: Path) -> None:
    replies = tmp_path / "s.jsonl"
    words = ["stance", "-m", "scripted/file", "--option", f"script={replies}"]
    # No line of the script matches the Martian passage: the provider refuses that request.
    found = [(t, '{"stance": "support"}') for t in ("natural satellite", "South America", "Italy grows")]
    script(replies, found)
    first = run(judge, *words, code=4)
    assert (first["ok"], first["failed"]) == (3, 1)
    [reason] = [row["reason"] for row in exported(judge) if row["status"] == "failed"]
    assert reason == "no line of the script matches this prompt"
    script(replies, [*found, ("", '{"stance": "neutral"}')])
    again = run(judge, *words)
    assert (again["ok"], again["already_judged"], again["labelled"]) == (1, 3, 4)


# --- which units


def test_where_chooses_units(judge: Judge) -> None:
    def chosen(where: str) -> int:
        return int(run(judge, "stance", "-m", "scripted/hash", "--where", where)["units"])

    assert chosen("passage LIKE '%satellite%'") == 1
    assert chosen("item_id = 'pairs:moon' OR item_id = 'pairs:tomato'") == 4, "an OR stays inside"
    assert chosen("dataset = 'pairs' -- all of them") == 4, "a comment stays inside"
    assert (
        chosen("unit_id IN (SELECT unit_id FROM labels WHERE annotator_id = 'gold' AND value = 'neutral')")
        == 2
    )


@pytest.mark.parametrize(
    "where",
    [
        "nonsense = 1",
        "dataset = 'x",
        "1); DROP TABLE items; --",
        "dataset = ?",
        "count(*) > 1",
        ")",
        "json(claim)",
    ],
)
def test_where_that_is_no_condition_lists_the_columns(judge: Judge, where: str) -> None:
    done = judge(*HASH, "--where", where, code=2)
    assert f"--where {where!r}: " in done.err
    assert "the columns are: n, unit_id, kind, " in done.err
    assert done.err.count("\n") == 1
    assert count("runs") == 0, "a run that cannot start is not a run"


def test_no_unit_is_a_usage_error(judge: Judge) -> None:
    assert "no unit has the inputs of" in judge(*HASH, "--where", "dataset = 'none'", code=2).err
    assert "no unit has the inputs of" in judge("run", "mirage_support", "-m", "scripted/hash", code=2).err
    assert count("runs") == 0, "no run is left of it"


def test_n_takes_the_first_units_and_the_next_run_the_rest(judge: Judge) -> None:
    assert run(judge, "stance", "-m", "scripted/hash", "-n", "2")["ok"] == 2
    assert [row["unit_id"] for row in exported(judge)] == ["pairs:moon/a", "pairs:moon/b"]
    more = run(judge, "stance", "-m", "scripted/hash", "-n", "3")
    assert (more["units"], more["ok"], more["already_judged"]) == (3, 1, 2)


def test_a_sample_is_drawn_the_same_every_time(judge: Judge, tmp_path: Path) -> None:
    rows = [{"id": str(n), "claim": "c", "passages": [f"text {n}"]} for n in range(40)]
    judge("items", "import", "jsonl", write_rows(tmp_path / "many.jsonl", rows))

    def drawn(seed: int, db: str) -> list[str]:
        (tmp_path / db).write_bytes((tmp_path / "study.db").read_bytes())
        judge(*HASH, "--where", "dataset = 'many'", "--sample", str(seed), "-n", "10", "-d", db)
        return [json.loads(line)["item_id"] for line in judge("runs", "export", "-d", db).out.splitlines()]

    with closing(sqlite3.connect("study.db")) as conn, conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    one = drawn(1, "a.db")
    assert len(one) == 10
    assert drawn(1, "b.db") == one
    assert drawn(2, "c.db") != one
    assert one != [f"many:{n}" for n in range(10)], "and it is not simply the first ten"


def test_units_without_an_input_are_left_out_and_counted(judge: Judge, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "q.jsonl", [{"id": "1", "question": "q", "passages": ["t"]}])
    judge("items", "import", "jsonl", path)
    done = judge(*HASH)
    assert "1 units were left out: they lack one of claim, passage" in done.err
    assert run(judge, "stance", "-m", "scripted/hash")["left_out"] == 1


# --- estimates, budgets, repeats


def test_an_estimate_calls_nothing_and_writes_nothing(judge: Judge, tmp_path: Path) -> None:
    with Store.open("study.db") as store:
        kept = list(store.conn.iterdump())
    # A script that does not exist yet would fail on the first call; the server does not exist at all.
    words = ["stance", "-m", "openai/m", "--base-url", "http://127.0.0.1:9", "--estimate"]
    document = checked(judge("run", *words, "--json").out, "estimate")
    assert (document["units"], document["left_out"]) == (4, 0)
    prompts = [checked(judge("tasks", "render", "stance", "--unit", u, "--answers", "codes", "--json").out, "prompt")
               for u in ("pairs:moon/a", "pairs:moon/b", "pairs:tomato/a", "pairs:tomato/b")]  # fmt: skip
    size = sum(len(m["content"]) for p in prompts for m in p["messages"])
    # Four characters a token and a few for the answer: an estimate, within a third of the prompts' size.
    assert 0.66 < document["input_tokens"] / (size / 4) < 1.5
    assert "Earth has one natural satellite." in document["first_prompt"][-1]["content"]
    text = judge("run", *words).out
    assert "stance.v2 with openai/m: 4 calls for 4 units" in text
    with Store.open("study.db") as store:
        assert list(store.conn.iterdump()) == kept


def test_a_token_budget_stops_the_run_before_it_is_passed(judge: Judge) -> None:
    # A call takes some 200 tokens here, and sets some 1,500 aside.
    done = judge(*HASH, "--max", "1800tokens", "--json", code=4)
    document = checked(done.out, "run")
    assert sum(document[s] for s in STATUSES) == document["units"] == 4
    assert 0 < document["ok"] < 4
    assert document["pending"] > 0
    assert sum(document["tokens"].values()) <= 1800
    assert "the limit of 1,800 tokens" in document["stopped"]
    assert f"{document['pending']} units to go; to resume: judge run stance -m scripted/hash" in done.err
    assert run(judge, "stance", "-m", "scripted/hash")["labelled"] == 4


def test_repeats_ask_every_unit_again(judge: Judge) -> None:
    document = run(judge, "stance", "-m", "scripted/hash", "--repeats", "3")
    assert (document["units"], document["ok"]) == (12, 12)
    rows = exported(judge)
    assert [row["repeat"] for row in rows] == [0] * 4 + [1] * 4 + [2] * 4
    more = run(judge, "stance", "-m", "scripted/hash", "--repeats", "4")
    assert (more["units"], more["ok"], more["already_judged"]) == (16, 4, 12)


def test_other_options_are_another_run(judge: Judge) -> None:
    names = {
        run(judge, "stance", "-m", "scripted/hash", *options)["run"]
        for options in ([], ["--temperature", "1"], ["--temperature", "none"], ["--seed", "1"], ["--answers", "codes"],
                        ["--label-order", "reversed"], ["--as", "another"])
    }  # fmt: skip
    assert len(names) == 7
    # How much is asked for, how far and how fast, makes no other run.
    for options in (["--concurrency", "1"], ["--max", "100000tokens"], ["--max-output-tokens", "7"], ["--timeout", "9"],
                    ["--answers", "json"]):  # fmt: skip
        assert run(judge, "stance", "-m", "scripted/hash", *options)["already_judged"] == 4
    assert (
        len(names | {row["run_id"] for row in json.loads(judge("runs", "list", "--json").out)["rows"]}) == 7
    )


def test_a_judge_has_the_name_that_it_is_given(judge: Judge) -> None:
    document = run(judge, "stance", "-m", "scripted/hash", "--as", "my judge")
    assert document["model"] == "my judge"
    shown = json.loads(judge("runs", "show", "--json").out)
    assert (shown["model"], shown["options"]["asked_as"]) == ("my judge", "scripted/hash")
    assert run(judge, "stance", "-m", "scripted/hash", "--as", "my judge")["already_judged"] == 4
    assert "printable" in judge("run", "stance", "-m", "scripted/hash", "--as", " ", code=2).err


def test_another_script_is_another_judge(judge: Judge, tmp_path: Path) -> None:
    replies = script(tmp_path / "s.jsonl", [("", '{"stance": "support"}')])
    words = ["stance", "-m", "scripted/file", "--option", f"script={replies}"]
    first = run(judge, *words)
    script(replies, [("", '{"stance": "neutral"}')])
    other = run(judge, *words)
    assert (other["ok"], other["reused"], other["run"] == first["run"]) == (4, 0, False)
    assert {row["labels"]["stance"] for row in exported(judge)} == {"neutral"}
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes(replies.read_bytes())
    again = run(judge, "stance", "-m", "scripted/file", "--option", f"script={moved}")
    assert (again["already_judged"], again["run"]) == (4, other["run"]), (
        "the contents count, not the file's name"
    )


def test_identical_requests_are_sent_once(judge: Judge, tmp_path: Path) -> None:
    twin = [{**row, "id": f"{row['id']}-twin"} for row in ROWS]
    judge("items", "import", "jsonl", write_rows(tmp_path / "twins.jsonl", twin))
    document = run(judge, "stance", "-m", "scripted/hash")
    assert (document["units"], document["ok"], document["reused"], document["labelled"]) == (
        8,
        4,
        4,
        8,
    )


# --- codes and distributions


def test_label_probabilities_are_stored(judge: Judge) -> None:
    judge(*HASH, "--option", "logprobs=1")
    for row in exported(judge):
        masses = row["distributions"]["stance"]
        # The script puts 0.5 on its choice, 0.49 on the others together, and 0.01 on no label.
        assert set(masses) == {"support", "refute", "neutral", "unassigned"}
        assert sum(masses.values()) == pytest.approx(1)
        assert masses["unassigned"] == pytest.approx(0.01)
        assert masses[row["labels"]["stance"]] == pytest.approx(0.5)


def test_the_label_order_turns_the_codes_and_not_the_labels(judge: Judge) -> None:
    judge("run", "stance", "-m", "scripted/first", "--answers", "codes", "--label-order", "reversed")
    # `first` answers A, and A is the last label when the order is reversed.
    assert [(row["reply"], row["labels"]["stance"]) for row in exported(judge)] == [("A", "neutral")] * 4


# --- gold and derived labels


def test_derived_labels_and_a_note_where_there_is_no_gold(judge: Judge, tmp_path: Path) -> None:
    rows = [
        {"id": "t", "claim": "One.", "gold": {"claim_verdict": "true"}, "passages": ["a"]},
        {"id": "f", "claim": "Two.", "gold": {"claim_verdict": "false"}, "passages": ["b"]},
        {"id": "none", "claim": "Three.", "passages": ["c"]},
    ]
    judge("items", "import", "jsonl", write_rows(tmp_path / "gold.jsonl", rows))
    # `first` says "true" of everything.
    done = judge("run", "raguard_exam", "-m", "scripted/first", "--where", "dataset = 'gold'")
    assert "1 answers have no 'raguard.role'" in done.err
    roles = [row["labels"]["raguard.role"] for row in exported(judge)]
    assert roles == ["supporting", "misleading", None]


# --- what goes wrong


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["nothing", "-m", "scripted/hash"], 2, "unknown task 'nothing'"),
        (["stance", "-m", "nobody/x"], 2, "must have the form vendor/name"),
        (["stance", "-m", "scripted"], 2, "must have the form vendor/name"),
        (["stance", "-m", "scripted/x"], 2, "scripted/x"),
        (["stance", "-m", "scripted/file"], 2, "needs --option script=FILE"),
        (["stance", "-m", "scripted/file", "--option", "script=gone"], 2, "gone: No such file"),
        (["stance", "-m", "scripted/hash", "--option", "delay"], 2, "--option delay: must"),
        (["stance", "-m", "scripted/hash", "--label-order", "up"], 2, "shuffled:SEED"),
        (["stance", "-m", "scripted/hash", "-n", "0"], 2, "-n"),
        (["stance"], 2, "--model"),
        (["stance", "-m", "openai/m"], 3, "OPENAI_API_KEY"),
        (["stance", "-m", "anthropic/m"], 3, "ANTHROPIC_API_KEY"),
        (["stance", "-m", "openai/m", "--base-url", "http://127.0.0.1:9"], 3, "127.0.0.1:9"),
    ],
)
def test_exit_codes(judge: Judge, args: list[str], code: int, words: str) -> None:
    done = judge("run", *args, code=code)
    assert words in done.err
    assert count("judgements") == 0


def test_a_script_with_a_bad_line_names_it(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"match": "x", "reply": "y"}\n{"match": "x"}\n')
    done = judge("run", "stance", "-m", "scripted/file", "--option", f"script={path}", code=1)
    assert f"{path}:2: not a JSON object with the key 'reply'" in done.err


def test_a_study_that_is_locked_says_so(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect("study.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    done = judge(*HASH, code=1)
    other.close()
    assert "study.db: the study is still locked" in done.err


def test_two_processes_do_not_run_the_same_thing(judge: Judge, tmp_path: Path) -> None:
    with Store.open("study.db") as store, store.run_lock("stance.v2 scripted/hash"):
        done = process(*HASH, cwd=tmp_path, code=1)
        assert "another process is running stance.v2 scripted/hash; " in done.stderr
        process("run", "stance", "-m", "scripted/first", cwd=tmp_path)
    process(*HASH, cwd=tmp_path)


def test_a_task_that_cannot_show_a_unit_stops_before_any_call(judge: Judge, tmp_path: Path) -> None:
    bad = write(tmp_path / "own", "bad.v1", body="Judge.\n<!-- unit -->\n{{ claim }}\n")
    assert "'passage' is declared but never shown" in judge("run", bad, "-m", "scripted/hash", code=2).err
    assert count("runs") == 0


def test_estimate(judge: Judge, tmp_path: Path) -> None:
    """Four units of a model with list prices, and of one that has none."""
    document = checked(
        judge("run", "stance", "-m", "openai/gpt-5-mini", "--estimate", "--json").out, "estimate"
    )
    # Nothing was measured on this server.
    assert (document["units"], document["calls"], document["seconds"]) == (4, 4, None)
    assert document["online"] == pytest.approx(2 * document["batch"])
    shown = judge("run", "stance", "-m", "openai/gpt-5-mini", "--estimate").out
    assert "genai-prices" in shown and "as a batch $" in shown
    assert (
        "cost: free of charge (it runs in this process)"
        in judge("run", "stance", "-m", "scripted/hash", "--estimate").out
    )
    assert "no price is known" in judge("run", "stance", "-m", "openai/own", "--estimate").out
    assert count("judgements") == 0
    # What runs in this process costs nothing, so that the same command can be tried without a vendor.
    tried = json.loads(judge("run", "stance", "-m", "scripted/hash", "--max", "2usd", "--json").out)
    assert (tried["labelled"], tried["cost"]["usd"]) == (4, 0.0)


@pytest.mark.parametrize("words", [("--estimate", "--offline", "x"), ("--batch", "--offline", "x")])
def test_a_run_is_done_in_one_way(judge: Judge, words: tuple[str, ...]) -> None:
    assert "cannot be used together" in judge("run", "stance", "-m", "openai/m", *words, code=2).err
    assert count("runs") == 0


def test_help_shows_the_common_options_by_section_and_help_all_every_one(judge: Judge) -> None:
    common, every = judge("run", "--help").out, judge("run", "--help-all").out
    shown = re.findall(r"^  (?:-\w, )?(--?[\w-]+)", common, re.MULTILINE)
    assert len(shown) <= 20, "with --help and --help-all"
    assert all(f"\n{title}:" in common for title in ("What", "Model", "Limits", "Output"))
    from judge.cli.run import run as command_of_run

    for param in command_of_run.params:
        if isinstance(param, click.Option):
            assert max(param.opts, key=len) in every


@pytest.mark.parametrize(
    ("text", "code"), [("1h30m", 0), ("90s", 0), ("90", 0), ("2d", 2), ("", 2), ("0s", 2), ("0usd", 2)]
)
def test_lengths_of_time(judge: Judge, text: str, code: int) -> None:
    judge(*HASH, "--max", text, code=code)
