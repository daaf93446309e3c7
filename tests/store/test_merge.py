"""judge studies merge: everything of all studies, once; what differs is named, and then nothing is written."""

import errno
import json
import re
import resource
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.store import Store
from judge.store.locks import lock_file
from judge.store.origin import origins
from judge.store.runs import add_probes
from tests.cli.helpers import Done, checked, process, script, write_rows
from tests.jobs.helpers import submit, write_batch
from tests.loopback.batches_server import OpenAIBatchServer
from tests.loopback.wire import threaded
from tests.runner.helpers import select
from tests.store.helpers import without_trigger
from tests.tui import studies

Judge = Callable[..., Done]


def rows(*numbers: int, letters: str = "ab", **changed: Any) -> list[Mapping[str, Any]]:
    """Claims with passages; `changed` replaces keys of all of them."""
    return [
        {
            "id": f"c{n}",
            "claim": f"Claim {n}.",
            "passages": [{"id": p, "text": f"Text {n}{p}.", "gold": {"stance": "support"}} for p in letters],
            **changed,
        }
        for n in numbers
    ]


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> Callable[..., Path]:
    """`study("a", rows)`: a study of these rows, judged by `replies` (part of the prompt -> label)."""

    def make(name: str, given: list[Mapping[str, Any]], replies: Mapping[str, str] | None = None) -> Path:
        path = tmp_path / f"{name}.db"
        file = write_rows(tmp_path / f"{name}.jsonl", given)
        judge("items", "import", "jsonl", file, "--dataset", "d", "-d", path)
        if replies is not None:
            ask(judge, path, replies)
        return path

    return make


def ask(judge: Judge, path: Path, replies: Mapping[str, str], **kept: Any) -> str:
    """A run of one judge (`--as` says so), whatever the script of this study says."""
    lines = [(part, json.dumps({"stance": label})) for part, label in replies.items()]
    file = script(path.with_suffix(".script"), lines)
    judge("run", "stance", "-m", "scripted/file", "--option", f"script={file}", "-d", path, code=None)
    with Store.open(path) as store, store.transaction() as conn:
        # The content of a script is part of its identity; these stand for one model on two machines.
        text = "json_remove({0}, '$.content', '$.options')"
        conn.execute(f"UPDATE runs SET identity = {text.format('identity')}")
        run: str = conn.execute("SELECT run_id FROM runs ORDER BY started DESC").fetchone()[0]
    return run


def counted(path: Path, table: str) -> int:
    n: int = select(path, f"SELECT count(*) FROM {table}")[0][0]
    return n


def labels(path: Path) -> dict[str, str]:
    """unit -> label of the only run."""
    return dict(select(path, "SELECT unit_id, value FROM labels JOIN runs ON run_id = annotator_id"))


def test_two_halves_are_one_study_that_asks_nothing_again(judge: Judge, study: Callable[..., Path]) -> None:
    a, b = study("a", rows(0, 1, 2)), study("b", rows(2, 3))
    for path in (a, b):
        judge("run", "stance", "-m", "scripted/hash", "-d", path)
    document = checked(judge("studies", "merge", a, b, "--into", "c.db", "--json").out, "studies-merge")
    # c2 with its two passages is in both: 3 + 2 - 1 items, two passages each, an item being a unit of its own.
    added = [(r["items"], r["passages"], r["units"], r["runs_joined"]) for r in document["rows"]]
    assert added == [(3, 6, 9, 0), (1, 2, 3, 1)]
    [run] = checked(judge("runs", "list", "--json", "-d", "c.db").out, "runs")["rows"]
    assert (run["units"], run["ok"]) == (8, 8)
    again = judge("run", "stance", "-m", "scripted/hash", "-d", "c.db", "--json")
    assert json.loads(again.out)["already_judged"] == 8
    fresh = study("d", rows(0, 1, 2, 3))
    judge("run", "stance", "-m", "scripted/hash", "-d", fresh)
    assert labels(Path("c.db")) == labels(fresh)
    for same in (
        "SELECT type, name, sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_*' ORDER BY 1, 2",
        "SELECT unit_id FROM units ORDER BY rowid",
    ):
        assert select(Path("c.db"), same) == select(fresh, same)
    assert select(Path("c.db"), "SELECT * FROM run_counts") == [(run["run_id"], 0, "ok", 8)]
    assert select(Path("c.db"), "PRAGMA foreign_key_check") == []


