"""Jobs for a program of one's own: written, run by nobody we know, and read back into the run."""

import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.jobs import lines, write
from judge.runner.requests import Sampling
from judge.store.selection import Selection
from tests.cli.helpers import Done, checked
from tests.jobs.helpers import (
    MODEL,
    answer_to,
    answered_job,
    job_of,
    read_files,
    requests_in,
    run_files,
    states,
    write_lines,
    write_offline,
)
from tests.loopback.openai_server import OpenAIServer
from tests.real import ROOT
from tests.runner.helpers import attempts, left_in, make_study, numbered, plan, run, select, served

UNITS = 12


async def test_a_batch_leaves_what_a_live_run_leaves(db: Path, tmp_path: Path) -> None:
    """The same run identity, the same request hashes, the same labels."""
    live = make_study(tmp_path / "live.db", numbered(UNITS))
    async with OpenAIServer() as server, served(server) as provider:
        await run(live, provider, plan(MODEL))
    tally = read_files(db, run_files(write_offline(db)))
    assert tally.ended == {"ok": UNITS}
    assert left_in(db) == left_in(live)
    identity = "SELECT task, model, identity FROM runs"
    assert select(db, identity) == select(live, identity)
    usage = "SELECT unit_id, input_tokens, output_tokens, resolved_model, reply FROM judgements"
    assert sorted(select(db, usage)) == sorted(select(live, usage))


def test_the_lines_are_what_run_batch_takes(db: Path) -> None:
    written = write_offline(db)
    rows = requests_in(job_of(written).folder / "part-0001.jsonl")
    assert len(rows) == UNITS
    for row in rows:
        assert (row["method"], row["url"]) == ("POST", "/v1/chat/completions")
        sha, _, attempt = row["custom_id"].partition("-")
        assert (len(sha), attempt) == (40, "1")
        assert row["body"]["model"] == "loopback"
    known = {sha for (sha,) in select(db, "SELECT request_sha FROM requests")}
    assert {row["custom_id"][:40] for row in rows} == {sha[:40] for sha in known}


def test_reading_twice_adds_nothing(db: Path) -> None:
    paths = run_files(write_offline(db))
    read_files(db, paths)
    before = left_in(db), attempts(db)
    tally = read_files(db, paths)
    assert (tally.ended, tally.known, tally.usage) == (Counter(), UNITS, Counter())
    # And the same lines twice in one file, far apart and side by side.
    again = write_lines(paths[0].with_suffix(".twice"), paths[0].read_text("utf-8").splitlines() * 2)
    assert read_files(db, [again]).known == 2 * UNITS
    assert (left_in(db), attempts(db)) == before


def test_lines_that_make_no_sense_fail_their_own_unit(db: Path) -> None:
    folder, good = answered_job(db)

    def body(line: dict[str, object]) -> dict[str, object]:
        return dict(line, response={**line["response"], "body": {"choices": []}})  # type: ignore[dict-item]

    rows = [
        body(good[0]),
        {"custom_id": good[1]["custom_id"], "response": "no"},
        {"custom_id": good[2]["custom_id"]},
        {**good[3], "response": {**good[3]["response"], "body": None}},
        "{ half a line",
        "[" * 100_000,
        '"custom_id"',
        {**good[4], "custom_id": "0" * 40 + "-1"},
        {**good[4], "custom_id": 7},
        *good[4:],
    ]
    tally = read_files(db, [write_lines(folder / "results", rows)])
    # Four units whose lines cannot be read, the other eight are fine.
    assert tally.ended == {"failed": 4, "ok": UNITS - 4}
    assert tally.odd == ["results:5", "results:6", "results:7", "results:9"]
    assert tally.unknown == [f"'{'0' * 40}-1' (results:8)"]
    reasons = {reason for (reason,) in select(db, "SELECT reason FROM judgements WHERE status = 'failed'")}
    assert reasons == {
        "the response has no choices",
        "the response is not JSON",
        "the result line does not have the vendor's format",
    }
    assert "1 lines do not belong to any request in this job" in " ".join(tally.notes())


def test_a_line_longer_than_any_reply_is_not_read(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 5000)
    paths = run_files(write_offline(db))
    rows = paths[0].read_text("utf-8").splitlines()
    tally = read_files(db, [write_lines(paths[0], ["x" * 12_345, *rows])])
    assert tally.odd == ["part-0001.out:1"]
    assert tally.ended == {"ok": UNITS}


