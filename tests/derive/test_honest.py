"""Labels that a judge was fitted on: through panels, files and other ways round, they never count for it."""

import json
from pathlib import Path

import numpy as np
import pytest

from judge import derive
from judge.derive import Made
from judge.derive.calibrate import calibrate
from judge.errors import UsageError
from judge.store import Store, derived
from tests.annotate.agreement_helpers import annotate, checked, judge
from tests.derive import worlds

N = 200


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return worlds.study(tmp_path / "w.db", worlds.draw(N))


def biased(store: Store, seed: int, bias: tuple[float, ...]) -> str:
    truth = worlds.draw(N)
    return worlds.judged(store, f"j/{seed}", worlds.softmax(worlds.logits(truth, 2.0, bias, seed)))


def calibrated(store: Store, run: str) -> str:
    done = judge("calibrate", "stance", "--run", run, "-d", store.path, "--json")
    return str(checked(done.stdout)["run_id"])


def test_a_panel_of_calibrated_judges_is_not_calibrated_again_and_says_what_they_were_fitted_on(
    store: Store,
) -> None:
    runs = [calibrated(store, biased(store, *own)) for own in ((21, (2, 0, 0)), (22, (0, 0, 2)))]
    done = judge("panel", "stance", "--run", runs[0], "--run", runs[1], "--method", "mean", "-d", store.path)
    assert "not calibrated" not in done.stderr
    panel = done.stdout.split("stored as run ")[1].split(";")[0]
    folds = "SELECT count(*), count(fold) FROM fitted_on WHERE run_id = ?"
    assert store.conn.execute(folds, [panel]).fetchone() == (40, 40)
    # A question's labels are in the parents' probabilities of the other folds, so they would come back to it.
    refused = judge("calibrate", "stance", "--run", panel, "-d", store.path, code=2)
    assert f"run {panel} was already fitted on labels, directly or through its parents" in refused.stderr
    with pytest.raises(UsageError, match="already fitted on labels"):
        table = derive.read_runs(store, [panel])
        calibrate(table, derive.reference(store, table, "stance"), "stance", "bias", interval=None)
    shown = judge("runs", "show", panel, "-d", store.path).stdout
    assert "not fitted on any labels" not in shown
    assert "derived from runs that were fitted on labels in 40 questions, cross-fitted by question" in shown
    checked(judge("runs", "show", panel, "-d", store.path, "--json").stdout)
    agreed = annotate("agreement", "-d", store.path, "--judge", panel)
    assert "derived from runs that were fitted on labels in 40 questions" in agreed.stdout + agreed.stderr


def test_labels_that_a_judge_was_fitted_on_are_known_after_export_and_import(
    store: Store, tmp_path: Path
) -> None:
    truth = worlds.draw(N)
    table = derive.read_runs(store, [biased(store, 21, (1, 0, 0))])
    known = derive.reference(store, table, "stance")
    assert known is not None
    _, names = table.questions
    seen: dict[str, int | None] = dict.fromkeys(names[:30]) | {names[30]: 2}
    place = {unit: at for at, unit in enumerate(worlds.units(N))}
    learnt = np.array([truth[place[unit]] for unit in table.units])
    run, _ = derive.keep(
        store, table, "calibrated", "heart", {"stance": Made(learnt)}, fitted=known.describe_fit(seen)
    )
    file = tmp_path / "labels.csv"
    judge("runs", "export", run, "-o", file, "-d", store.path)
    other = tmp_path / "other.db"
    for db in (store.path, other):
        if db == other:
            worlds.study(other, truth).close()
        judge("runs", "import", file, "--model", "somebody", "--task", "stance", "-d", db)
        found = json.loads(judge("runs", "show", "somebody", "-d", db, "--json").stdout)
        percent = next(m for m in found["fields"][0]["measures"] if m["measure"] == "percent")
        # 40 questions of five units, 30 of them learnt by heart.
        assert percent["n_units"] == 50
        with Store.open(db, create=False) as there:
            assert len(derived.folds(there.conn, found["run_id"])) == 30
            assert derived.read_seen_units(there.conn, found["run_id"]) == derived.read_seen_units(
                store.conn, run
            )
    refused = judge("calibrate", "stance", "--run", "somebody", "-d", other, code=2)
    assert "already fitted on labels" in refused.stderr


