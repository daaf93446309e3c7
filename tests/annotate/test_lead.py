"""A lead runs a batch in flight: people join and leave, units are added, policies decide; real files, kills, wrong input."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from annotate.batch_plan import Policy
from annotate.drawing.extend import extend_batch
from annotate.exchange.gate import accept, import_rows
from annotate.exchange.quarantine import listing
from annotate.exchange.responses import Response
from annotate.exchange.result import ImportOptions
from annotate.leading.adjudication import fill_queue, predecide, set_policy
from annotate.leading.lead import add_people, hand_over, resume_person, stop_person
from annotate.leading.progress import show_batch
from annotate.packing.conflicts import settle_conflict
from annotate.packing.merge import merge
from annotate.packing.pack import pack
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.errors import StudyError, UsageError
from judge.files import stop
from judge.prompts.load import Task, parse_task
from tests.annotate.agreement_helpers import annotate
from tests.tui.studies import batch, build, drawn, judge_all, labels, rows_of

NUMBER = """---
title: A number
unit: passage
inputs: [passage]
questions:
  - field: score
    level: interval
---
Judge.
<!-- unit -->
{{ passage }}
{{ answer_cue }}
"""


def queue(path: Path, person: str, role: str = "sample") -> list[str]:
    query = "SELECT unit_id FROM assignments WHERE annotator_id = ? AND role = ? ORDER BY position"
    return [u for (u,) in rows_of(path, query, person, role)]


def say(path: Path, person: str, answers: dict[str, str], field: str = "stance") -> None:
    """Label the units of a person by their ids."""
    query = "SELECT unit_id, position FROM assignments WHERE annotator_id = ? AND role = 'sample'"
    where = dict(rows_of(path, query, person))
    with open_study(path) as store, Desk.open(store, "pilot", person) as desk:
        for unit, value in answers.items():
            desk.label(where[unit], field, value)


def test_a_dropouts_open_units_go_to_a_new_person(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=6, n=8, training=2, annotators=["alice", "bob"], overlap=1, repeats=0.5)
    alice = queue(path, "alice")
    say(path, "alice", dict.fromkeys(alice[:1], "support"))
    with open_study(path) as store:
        done = hand_over(store, "pilot", "alice", ["dave"], note="ill")
    # 8 units, one person each: alice had 4, one is done, three go to dave, with the two training units first.
    assert done.units == 3 and set(queue(path, "dave")) == set(alice[1:])
    assert len(queue(path, "dave", "training")) == 2 and queue(path, "alice") == alice[:1]
    assert queue(path, "alice", "repeat") == queue(path, "alice", "training") == []
    assert len(labels(path)) == 1, "what alice said stays"
    everybody = [*queue(path, "alice"), *queue(path, "bob"), *queue(path, "dave")]
    assert len(everybody) == len(set(everybody)) == 8, "every unit has its one person"
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        assert desk.next_open() is None
        shown = show_batch(store, "pilot")["changes"]
    assert [(c["what"], c["annotator"], c["note"]) for c in shown] == [("hand over", "alice", "ill")]


def test_a_half_done_unit_and_one_that_everybody_has_stay(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=3, n=4, annotators=["alice", "bob"])
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.note(1, "hm")
    with open_study(path) as store:
        with pytest.raises(UsageError, match="bob already has all units"):
            hand_over(store, "pilot", "alice", ["bob"])
        assert hand_over(store, "pilot", "alice", ["bob", "dave"]).positions == {"dave": 3}
    assert len(queue(path, "alice")) == 1, "the unit with a note is begun"


def test_a_pack_comes_back_after_its_units_were_handed_over(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=4, n=4, annotators=["alice"])
    out = tmp_path / "alice.db"
    with open_study(path) as store:
        pack(store, "pilot", "alice", out)
        hand_over(store, "pilot", "alice", ["dave"])
    assert queue(path, "alice") == []
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(2, "stance", "refute")
        unit = desk.load(2).unit_id
    with open_study(path) as store, pytest.raises(UsageError, match="all 4 units of alice were handed over"):
        Desk.open(store, "pilot", "alice")
    # alice has no unit left, so the batch knows her by what she handed over.
    told = annotate("import", out, "-d", path)
    assert "1 units had been assigned to somebody else" in " ".join(told.stderr.split())
    assert labels(path) == {(unit, "stance", "first", 0): "refute"} and unit in queue(path, "dave")
    with open_study(path) as store:
        assert merge(store, out).events == 0, "again: nothing"


def test_a_unit_that_a_person_gets_back_has_one_position_and_one_label(tmp_path: Path) -> None:
    """Packed, handed over, given back and labelled again, then the pack returns with its own label."""
    path = drawn(tmp_path, items=1, n=2, annotators=["alice"])
    out = tmp_path / "alice.db"
    with open_study(path) as store:
        pack(store, "pilot", "alice", out)
        before = queue(path, "alice")
        hand_over(store, "pilot", "alice", ["dave"])
        add_people(store, "pilot", ["alice"])
        assert sorted(queue(path, "alice")) == sorted(before)
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(1, "stance", "refute")
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        assert desk.load(1).unit_id == before[0]
        desk.label(1, "stance", "support")
    annotate("import", out, "-d", path, code=1)
    annotate("verify", "-d", path)
    assert labels(path) == {(before[0], "stance", "first", 0): "support"}, "the pack's label waits for a lead"


def test_adding_people_gives_the_units_with_fewest_people(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=4, n=6, annotators=["alice", "bob"], overlap=1)
    with open_study(path) as store:
        add_people(store, "pilot", ["dave"], n=2)
        # 6 units with one person, of which two have dave too; erin gets four: the four that have one.
        add_people(store, "pilot", ["erin"], n=4)
        assert add_people(store, "pilot", ["finn"]).positions == {"finn": 6}
    dave, erin = set(queue(path, "dave")), set(queue(path, "erin"))
    assert dave | erin == {*queue(path, "alice"), *queue(path, "bob")} and not dave & erin


@pytest.mark.parametrize("by", [None, "label"])
def test_an_extended_sample_is_the_one_that_would_have_been_drawn_at_once(
    tmp_path: Path, by: str | None
) -> None:
    one, two = build(tmp_path / "one.db", items=20), build(tmp_path / "two.db", items=20)
    drawn = {}
    for path, n in ((one, 6), (two, 16)):
        judge_all(path)
        batch(path, n=n, by=by, seed=5, annotators=["alice", "bob"], training=2)
    with open_study(one) as store:
        done = extend_batch(store, "pilot", to=16)
    query = "SELECT unit_id, stratum, weight FROM batch_units WHERE role = 'sample' ORDER BY 1"
    for path in (one, two):
        drawn[path] = rows_of(path, query)
    assert drawn[one] == drawn[two] and done.positions == {"alice": 10, "bob": 10}
    # 40 passages, 2 of them training: the frame has 38, and the weights add up to it.
    assert sum(w for _, _, w in drawn[one]) == pytest.approx(38)
    assert sorted(queue(one, "alice")) == sorted(u for u, *_ in drawn[one])
    with open_study(one) as store:
        assert extend_batch(store, "pilot", to=18).units == 2, "and again"
        assert extend_batch(store, "pilot", to=18).units == 0, "typed twice it is drawn once"
        with pytest.raises(UsageError, match="already has 18 units"):
            extend_batch(store, "pilot", to=17)


def test_an_earlier_unequal_batch_does_not_stop_a_sample_from_growing(tmp_path: Path) -> None:
    """What alice said before, in a queue of the least sure, is adopted, as in a new batch."""
    path = build(tmp_path / "s.db", items=20)
    judge_all(path)
    batch(path, n=20, name="first", queue=True, annotators=["alice"])
    with open_study(path) as store, Desk.open(store, "first", "alice") as desk:
        for position in range(1, 21):
            desk.label(position, "stance", "support")
    batch(path, n=6, annotators=["alice"])
    with open_study(path) as store:
        assert extend_batch(store, "pilot", to=16).units == 10
    query = "SELECT a.unit_id, a.status FROM assignments AS a WHERE a.batch = 'pilot'"
    before = {unit for (unit,) in rows_of(path, "SELECT unit_id FROM assignments WHERE batch = 'first'")}
    status = dict(rows_of(path, query))
    assert len(status) == 16 and len(before & status.keys()) > 3
    assert {unit for unit, how in status.items() if how == "done"} == before & status.keys()


def test_the_printed_frame_is_that_of_the_weights(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=10)
    made = batch(path, n=4, training=3, attention=0.5, annotators=["alice"])
    # 20 passages, 3 for training and 2 attention units: 15 could be drawn, 15 / 4 each.
    assert (made.frame, made.strata["all"]["frame"], made.strata["all"]["weight"]) == (15, 15, 3.75)
    assert json.loads(rows_of(path, "SELECT options FROM batches")[0][0])["frame"] == 15
    table = annotate("batches", "extend", "pilot", "--to", "6", "-d", path).stdout.splitlines()
    # Six of the fifteen are drawn now: each stands for 2.5.
    printed = [line.split() for line in table if "--" not in line]
    assert printed == [["stratum", "frame", "drawn", "weight"], ["all", "15", "6", "2.500"]]


def test_a_frame_that_changed_cannot_be_drawn_on(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=10, n=6, annotators=["alice"], by_question=None)
    with open_study(path) as store:
        batch(path, n=4, name="two", annotators=["bob"])
        with pytest.raises(UsageError, match=r"4 of the units .* in batch 'two'"):
            extend_batch(store, "pilot", to=10)
        with pytest.raises(UsageError, match="only 20 units can be drawn"):
            extend_batch(store, "pilot", to=46)
        with store.transaction() as conn:
            conn.execute(
                "UPDATE passages SET text = '' WHERE passage_id IN (SELECT unit_id FROM batch_units)"
            )
        with pytest.raises(UsageError, match="batch 'pilot': the units"):
            extend_batch(store, "pilot", to=7)
    assert len(queue(path, "alice")) == 6


def test_whole_questions_are_added_whole(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=10, n=None, by_question=2, annotators=["alice", "bob"], overlap=1)
    with open_study(path) as store:
        assert extend_batch(store, "pilot", to=5).units == 6
    for person in ("alice", "bob"):
        items = [u.partition("/")[0] for u in queue(path, person)]
        assert len(items) == 2 * len(set(items)), "both passages of a question, one after the other"
    # 10 questions, 5 drawn: each unit stands for two.
    assert set(rows_of(path, "SELECT weight FROM batch_units")) == {(2.0,)}


def test_who_is_stopped_labels_no_more_and_counts_no_more(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=4, n=4, annotators=["alice", "bob"])
    units = queue(path, "alice")
    for person in ("alice", "bob"):
        say(path, person, dict.fromkeys(units[:2], "support"))
    before = labels(path)
    with open_study(path) as store, Desk.open(store, "pilot", "alice") as desk:
        annotate("batches", "stop", "pilot", "--annotator", "alice", "--why", "failed training", "-d", path)
        with pytest.raises(StudyError, match="the lead has stopped your work"):
            desk.label(4, "stance", "refute")
    assert {layer for _, _, layer, _ in labels(path)} == {"stopped"} and len(labels(path)) == 2
    with open_study(path) as store:
        with pytest.raises(StudyError, match=r"alice was stopped \(failed training\)"):
            Desk.open(store, "pilot", "alice")
        with pytest.raises(UsageError, match="alice was stopped"):
            pack(store, "pilot", "alice", tmp_path / "a.db")
    shown = annotate("batches", "show", "pilot", "-d", path).stdout
    assert "alice: excluded (failed training); no result uses these labels" in shown
    told = " ".join(annotate("report", "--batch", "pilot", "-d", path).stdout.split())
    assert "2 labels by alice are not used" in told
    assert "stopped, alice" in told and "failed training" in told
    file = tmp_path / "x.csv"
    file.write_text(f"unit,field,annotator,label\n{units[3]},stance,alice,refute\n")
    more = annotate("import", file, "--batch", "pilot", "--blind", "--skip-bad", "-d", path).stderr
    assert "quarantine" in more and "refute" not in labels(path).values()
    with open_study(path) as store:
        assert hand_over(store, "pilot", "alice", ["dave"]).units == 2
        resume_person(store, "pilot", "alice")
    assert labels(path) == before, "undone: the labels are what they were"


def test_exposure_rules_hold_for_whoever_joins(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=4)
    batch(path, "raguard_role", n=8, name="roles", annotators=["eve"])
    batch(path, "raguard_exam", n=8, annotators=["alice"])
    for change in ("assign --to eve", "assign --from alice --to eve"):
        verb, *words = change.split()
        told = annotate("batches", verb, "pilot", *words, "-d", path, code=2).stderr
        assert "eve: batch 'roles' and this batch together show the known answer for 8" in told
        assert queue(path, "alice") and not rows_of(path, "SELECT 1 FROM batch_changes"), "nothing is kept"
    told = annotate("batches", "assign", "pilot", "--to", "eve", "--allow-exposed", "-d", path).stderr
    assert "count as assisted" in told


def test_units_that_all_skipped_or_flagged_reach_the_lead(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=3, n=4, annotators=["alice", "bob"])
    units = queue(path, "alice")
    for person in ("alice", "bob"):
        query = "SELECT unit_id, position FROM assignments WHERE annotator_id = ?"
        where = dict(rows_of(path, query, person))
        with open_study(path) as store, Desk.open(store, "pilot", person) as desk:
            desk.skip(where[units[0]])
            desk.flag(where[units[1]], f"broken, says {person}")
            desk.label(where[units[2]], "stance", "support")
            if person == "alice":
                desk.skip(where[units[3]])  # bob has not seen it yet
    shown = annotate("batches", "show", "pilot", "-d", path).stdout
    assert "for the lead: everybody skipped or flagged 2 units" in shown
    assert f"flag by bob on {units[1]}: broken, says bob" in shown
    with open_study(path) as store:
        assert fill_queue(store, "pilot", "lead") == 2
        with Desk.open(store, "pilot", "lead", adjudicate=True) as desk:
            at = {desk.load(p).unit_id: p for p in (1, 2)}
            assert set(at) == set(units[:2])
            assert [(s.answers, s.note) for s in desk.sources(at[units[0]])] == [({}, "skipped")] * 2
            assert {s.flag for s in desk.sources(at[units[1]])} == {"broken, says alice", "broken, says bob"}


def votes(
    path: Path, said: dict[str, list[str]], field: str = "stance", task: Task | str = "stance"
) -> list[str]:
    """One unit a position of the lists: person -> what they say of the first, second, ... unit."""
    batch(path, task, n=len(next(iter(said.values()))), annotators=list(said))
    units = sorted(queue(path, next(iter(said))))
    for person, values in said.items():
        say(path, person, {u: v for u, v in zip(units, values, strict=True) if v}, field)
    return units


def test_a_majority_decides_and_ties_go_to_the_lead(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=3)
    units = votes(path, {"a": ["support"] * 4, "b": ["support", "support", "refute", "refute"],
                         "c": ["support", "refute", "neutral", ""]})  # fmt: skip
    told = annotate("batches", "policy", "pilot", "majority", "-d", path)
    assert "1 units are decided by this rule so far" in told.stderr
    # All alike; 2 of 3; three opinions; one person has not said: only the second is decided.
    assert labels(path, "adjudicated") == {(units[1], "stance", "first", 0): "support"}
    with open_study(path) as store:
        assert fill_queue(store, "pilot", "lead") == 2, "the tie, and the decided one can be changed"
    say(path, "c", {units[3]: "refute"})
    with open_study(path) as store:
        assert predecide(store, "pilot") == 2
        # c thinks again: 2 of 3 become a tie, and the lead's word stands against the policy.
        say(path, "c", {units[3]: "neutral"})
        fill_queue(store, "pilot", "lead")
        assert (units[3], "stance", "first", 0) not in labels(path, "adjudicated")
        with Desk.open(store, "pilot", "lead", adjudicate=True) as desk:
            at = {desk.load(p).unit_id: p for p in range(1, desk.total + 1)}
            desk.label(at[units[1]], "stance", "refute")
        predecide(store, "pilot")
    assert labels(path, "adjudicated")[units[1], "stance", "first", 0] == "refute"
    printed = " ".join(annotate("report", "--batch", "pilot", "-d", path).stdout.split())
    assert "by the batch's policy and not by a lead" in printed
    # b is stopped: a and c are left, who differ on the second unit.
    with open_study(path) as store:
        stop_person(store, "pilot", "b", "failed attention")
        set_policy(store, "pilot", Policy())
        predecide(store, "pilot")
    assert set(labels(path, "adjudicated")) == {(units[1], "stance", "first", 0)}


def test_numbers_within_a_tolerance_agree(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=3)
    task = parse_task(NUMBER, "number.v1.md")
    said = {"a": ["1", "0.2", "5"], "b": ["1.5", "0.1", "5"], "c": ["3", "0.3", "5"]}
    units = votes(path, said, "score", task)
    annotate("batches", "policy", "pilot", "--tolerance", "score=0.2", "-d", path)
    # 1 to 3 is too far; 0.1 to 0.3 is within 0.2, median 0.2; three fives need no decision.
    assert labels(path, "adjudicated") == {(units[1], "score", "first", 0): "0.2"}
    assert annotate("batches", "policy", "pilot", "-d", path).stdout == (
        "pilot: numbers for 'score' that differ by at most 0.2 agree, and their median counts\n"
    )
    annotate("batches", "policy", "pilot", "none", "-d", path)
    assert labels(path, "adjudicated") == {}


def test_closing_and_reopening(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=2, n=2)
    for verb in ("assign --to bob", "assign --from alice --to bob", "extend --to 99"):
        annotate("batches", "close", "pilot", "-d", path)
        told = annotate("batches", *verb.split()[:1], "pilot", *verb.split()[1:], "-d", path, code=2).stderr
        assert "annotate batches close pilot --undo" in told
        annotate("batches", "close", "pilot", "--undo", "--note", "more came", "-d", path)
    say(path, "alice", dict.fromkeys(queue(path, "alice"), "support"))
    assert [w for (w,) in rows_of(path, "SELECT what FROM batch_changes")] == ["close", "reopen"] * 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("assign pilot --to alice", "alice is already in batch 'pilot'"),
        ("assign pilot --to gold", "under the name 'gold'"),
        ("assign nope --to bob", "no batch 'nope'"),
        ("assign pilot --to bob -n 9", "-n 9: batch 'pilot' has 2 units"),
        ("assign pilot --from eve --to bob", "has no annotator 'eve'"),
        ("assign pilot --from alice --to alice", "must not include alice"),
        ("extend pilot --to 99", "only 6 units can be drawn"),
        ("extend pilot --to 99 --annotators eve", "eve is not in batch 'pilot'"),
        ("close pilot --undo", "batch 'pilot' is already open"),
        ("stop pilot --annotator alice", "--why requires a reason"),
        ("stop pilot --annotator eve --why x", "has no annotator 'eve'"),
        ("stop pilot --annotator alice --undo", "alice has not been stopped"),
        ("policy pilot --tolerance stance=1", "not a numeric question of stance.v2"),
        ("policy pilot --tolerance stance", "FIELD=NUMBER"),
        ("policy pilot --tolerance stance=inf", "--tolerance stance"),
    ],
)
def test_wrong_input_is_one_line_and_changes_nothing(tmp_path: Path, words: str, told: str) -> None:
    path = drawn(tmp_path, items=3, n=2)
    before = rows_of(path, "SELECT * FROM assignments")
    verb, *rest = words.split()
    error = annotate("batches", verb, *rest, "-d", path, code=2).stderr
    assert told in error and len(error.strip().splitlines()) == 1
    assert rows_of(path, "SELECT * FROM assignments") == before
    assert not rows_of(path, "SELECT 1 FROM batch_changes")


def test_nobody_takes_units_from_somebody_at_work(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=3, n=4)
    with open_study(path) as store, Desk.open(store, "pilot", "alice"):
        told = annotate("batches", "assign", "pilot", "--from", "alice", "--to", "bob", "-d", path, code=1)
    assert "alice is working at this moment" in told.stderr
    assert len(queue(path, "alice")) == 4


def test_a_kill_in_the_middle_of_a_change_leaves_nothing_half(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=10, n=6, annotators=["alice"])
    tables = ("assignments", "batch_units", "batch_changes", "batches")
    before = {t: rows_of(path, f"SELECT * FROM {t}") for t in tables}
    killed = (
        "import os, signal\nfrom annotate.drawing import extend, seats\nfrom annotate.leading import lead\n"
        "from annotate.store import open_study\n"
        "seats.check_exposed = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"store = open_study({str(path)!r})\n"
    )
    for call in (
        "extend.extend_batch(store, 'pilot', to=10)",
        "lead.hand_over(store, 'pilot', 'alice', ['bob'])",
        "lead.add_people(store, 'pilot', ['bob'])",
    ):
        done = subprocess.run([sys.executable, "-c", killed + call], check=False, capture_output=True)
        assert done.returncode == -9, done.stderr
        assert {t: rows_of(path, f"SELECT * FROM {t}") for t in before} == before
    with open_study(path) as store:
        assert extend_batch(store, "pilot", to=10).units == 4, "nothing is locked"


@pytest.mark.parametrize("same", [True, False])
def test_an_import_leaves_the_place_of_what_was_handed_over(tmp_path: Path, same: bool) -> None:
    """A pack is out, its units are handed over, then an import gives the person a unit: the merge met its position."""
    path = drawn(tmp_path, items=4, n=4, annotators=["alice", "bob"], overlap=1)
    mine = queue(path, "alice")
    unit = mine[0] if same else queue(path, "bob")[0]
    out = tmp_path / "alice.db"
    with open_study(path) as store:
        pack(store, "pilot", "alice", out)
        hand_over(store, "pilot", "alice", ["dave"])
        how = ImportOptions("csv", blind="blind", new_people=True)
        said = [Response(unit, "alice", answers={"stance": "support"})]
        done = import_rows(store, said, how, stop, batch="pilot")
    assert done.joined == {"alice": 1} and queue(path, "alice") == [unit]
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        for position in (1, 2):
            desk.label(position, "stance", "refute")
    with open_study(path) as store:
        merged = merge(store, out)
    came = {u: v for (u, *_), v in labels(path).items()}
    if same:
        # Both places answered: the import's word stands, the pack's waits for a lead.
        assert came == {unit: "support", mine[1]: "refute"} and len(merged.conflicts) == 1
    else:
        assert came == {unit: "support", mine[0]: "refute", mine[1]: "refute"} and merged.conflicts == []


def test_a_held_label_does_not_give_the_unit_back(tmp_path: Path) -> None:
    """What waits in the quarantine, or was undone in the pack, leaves the unit with whom it was handed to."""
    path = drawn(tmp_path, items=4, n=4, annotators=["alice"])
    out = tmp_path / "alice.db"
    with open_study(path) as store:
        pack(store, "pilot", "alice", out)
        hand_over(store, "pilot", "alice", ["dave"])
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        edited = desk.load(3).unit_id
        desk.label(2, "stance", "refute")
        desk.label(3, "stance", "refute")
    with closing(sqlite3.connect(out)) as conn, conn:
        conn.execute("UPDATE passages SET text = text || ' edited' WHERE passage_id = ?", [edited])
    with open_study(path) as store:
        merged = merge(store, out)
        assert len(merged.conflicts) == 1 and merged.back == 1
    assert edited not in queue(path, "alice") and len(queue(path, "alice")) == 1
    with open_study(path) as store:
        (row,) = listing(store, "pilot")
        accept(store, [int(str(row["id"]))], merged=settle_conflict)
    assert {u: v for (u, *_), v in labels(path).items()}[edited] == "refute"
    assert edited in queue(path, "alice")