def test_a_new_passage_of_a_known_item_stands_after_the_others(
    judge: Judge, study: Callable[..., Path]
) -> None:
    a, b = study("a", rows(0, 1)), study("b", rows(0, 1, letters="cbd"))
    judge("studies", "merge", a, b, "--into", "c.db")
    query = "SELECT passage_id, position FROM passages WHERE item_id = 'd:c1' ORDER BY position"
    assert select(Path("c.db"), query) == [
            ("d:c1/a", 0), ("d:c1/b", 1), ("d:c1/c", 2), ("d:c1/d", 3),
        ]  # fmt: skip


GOLD_REFUTES = [{"id": "a", "text": "Text 0a.", "gold": {"stance": "refute"}}]
Given = tuple[list[Mapping[str, Any]], dict[str, str] | None]


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        (
            (rows(0, 1), None),
            ([*rows(0, claim="Another claim."), *rows(1)], None),
            "items 'd:c0': claim is 'Another claim.' in one study and 'Claim 0.'",
        ),
        (
            (rows(0), None),
            (rows(0, passages=GOLD_REFUTES), None),
            "gold's label for 'stance' of 'd:c0/a' is 'refute' in one study and 'support'",
        ),
        (
            (rows(0, 1), {"Text": "support"}),
            (rows(1, 2), {"Text 1b": "refute", "Text": "support"}),
            "unit 'd:c1/b': the labels are stance refute in one study and stance support",
        ),
    ],
    ids=["text", "gold", "answer"],
)
def test_a_difference_under_one_id_is_named_and_nothing_is_written(
    judge: Judge, study: Callable[..., Path], tmp_path: Path, first: Given, second: Given, difference: str
) -> None:
    a, b = study("a", *first), study("b", *second)
    done = judge("studies", "merge", a, b, "--into", "c.db", code=1)
    [line] = [line for line in done.err.splitlines() if line.startswith("differs: ")]
    assert difference in line and f"({b} and {a})" in line
    assert "1 conflict, so nothing was written" in done.err
    assert not [*tmp_path.glob("c.db*"), *tmp_path.glob("*.part*")]


def test_the_same_answer_given_twice_is_kept_once_and_said(judge: Judge, study: Callable[..., Path]) -> None:
    a, b = study("a", rows(0, 1), {"Text": "support"}), study("b", rows(1, 2), {"Text": "support"})
    done = judge("studies", "merge", a, b, "--into", "c.db")
    assert "for 2 units, two studies have a judgement with the same label" in done.err
    assert set(labels(Path("c.db")).values()) == {"support"} and len(labels(Path("c.db"))) == 6
    # Both attempts were paid for, and both are kept; the first study's counts.
    assert counted(Path("c.db"), "judgements") == 8
    query = "SELECT judged_at FROM latest_judgements WHERE unit_id = 'd:c1/a'"
    assert select(Path("c.db"), query) == select(a, query)
    query = "SELECT unit_id, attempt, judged_at FROM judgements ORDER BY 1, 2"
    for again in (["c.db", b, a], [a, "c.db", b]):
        judge("studies", "merge", *again, "--into", "e.db")
        assert select(Path("e.db"), query) == select(Path("c.db"), query)
        Path("e.db").unlink()


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("status", ["failed", "unparsed"])
def test_a_label_beats_what_is_none(
    judge: Judge, study: Callable[..., Path], order: str, status: str
) -> None:
    # What no line of the script matches is refused by it: `failed`. No label is called maybe.
    replies = {"Text 0a": "support", **({"Text 0b": "maybe"} if status == "unparsed" else {})}
    paths = {"a": study("a", rows(0), replies), "b": study("b", rows(0), {"Text": "refute"})}
    with closing(sqlite3.connect(paths["b"])) as conn, conn:
        conn.execute("DELETE FROM judgements WHERE unit_id = 'd:c0/a'")
    judge("studies", "merge", *(paths[name] for name in order), "--into", "c.db")
    assert labels(Path("c.db")) == {"d:c0/a": "support", "d:c0/b": "refute"}
    query = "SELECT status FROM judgements WHERE unit_id = 'd:c0/b' ORDER BY attempt"
    # An unreadable reply is repaired once, at once.
    tries = 2 if status == "unparsed" else 1
    assert [s for (s,) in select(Path("c.db"), query)] == [status] * tries + ["ok"]
    assert select(Path("c.db"), "SELECT status, units FROM run_counts") == [("ok", 2)]


