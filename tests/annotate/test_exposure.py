"""The ledger of exposures: what a person was shown of a unit decides who may label it, and what is blind."""

import sqlite3
from pathlib import Path

import pytest

from annotate.leading.adjudication import fill_queue
from annotate.packing.merge import merge
from annotate.packing.pack import pack
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.errors import UsageError
from judge.store import Store
from judge.store.items import ImportInfo, add_items
from judge.types import Item, Passage, Row, Vote, Where
from tests.annotate.agreement_helpers import annotate
from tests.tui.studies import batch, build, drawn, judge_all, labels, rows_of


def ledger(path: Path, person: str = "alice") -> set[tuple[str, str, str, str, str]]:
    with open_study(path) as store:
        rows = store.conn.execute(
            "SELECT unit_id, what, field, batch, how FROM exposures WHERE person = ?", [person]
        )
        return set(rows.fetchall())


def saw(
    path: Path, unit: str, what: str = "judge", field: str = "", at: str = "2026-01-02T00:00:00.000Z"
) -> None:
    """Note that another batch showed something of a unit to alice."""
    with open_study(path) as store, store.transaction() as conn:
        conn.execute(
            "INSERT INTO exposures (person, unit_id, what, field, batch, how, at) "
            "VALUES ('alice', ?, ?, ?, 'other', 'sitting', ?)",
            [unit, what, field, at],
        )


def garage(path: Path) -> Path:
    """Questions with two passages, of which gold calls one relevant, and an answer of two sentences."""

    def rows() -> list[Row]:
        result = []
        for i in range(4):
            passages = [
                Passage(text=f"Passage {p} of {i}.", source_id=f"p{p}",
                        votes=[Vote("relevance", "ANSWER-THE-QUESTION" if p == 0 else "IRRELEVANT")])
                for p in range(2)
            ]  # fmt: skip
            result.append(Row(Item(str(i), "g", question=f"Q{i}?", passages=passages), Where("t", i)))
        return result

    def bad(e: Exception) -> None:
        raise e

    with Store.open(path) as store:
        add_items(store, rows(), ImportInfo("test", {}), [], bad)
        with store.transaction() as conn:
            for i in range(4):
                conn.execute(
                    "INSERT INTO answers VALUES (?, ?, 'sys', 'c', 'One. Two.', '[]', NULL, '{}', '', 'test')",
                    [f"g:{i}@sys@c", f"g:{i}"],
                )
                for n, (a, b) in enumerate([(0, 4), (5, 9)]):
                    conn.execute(
                        "INSERT INTO units (unit_id, kind, item_id, question_id, answer_id, span) "
                        "VALUES (?, 'sentence', ?, ?, ?, json_object('start', ?, 'end', ?, 'cited', json('[]')))",
                        [f"g:{i}@sys@c#s{n}", f"g:{i}", f"g:{i}", f"g:{i}@sys@c", a, b],
                    )
    return path


@pytest.mark.parametrize("first", ["garage_relevance", "grounding_relevant"])
def test_passages_chosen_by_gold_are_not_shown_to_who_labels_them(tmp_path: Path, first: str) -> None:
    """Before: the same person got both, and the report said that nobody can read gold."""
    path = garage(tmp_path / "g.db")
    second = {"garage_relevance": "grounding_relevant", "grounding_relevant": "garage_relevance"}[first]
    batch(path, first, n=8, name="one")
    with pytest.raises(
        UsageError, match=r"alice: batch 'one' and this batch together show the known answer for 8 units"
    ):
        batch(path, second, n=8, name="two")
    with open_study(path) as store:
        assert [b for (b,) in store.conn.execute("SELECT batch FROM batches")] == ["one"], "nothing is kept"
    assert batch(path, second, n=8, name="two", annotators=["bob"]).positions == {"bob": 8}


def test_gold_shown_in_another_batch_makes_labels_assisted(tmp_path: Path) -> None:
    path = garage(tmp_path / "g.db")
    batch(path, "grounding_relevant", n=8, name="sentences")
    made = batch(path, "garage_relevance", n=8, name="pilot", allow_exposed=True)
    assert any("count as assisted" in line for line in made.notes)
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(1, "relevance", "OUTDATED")  # nothing was looked at so far
        unit = desk.load(1).unit_id
    item = unit.partition("/")[0]
    with open_study(path) as store, Desk.open(store, "sentences", "alice") as desk:
        desk.load(next(p for p in range(1, 9) if desk.load(p).unit_id.startswith(item)))
    assert ("g:0/p0", "gold", "relevance", "sentences", "sitting") in ledger(path)
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(2, "relevance", "OUTDATED")
        later = desk.load(2).unit_id
    layers = {u: layer for u, field, layer, _ in labels(path) if field == "relevance"}
    assert layers == {unit: "first", later: "assisted"}
    told = annotate("report", "--field", "relevance", "--batch", "pilot", "-d", path).stdout
    assert "1 answers count as assisted" in " ".join(told.split())


