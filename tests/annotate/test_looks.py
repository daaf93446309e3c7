"""On which units a verdict rests: drawn alike, in the order drawn, at fixed places, for the judges that the draw names."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest

from annotate.drawing.extend import extend_batch
from annotate.leading.lead import close_batch
from annotate.report import ReportOptions
from annotate.report.alternative import latent
from annotate.report.subject import load
from annotate.report.until_decided import next_block
from annotate.sitting.desk import Desk
from annotate.store import ensure_human, open_study
from judge.errors import UsageError
from judge.prompts import load_task
from judge.store.corrections import mark_outdated
from judge.store.label_sources import add
from judge.store.study import get_time
from judge.types import Status
from tests.annotate.agreement_helpers import annotate
from tests.annotate.looks_helpers import (
    PEOPLE,
    UNITS,
    draw,
    label,
    labelled,
    ruled,
    sequences,
    world,
)
from tests.annotate.report_helpers import U, add_run, study

TABLES = ("prevalence", "latent_agreement")


def test_where_the_frame_ends_first_the_sentence_says_so(tmp_path: Path) -> None:
    """No sentence asks for more units than can be drawn, and the paragraph for papers gives a reason once."""
    db, truth = world(tmp_path)
    few = " OR ".join(f"unit_id = '{unit}'" for unit in sorted(truth)[:10])
    with open_study(db) as store:
        draw(store, "pilot", 4, where=few)
        label(store, "pilot", truth, 0, 4)
        (ruling,) = ruled(store)
    assert "Only 6 more can be drawn; about" in ruling.sentence
    text = annotate("report", "--short", "-d", db).stdout
    assert text.lower().count("the first verdict is computed when the first 10 units") == 1
    text = annotate("report", "-d", db).stdout
    assert text.lower().count("the first verdict is computed when the first 10 units") == 1
    assert "\nn = 4 units of 4 questions.\n" in text and text.count("The verdict in numbers") == 1


def test_the_verdict_is_computed_at_fixed_places(tmp_path: Path) -> None:
    with labelled(tmp_path, 60) as (store, truth):
        (early,) = ruled(store)
        assert (early.decision, early.next_place) == ("undecided", 100)
        assert "the first verdict is computed when the first 100 units are labelled" in early.sentence
        assert {c.state for c in early.conditions} == {"not asked"} and early.measures[0].value is not None
        assert "next look" not in early.sentence and len(early.sentence.split()) <= 60
        # Another batch over the same frame goes on where the first one ended: its first block has 40 units for everybody.
        draw(store, "two", 90, seed=8)
        (result,) = sequences(store, "stance")
        assert [b.name for b in result.batches] == ["one", "two"]
        assert (result.complete, result.end) == (60, UNITS)
        first = set(result.units[60:100])
        query = "SELECT unit_id FROM assignments WHERE batch = 'two' AND annotator_id = ? AND position <= 40"
        for person in PEOPLE:
            assert {u for (u,) in store.conn.execute(query, [person])} == first
        label(store, "two", truth, 0, 39)
        assert ruled(store)[0].next_place == 100
        label(store, "two", truth, 39, 40)
        (at,) = ruled(store)
        assert at.draw == f"100 units drawn with equal probability from {UNITS} units"
        assert at.conditions[0].n_units == 100 and at.next_place == 200
        # z = 2.841: as strict as 10 % of the level asks for.
        assert at.confidence == pytest.approx(0.9955, abs=1e-4)
        # Between two places the largest one decides, however often it is looked at and whatever is drawn.
        label(store, "two", truth, 40, 90)
        extend_batch(store, "two", to=95)
        (later,) = ruled(store)
        assert (later.decision, later.conditions, later.next_place) == (at.decision, at.conditions, 200)


def test_skipped_units_lower_the_coverage_and_too_many_hold_the_verdict_up(tmp_path: Path) -> None:
    with labelled(tmp_path, skip=3) as (store, _):
        (result,) = ruled(store)
        n = result.measures[0].n_units
        assert 60 <= n <= 80 and result.measures[0].coverage == n / 100
        assert result.decision == "undecided" and "only 62% of these units have labels" in result.sentence


def test_units_drawn_in_equal_parts_decide_nothing(tmp_path: Path) -> None:
    db, truth = world(tmp_path, rare=0.1)
    with open_study(db) as store:
        notes = draw(store, "rare", 60, by="label", equal_parts=True)
        assert any("a batch without --draw" in note for note in notes)
        label(store, "rare", truth, 0, 60)
        (result,) = ruled(store)
        assert result.decision == "undecided"
        assert "these units were not drawn with equal probability" in result.sentence
        assert "drawn in the same way" in result.sentence
        assert "annotate batches new NAME stance.v2 -n 300 --annotators ann,bob" in result.sentence
        assert all(c.low is None and c.state == "not asked" for c in result.conditions)
        # A plain part decides, of the whole frame; what was drawn before stays beside it.
        draw(store, "plain", 100, seed=1)
        label(store, "plain", truth, 0, 100)
        (both,) = ruled(store)
        assert both.draw == f"100 units drawn with equal probability from {UNITS} units"


def test_the_estimated_classes_of_weighted_units_leave_out_labels_outside_the_draw(tmp_path: Path) -> None:
    db, truth = world(tmp_path, rare=0.1)
    with open_study(db) as store:
        draw(store, "rare", 60, by="label", equal_parts=True)
        label(store, "rare", truth, 0, 60)
        # Labels that came without a batch, for units that no draw brought: nothing says what they stand for.
        drawn = {u for (u,) in store.conn.execute("SELECT unit_id FROM batch_units")}
        outside = sorted(set(truth) - drawn)[:30]
        about = (None, None, "import:1", None, "2026-11-23")
        with store.transaction() as conn:
            ensure_human(conn, ["gina"])
            add(conn, [(u, "stance", "gina", "first", 0, truth[u], *about) for u in outside])
        section = latent(load(store, ReportOptions()))
    classes, agreement = (next(b for b in section.blocks if getattr(b, "key", "") == i) for i in TABLES)
    assert sum(row[2] for row in classes.rows) == 60
    # Agreement of the judge with the classes is of the same units as every other number of the report.
    judge = agreement.rows[0]
    assert (judge[1].n_units, judge[1].coverage) == (60, 1.0)


def test_a_stratified_draw_is_in_proportion_and_decides(tmp_path: Path) -> None:
    db, _ = world(tmp_path, rare=0.1)
    with open_study(db) as store:
        draw(store, "even", 100, by="label")
        (result,) = sequences(store, "stance")
        assert len(result.units) == 100 and result.batches[0].decides


def test_one_look_is_declared_before_the_first_label(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        draw(store, "one", 80, looks=1)
        label(store, "one", truth, 0, 79)
        assert ruled(store)[0].next_place == 80
        label(store, "one", truth, 79, 80)
        (result,) = ruled(store)
        assert result.confidence == pytest.approx(0.95) and result.next_place is None
        with pytest.raises(UsageError, match="batch 'one' was declared with a single look"):
            extend_batch(store, "one", to=90)
        notes = draw(store, "two", 20)
        assert any("allow only estimates for the judges compared there" in note for note in notes)
        with pytest.raises(UsageError, match=r"--looks 1 .* 'one' was drawn before"):
            draw(store, "three", 20, looks=1)


def test_labels_of_an_unequal_draw_decide_nothing_when_they_are_imported_without_their_batch(
    tmp_path: Path,
) -> None:
    db, truth = world(tmp_path)
    rows = [
        f"{unit},{person},stance,{right if i % 12 != k else 'neutral'},{{}}\n"
        for i, (unit, right) in enumerate(truth.items())
        for k, person in enumerate(PEOPLE)
    ]
    # As `annotate export --labels` writes them. With one weight the draw was plain: the labels have one look.
    for name, weights in (("plain", ("2.0", "2.0")), ("parts", ("2.0", "38.5"))):
        file = tmp_path / f"{name}.csv"
        lines = [row.format(weights[i % 4 // 2]) for i, row in enumerate(rows)]
        file.write_text("unit,annotator,field,label,weight\n" + "".join(lines), encoding="utf-8")
        copy = tmp_path / f"{name}.db"
        copyfile(db, copy)
        annotate("import", file, "--blind", "--new-people", "-d", copy)
        with open_study(copy) as store:
            (result,) = ruled(store)
        drawn_alike = name == "plain"
        assert result.sentence.startswith("If these units are a random sample: ") == drawn_alike
        assert (result.decision == "undecided") != drawn_alike
        assert ("annotate batches new NAME stance.v2 -n 300" in result.sentence) != drawn_alike


def test_a_batch_is_labelled_until_it_is_decided(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        draw(store, "one", 100, until=200)
        waiting = next_block(store, "one")
        assert (waiting.opened, waiting.closed) == (0, False) and "100 units" in waiting.messages[-1]
        label(store, "one", truth, 0, 100)
        second = next_block(store, "one")
        decided = ruled(store)[0].decision != "undecided"
        assert (second.opened, second.closed) == ((0, True) if decided else (100, False))
        if not decided:
            assert "100 units, 200 labels" in second.messages[-1] and "at 200 units" in second.messages[-1]
            assert "above -0.1" in second.messages[0]
            # Given again before the block is complete, nothing happens.
            assert next_block(store, "one").opened == 0
            label(store, "one", truth, 100, 200)
            assert next_block(store, "one").closed
        with pytest.raises(UsageError, match="was not drawn with --until-decided"):
            draw(store, "two", 10)
            next_block(store, "two")


def test_labels_imported_beside_a_batch_never_decide(tmp_path: Path) -> None:
    # The judge errs on three units of ten. Labels that are right were imported for the units on which the judge is right:
    # whoever chose these units would have it trusted.
    rng = np.random.default_rng(5)
    truth = ["support" if x < 0.5 else "refute" for x in rng.random(UNITS)]
    other = {"support": "refute", "refute": "support"}
    units = []
    for i, right in enumerate(truth):
        hit = i % 10 >= 3
        votes = {p: other[right] if i % 17 == k else right for k, p in enumerate(("carol", "dave"))}
        label_of = right if hit else other[right]
        units.append(U(gold=right if hit else None, people=votes if hit else {}, judges={"m/bad": label_of}))
    db = study(tmp_path / "s.db", units)
    with open_study(db) as store:
        draw(store, "one", 200, seed=3)
        label(store, "one", {f"study:{i}/p": t for i, t in enumerate(truth)}, 0, 200)
        for reference in (None, "carol", "majority"):
            (result,) = ruled(store, reference=reference)
            assert result.decision == "do not trust" and "with 2 people at kappa" in result.sentence
            assert (
                "because it is worse than a human annotator by more than the margin (-0.1)."
                in result.headline
            )
        names = [run for (run,) in store.conn.execute("SELECT run_id FROM runs")]
        (result,) = ruled(store, annotators=[*names, "carol", "dave"])
        assert result.decision == "undecided" and "imported labels give only estimates" in result.sentence
        (result,) = ruled(store, annotators=[*names, "ann", "carol"])
        assert result.decision == "undecided" and "including bob" in result.sentence
        (result,) = ruled(store, annotators=[*names, "gold"], reference="gold")
        assert result.decision == "undecided" and "imported labels give only estimates" in result.sentence


def test_a_judge_without_labels_on_many_drawn_units_is_not_trusted(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        task = load_task("stance")
        # Run on two units of three: nothing is known of the others.
        some = add_run(store, task, "m/some", {u: t for i, (u, t) in enumerate(truth.items()) if i % 3})
        most = add_run(store, task, "m/most", {u: t for i, (u, t) in enumerate(truth.items()) if i % 8})
        routed = add_run(store, task, "m/route", {u: t for i, (u, t) in enumerate(truth.items()) if i % 3})
        with store.transaction() as conn:
            made = {"kind": "routed", "method": "selective", "parents": [], "parameters": {}, "fitted": None}
            conn.execute("UPDATE runs SET derived_from = ? WHERE run_id = ?", [json.dumps(made), routed])
        draw(store, "one", 200, seed=3, judges=[some, most, routed])
        label(store, "one", truth, 0, 200)
        result = {r.judge: r for r in ruled(store)}
        some, most, route = (result[f"m/{name}"] for name in ("some", "most", "route"))
        assert some.decision == "undecided" and "of these units have labels" in some.sentence
        assert "judge run stance.v2 -m m/some" in some.sentence
        n = most.measures[0].n_units
        assert most.decision == "undecided" and f"on {n} of 200 units drawn" in most.sentence
        # A route leaves units to people on purpose, and has a guarantee of its own.
        assert (
            route.decision == "undecided" and "A route has a guarantee instead of a verdict" in route.sentence
        )


def test_a_judge_without_labels_on_the_units_of_a_rare_label_is_not_trusted(tmp_path: Path) -> None:
    db, truth = world(tmp_path, rare=0.3)
    with open_study(db) as store:
        # It fails on each fourth unit of the rare label, and is right on all others: on few units of all.
        rare = [u for u, t in truth.items() if t == "support"]
        add_run(store, load_task("stance"), "m/fails", {u: t for u, t in truth.items() if u not in rare[::4]})
        draw(store, "one", 200, seed=3)
        label(store, "one", truth, 0, 200)
        (result,) = [r for r in ruled(store) if r.judge == "m/fails"]
        assert result.decision == "undecided"
        assert "units labelled 'support'" in result.sentence and "has no label on" in result.sentence


def test_units_labelled_with_gaps_need_no_negative_number_of_units(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        draw(store, "one", 250, seed=3)
        # The first unit stays open, so that no place is complete although 249 units are labelled.
        label(store, "one", truth, 1, 250)
        (result,) = ruled(store)
        assert "when the first 100 units are labelled" in result.sentence and "About -" not in result.sentence


def test_a_filter_that_selects_the_same_units_goes_on_with_their_looks(tmp_path: Path) -> None:
    with labelled(tmp_path) as (store, _):
        draw(store, "two", 100, seed=4, where="1 = 1")
        draw(store, "three", 20, seed=5, where="n > 0", fresh=True)
        (result,) = sequences(store, "stance")
        assert [b.name for b in result.batches] == ["one", "two", "three"] and result.complete == 100
        assert ruled(store)[0].next_place == 200


def test_a_unit_that_two_batches_drew_counts_once(tmp_path: Path) -> None:
    db, _ = world(tmp_path)
    with open_study(db) as store:
        draw(store, "one", 80, seed=3)
        with store.transaction() as conn:
            # As two studies of the same units, drawn apart and merged.
            rest = "task, purpose, seed, options, reveal_run, packed_for, created, closed, exposure"
            conn.execute(f"INSERT INTO batches SELECT 'two', {rest} FROM batches")
            rest = "unit_id, role, stratum, probability, weight"
            conn.execute(f"INSERT INTO batch_units SELECT 'two', {rest} FROM batch_units")
        (result,) = sequences(store, "stance")
        assert len(result.batches) == 2 and len(result.units) == len(set(result.units)) == 80


def test_a_closed_batch_with_open_units_says_what_to_do(tmp_path: Path) -> None:
    with labelled(tmp_path, last=90) as (store, _):
        close_batch(store, "one")
        (result,) = ruled(store)
        assert "batch 'one' is closed with open units" in result.sentence
        assert "annotate batches close one --undo" in result.sentence


def test_a_block_that_a_file_completes_is_followed_by_the_next(tmp_path: Path) -> None:
    # The judge errs on a sixth, so that 100 units do not decide.
    db, truth = world(tmp_path)
    with open_study(db) as store:
        some = {u: t if i % 5 else "refute" for i, (u, t) in enumerate(truth.items())}
        run = add_run(store, load_task("stance"), "m/open", some)
        draw(store, "one", 100, until=200, judges=[run])
        rows = ["unit,annotator,label"]
        for k, person in enumerate(PEOPLE):
            for i, (u,) in enumerate(store.conn.execute("SELECT unit_id FROM batch_units").fetchall()):
                wrong = "refute" if truth[u] == "support" else "support"
                rows.append(f"{u},{person},{wrong if i % 16 == k else truth[u]}")
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    annotate("import", tmp_path / "labels.csv", "--batch", "one", "--blind", "--field", "stance", "-d", db)
    with open_study(db) as store:
        (result,) = sequences(store, "stance")
        assert (result.complete, len(result.units)) == (100, 200)


def test_judges_on_imported_labels_share_the_level(tmp_path: Path) -> None:
    # The same labels as a study without a batch and as a table: three judges hold one level together.
    rng = np.random.default_rng(2)
    truth = ["support" if x < 0.5 else "refute" for x in rng.random(150)]
    other = {"support": "refute", "refute": "support"}
    names = ("m/one", "m/two", "m/three")
    made = [
        U(
            judges={name: t if i % 11 != k else other[t] for k, name in enumerate(names)},
            people={"ann": t, "bob": t if i % 12 else other[t]},
        )
        for i, t in enumerate(truth)
    ]
    db = study(tmp_path / "s.db", made)
    with open_study(db) as store:
        result = ruled(store)
        assert all("one of 3 judges," in r.sentence for r in result)
        (alone,) = ruled(store, runs=["last"])
        assert alone.conditions == next(r for r in result if r.judge == alone.judge).conditions
    people = [f"{u.people['ann']},{u.people['bob']}," + ",".join(map(str, u.judges.values())) for u in made]
    table = tmp_path / "t.csv"
    rows = "".join(f"{i},{row}\n" for i, row in enumerate(people))
    table.write_text(f"unit,ann,bob,one,two,three\n{rows}", encoding="utf-8")
    judges = [part for name in ("one", "two", "three") for part in ("--judge", name)]
    printed = annotate("report", table, "--annotators", "ann,bob,one,two,three", *judges).stdout
    assert printed.count("one of 3 judges,") == 3


def test_a_fresh_draw_says_that_labelled_units_are_left_out(tmp_path: Path) -> None:
    # A queue may have taken the units on which the judge is unsure: what it leaves are the easier ones.
    db, truth = world(tmp_path)
    with open_study(db) as store:
        draw(store, "hard", 20, by="label", equal_parts=True)
        label(store, "hard", truth, 0, 20)
        draw(store, "rest", 100, fresh=True)
        label(store, "rest", truth, 0, 100)
        (result,) = ruled(store)
        assert result.draw.endswith(f"from {UNITS - 20} units (without 20 labelled before)")


def test_the_sentence_names_people_whom_a_lead_stopped(tmp_path: Path) -> None:
    with labelled(tmp_path) as (store, _):
        db = store.path
        assert "stopped" not in ruled(store)[0].sentence
    annotate("batches", "stop", "one", "--annotator", "ann", "--why", "differs from the judge", "-d", db)
    with open_study(db) as store:
        (result,) = ruled(store)
        assert result.draw.endswith(f"from {UNITS} units (ann stopped)")
        assert "ann was stopped after the look at 100 units" in result.sentence


def test_a_text_that_is_corrected_after_a_look_costs_this_look(tmp_path: Path) -> None:
    with labelled(tmp_path) as (store, truth):
        (before,) = ruled(store)
        assert before.conditions[0].n_units == 100
        unit = sequences(store)[0].units[5]
        with store.transaction() as conn:
            conn.execute("UPDATE passages SET text = text || ' Corrected.' WHERE passage_id = ?", [unit])
            mark_outdated(conn, [unit], get_time())
        assert sequences(store)[0].complete == 5
        for person in PEOPLE:
            with Desk.open(store, "one", person) as desk:
                position = desk.next_open()
                assert position is not None
                desk.label(position, "stance", truth[unit])
        # Everything is labelled again, but the look at 100 units was spent.
        assert sequences(store)[0].complete == 100
        (after,) = ruled(store)
        assert "a text was corrected after the look at 100 units" in after.sentence
        assert "at 200 units" in after.sentence and after.decision == "undecided"


def test_a_text_that_is_corrected_before_a_look_costs_nothing(tmp_path: Path) -> None:
    with labelled(tmp_path, last=60) as (store, truth):
        unit = sequences(store)[0].units[5]
        with store.transaction() as conn:
            mark_outdated(conn, [unit], get_time())
        for person in PEOPLE:
            with Desk.open(store, "one", person) as desk:
                while (position := desk.next_open()) is not None:
                    desk.label(position, "stance", truth[desk.load(position).unit_id])
        assert sequences(store)[0].complete == 100
        (result,) = ruled(store)
        # The judge has not labelled the new text.
        assert result.conditions[0].n_units == 99 and "after the look" not in result.sentence


def test_an_exported_table_of_a_draw_in_equal_parts_decides_nothing(tmp_path: Path) -> None:
    # 60 units of each label, of a frame in which 'refute' is ten times as frequent.
    rng = np.random.default_rng(3)
    units = ["unit,ann,bob,one,weight"]
    for i in range(120):
        truth = "support" if i % 2 else "refute"
        near = "support" if rng.random() < 0.1 else truth
        units.append(f"{i},{truth},{near},{truth},{1.5 if i % 2 else 13}")
    table = tmp_path / "t.csv"
    table.write_text("\n".join(units) + "\n", encoding="utf-8")
    words = ("report", table, "--annotators", "ann,bob,one", "--judge", "one")
    printed = annotate(*words).stdout
    assert "these units were not drawn with equal probability (column 'weight')" in printed
    table.write_text("\n".join(line.rpartition(",")[0] for line in units) + "\n", encoding="utf-8")
    assert "If these units are a random sample: undecided on one" in annotate(*words).stdout


def test_each_interval_of_the_verdict_has_its_level_beside_it(tmp_path: Path) -> None:
    """The first of several looks is tested at 99.55 %, and no sentence or head calls these intervals 95 % ones."""
    with labelled(tmp_path) as (store, _):
        db = store.path
        (ruling,) = ruled(store)
    assert "; 99.55 % intervals)" in ruling.because
    for ending in ("md", "tex"):
        page = tmp_path / f"short.{ending}"
        annotate("report", "--short", "-o", str(page), "-d", db)
        text = " ".join(page.read_text().replace("\\%", "%").replace("~", " ").split())
        assert "m/one with people: pooled kappa" in text and "(99.55 % interval 0." in text, text
        # The paragraph and the table: two kappas of the verdict, and two numbers of the rest.
        assert text.count("(99.55 % interval 0.") == 2 and text.count("(95 % interval 0.") == 2, text
        assert text.count("99.55 %: 0.") == 2 and text.count(" 95 %: 0.") + text.count("(95 %: 0.") == 2, text
        assert "95 or 99.55" not in text and "99.55 % in the verdict on m/one: jackknife" in text
        assert text.count("is shared by several looks at the units.") == 1, text
    annotate("report", "-o", str(tmp_path / "r.md"), "-d", db)
    full = (tmp_path / "r.md").read_text()
    assert "99.55 % in the verdict on m/one: jackknife" in full and "difference (99.55 % interval)" in full
    assert full.count("is shared by several looks at the units.") == 1 and "95 or 99.55" not in full


def test_a_run_without_labels_is_last_and_fails_no_build_of_another_judge(tmp_path: Path) -> None:
    """A run whose replies were all unparsed has no labels: that is its reason, and not the time at which it was added."""
    db, truth = world(tmp_path)
    with open_study(db) as store:
        # Its id is the first in the order of the report, and it was made before the draw.
        unparsed = add_run(store, load_task("stance"), "a/none", dict.fromkeys(truth, Status.UNPARSED))
        draw(store, "one", 100, seed=3, judges=["m/one"])
        label(store, "one", truth, 0, 100)
        rulings = ruled(store)
        (alone,) = ruled(store, runs=("a/none",))
        add_run(store, load_task("stance"), "m/elsewhere", {"study:255/p": "support"})
    assert [r.judge for r in rulings] == ["m/one", "a/none"] and rulings[0].decision == "trust"
    for ruling in (rulings[1], alone):
        assert ruling.no_labels and "no labels from a/none on the 100 units" in ruling.sentence
        assert f"judge runs show {unparsed}" in ruling.sentence and "compared with" not in ruling.sentence
        assert ruling.more_units is None and ruling.decision == "undecided"
    page = tmp_path / "gates.xml"
    gates = ("--fail-under", "verdict=trust", "--fail-under", "pooled_kappa=0.1", "-o", str(page), "-d", db)
    annotate("report", *gates)
    assert "a/none" not in page.read_text() and "m/one" in page.read_text()
    annotate("report", "--judge", "a/none", *gates, code=5)
    assert "a/none: no labels" in page.read_text()
    agreement = ("agreement", "--field", "stance", "--fail-under", "cohen_kappa=0.1", "-d", db)
    passed = annotate(*agreement)
    assert "a/none" in passed.stderr and "left out, because it has no label" in passed.stderr
    assert "undefined" in annotate(*agreement, "--judge", "a/none", code=5).stderr


def test_where_no_judge_has_a_label_the_gate_fails(tmp_path: Path) -> None:
    db = study(tmp_path / "s.db", [U(gold="support", judges={"m/none": Status.UNPARSED}) for _ in range(4)])
    assert "no labels" in annotate("report", "--fail-under", "verdict=part", "-d", db, code=5).stderr
    annotate("agreement", "--fail-under", "cohen_kappa=0.1", "-d", db, code=5)


def test_a_judge_of_a_table_without_labels_takes_no_share_of_the_level(tmp_path: Path) -> None:
    lines = ["unit,annotator,label"]
    for i in range(60):
        word = "ab"[i % 2]
        lines += [f"{i},{who},{word if i % 15 else 'a'}" for who in ("ann", "bob", "j")]
        lines.append(f"{i + 1000},k,{word}")
    table = tmp_path / "votes.csv"
    table.write_text("\n".join(lines) + "\n")
    text = annotate("report", table, "--judge", "j", "--judge", "k").stdout
    assert "no labels from k on the 60 units" in text and "one of 2 judges" not in text