def test_a_copy_that_went_on_is_the_same_run(
    judge: Judge, study: Callable[..., Path], tmp_path: Path
) -> None:
    a = study("a", rows(0, 1, 2, 3))
    judge("run", "stance", "-m", "scripted/hash", "-n", "2", "-d", a)
    b = tmp_path / "b.db"
    b.write_bytes(a.read_bytes())
    judge("run", "stance", "-m", "scripted/hash", "-n", "5", "-d", b)
    judge("run", "stance", "-m", "scripted/hash", "--where", "claim = 'Claim 3.'", "-d", a)
    done = judge("studies", "merge", a, b, "--into", "c.db")
    assert "anew" not in done.err
    # 5 of the copy, and the two of claim 3; the copy's own two are the study's.
    assert (
        counted(Path("c.db"), "judgements")
        == counted(Path("c.db"), "labels JOIN runs ON run_id = annotator_id")
        == 7
    )


def test_servers_that_name_the_model_differently(judge: Judge, study: Callable[..., Path]) -> None:
    a, b = study("a", rows(0), {"Text": "support"}), study("b", rows(1), {"Text": "support"})
    with closing(sqlite3.connect(b)) as conn, conn:
        conn.execute("UPDATE runs SET resolved_model = 'another'")
    done = judge("studies", "merge", a, b, "--into", "c.db", code=1)
    assert (
        "different models, 'another' and 'scripted-file'; to join the two runs, pass --same-model" in done.err
    )
    judge("studies", "merge", a, b, "--into", "c.db", "--same-model")
    assert counted(Path("c.db"), "runs") == 1


def test_pairs_whose_halves_come_from_two_studies(judge: Judge, study: Callable[..., Path]) -> None:
    a = study("a", rows(0, pair_id="p", polarity="original"))
    b = study("b", rows(1, pair_id="p", polarity="counter"))
    judge("studies", "merge", a, b, "--into", "c.db")
    assert select(Path("c.db"), "SELECT unit_id FROM units WHERE kind = 'pair'") == [("d:c0~d:c1",)]


def test_a_derived_run_names_the_run_that_its_parent_became(judge: Judge, study: Callable[..., Path]) -> None:
    a, b = study("a", rows(0, 1)), study("b", rows(2, 3))
    for path in (a, b):
        judge("run", "stance", "-m", "scripted/hash", "-d", path)
    judge("run", "stance", "-m", "scripted/first", "-d", b)
    judge("panel", "stance", "--run", "scripted/hash", "--run", "scripted/first", "-d", b)
    judge("studies", "merge", a, b, "--into", "c.db")
    known = {run for (run,) in select(Path("c.db"), "SELECT run_id FROM runs")}
    made = select(Path("c.db"), "SELECT derived_from FROM runs WHERE derived_from IS NOT NULL")
    parents = {p["run"] for (text,) in made for p in json.loads(text)["parents"]}
    assert len(made) == 1 and len(parents) == 2 and parents <= known


