"""Sequences of commands that would have a bad judge trusted, or would spend the level of the looks twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from annotate.drawing.sequences import sequences
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.prompts import load_task
from judge.store import Store
from tests.annotate.agreement_helpers import annotate, judge
from tests.annotate.looks_helpers import PEOPLE, UNITS, draw, label, labelled, ruled, sealed_world, world
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


def family_of(store: Store, batch: str) -> list[str]:
    query = "SELECT json_extract(options, '$.judges') FROM batches WHERE batch = ?"
    names: list[str] = json.loads(store.conn.execute(query, [batch]).fetchone()[0])
    return names


def test_no_verdict_rests_on_a_batch_that_adopts_most_of_its_labels(tmp_path: Path) -> None:
    # Everybody labelled all units before the draw, and the judge is wrong on a quarter of them. The frame leaves these out.
    db, truth, judged = bad_world(tmp_path, 0.25, PEOPLE)
    wrong = ",".join(f"'{u.split('/')[0]}'" for u in truth if judged[u] != truth[u])
    with open_study(db) as store:
        assert ruled(store)[0].decision == "do not trust"
        notes = draw(store, "easy", 180, where=f"item_id NOT IN ({wrong})")
        assert any("more than a fifth" in note for note in notes)
        (result,) = ruled(store)
        assert result.decision == "undecided"
        assert "100% of these units were skipped, labelled before the draw" in result.sentence
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
        assert result.decision == "undecided" and "50% of these units were skipped" in result.sentence
        assert "(2 people stopped)" in result.sentence


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


def test_short_runs_are_the_family_where_no_judge_has_half_of_the_units(tmp_path: Path) -> None:
    # Ten judges are run on 90 of 200 units. Whoever sees how they do would finish the best one only.
    db, truth = world(tmp_path)
    with open_study(db) as store:
        for table in ("labels", "judgements"):
            store.conn.execute(f"DELETE FROM {table}")
        draw(store, "one", 200, seed=3)
        units = sequences(store, "stance")[0].units
        runs = [
            add_run(store, load_task("stance"), f"m/{i}", {u: truth[u] for u in units[:90]})
            for i in range(10)
        ]
        label(store, "one", truth, 0, 200)
        ruled(store)
        assert set(family_of(store, "one")) == set(runs)


def test_a_run_that_is_finished_after_labels_were_shown_is_late(tmp_path: Path) -> None:
    # Thirty prompts are begun on one unit each. Whoever sees the labels of the second batch would finish the best one.
    db, truth = world(tmp_path)
    with open_study(db) as store:
        add_run(store, load_task("stance"), "m/early", dict([next(iter(truth.items()))]))
        draw(store, "one", 100, seed=3)
        label(store, "one", truth, 0, 100)
        ruled(store)
        draw(store, "two", 150, seed=4)
        label(store, "two", truth, 0, 150)
        result = {r.judge: r for r in ruled(store)}
        assert result["m/early"].decision == "undecided"
        assert "before m/early was added" in result["m/early"].sentence


def test_a_page_of_labels_fixes_the_family(tmp_path: Path) -> None:
    with labelled(tmp_path, last=30) as (store, _):
        db = store.path
        assert not family_of(store, "one")
    annotate("view", "-o", tmp_path / "page.html", "-d", db)
    with open_study(db) as store:
        assert len(family_of(store, "one")) == 1


def test_studies_that_were_looked_at_apart_are_merged_with_the_judges_of_both(tmp_path: Path) -> None:
    with labelled(tmp_path) as (store, truth):
        db = store.path
    copy = shutil.copy(db, tmp_path / "copy.db")
    with open_study(copy) as store:
        other = add_run(store, load_task("stance"), "m/other", truth)
        ruled(store)
    judge("studies", "merge", db, copy, "--into", tmp_path / "first.db")
    with open_study(db) as store:
        ruled(store)
    judge("studies", "merge", db, copy, "--into", tmp_path / "both.db")
    for name in ("first.db", "both.db"):
        with open_study(tmp_path / name) as store:
            assert other in family_of(store, "one")
            assert all("one of 2 judges" in r.sentence for r in ruled(store))


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
