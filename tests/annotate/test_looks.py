"""On which units a verdict rests: drawn alike, in the order drawn, at fixed places, for a family of judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotate.batch_plan import BatchPlan
from annotate.drawing.batch import extend_batch, new_batch
from annotate.drawing.sequences import sequences
from annotate.report import ReportOptions
from annotate.report.alternative import latent
from annotate.report.model import Ruling
from annotate.report.rulings import rule
from annotate.report.subject import load
from annotate.report.until_decided import next_block
from annotate.sitting.desk import Desk
from annotate.store import ensure_human, open_study
from judge.errors import UsageError
from judge.prompts import load_task
from judge.store import Store
from judge.store.label_sources import add
from tests.annotate.report_helpers import U, add_run, study

PEOPLE = ("ann", "bob")
UNITS = 260
TABLES = ("prevalence", "latent_agreement")


def world(folder: Path, rare: float = 0.5) -> tuple[Path, dict[str, str]]:
    """A study of single-unit questions with a judge that errs on a fifteenth, and the truth by unit."""
    rng = np.random.default_rng(1)
    truth = ["support" if x < rare else "refute" for x in rng.random(UNITS)]
    judged = [t if x > 1 / 15 else "refute" for t, x in zip(truth, rng.random(UNITS), strict=True)]
    db = study(folder / "s.db", [U(judges={"m/one": label}) for label in judged])
    return db, {f"study:{i}/p": label for i, label in enumerate(truth)}


def draw(store: Store, name: str, n: int, **plan: Any) -> list[str]:
    return new_batch(store, load_task("stance"), BatchPlan(name, PEOPLE, n, **plan)).notes


def label(store: Store, batch: str, truth: dict[str, str], first: int, last: int, skip: int = 0) -> None:
    """Both people label their positions from `first` to `last`; each errs on units of their own. Of ten `skip` are skipped."""
    for k, person in enumerate(PEOPLE):
        query = (
            "SELECT position, unit_id FROM assignments WHERE batch = ? AND annotator_id = ? ORDER BY position"
        )
        seats = store.conn.execute(query, [batch, person]).fetchall()[first:last]
        with Desk.open(store, batch, person) as desk:
            for position, unit in seats:
                number = int(unit.split(":")[1].split("/")[0])
                if number % 10 < skip:
                    desk.skip(position)
                    continue
                wrong = number % 16 == k
                right = truth[unit]
                desk.label(
                    position, "stance", right if not wrong else "refute" if right == "support" else "support"
                )


def ruled(store: Store, **asked: Any) -> list[Ruling]:
    return rule(store, load(store, ReportOptions(**asked)))[0]


def test_the_verdict_is_computed_at_fixed_places(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        draw(store, "one", 60, seed=3)
        label(store, "one", truth, 0, 60)
        (early,) = ruled(store)
        assert (early.decision, early.next_place) == ("undecided", 100)
        assert (
            "no verdict yet: the first is computed when 100 units are labelled or skipped" in early.sentence
        )
        assert {c.state for c in early.conditions} == {"not asked"} and early.measures[0].value is not None
        assert "next look" not in early.sentence and len(early.sentence.split()) <= 60
        # Another batch over the same frame goes on where the first one ended: its first block has 40 units for everybody.
        draw(store, "two", 90, seed=8)
        (found,) = sequences(store, "stance")
        assert [b.name for b in found.batches] == ["one", "two"] and (found.complete, found.end) == (
            60,
            UNITS,
        )
        first = set(found.units[60:100])
        for person in PEOPLE:
            query = (
                "SELECT unit_id FROM assignments WHERE batch = 'two' AND annotator_id = ? AND position <= 40"
            )
            assert {u for (u,) in store.conn.execute(query, [person])} == first
        label(store, "two", truth, 0, 39)
        assert ruled(store)[0].next_place == 100
        label(store, "two", truth, 39, 40)
        (at,) = ruled(store)
        assert at.draw == f"100 units drawn with equal probability from {UNITS} units"
        assert at.conditions[0].n_units == 100 and at.next_place == 200
        # z = 2.841: as strict as 10 % of the level asks for.
        assert at.conditions[1].confidence == pytest.approx(0.9955, abs=1e-4)
        # Between two places the largest one decides, however often it is looked at and whatever is drawn.
        label(store, "two", truth, 40, 90)
        extend_batch(store, "two", to=95)
        (later,) = ruled(store)
        assert (later.decision, later.conditions, later.next_place) == (at.decision, at.conditions, 200)


def test_skipped_units_lower_the_coverage_and_too_many_hold_the_verdict_up(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        draw(store, "one", 100, seed=3)
        label(store, "one", truth, 0, 100, skip=3)
        (found,) = ruled(store)
        n = found.measures[0].n_units
        assert 60 <= n <= 80 and found.measures[0].coverage == n / 100
        assert found.decision == "undecided" and "people skipped" in found.sentence


def test_units_drawn_in_equal_parts_decide_nothing(tmp_path: Path) -> None:
    db, truth = world(tmp_path, rare=0.1)
    with open_study(db) as store:
        notes = draw(store, "rare", 60, by="label", equal_parts=True)
        assert any("no verdict rests on them" in note for note in notes)
        label(store, "rare", truth, 0, 60)
        (found,) = ruled(store)
        assert (
            found.decision == "undecided"
            and "these units were not drawn with equal probability" in found.sentence
        )
        assert "drawn so would decide" in found.sentence or "No number of further labels" in found.sentence
        assert "annotate batches new NAME stance.v1 -n 300 --annotators ann,bob" in found.sentence
        assert all(c.low is None and c.state == "not asked" for c in found.conditions)
        # A plain part decides, of the whole frame; what was drawn before stays beside it.
        draw(store, "plain", 100)
        label(store, "plain", truth, 0, 100)
        (both,) = ruled(store)
        assert both.draw == f"100 units drawn with equal probability from {UNITS} units"


def test_the_report_of_weighted_units_leaves_labels_outside_the_draw_out_of_the_estimated_classes(
    tmp_path: Path,
) -> None:
    db, truth = world(tmp_path, rare=0.1)
    with open_study(db) as store:
        draw(store, "rare", 60, by="label", equal_parts=True)
        label(store, "rare", truth, 0, 60)
        # Labels that came without a batch, for units that no draw brought: nothing says what they stand for.
        drawn = {u for (u,) in store.conn.execute("SELECT unit_id FROM batch_units")}
        outside = sorted(set(truth) - drawn)[:30]
        with store.transaction() as conn:
            ensure_human(conn, ["gina"])
            add(
                conn,
                [
                    (u, "stance", "gina", "first", 0, truth[u], None, None, "import:1", None, "2026-11-23")
                    for u in outside
                ],
            )
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
        (found,) = sequences(store, "stance")
        assert len(found.units) == 100 and found.batches[0].alike


def test_one_look_is_declared_before_the_first_label(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        draw(store, "one", 80, looks=1)
        label(store, "one", truth, 0, 79)
        assert ruled(store)[0].next_place == 80
        label(store, "one", truth, 79, 80)
        (found,) = ruled(store)
        assert found.conditions[1].confidence == pytest.approx(0.95) and found.next_place is None
        with pytest.raises(UsageError, match="declared one look at its end"):
            extend_batch(store, "one", to=90)
        notes = draw(store, "two", 20)
        assert any("these units will give estimates" in note for note in notes)
        with pytest.raises(UsageError, match="--looks 1 is declared for the first batch of a frame"):
            draw(store, "three", 20, looks=1)


def test_judges_of_a_family_share_the_level_and_one_that_comes_later_takes_later_units(
    tmp_path: Path,
) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        add_run(store, load_task("stance"), "m/two", truth)
        draw(store, "one", 100, seed=3)
        label(store, "one", truth, 0, 100)
        first = {r.judge: r for r in ruled(store)}
        assert all("one of 2 judges" in r.sentence for r in first.values())
        kept = store.conn.execute("SELECT json_array_length(options, '$.judges') FROM batches").fetchone()
        assert kept == (2,)
        add_run(store, load_task("stance"), "m/late", truth)
        again = {r.judge: r for r in ruled(store)}
        assert again["m/one"].conditions == first["m/one"].conditions
        assert again["m/late"].decision == "undecided"
        assert "m/late was added after the first verdict on these units" in again["m/late"].sentence
        # The printed command asks for no more units than are left.
        (drawn,) = sequences(store, "stance")
        assert f"-n {min(300, UNITS - len(drawn.units))} --annotators" in again["m/late"].sentence
        draw(store, "two", 110, seed=4)
        label(store, "two", truth, 0, 110)
        late = {r.judge: r for r in ruled(store)}["m/late"]
        assert late.draw.startswith("100 units drawn with equal probability")


def test_imported_labels_have_one_look_and_decide_nothing_beside_a_batch(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    truth = ["support" if x < 0.5 else "refute" for x in rng.random(150)]
    made = [
        U(judges={"m/one": t}, people={"ann": t, "bob": t if i % 12 else "neutral"})
        for i, t in enumerate(truth)
    ]
    db = study(tmp_path / "s.db", made)
    with open_study(db) as store:
        (alone,) = ruled(store)
        assert (
            "as they were imported; how they were chosen is not recorded, so this is one look"
            in alone.sentence
        )
        draw(store, "b", 20, fresh=False)
        (beside,) = ruled(store)
        assert beside.decision == "undecided" and beside.next_place == 100


def test_a_batch_is_labelled_until_it_is_decided(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        draw(store, "one", 100, until=200)
        waiting = next_block(store, "one")
        assert (waiting.opened, waiting.closed) == (0, False) and "100 units" in waiting.told[0]
        label(store, "one", truth, 0, 100)
        second = next_block(store, "one")
        decided = ruled(store)[0].decision != "undecided"
        assert (second.opened, second.closed) == ((0, True) if decided else (100, False))
        if not decided:
            assert "100 units, 200 labels; the verdict is computed at 200 units" in second.told[-1]
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
            (found,) = ruled(store, reference=reference)
            assert found.decision == "do not trust" and "with 2 people on 200 units" in found.sentence
        names = [run for (run,) in store.conn.execute("SELECT run_id FROM runs")]
        (found,) = ruled(store, annotators=[*names, "carol", "dave"])
        assert found.decision == "undecided" and "these labels were imported" in found.sentence
        (found,) = ruled(store, annotators=[*names, "ann", "carol"])
        assert found.decision == "undecided" and "also bob" in found.sentence
        (found,) = ruled(store, annotators=[*names, "gold"], reference="gold")
        assert found.decision == "undecided" and "these labels were imported" in found.sentence


def test_trust_says_on_how_many_of_the_drawn_units_a_judge_has_labels(tmp_path: Path) -> None:
    db, truth = world(tmp_path)
    with open_study(db) as store:
        # Run on two units of three: nothing is known of the others.
        add_run(
            store, load_task("stance"), "m/some", {u: t for i, (u, t) in enumerate(truth.items()) if i % 3}
        )
        draw(store, "one", 200, seed=3)
        label(store, "one", truth, 0, 200)
        found = {r.judge: r for r in ruled(store)}["m/some"]
        assert found.decision == "trust in part"
        n = found.measures[0].n_units
        assert 100 < n < 160 and f"where it and people gave labels ({n} of 200 units)" in found.sentence