def test_errors_say_whether_they_are_asked_again(db: Path) -> None:
    written = write_offline(db)
    asked = requests_in(job_of(written).folder / "part-0001.jsonl")

    def failed(n: int, status: int, message: str, code: str = "") -> dict[str, object]:
        error = {"error": {"message": message, "code": code}}
        return {
            "custom_id": asked[n]["custom_id"],
            "response": {"status_code": status, "body": error},
            "error": None,
        }

    rows = [
        failed(0, 400, "too long"),
        failed(1, 400, "no", "content_filter"),
        failed(2, 429, "slow down"),
        failed(3, 500, "oh"),
        {
            "custom_id": asked[4]["custom_id"],
            "response": None,
            "error": {"code": "batch_expired", "message": "late"},
        },
        # vLLM says why beside an empty body.
        {
            "custom_id": asked[5]["custom_id"],
            "response": {"status_code": 400, "body": None},
            "error": {"message": "no such model"},
        },
    ]
    tally = read_files(db, [write_lines(job_of(written).folder / "errors", rows)])
    assert tally.ended == {"failed": 2, "refused": 1}
    assert tally.unasked == {"HTTP 429: slow down": 1, "HTTP 500: oh": 1, "batch_expired: late": 1}
    assert states(db) == {"answered": 3, "released": 3, "open": UNITS - 6}
    told = dict(
        select(db, "SELECT status, reason FROM judgements WHERE status <> 'refused' ORDER BY reason DESC")
    )
    assert told == {"failed": "HTTP 400: no such model"} or told == {"failed": "HTTP 400: too long"}
    # What nobody worked on can be asked again, and what failed too; what is waited for cannot.
    assert (again := write_offline(db)).lines == 3 + 2
    assert again.waiting == UNITS - 6


async def test_nothing_is_asked_twice(db: Path) -> None:
    """A batch in flight keeps its units from live runs and other jobs, and live answers keep theirs from jobs."""
    async with OpenAIServer(record=True) as server, served(server) as provider:
        await run(db, provider, plan(MODEL, selection=Selection(limit=5)))
        assert server.requests == 5
        written = write_offline(db, plan(MODEL, selection=Selection(limit=9)))
        assert (written.lines, written.resumed) == (4, True)
        report = await run(db, provider, plan(MODEL))
        assert (server.requests, report.reserved, report.pending) == (5 + UNITS - 9, 4, 4)
        assert write_offline(db).waiting == 4
        read_files(db, run_files(written))
        report = await run(db, provider, plan(MODEL))
        assert (server.requests, report.reserved, report.pending) == (5 + UNITS - 9, 0, 0)
    assert attempts(db) == {f"t:{n}/p": ["ok"] for n in range(UNITS)}
    assert select(db, "SELECT count(*) FROM runs") == [(1,)]


def test_units_that_ask_the_same_share_a_line(tmp_path: Path) -> None:
    db = make_study(tmp_path / "study.db", ["same", "other", "same", "same"])
    written = write_offline(db)
    assert (written.lines, written.n_units) == (2, 4)
    tally = read_files(db, run_files(written))
    assert (tally.ended, tally.reused) == ({"ok": 2}, 2)
    rows = select(db, "SELECT reused, input_tokens IS NULL FROM judgements")
    assert Counter(rows) == {(0, 0): 2, (1, 1): 2}
    # A study that knows the answer writes nothing.
    more = make_study(tmp_path / "study.db", ["same", "other", "same", "same", "same"])
    written = write_offline(more)
    assert (written.lines, written.reused, written.job) == (0, 1, None)
    assert attempts(db) == {f"t:{n}/p": ["ok"] for n in range(5)}


def test_a_unit_that_failed_is_asked_again_as_its_next_attempt(db: Path) -> None:
    def broken(line: dict[str, object]) -> dict[str, object]:
        return {**line, "response": {"status_code": 400, "body": {"error": {"message": "no"}}}}

    read_files(db, run_files(write_offline(db), broken))
    written = write_offline(db)
    names = [r["custom_id"] for r in requests_in(job_of(written).folder / "part-0001.jsonl")]
    assert {name.partition("-")[2] for name in names} == {"2"}
    read_files(db, run_files(written))
    assert attempts(db) == {f"t:{n}/p": ["failed", "ok"] for n in range(UNITS)}


def test_answers_that_come_late_do_not_replace_newer_ones(db: Path) -> None:
    first = write_offline(db)
    paths = run_files(first)
    gone = [
        {"custom_id": r["custom_id"], "response": None, "error": {"code": "batch_expired"}}
        for r in requests_in(job_of(first).folder / "part-0001.jsonl")
    ]
    read_files(db, [write_lines(job_of(first).folder / "gone", gone)])
    second = write_offline(db)
    read_files(db, run_files(second), job_of(second).job_id)
    before = left_in(db)
    tally = read_files(db, paths, job_of(first).job_id)
    assert (tally.late, tally.ended) == (UNITS, Counter())
    assert left_in(db) == before