def test_the_judge_shown_in_a_reveal(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=4)
    run = judge_all(path)
    batch(path, n=4, name="reveal", reveal=True, run=run)
    with open_study(path) as store, Desk.open(store, "reveal", "alice") as desk:
        desk.load(1)
        assert {what for _, what, *_ in ledger(path)} == {"text"}
        desk.label(1, "stance", "support")
        desk.lock(1, "judge")
        unit = desk.load(1).unit_id
    assert (unit, "judge", "stance", "reveal", "sitting") in ledger(path)
    with pytest.raises(UsageError, match="show the judge's label for 4 units"):
        batch(path, "raguard_exam", n=8, name="exam")


def test_training_keys_and_other_peoples_labels(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=6, n=4, training=2, annotators=["alice", "bob"])
    for person, word in (("alice", "support"), ("bob", "refute")):
        with open_study(path) as store, Desk.open(store, "pilot", person) as desk:
            desk.label(1, "stance", word)
            desk.lock(1, "key")
            for position in (3, 4, 5, 6):
                desk.label(position, "stance", word)
    with open_study(path) as store:
        assert fill_queue(store, "pilot", "lead") == 4
        with Desk.open(store, "pilot", "lead", adjudicate=True) as desk:
            unit = desk.load(1).unit_id
    assert (unit, "labels", "", "pilot", "sitting") in ledger(path, "lead")
    # The key of the training unit was shown to alice; of what she labelled, nothing else.
    assert len([row for row in ledger(path) if row[1] == "gold"]) == 1


def test_a_pack_is_an_exposure_and_its_labels_are_blind_by_the_study(tmp_path: Path) -> None:
    path = garage(tmp_path / "g.db")
    batch(path, "garage_relevance", n=8, name="pilot", annotators=["alice"])
    out = tmp_path / "out.db"
    with open_study(path) as store:
        pack(store, "pilot", "alice", out)
    saw(path, "g:0/p0", "gold", "relevance", "2020-01-01T00:00:00.000Z")
    assert len([row for row in ledger(path) if row[4] == "pack"]) == 8
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        for position in range(1, 9):
            desk.label(position, "relevance", "UNKNOWN")
    with open_study(path) as store:
        done = merge(store, out)
        assert (done.conflicts, done.assisted) == ([], 1) and merge(store, out).events == 0
    layers = {u: layer for u, field, layer, _ in labels(path) if field == "relevance"}
    assert {u for u, layer in layers.items() if layer == "assisted"} == {"g:0/p0"} and len(layers) == 8


def test_imports_tell_what_was_shown_and_cannot_declare_it_away(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=4, n=4, annotators=["alice", "bob"])
    units = [u for (u,) in rows_of(path, "SELECT unit_id FROM batch_units ORDER BY 1")]
    for unit in units[:2]:
        saw(path, unit)
    file = tmp_path / "x.csv"
    file.write_text(
        "unit,field,annotator,label,at\n"
        f"{units[0]},stance,alice,support,2026-01-03T00:00:00.000Z\n"
        f"{units[1]},stance,alice,support,2026-01-01T00:00:00.000Z\n"
    )
    annotate("import", file, "--from", "csv", "--batch", "pilot", "--blind", "-d", path)
    layers = {u: layer for u, _, layer, _ in labels(path)}
    assert layers == {units[0]: "assisted", units[1]: "first"}, "the second was given before"
    assert (units[1], "text", "", "pilot", "import") in ledger(path)


