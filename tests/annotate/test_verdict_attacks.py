"""Sequences of commands that would have a bad judge trusted, or would spend the level of the looks twice."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import numpy as np

from annotate.batch_plan import BatchPlan
from annotate.drawing.batch import new_batch
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.prompts import load_task
from tests.annotate.agreement_helpers import annotate, judge
from tests.annotate.looks_helpers import (
    PEOPLE,
    UNITS,
    draw,
    judges_tested,
    label,
    labelled,
    ruled,
    sealed_world,
    sequences,
    world,
)
from tests.annotate.report_helpers import U, add_run, study

OTHER = {"support": "refute", "refute": "support"}


def bad_world(
    folder: Path, share: float, votes: tuple[str, ...] = ()
) -> tuple[Path, dict[str, str], dict[str, str]]:
    """A study whose judge errs on this share of the units; the truth and the judge's label by unit. `votes`: these people's labels
    were imported, each with errors on a seventeenth."""
    rng = np.random.default_rng(5)
    truth = ["support" if x < 0.5 else "refute" for x in rng.random(UNITS)]
    judged = [OTHER[t] if x < share else t for t, x in zip(truth, rng.random(UNITS), strict=True)]
    people = [{p: OTHER[t] if i % 17 == k else t for k, p in enumerate(votes)} for i, t in enumerate(truth)]
    made = [U(people=p, judges={"m/bad": x}) for p, x in zip(people, judged, strict=True)]
    db = study(folder / "s.db", made)
    names = [f"study:{i}/p" for i in range(UNITS)]
    return db, dict(zip(names, truth, strict=True)), dict(zip(names, judged, strict=True))


def import_like_the_judge(db: Path, units: list[str], judged: dict[str, str]) -> None:
    """Import the judge's labels of these units as labels of both people, without their batch."""
    rows = "".join(f"{unit},{person},{judged[unit]}\n" for unit in units for person in PEOPLE)
    db.with_name("labels.csv").write_text(f"unit,annotator,label\n{rows}")
    annotate("import", db.with_name("labels.csv"), "--field", "stance", "--blind", "-d", db)


def test_no_verdict_rests_on_a_batch_that_adopts_most_of_its_labels(tmp_path: Path) -> None:
    # Everybody labelled all units before the draw, and the judge is wrong on a quarter of them. The frame leaves these out.
    db, truth, judged = bad_world(tmp_path, 0.25, PEOPLE)
    wrong = ",".join(f"'{u.split('/')[0]}'" for u in truth if judged[u] != truth[u])
    with open_study(db) as store:
        assert ruled(store)[0].decision == "do not trust"
        notes = draw(store, "easy", 180, where=f"item_id NOT IN ({wrong})")
        assert any("more than a tenth" in note for note in notes)
        (result,) = ruled(store)
        assert result.decision == "undecided"
        assert "only 0% of these units have labels given after the draw" in result.sentence
        # The estimates of the report are with these labels.
        assert "100 units" in result.draw


