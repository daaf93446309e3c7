"""A run made from runs without a call is a run like any other, and says what it is made of."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge import derive
from judge.derive import Made
from judge.errors import UsageError
from judge.labels.scope import Scope, read_panel
from judge.store import Store, derived, label_rows
from judge.types import Status
from tests.annotate.agreement_helpers import annotate, checked, judge
from tests.derive import worlds

N = 60


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """60 units in 12 questions, and two judges: `a` has no label on unit 3, `b` none on 3 and 4."""
    truth = worlds.draw(N)
    store = worlds.study(tmp_path / "w.db", truth)
    p = worlds.softmax(worlds.logits(truth, 2.0, seed=1))
    q = worlds.softmax(worlds.logits(truth, 2.0, seed=2))
    worlds.judged(store, "j/a", p, missing={3: Status.REFUSED})
    worlds.judged(store, "j/b", q, missing={3: Status.REFUSED, 4: Status.UNPARSED}, plain=True)
    return store


def run_ids(store: Store) -> list[str]:
    return [run for (run,) in store.conn.execute("SELECT run_id FROM runs ORDER BY rowid")]


def echo(table: derive.RunTable, r: int = 0) -> dict[str, Made]:
    """What parent r says, as it is."""
    found = table.labels("stance")
    return {"stance": Made(found.codes[:, r], found.probabilities[r])}


def test_a_table_has_the_parents_labels_and_who_was_asked(store: Store) -> None:
    a, b = run_ids(store)
    table = derive.read_runs(store, [a, b])
    found = table.labels("stance")
    assert list(table.units) == sorted(worlds.units(N)) and table.judged.all()
    assert found.domain == worlds.LABELS
    at = table.places["w:0/p3"], table.places["w:0/p4"]
    assert found.codes[at[0]].tolist() == [-1, -1] and found.codes[at[1], 1] == -1
    assert (found.codes >= 0).sum() == 2 * N - 3
    p = found.probabilities[0]
    assert p is not None and found.probabilities[1] is None
    assert np.isnan(p[at[0]]).all() and np.allclose(np.delete(p, at[0], axis=0).sum(axis=1), 1)
    # The label is the argmax of what was stored.
    rest = np.delete(np.arange(N), at[0])
    assert (p[rest].argmax(axis=1) == found.codes[rest, 0]).all()
    numbers, names = table.questions
    assert sorted(names) == names and [names[k] for k in numbers] == [u.split("/")[0] for u in table.units]


def test_an_echo_of_a_run_is_a_run_with_the_same_labels_counts_and_failures(store: Store) -> None:
    a, _ = run_ids(store)
    table = derive.read_runs(store, [a])
    run, known = derive.keep(store, table, "pooled", "echo", echo(table), parameters={"of": 1})
    again, known_again = derive.keep(store, table, "pooled", "echo", echo(table), parameters={"of": 1})
    assert (known, known_again) == (False, True) and run == again
    labels = "SELECT unit_id, field, value FROM labels WHERE annotator_id = ? ORDER BY unit_id"
    assert store.conn.execute(labels, [run]).fetchall() == store.conn.execute(labels, [a]).fetchall()
    status = "SELECT unit_id, status FROM latest_judgements WHERE run_id = ? ORDER BY unit_id"
    assert store.conn.execute(status, [run]).fetchall() == store.conn.execute(status, [a]).fetchall()
    counts = "SELECT repeat, status, units FROM run_counts WHERE run_id = ? ORDER BY 2"
    assert store.conn.execute(counts, [run]).fetchall() == [(0, "ok", N - 1), (0, "refused", 1)]
    # The trigger that counts asked runs is there again, and foreign keys are looked at again.
    assert store.conn.execute(
        "SELECT count(*) FROM sqlite_master WHERE name = 'count_judgement'"
    ).fetchone() == (1,)
    assert store.conn.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert store.conn.execute("PRAGMA foreign_key_check").fetchall() == []
    assert derived.sources(store.conn, run) == [a]


def test_other_labels_of_the_same_parents_are_another_run(store: Store) -> None:
    a, b = run_ids(store)
    table = derive.read_runs(store, [a, b])
    one, _ = derive.keep(store, table, "pooled", "echo", echo(table, 0))
    two, _ = derive.keep(store, table, "pooled", "echo", echo(table, 1))
    assert one != two
    model = store.conn.execute("SELECT model FROM runs WHERE run_id = ?", [one]).fetchone()[0]
    assert model == "echo(j/a, j/b)"


def test_every_command_takes_it_and_says_what_it_is_made_of(store: Store, tmp_path: Path) -> None:
    a, _ = run_ids(store)
    table = derive.read_runs(store, [a])
    truth = derive.reference(store, table, "stance")
    assert truth is not None and truth.word == "gold" and (truth.codes >= 0).all()
    folds = {q: k % 5 for k, q in enumerate(table.questions[1])}
    run, _ = derive.keep(
        store,
        table,
        "calibrated",
        "echo",
        echo(table),
        parameters={"T": 1.25},
        fitted=truth.describe_fit(folds),
    )
    db = ("-d", tmp_path / "w.db")
    told = f"calibrated (echo) from {a}, without model calls; T 1.25; fitted on 60 labels from 'gold' in 12 questions"
    shown = judge("runs", "show", run, *db).stdout
    assert told in shown and "cross-fitted by question" in shown and "cohen_kappa" in shown
    document = checked(judge("runs", "show", run, *db, "--json").stdout)
    assert document["derived_from"]["parents"] == [{"run": a, "units": N}]
    assert document["derived_from"]["fitted"]["cross_fitted"] is True
    checked(judge("runs", "list", *db, "--json").stdout)
    rows = [json.loads(line) for line in judge("runs", "export", run, *db).stdout.splitlines()]
    assert len(rows) == N and rows[0]["model"] == "echo(j/a)"
    assert rows[0]["distributions"]["stance"]["unassigned"] == 0
    agreed = annotate("agreement", *db, "--judge", run)
    assert told in agreed.stdout + agreed.stderr
    annotate("report", *db, "--judge", run, "-o", tmp_path / "r.html")
    assert told in (tmp_path / "r.html").read_text().replace("&#39;", "'").replace("&#x27;", "'")


def test_labels_on_questions_that_a_judge_was_fitted_on_take_part_in_no_agreement(store: Store) -> None:
    a, _ = run_ids(store)
    table = derive.read_runs(store, [a])
    truth = derive.reference(store, table, "stance")
    assert truth is not None
    run, _ = derive.keep(
        store, table, "calibrated", "all", echo(table), fitted=truth.describe_fit({"w:0": None, "w:1": None})
    )
    panel = read_panel(store, Scope("stance", runs=(run,)))
    [name] = panel.judges
    # Two questions of five units: 10 of 60 units are left out, the two failures of question 0 among them.
    assert int((panel.ratings.column(name) >= 0).sum()) == N - 10
    assert panel.measure([name, "gold"], ["percent"])[0].n_units == N - 10
    assert any("10 units were left out, because the judge was fitted" in note for note in panel.notes)
    # A run made from it knows no better than it.
    child = derive.read_runs(store, [run])
    second, _ = derive.keep(store, child, "pooled", "echo", echo(child))
    assert derived.read_seen_units(store.conn, second) == derived.read_seen_units(store.conn, run)
    # Two items and the five passages of each are units.
    assert len(derived.read_seen_units(store.conn, second)) == 12
    assert derived.sources(store.conn, second) == [a]


def test_a_judge_of_some_units_was_not_asked_about_the_others(store: Store) -> None:
    a, _ = run_ids(store)
    table = derive.read_runs(store, [a])
    some = np.arange(N) < 20
    run, _ = derive.keep(store, table, "routed", "half", echo(table), only=some)
    found = store.conn.execute("SELECT count(*) FROM judgements WHERE run_id = ?", [run]).fetchone()
    assert found == (20,)


def test_a_kill_in_the_middle_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    [a, _] = run_ids(store)
    table = derive.read_runs(store, [a])
    before = store.conn.execute("SELECT count(*) FROM judgements").fetchone()

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(label_rows, "judge_labelled", killed)
        with pytest.raises(KeyboardInterrupt):
            derive.keep(store, table, "pooled", "echo", echo(table))
    with closing(sqlite3.connect(store.path)) as other:
        assert other.execute("SELECT count(*) FROM judgements").fetchone() == before
        counting = "SELECT count(*) FROM sqlite_master WHERE name = 'count_judgement'"
        assert other.execute(counting).fetchone() == (1,)
    assert len(run_ids(store)) == 2


def test_a_score_reads_a_derived_judge_only_where_it_is_named(store: Store, tmp_path: Path) -> None:
    from judge.papers.engine import chosen

    a, b = run_ids(store)
    table = derive.read_runs(store, [a])
    run, _ = derive.keep(store, table, "pooled", "echo", echo(table))
    runs = chosen.list_runs(store)
    task = "stance"
    unasked = chosen.candidates([r for r in runs if r.run_id != b], [], task, (), {})
    assert [r.run_id for r in unasked] == [a]
    pinned = chosen.find_named(store, [run[-6:]], runs)
    assert [r.run_id for r in chosen.candidates(runs, pinned, task, (), {})] == [run]
    assert [r.run_id for r in chosen.candidates(runs, [], task, ("echo(j/a)",), {})] == [run]


def test_runs_that_do_not_fit_are_refused(store: Store) -> None:
    a, b = run_ids(store)
    with pytest.raises(UsageError, match="named twice"):
        derive.read_runs(store, [a, a])
    with pytest.raises(UsageError, match="no run is called 'nobody'"):
        derive.read_runs(store, ["nobody"])
    with pytest.raises(UsageError, match="has no field 'role' with the same labels"):
        derive.read_runs(store, [a, b], "role")


def test_folds_are_of_questions_and_even(store: Store) -> None:
    a, _ = run_ids(store)
    table = derive.read_runs(store, [a])
    truth = derive.reference(store, table, "stance")
    assert truth is not None
    fold = truth.deal_folds(4)
    numbers, _ = table.questions
    assert all(len(set(fold[numbers == q].tolist())) == 1 for q in range(12))
    # 12 labelled questions in 4 folds: three each.
    assert [len(set(numbers[fold == k].tolist())) for k in range(4)] == [3, 3, 3, 3]


def test_a_batch_takes_a_derived_judge_only_where_it_is_named(store: Store, tmp_path: Path) -> None:
    """What is revealed is the newest asked run, not the run that was made of another one since."""
    a, b = run_ids(store)
    table = derive.read_runs(store, [a])
    run, _ = derive.keep(store, table, "pooled", "echo", echo(table))
    options = ("stance", "--annotators", "ann", "-n", "5", "--reveal", "-d", tmp_path / "w.db")
    annotate("batches", "new", "first", *options)
    annotate("batches", "new", "second", *options, "--run", run)
    found = store.conn.execute("SELECT batch, reveal_run FROM batches ORDER BY batch").fetchall()
    assert found == [("first", b), ("second", run)]
