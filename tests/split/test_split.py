"""judge split: frozen, by question, sealed, and every look on record."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotate.sitting.desk import Desk
from judge.errors import UsageError
from judge.labels.split import find, require_split
from judge.prompts import load_task
from judge.store import Store, splits
from tests.annotate.agreement_helpers import annotate, document, judge
from tests.cli.helpers import checked
from tests.split.worlds import LABELS, add_run, gold, imported, one_passage, part, planted


def shown(db: Path, *options: str) -> Any:
    return checked(judge("split", "stance", "-d", db, "--json", *options).stdout, "split")


def test_questions_are_split_20_20_60_and_each_stratum_as_well(tmp_path: Path) -> None:
    db = planted(tmp_path, 100, 3)
    result = shown(db)
    parts = {row["part"]: row for row in result["parts"]}
    assert sum(p["questions"] for p in parts.values()) == 100
    assert abs(parts["test"]["questions"] - 60) <= 2 and abs(parts["learn"]["questions"] - 20) <= 2
    for row in parts.values():
        # Each question has one unit of each label, and goes to one part whole.
        assert set(row["labels"].values()) == {row["questions"]} and row["units"] == 3 * row["questions"]
    assert result["detectable"]["level"] == 0.025 and result["looks"] == []
    again = shown(db)
    assert again == result, "a second call shows what is frozen"


def test_rare_labels_are_spread_over_the_parts(tmp_path: Path) -> None:
    rows = [one_passage(f"{q}", f"C{q}", "refute" if q < 10 else "support") for q in range(200)]
    db = imported(tmp_path, rows)
    refuted = [row["labels"]["refute"] for row in shown(db)["parts"]]
    # Ten questions in the shares 2 : 2 : 6; the sequence strays by less than two.
    assert all(abs(n - share) < 2 for n, share in zip(refuted, (2, 2, 6), strict=True))


def test_other_options_do_not_draw_again(tmp_path: Path) -> None:
    db = planted(tmp_path, 20)
    dry = shown(db, "--seed", "4", "--dry-run")
    assert dry["made"] is None
    drawn = shown(db, "--seed", "4")
    assert drawn["parts"] == dry["parts"] and drawn["made"]
    for other in (["--seed", "5"], ["--shares", "30/20/50"], ["--reference", "majority"]):
        told = judge("split", "stance", "-d", db, *other, code=2).stderr
        assert "a split cannot be changed" in told and other[0] in told


def test_the_file_itself_refuses_to_change_a_split_or_a_look(tmp_path: Path) -> None:
    db = planted(tmp_path, 20)
    shown(db)
    with Store.open(db) as store:
        splits.look(store, "stance", "compare", [], "gold")
        for table in ("splits", "split_questions", "split_looks"):
            column = "seed" if table == "splits" else "part" if table == "split_questions" else "level"
            again = f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1"
            for change in (f"UPDATE {table} SET {column} = {column}", f"DELETE FROM {table}", again):
                with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                    store.conn.execute(change)


def test_the_test_is_sealed_until_a_look_is_logged(tmp_path: Path) -> None:
    db = planted(tmp_path, 20)
    with Store.open(db) as store:
        task = load_task("stance")
        with pytest.raises(UsageError, match="judge split stance"):
            require_split(store, task)
        assert find(store, task) is None
    shown(db)
    with Store.open(db) as store:
        split = require_split(store, task)
        with pytest.raises(UsageError, match="sealed"):
            split.units("test")
        first, second = (split.open("improve", [], "gold") for _ in range(2))
        assert (first.look, first.level, second.level) == (1, 0.025, 0.0125)
        assert second.confidence == 0.9875
        every = split.units("learn") | split.units("tune") | split.units("test", second)
        assert sum("/" in unit for unit in every) == 20 and not split.units("learn") & split.units(
            "test", first
        )
        forged = splits.Look(3, "improve", (), "gold", 0.025, "2026-01-01T00:00:00.000Z")
        with pytest.raises(UsageError, match="sealed"):
            split.units("test", forged)
    assert [look["level"] for look in shown(db)["looks"]] == [0.025, 0.0125]
    assert shown(db)["detectable"]["level"] == 0.00625


TWINS = (
    ("claim {} ", " Claim {}"),
    ("the   claim\u00a0{}", "The claim {}"),
    ("\u00c9tude {}", "E\u0301TUDE {}"),  # composed and not, in other case
    ("\uff23laim {}\u2026", "claim {}..."),  # forms of compatibility
    ("cla\u00adim {}\u200b", "claim  {}"),  # what is not seen
)


@pytest.mark.parametrize("twins", TWINS)
def test_items_of_the_same_words_are_in_one_part(tmp_path: Path, twins: tuple[str, str]) -> None:
    rows = [
        # The task shows the claim and no question, so that other questions make no other unit.
        one_passage(f"{q}{twin}", form.format(q), "support", question=f"{twin}?")
        for q in range(30)
        for twin, form in enumerate(twins)
    ]
    # Another item of question 01 has the words of 11, as a chain: all of both belong together.
    db = imported(tmp_path, [*rows, one_passage("z", "a claim of its own", "support")], "twins")
    with Store.open(db) as store:
        store.conn.execute(
            "UPDATE items SET question_id = 'twins:01', claim = 'CLAIM 1' WHERE item_id = 'twins:z'"
        )
        store.conn.execute("UPDATE items SET claim = 'claim 1' WHERE item_id = 'twins:11'")
        store.conn.execute("UPDATE units SET question_id = 'twins:01' WHERE item_id = 'twins:z'")
    shown(db)
    with Store.open(db) as store:
        parts = splits.questions(store, "stance")
    assert len(parts) == 60
    assert all(
        parts[f"twins:{q}0"] == parts[f"twins:{q}1"] for q in range(30) if q != 1
    )  # 11 has other words now
    assert parts["twins:01"] == parts["twins:11"]
    assert set(parts.values()) == set(splits.PARTS)


def test_a_later_version_of_the_task_has_the_same_split(tmp_path: Path) -> None:
    db = planted(tmp_path, 20)
    shown(db)
    with Store.open(db) as store:
        task = load_task("stance")
        later = type(task)(task.task_id, 2, task.spec, task.constant, task.unit, task.text, task.path)
        assert require_split(store, later).parts == require_split(store, task).parts


def test_too_few_questions_and_no_labels_are_refused(tmp_path: Path) -> None:
    told = judge("split", "stance", "-d", planted(tmp_path, 9), code=2).stderr
    assert "9 questions have labels for 'stance' from gold; a split needs at least 10" in told
    assert (
        "has no labels from this reference"
        in judge("split", "stance", "--reference", "decided", "-d", tmp_path / "study.db", code=2).stderr
    )


def test_what_the_test_can_show_is_taken_from_open_questions_alone(tmp_path: Path) -> None:
    db = planted(tmp_path, 100)
    shown(db)
    assert shown(db)["detectable"]["basis"].startswith("assumed")
    sealed = part(db, "test")
    units = {f"study:{q:03}/0": q for q in range(100)}
    right = {unit: gold(q, 0) for unit, q in units.items()}
    # The second judge errs on every third question; in the other world it errs on all of the test as well.
    wrong = {unit: LABELS[(q + 1) % 3] if q % 3 == 0 else gold(q, 0) for unit, q in units.items()}
    add_run(db, "scripted/right", right)
    add_run(db, "scripted/wrong", wrong)
    result = shown(db)["detectable"]
    n = 100 - len(sealed)
    assert result["basis"] == f"the largest spread among 1 pair of runs, on {n} questions of learn and tune"
    other = planted(tmp_path, 100, name="other")
    shown(other)
    worse = {u: LABELS[(q + 1) % 3] if f"study:{q:03}" in sealed else wrong[u] for u, q in units.items()}
    renamed = {u.replace("study", "other"): label for u, label in right.items()}
    add_run(other, "scripted/right", renamed)
    add_run(other, "scripted/wrong", {u.replace("study", "other"): label for u, label in worse.items()})
    assert shown(other)["detectable"] == result


def test_every_report_says_how_often_the_test_was_looked_at(tmp_path: Path) -> None:
    db = planted(tmp_path, 20)
    add_run(db, "scripted/right", {f"study:{q:03}/0": gold(q, 0) for q in range(20)})
    before = annotate("agreement", "--field", "stance", "-d", db).stdout
    assert "sealed" not in before
    shown(db)
    after = annotate("agreement", "--field", "stance", "-d", db).stdout
    assert "units are in the sealed test of stance, which has never been looked at" in after
    with Store.open(db) as store:
        splits.look(store, "stance", "compare", [], "gold")
    notes = json.dumps(document("agreement", "--field", "stance", "-d", db))
    assert "has been looked at 1 time; the next look is tested at 0.0125" in notes


def test_no_number_of_the_sealed_test_is_shown_before_a_look_at_that_run(tmp_path: Path) -> None:
    """A run that is right on learn and tune and wrong on the whole test: any number below 1 comes from the test."""
    db = planted(tmp_path, 40)
    shown(db)
    sealed = part(db, "test")
    n_open = 40 - len(sealed)
    runs = []
    for model in ("scripted/one", "scripted/two"):
        labels = {f"study:{q:03}/0": LABELS[(q + (f"study:{q:03}" in sealed)) % 3] for q in range(40)}
        runs.append(add_run(db, model, labels))

    def counted(run: str) -> list[tuple[float, int]]:
        """Percent agreement with gold and on how many units, by every command that prints it of a run."""
        own = document("agreement", "--field", "stance", "--judge", run, "--reference", "gold", "-d", db)
        result = [m for m in own["measures"] if m["measure"] == "percent" and "gold" in m["annotators"]]
        of_run = checked(judge("runs", "show", run, "-d", db, "--json").stdout, "run_show")
        result += [m for m in of_run["fields"][0]["measures"] if m["measure"] == "percent"]
        assert len(result) == 2 and of_run["fields"][0]["n_gold"] == result[1]["n_units"]
        return [(m["value"], m["n_units"]) for m in result]

    assert counted(runs[0]) == [(1.0, n_open)] * 2
    told = judge("runs", "show", runs[0], "-d", db).stdout
    assert "on the sealed test of stance were left out" in told
    pair = judge("score", "compare", *runs, "--reference", "gold", "-d", db, "--json").stdout
    [agreed] = [row for row in json.loads(pair)["rows"] if row["paper"] == "agreement with gold"]
    assert agreed["first"]["n_units"] == n_open
    with Store.open(db) as store:
        assert splits.looks(store, "stance") == []
        splits.look(store, "stance", "compare", [runs[0]], "gold")
    # What was looked at is known: it is shown from then on, for the run that the look was for.
    assert counted(runs[0]) == [(n_open / 40, 40)] * 2
    assert counted(runs[1]) == [(1.0, n_open)] * 2
    # Both values rest on the open units: of the 40 that the first shows, and of all that the second does.
    pair = judge("score", "compare", *runs, "--reference", "gold", "-d", db, "--json").stdout
    [agreed] = [row for row in json.loads(pair)["rows"] if row["paper"] == "agreement with gold"]
    assert [agreed[side]["n_units"] for side in ("first", "second")] == [n_open, n_open]
    assert [agreed[side]["coverage"] for side in ("first", "second")] == [n_open / 40, 1.0]
    # The first look is tested at .025: every interval on that judge is its, beside people too; the other judge's stay.
    with Store.open(db) as store, store.transaction() as conn:
        conn.executemany("INSERT INTO annotators VALUES (?, 'human', '{}')", [(p,) for p in "abc"])
        conn.executemany(
            "INSERT INTO labels (unit_id, field, annotator_id, layer, repeat, value) VALUES (?, 'stance', ?, 'first', 0, ?)",
            [
                (f"study:{q:03}/0", p, LABELS[(q + (q % m == 0)) % 3])
                for q in range(40)
                for p, m in zip("abc", (7, 9, 11), strict=True)
            ],
        )
    report = checked(
        annotate("report", "--field", "stance", "-d", db, "--reference", "gold", "--json").stdout,
        "report",
    )

    def measures(of: Any) -> Iterator[Any]:
        if isinstance(of, dict) and "confidence" in of and "measure" in of:
            yield of
        for value in of.values() if isinstance(of, dict) else of if isinstance(of, list) else ():
            yield from measures(value)

    # A sealed test gives no verdict: two judges share its level, whatever was looked at.
    shared = {
        (who, m["confidence"])
        for m in measures(report)
        if m["section"] != "verdict"
        for who in m.get("annotators") or ()
    }
    assert {c for who, c in shared if who == "scripted/one"} == {0.975}
    assert ("scripted/two", 0.95) in shared
    # The plan is the same verdict at the same level.
    ruled = {row["judge"]: row for row in report["verdicts"]}
    planned = document("plan", "--verdict", "--field", "stance", "--reference", "gold", "-d", db)["judges"]
    for row, judge_name in zip(planned, ("scripted/one", "scripted/two"), strict=True):
        own = ruled[judge_name]
        assert [row["decision"], row["conditions"]] == [own["decision"], own["conditions"]]
        at = {c["name"]: c["confidence"] for c in own["conditions"]}
        assert at["non_inferiority"] == pytest.approx(1 - 0.05 * 2**-1.75)


def test_conformal_sets_leave_the_sealed_test_out_until_a_look_at_the_run(tmp_path: Path) -> None:
    db = planted(tmp_path, 60)
    units = [f"study:{q:03}/0" for q in range(60)]
    sure = {u: [0.8 if gold(q, 0) == label else 0.1 for label in LABELS] for q, u in enumerate(units)}
    run = add_run(db, "scripted/sure", {u: gold(q, 0) for q, u in enumerate(units)}, sure)
    shown(db)
    n_test = len(part(db, "test"))

    def told() -> str:
        return judge("score", "conformal", "--task", "stance", "--alpha", "0.3", "-d", db).stdout

    # Half of the questions with a label calibrate.
    assert f"calibrated on {(60 - n_test) // 2} questions" in told()
    assert (
        f"{n_test} units are left out, because they are in the sealed test of stance, which was not opened for this run"
        in told()
    )
    with Store.open(db) as store:
        splits.look(store, "stance", "compare", [run], "gold")
    assert "calibrated on 30 questions" in told() and "not opened" not in told()


def test_parts_do_not_depend_on_the_order_of_the_rows(tmp_path: Path) -> None:
    rows = [one_passage(f"{q}", f"C{q}", LABELS[q % 3]) for q in range(40)]
    result = []
    for name, order in (("a", rows), ("b", rows[::-1])):
        folder = tmp_path / name
        folder.mkdir()
        db = imported(folder, order)
        shown(db)
        with Store.open(db) as store:
            result.append(splits.questions(store, "stance"))
    assert result[0] == result[1]


def test_a_verdict_says_that_the_sealed_test_is_apart(tmp_path: Path) -> None:
    """A judge right on three of four units is undecided at .65, and of the units of the sealed test the report knows nothing."""
    db = planted(tmp_path, 60)
    add_run(
        db, "scripted/m", {f"study:{q:03}/0": gold(q, 0) if q % 4 else LABELS[(q + 1) % 3] for q in range(60)}
    )
    ask = ("report", "-d", db, "--threshold", "0.65", "--json")
    assert "sealed" not in json.loads(annotate(*ask).stdout)["verdicts"][0]["sentence"]
    judge("split", "stance", "-d", db)
    sentence = json.loads(annotate(*ask).stdout)["verdicts"][0]["sentence"]
    # A fifth of 60 questions is to learn from and a fifth to tune on, of each of three labels: 8 or 9 of 20.
    assert (
        "on 25 of 60 units with imported labels" in sentence
        and "judge compare stance --part test" in sentence
    )
    # With one run, that command alone would fail.
    assert "comparing two runs opens it" in sentence
    assert "only 42% of these units have labels" in sentence


def label(store: Store, batch: str, first: int, last: int) -> None:
    """Both people label their positions from `first` to `last` as gold does."""
    for person in ("ann", "bob"):
        query = (
            "SELECT position, unit_id FROM assignments WHERE batch = ? AND annotator_id = ? ORDER BY position"
        )
        seats = store.conn.execute(query, [batch, person]).fetchall()[first:last]
        with Desk.open(store, batch, person) as desk:
            for position, unit in seats:
                desk.label(position, "stance", gold(int(unit.split(":")[1].split("/")[0]), 0))