def test_a_few_labels_that_were_given_before_the_draw_count(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        draw(store, "rare", 20, by="label", equal_parts=True, seed=1)
        label(store, "rare", truth, 0, 20)
        draw(store, "one", 200, seed=3)
        label(store, "one", truth, 0, 200)
        (result,) = ruled(store)
        adopted = "SELECT count(DISTINCT a.unit_id) FROM batch_units AS a JOIN batch_units AS b USING (unit_id) WHERE a.batch < b.batch"
        (n,) = store.conn.execute(adopted).fetchone()
        assert 0 < n <= 20 and result.decision == "trust" and result.measures[0].n_units == 200


def test_labels_imported_for_skipped_units_decide_nothing(tmp_path: Path) -> None:
    # The judge errs on a sixth. People skip the first of these units, and labels like the judge's are imported for them.
    db, truth, judged = bad_world(tmp_path, 0.17)
    with open_study(db) as store:
        draw(store, "one", 200, seed=3)
        units = sequences(store, "stance")[0].units
        skipped = [u for u in units if judged[u] != truth[u]][:20]
        for k, person in enumerate(PEOPLE):
            query = "SELECT position, unit_id FROM assignments WHERE annotator_id = ? ORDER BY position"
            seats = store.conn.execute(query, [person]).fetchall()
            with Desk.open(store, "one", person) as desk:
                for position, unit in seats:
                    number = int(unit.split(":")[1].split("/")[0])
                    right = truth[unit]
                    if unit in skipped:
                        desk.skip(position)
                    else:
                        desk.label(position, "stance", OTHER[right] if number % 16 == k else right)
        before = ruled(store)
    import_like_the_judge(db, skipped, judged)
    with open_study(db) as store:
        (after,) = ruled(store)
        assert after.measures == before[0].measures and after.decision == before[0].decision
        assert after.measures[0].n_units == 180


def test_stopping_everybody_in_a_batch_leaves_its_units_without_labels(tmp_path: Path) -> None:
    # Whoever could take out a batch that speaks against the judge would choose among the batches.
    with labelled(tmp_path) as (store, truth):
        db = store.path
    for person in PEOPLE:
        annotate("batches", "stop", "one", "--annotator", person, "--why", "differs from the judge", "-d", db)
    with open_study(db) as store:
        draw(store, "two", 100, seed=4)
        label(store, "two", truth, 0, 100)
        (result,) = ruled(store)
        assert result.decision == "undecided" and "only 50% of these units have labels" in result.sentence
        assert "(2 people stopped)" in result.sentence


def test_stopping_a_person_costs_a_look(tmp_path: Path) -> None:
    # Whoever stops the person whose removal helps most, on the labels of a look, would look at them a second time.
    people = ("ann", "bob", "cyd")
    db, truth = world(tmp_path)
    with open_study(db) as store:
        new_batch(store, load_task("stance"), BatchPlan("one", people, 200, seed=3))
        label(store, "one", truth, 0, 100, people=people)
        assert ruled(store)[0].next_place == 200
    annotate("batches", "stop", "one", "--annotator", "cyd", "--why", "differs from the judge", "-d", db)
    with open_study(db) as store:
        (result,) = ruled(store)
        assert (
            result.decision == "undecided" and "the next verdict is computed at 200 units" in result.sentence
        )
        label(store, "one", truth, 100, 200, people=people[:2])
        (later,) = ruled(store)
        assert later.decision == "trust" and "(cyd stopped)" in later.sentence
        # The look at 100 units has spent its part of the level: 35 % of it is spent by the second look, as without a stop.
        assert later.next_place == 260


def test_after_a_stop_the_printed_command_draws_the_units_of_the_next_look(tmp_path: Path) -> None:
    # A batch whose units need three people cannot be extended for two.
    people = ("ann", "bob", "cyd")
    db, truth = world(tmp_path)
    with open_study(db) as store:
        new_batch(store, load_task("stance"), BatchPlan("one", people, 100, seed=3))
        label(store, "one", truth, 0, 100, people=people)
        add_run(store, load_task("stance"), "m/newer", truth)
    annotate("batches", "stop", "one", "--annotator", "cyd", "--why", "careless", "-d", db)
    failed = annotate("batches", "extend", "one", "--to", "200", "-d", db, code=2)
    printed = shlex.split(failed.stderr.split("as another batch: annotate ")[1])
    annotate(*("two" if word == "NAME" else word for word in printed))
    with open_study(db) as store:
        assert judges_tested(store, "two") == ["m/one"], "not the newest run"
        label(store, "two", truth, 0, 100, people=people[:2])
        later = next(r for r in ruled(store) if r.judge == "m/one")
        assert "on 200 units drawn" in later.sentence and "(cyd stopped)" in later.sentence


def test_a_person_who_is_stopped_before_the_labels_come_back_is_named(tmp_path: Path) -> None:
    # A lead reads a pack, and stops the person instead of merging it.
    db, truth = world(tmp_path)
    with open_study(db) as store:
        draw(store, "one", 100, seed=3)
    annotate("batches", "assign", "one", "--to", "eve", "-d", db)
    annotate("batches", "stop", "one", "--annotator", "eve", "--why", "differs from the judge", "-d", db)
    with open_study(db) as store:
        label(store, "one", truth, 0, 100)
        assert "(eve stopped)" in ruled(store)[0].sentence


def test_no_command_that_shows_labels_changes_who_is_tested(tmp_path: Path) -> None:
    # Ten judges are run after the draw. Whoever sees how they do would choose the best one.
    with labelled(tmp_path) as (store, truth):
        db = store.path
        before = judges_tested(store, "one")
        (first,) = ruled(store)
        for i in range(10):
            add_run(store, load_task("stance"), f"m/{i}", truth)
    annotate("view", "-o", tmp_path / "page.html", "-d", db)
    annotate("report", "-d", db)
    annotate("agreement", "--field", "stance", "-d", db)
    judge("studies", "merge", db, shutil.copy(db, tmp_path / "copy.db"), "--into", tmp_path / "both.db")
    for name in ("s.db", "both.db"):
        with open_study(tmp_path / name) as store:
            assert judges_tested(store, "one") == before == ["m/one"]
            result = {r.judge: r for r in ruled(store)}
            assert (result["m/one"].decision, result["m/one"].conditions) == (
                first.decision,
                first.conditions,
            )
            late = [r for r in result.values() if r.judge != "m/one"]
            assert len(late) == 10 and all(r.decision == "undecided" and not r.is_tested for r in late)
            assert "these units test m/one. To test m/3, draw units for it" in result["m/3"].sentence


def test_a_batch_without_a_run_tests_the_first_one_that_is_made(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        for table in ("labels", "judgements", "run_counts", "runs"):
            store.conn.execute(f"DELETE FROM {table}")
        notes = draw(store, "one", 100, seed=3)
        assert (
            any("the first run that is made" in note for note in notes) and judges_tested(store, "one") == []
        )
        label(store, "one", truth, 0, 100)
        add_run(store, load_task("stance"), "m/first", truth)
        add_run(store, load_task("stance"), "m/second", truth)
        assert judges_tested(store, "one") == ["m/first"]
        assert [r.judge for r in ruled(store) if r.is_tested] == ["m/first"]


def test_studies_with_other_judges_are_merged_with_the_judges_of_both(tmp_path: Path) -> None:
    # Each copy of a study without a run made its own first run: both are tested, and share the level.
    db, truth = world(tmp_path)
    with open_study(db) as store:
        for table in ("labels", "judgements", "run_counts", "runs"):
            store.conn.execute(f"DELETE FROM {table}")
        draw(store, "one", 100, seed=3)
        label(store, "one", truth, 0, 100)
    copy = shutil.copy(db, tmp_path / "copy.db")
    for path, model in ((db, "m/a"), (copy, "m/b")):
        with open_study(path) as store:
            add_run(store, load_task("stance"), model, truth)
    judge("studies", "merge", db, copy, "--into", tmp_path / "both.db")
    with open_study(tmp_path / "both.db") as store:
        assert judges_tested(store, "one") == ["m/a", "m/b"]
        assert all("one of 2 judges" in r.sentence for r in ruled(store))


def test_a_later_batch_never_raises_the_share_of_a_judge(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        add_run(store, load_task("stance"), "m/two", truth)
        draw(store, "one", 100, seed=3, judges=["m/one", "m/two"])
        label(store, "one", truth, 0, 100)
        first = {r.judge: r.confidence for r in ruled(store)}
        draw(store, "two", 100, seed=4, judges=["m/one"])
        label(store, "two", truth, 0, 100)
        result = {r.judge: r for r in ruled(store)}
        # m/one goes on with both batches, and m/two has the units of the first one.
        assert result["m/one"].next_place == 260 and result["m/two"].next_place == 200
        assert all("one of 2 judges" in r.sentence for r in result.values())
        assert result["m/two"].confidence == first["m/two"]


def test_a_test_that_is_sealed_after_looks_gives_the_judge_no_further_ones(tmp_path: Path) -> None:
    # Looks at the test's units alone, or at the others alone, would be further looks at labels that looks were at.
    db, truth = sealed_world(tmp_path)
    with open_study(db) as store:
        (before,) = ruled(store)
    judge("split", "stance", "-d", db)
    with open_study(db) as store:
        (closed,) = ruled(store)
        assert closed.decision == "undecided" and "judge compare stance --part test" in closed.sentence
        add_run(store, load_task("stance"), "m/two", truth)
    judge("compare", "stance", "--part", "test", "-d", db)
    with open_study(db) as store:
        after = {r.judge: r for r in ruled(store)}["m/one"]
        assert (after.decision, after.conditions) == (before.decision, before.conditions)


def test_a_resolved_conflict_leaves_the_verdict_with_the_labels_of_the_batch(tmp_path: Path) -> None:
    # Where the judge errs, labels like the judge's are imported, and all conflicts are resolved for the later label.
    db, truth, judged = bad_world(tmp_path, 0.17)
    with open_study(db) as store:
        draw(store, "one", 200, seed=3)
        label(store, "one", truth, 0, 200)
        (before,) = ruled(store)
        units = sequences(store, "stance")[0].units
    import_like_the_judge(db, [u for u in units if judged[u] != truth[u]], judged)
    with open_study(db) as store:
        assert "in conflict" in ruled(store)[0].sentence
    annotate("conflicts", "resolve", "--all", "--keep", "latest", "-d", db)
    with open_study(db) as store:
        (after,) = ruled(store)
        assert before.decision == "undecided"
        assert (after.decision, after.conditions) == (before.decision, before.conditions)