def test_a_file_of_another_job_is_not_kept_in_memory(db: Path, tmp_path: Path) -> None:
    write_offline(db)
    others = write_lines(
        tmp_path / "others", [json.dumps({"custom_id": f"o{n}", "response": None}) for n in range(1200)]
    )
    tally = read_files(db, [others, others])
    assert (tally.named["unknown"], len(tally.unknown)) == (2400, 5)
    assert any("o4' (others:5) and 2,395 more" in told for told in tally.notes())


def test_an_answer_counts_whatever_else_its_file_says_of_the_request(db: Path) -> None:
    """A task that was requeued may leave both in one file: that it was ended, and later its answer."""
    [path] = run_files(write_offline(db))
    answers = path.read_text("utf-8").splitlines()
    ended = [
        json.dumps(
            {"custom_id": json.loads(line)["custom_id"], "response": None, "error": {"code": "batch_expired"}}
        )
        for line in answers
    ]
    tally = read_files(db, [write_lines(path.with_suffix(".both"), [*ended, *answers, *ended])])
    assert (tally.ended, tally.released, tally.unasked) == ({"ok": UNITS}, 0, {})
    assert tally.known == UNITS


def test_codes_come_with_probabilities(db: Path) -> None:
    def lettered(line: dict[str, Any]) -> dict[str, Any]:
        listed = [
            {"token": t, "logprob": math.log(p)}
            for t, p in (("B", 0.9), ("A", 0.06), ("C", 0.02), ("The", 0.02))
        ]
        choice = line["response"]["body"]["choices"][0]
        choice["message"]["content"] = "B"
        choice["logprobs"] = {"content": [{"token": "B", "logprob": math.log(0.9), "top_logprobs": listed}]}
        return line

    written = write_offline(db, plan(MODEL, sampling=Sampling(answers="codes", label_order="reversed")))
    [first, *_] = requests_in(job_of(written).folder / "part-0001.jsonl")
    assert (first["body"]["logprobs"], first["body"]["top_logprobs"]) == (True, 20)
    read_files(db, run_files(written, lettered))
    rows = select(db, "SELECT value, distribution FROM labels WHERE annotator_id <> 'gold'")
    assert len(rows) == UNITS
    # Shown in reverse (neutral, refute, support), the letters are A, B, C in this order.
    [(value, masses)] = set(rows)
    assert value == "refute"
    assert json.loads(masses) == pytest.approx(
        {"support": 0.02, "refute": 0.9, "neutral": 0.06, "unassigned": 0.02}
    )