def test_what_is_said_of_a_joined_run_is_true_of_both(judge: Judge, study: Callable[..., Path]) -> None:
    """Its probes add up, nobody asked over the units of both, and what was made of a half says so: in either order,
    and the same after the same study once more."""
    a, b = study("a", rows(0, 1)), study("b", rows(2, 3, 4))
    for path, calls in ((a, 3), (b, 4)):
        judge("run", "stance", "-m", "scripted/hash", "-d", path)
        with Store.open(path) as store:
            [run] = store.conn.execute("SELECT run_id FROM runs").fetchone()
            add_probes(store, run, {"calls": calls, "input_tokens": 10, "cost": None})
        judge("run", "stance", "-m", "scripted/first", "-d", path)
        judge("panel", "stance", "--run", run, "--run", "scripted/first", "-d", path)
    judge("studies", "merge", a, b, "--into", "c.db")
    judge("studies", "merge", b, a, "--into", "d.db")
    judge("studies", "merge", "c.db", b, a, "--into", "e.db")
    for merged in ("c.db", "d.db", "e.db"):
        with Store.open(merged) as store:
            query = "SELECT provider FROM runs WHERE model = 'scripted/hash'"
            facts = json.loads(store.conn.execute(query).fetchone()[0])
            assert facts["probes"] == {"calls": 7, "input_tokens": 20, "cost": None}
            assert "selected" not in facts
            made = {
                r for (r,) in store.conn.execute("SELECT run_id FROM runs WHERE derived_from IS NOT NULL")
            }
            texts = origins(store.conn, made)
        assert len(texts) == 2 and all(
            "got new judgements after this run was derived" in text for text in texts.values()
        ), texts
        assert "10/… · finished" in judge("runs", "watch", "scripted/hash", "-d", merged).out
    for path in (a, b):
        with Store.open(path) as store:
            assert "went on" not in str(origins(store.conn, made))


def test_a_run_is_first_that_of_its_own_id(judge: Judge, study: Callable[..., Path]) -> None:
    """A study with two runs of one identity, of which another has one: the elder does not take the place of it."""
    a = study("a", rows(0, 1))
    judge("run", "stance", "-m", "scripted/hash", "-d", a)
    b = Path("b.db")
    b.write_bytes(a.read_bytes())
    with closing(sqlite3.connect(b)) as conn, conn:
        [run_id] = conn.execute("SELECT run_id FROM runs").fetchone()
        for table, column in (("annotators", "annotator_id"), ("runs", "run_id"), ("judgements", "run_id")):
            names = [r[1] for r in conn.execute(f"PRAGMA table_info({table})")]
            listed = ", ".join({column: "'elder'", "started": "'2020'"}.get(name, name) for name in names)
            conn.execute(f"INSERT INTO {table} SELECT {listed} FROM {table} WHERE {column} = ?", [run_id])
    judge("studies", "merge", a, b, "--into", "c.db")
    assert {r for (r,) in select(Path("c.db"), "SELECT run_id FROM runs")} == {run_id, "elder"}
    assert select(Path("c.db"), "SELECT count(*) FROM judgements GROUP BY run_id") == [(4,), (4,)]


def people(path: Path, name: str = "pilot", items: int = 4) -> Path:
    """A study with a batch of which alice has labelled two units."""
    studies.build(path, items=items)
    studies.judge_all(path)
    studies.batch(path, name=name)
    with open_study(path) as store, Desk.open(store, name, "alice") as desk:
        desk.label(1, "stance", "refute")
        desk.label(2, "stance", "neutral")
    return path


