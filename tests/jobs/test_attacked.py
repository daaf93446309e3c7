"""Batches in hostile hands: results that no vendor would write, servers that take their words back, given up files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.errors import ServerFault
from judge.jobs import post
from judge.providers.keys import mask_key
from judge.store import Store
from tests.cli.helpers import Done, checked
from tests.jobs.helpers import (
    answered_job,
    batch,
    fetch,
    lose_post,
    of,
    read_files,
    states,
    submit,
    write_batch,
    write_lines,
)
from tests.loopback.batches_server import Batch, Batching
from tests.loopback.faults import Fault
from tests.loopback.wire import Out
from tests.runner.helpers import plan, select

UNITS = 12
Judge = Callable[..., Done]
Line = dict[str, Any]


def changed(line: Line, **body: Any) -> Line:
    """A good line with another body."""
    response = line["response"]
    return {**line, "response": {**response, "body": {**response["body"], **body}}}


NESTED = "[" * 900 + "]" * 900


@pytest.mark.parametrize(
    "hostile",
    [
        lambda line: changed(line, model="\ud800"),
        lambda line: changed(line, model=["x"] * 3),
        lambda line: changed(line, choices=[{"message": {"content": "\ud800 \x00"}}]),
        lambda line: changed(line, choices=[{"message": {"content": None, "refusal": "\udfff"}}]),
        lambda line: changed(line, choices=[{"message": {"content": 7}, "finish_reason": ["\ud800"]}]),
        lambda line: changed(line, choices={"0": 1}),
        lambda line: changed(line, choices=[None]),
        lambda line: changed(line, choices=[{"message": [1]}]),
        lambda line: changed(line, usage={"prompt_tokens": 10**300, "completion_tokens": -5}),
        lambda line: changed(
            line, usage=[1], choices=[{"message": {"content": "x"}, "logprobs": {"content": [0]}}]
        ),
        lambda line: {**line, "response": {"status_code": 10**40, "body": json.loads(NESTED)}},
        lambda line: {**line, "response": {"status_code": 400, "body": json.loads(NESTED)}},
        lambda line: {
            **line,
            "response": {"status_code": -1, "body": {"error": {"message": "\ud800", "code": {"a": 1}}}},
        },
        lambda line: {
            **line,
            "response": {"status_code": 400, "body": {"error": {"message": ["\ud800"], "type": [1]}}},
        },
        lambda line: {**line, "response": None, "error": {"code": "\ud800", "message": {"a": ["\ud800"]}}},
    ],
)
def test_a_hostile_line_is_missing_data_of_its_own_unit(db: Path, hostile: Callable[[Line], Line]) -> None:
    folder, good = answered_job(db)
    tally = read_files(db, [write_lines(folder / "results", [hostile(good[0]), *good[1:]])])
    assert tally.ended["ok"] >= UNITS - 1
    assert select(db, "SELECT count(DISTINCT unit_id) FROM judgements WHERE status = 'ok'") >= [(UNITS - 1,)]


@pytest.mark.parametrize("name", ["\ud800", "x\x00", "x" * 100_000, "'; DROP TABLE jobs; --", "\x1b[2J"])
def test_a_hostile_name_is_no_request(db: Path, name: str) -> None:
    folder, good = answered_job(db)
    tally = read_files(db, [write_lines(folder / "results", [{**good[0], "custom_id": name}, *good])])
    assert tally.ended == {"ok": UNITS}
    assert len(tally.unknown) == 1
    assert "\x1b" not in tally.unknown[0]


def test_bytes_that_are_no_text(db: Path) -> None:
    folder, good = answered_job(db)
    path = write_lines(folder / "results", good[1:])
    path.write_bytes(b"\xff\xfe\x00{}\n" + json.dumps(good[0]).encode("utf-16") + b"\n" + path.read_bytes())
    tally = read_files(db, [path])
    assert tally.ended["ok"] >= UNITS - 1


def test_given_up_requests_are_not_posted_after_all(
    server: Batching, db: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The post was lost, the units were given back and asked live: the file must stay where it is."""
    monkeypatch.setattr(post, "SETTLE_SECONDS", 0.0)
    lose_post(db, server, arrives=False)
    judge("jobs", "cancel", "--release")
    judge("run", *of(server))
    submit(db)
    judge(*batch(server))
    assert server.created == 0