def test_files_keep_under_the_limit_of_bytes(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = max(f.bytes // f.lines for f in write_offline(db, plan(MODEL, selection=Selection(limit=2))).files)
    monkeypatch.setitem(lines.LIMITS, "openai", (10**6, int(3.5 * one)))
    written = write_offline(db)
    assert [f.lines for f in written.files] == [3, 3, 3, 1]
    for file in written.files:
        assert (job_of(written).folder / file.file).stat().st_size == file.bytes <= 3.5 * one
    monkeypatch.setitem(lines.LIMITS, "openai", (10**6, one // 2))
    with pytest.raises(UsageError, match="more than the vendor allows"):
        write_offline(make_study(db.with_name("small.db"), numbered(1)))


def test_limits_hold_before_anything_is_written(db: Path) -> None:
    whole = write_offline(make_study(db.with_name("whole.db"), numbered(UNITS)))
    # Room for the most that half of the requests can take, give or take the digits of their numbers.
    half = job_of(whole).most_tokens * 6 // UNITS + 10
    written = write_offline(db, plan(MODEL, max_tokens=half))
    assert written.lines == 6
    assert job_of(written).most_tokens <= half
    assert written.stopped is not None
    assert "could exceed the limit" in written.stopped
    # The rest is for another job.
    assert write_offline(db).lines == UNITS - 6


def test_money_is_that_of_batches(db: Path) -> None:
    prices = {MODEL: {"input": 2.0, "output": 8.0, "batch": {"input": 1.0, "output": 4.0}}}
    written = write_offline(db, plan(MODEL, prices=prices))
    most = job_of(written).most_cost
    tally = read_files(db, run_files(written))
    used = tally.usage
    expected = (used["input_tokens"] * 1.0 + used["output_tokens"] * 4.0) / 1e6
    assert tally.spent.cost == pytest.approx(expected)
    assert select(db, "SELECT sum(cost) FROM judgements")[0][0] == pytest.approx(expected)
    # The most is for every byte of the text and the whole token limit of 512.
    assert most is not None and most > UNITS * 512 * 4.0 / 1e6
    assert tally.spent.cost < most


def test_without_a_batch_price_that_of_single_calls_counts(db: Path) -> None:
    prices = {MODEL: {"input": 2.0, "output": 8.0}}
    written = write_offline(db, plan(MODEL, prices=prices, max_cost=100.0))
    price = job_of(written).price
    assert price is not None and (price["input"], price["batch"]) == (2.0, False)
    with pytest.raises(UsageError, match="no price is known"):
        write_offline(make_study(db.with_name("o.db"), numbered(1)), plan(MODEL, max_cost=1.0))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"orders": 2, "answers": "codes"}, "--label-order"),
        ({"answers": "json"}, "--rationale quote"),
        ({"answers": "codes"}, "two calls"),
    ],
)
def test_what_takes_several_calls_is_refused(db: Path, change: dict[str, object], said: str) -> None:
    asked = plan(MODEL, sampling=Sampling(**change))  # type: ignore[arg-type]
    if said == "two calls":
        asked = replace(asked, task=asked.task.thinking("before"))
    if said == "--rationale quote":
        asked = replace(asked, task=asked.task.thinking("quote"))
    with pytest.raises(UsageError, match=said):
        write_offline(db, asked)
    assert select(db, "SELECT count(*) FROM jobs") == [(0,)]
    assert not db.with_suffix(".jobs").exists()


def test_a_rationale_in_json_is_one_call(db: Path) -> None:
    asked = plan(MODEL)
    asked = replace(asked, task=asked.task.thinking("before"))
    read_files(db, run_files(write_offline(db, asked)))
    rows = select(db, "SELECT DISTINCT rationale FROM labels WHERE annotator_id <> 'gold'")
    assert rows == [("because it says so",)]


def test_other_models_are_not_asked_in_batches(db: Path) -> None:
    with pytest.raises(UsageError, match="only for models from anthropic and openai"):
        write_offline(db, plan("scripted/hash"))