def test_batches_come_over_with_their_log(judge: Judge, tmp_path: Path) -> None:
    people(tmp_path / "b.db")
    studies.build(tmp_path / "a.db", items=6)
    studies.judge_all(tmp_path / "a.db")
    labels = "SELECT * FROM batch_labels ORDER BY annotator, position, field, layer"
    with open_study(tmp_path / "b.db") as store:
        before = store.conn.execute(labels).fetchall()
        schema = "SELECT name, sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_*' ORDER BY 1"
        names = store.conn.execute(schema).fetchall()
    judge("studies", "merge", "a.db", "b.db", "--into", "c.db")
    with open_study(tmp_path / "c.db") as store:
        assert store.conn.execute(labels).fetchall() == before
        assert store.conn.execute(schema).fetchall() == names
        for table in ("events", "sessions", "assignments", "batch_units", "exposures"):
            assert counted(tmp_path / "c.db", table) == counted(tmp_path / "b.db", table), table
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            store.conn.execute("DELETE FROM events")
        with Desk.open(store, "pilot", "alice") as desk:
            desk.label(3, "stance", "support")


def test_a_batch_that_went_on_in_two_studies_is_a_conflict(judge: Judge, tmp_path: Path) -> None:
    a = people(tmp_path / "a.db")
    (tmp_path / "b.db").write_bytes(a.read_bytes())
    judge("studies", "merge", a, "b.db", "--into", "same.db")
    assert counted(tmp_path / "same.db", "events") == counted(a, "events")
    with open_study(tmp_path / "b.db") as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(3, "stance", "support")
    done = judge("studies", "merge", a, "b.db", "--into", "c.db", code=1)
    assert "differs: assignments 'pilot/alice/3': the rows in the studies differ" in done.err
    assert not (tmp_path / "c.db").exists()


def test_a_record_that_was_decided_in_one_study_alone_is_a_conflict(judge: Judge, tmp_path: Path) -> None:
    a = people(tmp_path / "a.db")
    with open_study(a) as store:
        store.conn.execute(
            "INSERT INTO quarantine (record, format, place, annotator, unit, code, reason, found_at) "
            "VALUES ('r', 'csv', 'x.csv:2', 'alice', 'u', 'text', 'another text', '2026')"
        )
    (tmp_path / "b.db").write_bytes(a.read_bytes())
    with open_study(tmp_path / "b.db") as store:
        store.conn.execute("UPDATE quarantine SET found_at = '2027'")
    judge("studies", "merge", a, "b.db", "--into", "same.db")
    with open_study(tmp_path / "b.db") as store:
        store.conn.execute("UPDATE quarantine SET status = 'dropped', decided_at = '2026'")
    done = judge("studies", "merge", a, "b.db", "--into", "c.db", code=1)
    assert "differs: quarantine 'r': the rows in the studies differ" in done.err


def test_two_batches_of_other_names_are_both_there(judge: Judge, tmp_path: Path) -> None:
    people(tmp_path / "a.db", "north", items=2)
    people(tmp_path / "b.db", "south", items=2)
    done = judge("studies", "merge", "a.db", "b.db", "--into", "c.db", code=None)
    # The same person gave the same units other labels in the two batches, or the same: here the same seed, the same.
    assert done.code == 0, done.err
    assert counted(tmp_path / "c.db", "batches") == 2


def test_a_split_of_both_is_one_with_the_looks_of_both(judge: Judge, study: Callable[..., Path]) -> None:
    a = study("a", rows(*range(12)))
    judge("split", "stance", "-d", a)
    b = Path("b.db")
    b.write_bytes(a.read_bytes())
    for at, path in enumerate((a, b)):
        # A question that came later, and a look.
        later = write_rows(Path(f"later{at}.jsonl"), rows(20 + at))
        judge("items", "import", "jsonl", later, "--dataset", "d", "-d", path)
        with closing(sqlite3.connect(path)) as conn, conn:
            conn.execute(
                "INSERT INTO split_questions SELECT task_id, ?, 'learn' FROM splits", [f"d:c{20 + at}"]
            )
            looked = f"INSERT INTO split_looks VALUES ('stance', 1, 'compare', '[\"R{at}\"]', 'gold', 0.025, '2026')"
            conn.execute(looked)
    judge("studies", "merge", a, b, "--into", "c.db")
    assert (counted(Path("c.db"), "split_questions"), counted(Path("c.db"), "split_looks")) == (14, 2)
    with closing(sqlite3.connect(b)) as conn, conn, without_trigger(conn, "keep_split_questions_update"):
        conn.execute("UPDATE split_questions SET part = CASE part WHEN 'test' THEN 'learn' ELSE 'test' END")
    done = judge("studies", "merge", a, b, "--into", "d.db", code=1)
    assert "the split of stance was drawn separately" in done.err