KEY = "corporate.gateway/token+5150"
WAYS = {
    "plain": KEY,
    "slashes": KEY.replace("/", "\\/"),
    "numbers": "".join(f"\\u{ord(c):04X}" for c in KEY),
    "json in json": json.dumps(KEY.replace("/", "\\/").replace("+", "\\u002b"))[1:-1],
}
"""How a JSON text can write it."""


def test_a_key_that_the_vendor_echoes_is_not_kept(
    server: Batching, db: Path, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key in no known form, in errors, answers and names, written in every way, in no file at any time."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    end = server.end

    def echoing(ended: Batch) -> None:
        end(ended)
        said = " ".join(WAYS.values())
        for name, held in list(server.files.items()):
            # In an answer, too; it becomes a part of it that no label is read from.
            text = held.decode().replace("injected error", f"no such key: {said}")
            server.files[name] = text.replace('"model": "loopback"', f'"model": "{said}"').encode()
        for name, text in list(ended.results.items()):
            ended.results[name] = text.replace("injected error", f"no such key: {said}")

    monkeypatch.setattr(server, "end", echoing)
    server.outcome = lambda line: "error" if int(line["custom_id"][:8], 16) % 2 else "ok"
    done = judge(*batch(server), code=None)
    judge("jobs", "show", "last")
    assert select(db, "SELECT count(*) FROM judgements WHERE reason LIKE '%no such key%'") > [(0,)]
    for way in WAYS.values():
        assert way not in done.out + done.err
        for path in [p for p in tmp_path.rglob("*") if p.is_file()]:
            assert way.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("size", [1, 7, 64, 10**6])
def test_a_key_is_masked_wherever_it_is_cut(size: int) -> None:
    text = "".join(
        f'{{"n": {n}, "said": "Bearer {way}\\n"}}\n' for n, way in enumerate(WAYS.values())
    ).encode()
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    kept = b"".join(mask_key(parts, KEY))
    assert kept == b"".join(b'{"n": %d, "said": "Bearer [key]\\n"}\n' % n for n in range(len(WAYS)))
    # What stands in for a key is a word of answers, too.
    assert b"".join(mask_key([b'"none"'], "none")) == b'"none"'


def test_an_id_that_is_the_key_is_not_kept(
    server: Batching, db: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    shown = server.shown
    monkeypatch.setattr(server, "shown", lambda one: {**shown(one), "id": f"batch {KEY}"})
    write_batch(db, server)
    with pytest.raises(ServerFault, match="no 'id'") as caught:
        submit(db)
    assert select(db, "SELECT count(*) FROM job_parts WHERE batch_id IS NOT NULL") == [(0,)]
    assert KEY not in str(caught.value) + str(submit(db))


CUTS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "nothing": lambda rows: [],
    "without a line": lambda rows: rows[:-1],
    "without its end": lambda rows: [*rows[:-1], rows[-1][:-9]],
    "one line twice": lambda rows: [*rows[:-1], rows[0]],
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("sizes", [True, False], ids=["sizes", "no sizes"])
def test_results_that_are_not_all_there_are_waited_for(
    server: Batching,
    db: Path,
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
    cut: Callable[[list[bytes]], list[bytes]],
    sizes: bool,
) -> None:
    """The first download is cut, as behind a broken cache: what was paid is fetched again, not asked again.

    Errors beside the answers do not make up for those that are missing.
    """
    respond, done_so = server.respond, []
    server.says_sizes = sizes
    server.unordered = False
    # The last line is an answer.
    order: list[str] = []

    def outcome(line: Line) -> str:
        order.append(line["custom_id"])
        return "error" if len(order) in (2, 3) else "ok"

    server.outcome = outcome

    def cut_once(method: str, path: str, head: str, payload: bytes) -> Out:
        out = respond(method, path, head, payload)
        if path.endswith(("/content", "/results")) and not done_so:
            done_so.append(path)
            return Out(b"".join(cut(out.body.splitlines(keepends=True))))
        return out

    monkeypatch.setattr(server, "respond", cut_once)
    done = checked(judge(*batch(server), "--json", code=4).out, "run")
    assert (done["ok"], done["failed"]) == (UNITS - 2, 2)
    assert done_so
    assert (server.created, set(server.paid.values())) == (1, {1})


def test_units_of_which_there_is_no_line_are_named(server: Batching, db: Path, judge: Judge) -> None:
    server.outcome = lambda line: "lost" if server.paid.total() == 5 else "ok"
    write_batch(db, server)
    submit(db)
    done = judge("jobs", "read", code=4)
    assert states(db) == {"answered": 5, "released": UNITS - 5}
    lost = "SELECT unit_id FROM job_requests WHERE state = 'released' ORDER BY custom_id LIMIT 1"
    ((first,),) = select(db, lost)
    assert f"{UNITS - 5} units have no line" in done.err and first in done.err


def test_what_no_list_shows_is_not_posted_again_by_itself(
    server: Batching, db: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch whose answer was lost and that is listed an hour late: nothing is paid twice."""
    monkeypatch.setattr(post, "SETTLE_SECONDS", 0.0)
    lose_post(db, server, arrives=True)
    server.listed_late = 10**6
    assert "--release" in str(submit(db).undecided)
    [row] = checked(judge("jobs", "show", "last", "--json").out, "jobs_status")["rows"]
    assert row["state"] == "posting"
    # A run in batches says the same, and ends when it has waited for as long as a server may be away.
    ended = judge(*batch(server), "--patience", "0.01s", code=4)
    assert "judge jobs cancel" in ended.err
    assert server.created == 1
    server.listed_late = 0
    judge(*batch(server))
    assert states(db) == {"answered": UNITS}
    assert (server.created, set(server.paid.values())) == (1, {1})


def test_a_batch_that_is_said_to_go_on_again_is_not_read(
    server: Batching, db: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines of the vendor: one says that the batch has ended, the next that it has not."""
    shown, told = server.shown, []

    def forgetful(one: Batch) -> dict[str, Any]:
        found = shown(one)
        word = "status" if "status" in found else "processing_status"
        told.append(found[word])
        if len([w for w in told if w in ("completed", "ended")]) == 2:
            found |= {word: "in_progress", "output_file_id": None, "results_url": None}
        return found

    monkeypatch.setattr(server, "shown", forgetful)
    done = checked(judge(*batch(server), "--json").out, "run")
    assert done["labelled"] == UNITS
    assert (server.created, set(server.paid.values())) == (1, {1})


def test_results_that_are_late_after_a_long_batch_are_waited_for(
    server: Batching, db: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.jobs.follow.EARLY_SECONDS", 0.0)
    respond, late = server.respond, [1, 2]

    def late_results(method: str, path: str, head: str, payload: bytes) -> Out:
        if path.endswith(("/content", "/results")) and late:
            late.pop()
            return server.error(404, Fault("404", message="not yet"))
        return respond(method, path, head, payload)

    monkeypatch.setattr(server, "respond", late_results)
    done = checked(judge(*batch(server), "--json").out, "run")
    assert (done["labelled"], server.created) == (UNITS, 1)


def test_whether_a_post_arrived_shows_after_it_was_lost_not_after_it_was_begun(
    server: Batching, db: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A post that hung for ten minutes and was begun at its end, in a list that shows it a moment later."""
    times = iter(["2020-01-01T00:00:00+00:00"])
    real = post.get_time
    monkeypatch.setattr(post, "get_time", lambda: next(times, None) or real())
    lose_post(db, server, arrives=True)
    server.listed_late = 1
    report = submit(db)
    assert ("should list it within" in report.unsure[0], report.undecided) == (True, None)
    assert server.created == 1


def test_an_answer_that_cannot_be_read_is_counted_as_the_most_it_can_have_taken(db: Path) -> None:
    """Vendors bill what they answered, whatever arrived of it: a limit that forgets it is none."""
    folder, good = answered_job(db)
    rows = [changed(line, choices=[]) for line in good[:2]] + [{"custom_id": good[2]["custom_id"]}]
    tally = read_files(db, [write_lines(folder / "results", rows)])
    asked = dict(select(db, "SELECT custom_id, most_tokens FROM job_requests"))
    most = sum(asked[row["custom_id"]] for row in rows)
    assert (tally.ended["failed"], tally.spent.tokens) == (3, most)


def test_answers_to_units_that_were_given_back_wait_for_the_run_that_asks_them(
    server: Batching, db: Path, judge: Judge
) -> None:
    """Both would be the unit's first attempt: a live run must not find it taken when it keeps its answer."""
    write_batch(db, server)
    submit(db)
    fetch(db)
    ((model,),) = select(db, "SELECT model FROM runs")
    with Store.open(db, create=False) as store, store.run_lock(f"{plan(model).task.name} {model}"):
        judge("jobs", "cancel", "--release")
        assert "another process is running" in judge("jobs", "read", code=1).err
        assert states(db) == {"released": UNITS}
    judge("jobs", "read")
    assert states(db) == {"answered": UNITS}