@pytest.mark.parametrize("with_batch", [True, False], ids=["batch", "no batch"])
@pytest.mark.parametrize(
    "at", ["2026-01-02 08:00+00:00", "20260102T080000Z", ""], ids=["space", "basic", "none"]
)
def test_no_way_of_writing_the_time_and_no_missing_batch_declares_it_away(
    tmp_path: Path, at: str, with_batch: bool
) -> None:
    """The judge was shown at midnight: eight hours later, or whenever it is not said, is after it."""
    path = drawn(tmp_path, items=4, n=4, annotators=["alice", "bob"])
    unit = rows_of(path, "SELECT min(unit_id) FROM batch_units")[0][0]
    saw(path, unit)
    file = tmp_path / "x.csv"
    file.write_text(f"unit,field,annotator,label,at\n{unit},stance,alice,support,{at}\n")
    where = ["--batch", "pilot"] if with_batch else ["--task", "stance"]
    annotate("import", file, "--from", "csv", *where, "--blind", "-d", path)
    assert {(u, layer) for u, _, layer, _ in labels(path)} == {(unit, "assisted")}


@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "closed"])
def test_what_a_batch_refuses_does_not_come_in_without_it(tmp_path: Path, stopped: bool) -> None:
    """`agreement --batch` counts every label of its units: a stopped person's came back by leaving --batch out."""
    path = drawn(tmp_path, items=4, n=4, annotators=["alice", "bob"])
    unit = rows_of(path, "SELECT min(unit_id) FROM batch_units")[0][0]
    how = ["stop", "pilot", "--annotator", "alice", "--why", "failed"] if stopped else ["close", "pilot"]
    annotate("batches", *how, "-d", path)
    file = tmp_path / "x.csv"
    file.write_text(f"unit,field,annotator,label\n{unit},stance,alice,support\n")
    failed = annotate("import", file, "--from", "csv", "--task", "stance", "--blind", "-d", path, code=1)
    assert (
        "alice was stopped in batch 'pilot'" if stopped else "batch 'pilot', which is closed"
    ) in failed.stderr
    assert not list(labels(path))
    file.write_text(f"unit,field,annotator,label\n{unit},another,alice,x\n")
    annotate("import", file, "--from", "csv", "--blind", "-d", path)
    assert len(list(labels(path))) == 1, "a question that the batch does not ask"


def test_the_ledger_is_append_only(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=2, n=2)
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.load(1)
    conn = sqlite3.connect(path)
    for statement in ("UPDATE exposures SET what = 'text'", "DELETE FROM exposures"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            conn.execute(statement)
    conn.close()


def test_what_people_saw_in_a_batch_of_before_is_unknown_and_said_so(tmp_path: Path) -> None:
    """Batches drawn before the table of exposures was there."""
    path = build(tmp_path / "s.db", items=4)
    batch(path, n=2, name="old")
    with open_study(path) as store, store.transaction() as conn:
        conn.execute("UPDATE batches SET exposure = 'unknown'")
    with open_study(path) as store, Desk.open(store, "old", "alice") as desk:
        desk.label(1, "stance", "support")
        desk.label(2, "stance", "support")
    made = batch(path, n=2, name="new")
    assert any("it is not known what people saw in old" in line for line in made.notes)
    told = " ".join(annotate("report", "--field", "stance", "--batch", "old", "-d", path).stdout.split())
    assert "it is not known what people had seen of these units elsewhere" in told


@pytest.mark.parametrize("saw", [True, False])
def test_a_ruling_by_somebody_who_saw_the_judge_is_assisted(tmp_path: Path, saw: bool) -> None:
    """Before: it was the reference that the same judge was then measured against."""
    path = build(tmp_path / "s.db", items=2)
    run = judge_all(path)
    batch(path, n=4, name="reveal", reveal=True, run=run, annotators=["lead"])
    batch(path, "raguard_exam", n=4, name="pilot", annotators=["alice", "bob"])
    with open_study(path) as store, Desk.open(store, "reveal", "lead") as desk:
        desk.label(1, "stance", "refute")
        unit = desk.load(1).unit_id
        if saw:
            desk.lock(1, "judge")
    with open_study(path) as store:
        for n, person in enumerate(("alice", "bob")):
            with Desk.open(store, "pilot", person) as desk:
                field = desk.fields[0]
                for position in range(1, 5):
                    desk.label(position, field, desk.task.domain(field)[n])
        assert fill_queue(store, "pilot", "lead") == 4
        with Desk.open(store, "pilot", "lead", adjudicate=True) as desk:
            for position in range(1, 5):
                desk.load(position)
                desk.label(position, field, desk.task.domain(field)[0])
        query = "SELECT unit_id, layer FROM labels WHERE annotator_id = 'adjudicated' AND field = ?"
        layers = dict(store.conn.execute(query, [field]).fetchall())
    assert layers == dict.fromkeys(layers, "first") | ({unit: "assisted"} if saw else {}) and len(layers) == 4