def test_jobs_go_on_in_the_new_study(
    judge: Judge, study: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is posted, the other is not; the new study lies in another folder than their files."""
    monkeypatch.setattr("judge.jobs.whole.POLL_SECONDS", 0.01)
    a, b = study("a", rows(0, 1)), study("b", rows(2, 3))
    Path("out").mkdir()
    with threaded(OpenAIBatchServer()) as server:
        words = ["stance", "-m", "openai/loopback", "--answers", "json", "--base-url", server.url]
        write_batch(a, server)
        submit(a)
        write_batch(b, server)
        judge("studies", "merge", b, a, "--into", "out/c.db")
        judge("run", *words, "--batch", "-d", "out/c.db")
        assert (len(server.paid), set(server.paid.values()), server.created) == (8, {1}, 2)
    assert len(labels(Path("out/c.db"))) == 8
    assert counted(Path("out/c.db"), "runs") == 1


def test_one_process_at_a_time_writes_a_file(judge: Judge, study: Callable[..., Path]) -> None:
    a, b = study("a", rows(0)), study("b", rows(1))
    with lock_file(Path("c.db.lock"), "busy"):
        message = judge("studies", "merge", a, b, "--into", "c.db", code=1).err
    assert "another process is merging into this file" in message
    judge("studies", "merge", a, b, "--into", "c.db")
    assert sorted(p.name for p in Path().glob("c.db*")) == ["c.db"]


def test_a_file_system_without_hard_links(
    judge: Judge, study: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*paths: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    judge("studies", "merge", study("a", rows(0)), study("b", rows(1)), "--into", "c.db")
    assert counted(Path("c.db"), "items") == 2
    assert sorted(p.name for p in Path().glob("c.db*")) == ["c.db"]


def test_a_full_disk_is_that_of_the_new_study(study: Callable[..., Path], tmp_path: Path) -> None:
    a, b = study("a", rows(0)), study("b", rows(*range(1, 400)))
    size = a.stat().st_size + 50_000
    words = ("studies", "merge", a, b, "--into", "c.db")

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    message = process(*words, cwd=tmp_path, code=1, preexec_fn=limited).stderr
    assert re.fullmatch(r"judge: --into c\.db: .* so nothing was written; free some space .*\n", message)
    assert not list(tmp_path.glob("c.db*"))


def test_what_cannot_be_merged_is_refused_before_anything(judge: Judge, study: Callable[..., Path]) -> None:
    a, b = study("a", rows(0)), study("b", rows(1))
    assert "at least two studies" in judge("studies", "merge", a, "--into", "c.db", code=2).err
    assert "already exists" in judge("studies", "merge", a, b, "--into", b, code=2).err
    assert "named twice" in judge("studies", "merge", a, f"./{a.name}", "--into", "c.db", code=2).err
    assert "no such study" in judge("studies", "merge", a, "none.db", "--into", "c.db", code=1).err
    Path("text.db").write_text("no database at all, but long enough to be read as one" * 20)
    judge("studies", "merge", a, "text.db", "--into", "c.db", code=1)
    assert not list(Path().glob("c.db*"))


def test_a_merge_that_was_killed_leaves_nothing_under_the_name(
    judge: Judge, study: Callable[..., Path]
) -> None:
    a, b = study("a", rows(0)), study("b", rows(1))
    Path("c.db.part").write_text("half of one")
    judge("studies", "merge", a, b, "--into", "c.db")
    assert not Path("c.db.part").exists()
    assert counted(Path("c.db"), "items") == 2