def test_joined_files_and_qrels_carry_the_mark(tmp_path: Path) -> None:
    """Twenty units in ten questions, of which two were learnt by heart."""
    db = tmp_path / "r.db"
    store = worlds.study(db, worlds.draw(20), per_question=2)
    raw = worlds.judged(store, "j/1", worlds.softmax(worlds.logits(worlds.draw(20), 2.0)), per_question=2)
    table = derive.read_runs(store, [raw])
    known = derive.reference(store, table, "stance")
    assert known is not None
    _, names = table.questions
    fitted = known.describe_fit({names[0]: None, names[1]: None, names[2]: 1})
    run, _ = derive.keep(store, table, "calibrated", "heart", {"stance": Made(known.codes)}, fitted=fitted)
    rows = [{"id": str(q), "mine": q} for q in range(10)]
    mine = tmp_path / "mine.jsonl"
    mine.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge("results", "--run", run, "--join", mine, "--dataset", "w", "-o", tmp_path / "out.jsonl", "-d", db)
    out = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    learnt = {name.partition(":")[2] for name in names[:2]}
    for row in out:
        assert {unit["fitted_on"] for unit in row["adjudge.rows"]} == {row["id"] in learnt}
    judge("results", "--run", raw, "--join", mine, "--dataset", "w", "-o", tmp_path / "raw.jsonl", "-d", db)
    assert "fitted_on" not in (tmp_path / "raw.jsonl").read_text()
    words = [
        "--format",
        "qrels",
        "--field",
        "stance",
        "--grade",
        "support=1",
        "--grade",
        "refute=0",
        "--grade",
        "neutral=0",
    ]
    done = judge("runs", "export", run, *words, "-o", tmp_path / "q.txt", "-d", db)
    lines = [line.split() for line in (tmp_path / "q.txt").read_text().splitlines()]
    assert len(lines) == 20 and {a for a, b, _, _ in lines if b == "fitted_on"} == learnt
    assert {b for a, b, _, _ in lines if a not in learnt} == {"0"}
    assert "4 lines have fitted_on in the second column" in done.stderr


def test_a_run_that_was_fitted_on_nothing_is_exported_as_ever(store: Store) -> None:
    raw = biased(store, 21, (1, 0, 0))
    for run in (raw, calibrated(store, raw)):
        [first, *_] = judge("runs", "export", run, "-d", store.path).stdout.splitlines()
        assert "fitted_on" not in json.loads(first)


def test_without_intervals_a_signal_is_still_seen(store: Store) -> None:
    run = biased(store, 21, (2, 0, 0))
    done = judge("calibrate", "stance", "--run", run, "--interval", "none", "-d", store.path)
    assert "no signal" not in done.stdout and "stored as run" in done.stdout
    assert "without an interval" in done.stdout
    same = judge("calibrate", "stance", "--run", run, "--method", "temperature", "-d", store.path)
    assert "no label changed on the units labelled by 'gold'" in same.stdout and "rose" not in same.stdout


def test_a_temperature_changes_no_label_where_a_label_is_not_the_likeliest(store: Store) -> None:
    truth = worlds.draw(N)
    run = biased(store, 21, (0, 0, 0))
    # As a model's own words may be: every tenth label is another than its probabilities say.
    with store.transaction() as conn:
        for at, unit in enumerate(worlds.units(N)):
            if at % 10 == 0:
                told = worlds.LABELS[(truth[at] + 1) % 3]
                conn.execute(
                    "UPDATE labels SET value = ? WHERE annotator_id = ? AND unit_id = ?", [told, run, unit]
                )
    table = derive.read_runs(store, [run])
    found = calibrate(table, derive.reference(store, table, "stance"), "stance", "temperature", interval=None)
    assert (found.made.codes == table.labels("stance").codes[:, 0]).all()


def test_a_parent_that_went_on_is_said(store: Store) -> None:
    runs = [biased(store, *own) for own in ((21, (2, 0, 0)), (22, (0, 0, 2)))]
    done = judge("panel", "stance", "--run", runs[0], "--run", runs[1], "-d", store.path, "--json")
    panel = checked(done.stdout)["run_id"]
    told = f"{runs[1]} got new judgements after this run was derived"
    assert told not in judge("runs", "show", panel, "-d", store.path).stdout
    with store.transaction() as conn:
        conn.execute(
            "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, judged_at) "
            "VALUES (?, 'w:0/p0', 0, 2, 'ok', '2999-01-01T00:00:00.000Z')",
            [runs[1]],
        )
    assert told in judge("runs", "show", panel, "-d", store.path).stdout
    agreed = annotate("agreement", "-d", store.path, "--judge", panel)
    assert told in agreed.stdout + agreed.stderr


def test_labels_that_changed_since_a_fit_are_said(store: Store) -> None:
    run = calibrated(store, biased(store, 21, (2, 0, 0)))
    told = "labels of 'gold' that have changed since"

    def says() -> bool:
        return told in judge("runs", "show", run, "-d", store.path).stdout

    def now(value: str, unit: str) -> None:
        with store.transaction() as conn:
            conn.execute(
                "UPDATE labels SET value = ? WHERE annotator_id = 'gold' AND unit_id = ?", [value, unit]
            )

    query = "SELECT unit_id, value FROM labels WHERE annotator_id = 'gold' ORDER BY unit_id LIMIT 1"
    unit, value = store.conn.execute(query).fetchone()
    assert not says()
    now(next(label for label in worlds.LABELS if label != value), unit)
    assert says()
    now(value, unit)
    assert not says()
    with store.transaction() as conn:
        conn.execute("DELETE FROM labels WHERE annotator_id = 'gold' AND unit_id = ?", [unit])
    assert says()