def test_what_a_kill_leaves_half_written_keeps_no_unit(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files come first and the job last; here the process dies before the last commit."""

    def die(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(write.jobs, "complete", die)
        patch.setattr(write.jobs, "forget", lambda *args: None)
        with pytest.raises(KeyboardInterrupt):
            write_offline(db)
    assert select(db, "SELECT state FROM jobs") == [("writing",)]
    assert write_offline(db).lines == UNITS
    assert select(db, "SELECT state FROM jobs") == [("open",)]


def test_the_commands(judge: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lines.LIMITS, "openai", (4, 10**9))
    make_study(tmp_path / "study.db", numbered(UNITS))
    written = checked(judge("run", "stance", "-m", MODEL, "--offline", "s", "--json").out, "jobs_write")
    assert [f["lines"] for f in written["files"]] == [4, 4, 4]
    assert "wait for other jobs" in judge("run", "stance", "-m", MODEL, "--offline", "t").out
    for part in (1, 2, 3):
        rows = [answer_to(r) for r in requests_in(tmp_path / "s" / f"part-000{part}.jsonl")]
        write_lines(tmp_path / "s" / f"out{part}", [*rows, {"custom_id": "\x1b[31mmine"}])
    read = checked(judge("jobs", "read", "last", "s/out1", "--json", code=4).out, "jobs_read")
    assert (read["ok"], read["open"], read["unknown"]) == (4, 8, 1)
    done = judge("jobs", "read", written["job"][:12], "s/out1", "s/out2", "s/out3")
    assert "8 ok" in done.out
    assert "4 lines had already been read" in done.out
    assert "\x1b" not in done.err
    assert "'\\x1b[31mmine' (out1:5)" in done.err
    [row] = checked(judge("jobs", "show", "--json").out, "jobs")["rows"]
    assert (row["state"], row["open"], row["answered"]) == ("done", 0, UNITS)
    assert "12 ok" in judge("runs", "show").out


def test_commands_that_ask_for_what_there_is_not(judge: Callable[..., Done], tmp_path: Path) -> None:
    make_study(tmp_path / "study.db", numbered(3))
    assert "no jobs yet; to create one: judge run" in judge("jobs", "read", code=2).err
    offline = ("run", "stance", "-m", MODEL, "--offline")
    assert "no unit has the inputs of" in judge(*offline, "new", "--where", "0", code=2).err
    (tmp_path / "there").mkdir()
    assert "there: already exists" in judge(*offline, "there", code=2).err
    assert "OPENAI_API_KEY is not set" in judge("run", "stance", "-m", MODEL, "--batch", code=3).err
    judge(*offline, "requests")
    # No provider has results of this job: they are in files.
    assert "judge jobs read" in judge("jobs", "read", code=2).err


VLLM = """
import json, sys
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
assert sys.argv[1] == "run-batch", sys.argv
with open(given["-i"]) as asked, open(given["-o"], "w") as out:
    for line in map(json.loads, asked):
        assert line["body"]["model"] == given["--served-model-name"], line["body"]["model"]
        message = {"content": json.dumps({"stance": "support"})}
        body = {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
        out.write(json.dumps({"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}}) + "\\n")
"""
"""Stands for `vllm`: it answers a file, named as `run-batch` names it."""


def test_the_script_for_slurm_of_the_page(db: Path, judge: Callable[..., Done], tmp_path: Path) -> None:
    """Its shell as it stands, one task after the other, each read when it is done."""
    page = (ROOT / "docs" / "batches.md").read_text("utf-8")
    script, vllm = tmp_path / "job.sh", tmp_path / "bin" / "vllm"
    script.write_text(page.split("```bash\n")[1].split("```")[0], encoding="utf-8")
    tasks = re.findall(r"--array=1-(\d+)", page)
    vllm.parent.mkdir()
    vllm.write_text(f"#!{sys.executable}{VLLM}", encoding="utf-8")
    vllm.chmod(0o755)
    judge(*re.findall(r"^\$ judge (run .*--offline requests)$", page, re.MULTILINE)[0].split())
    for line in re.findall(r"^\$ (.*\bshards\b.*)$", page, re.MULTILINE)[:2]:
        subprocess.run(line, shell=True, cwd=tmp_path, check=True, timeout=120)
    for task in range(1, int(tasks[0]) + 1):
        env = {"PATH": f"{vllm.parent}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": str(task)}
        subprocess.run(["bash", str(script)], cwd=tmp_path, env=env, check=True, timeout=120)
        judge("jobs", "read", "last", f"shards/part-{task:04}.out.jsonl", code=None)
    assert set(states(db)) == {"answered"}


def named(line: dict[str, Any], model: str) -> dict[str, Any]:
    line["response"]["body"]["model"] = model
    return line


def test_lines_of_another_model_are_listed_and_get_no_label(db: Path) -> None:
    numbers = iter(range(UNITS))
    [path] = run_files(write_offline(db), lambda line: named(line, "ab"[next(numbers) >= UNITS // 2]))
    tally = read_files(db, [path])
    assert tally.ended == {"ok": UNITS // 2, "failed": UNITS - UNITS // 2}
    assert tally.named["other_model"] or len(tally.other_model) == UNITS - UNITS // 2
    assert any(f"'b' ({path.name}:{UNITS // 2 + 1})" in note for note in tally.notes())
    # What was paid for is kept, and counts as used.
    assert select(db, "SELECT count(*) FROM judgements WHERE input_tokens IS NULL") == [(0,)]
    assert select(db, "SELECT DISTINCT status, resolved_model FROM judgements ORDER BY 1") == [
        ("failed", "b"),
        ("ok", "a"),
    ]


def test_lines_that_contradict_a_stored_answer_are_listed(db: Path) -> None:
    [path] = run_files(write_offline(db))
    read_files(db, [path])
    before = left_in(db)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows[:3]:
        row["response"]["body"]["choices"][0]["message"]["content"] = '{"stance": "no answer"}'
    tally = read_files(db, [write_lines(path.with_suffix(".again"), rows)])
    assert (tally.known, len(tally.contrary)) == (UNITS - 3, 3)
    assert any("contradict" in note and ".again:1" in note for note in tally.notes())
    assert left_in(db) == before


def test_a_key_in_a_result_line_is_not_stored(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-secret-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)

    def echo(line: dict[str, Any]) -> dict[str, Any]:
        line["response"]["body"]["choices"][0]["message"]["content"] += f" {key}"
        line["response"]["body"]["system_fingerprint"] = key
        return named(line, f"m-{key}")

    read_files(db, run_files(write_offline(db), echo))
    stored = select(db, "SELECT reply, resolved_model, system_fingerprint FROM judgements")
    assert key not in str(stored) and "[key]" in str(stored)
