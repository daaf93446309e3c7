"""Studies with drawn batches for tests of verdicts: people label by a known truth, and the rulings of a report are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from annotate.batch_plan import BatchPlan
from annotate.drawing import sequences as drawing
from annotate.drawing.batch import new_batch
from annotate.report import ReportOptions
from annotate.report.model import Ruling
from annotate.report.rulings import rule
from annotate.report.subject import load
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.prompts import load_task
from judge.store import Store
from tests import words
from tests.annotate.report_helpers import U, study

PEOPLE = ("ann", "bob")
UNITS = 260


def world(folder: Path, rare: float = 0.5) -> tuple[Path, dict[str, str]]:
    """A study of single-unit questions with a judge that errs on a fifteenth, and the truth by unit."""
    rng = np.random.default_rng(1)
    truth = ["support" if x < rare else "refute" for x in rng.random(UNITS)]
    judged = [t if x > 1 / 15 else "refute" for t, x in zip(truth, rng.random(UNITS), strict=True)]
    db = study(folder / "s.db", [U(judges={"m/one": label}) for label in judged])
    return db, {f"study:{i}/p": label for i, label in enumerate(truth)}


@contextmanager
def labelled(
    folder: Path, n: int = 100, first: int = 0, last: int | None = None, skip: int = 0
) -> Iterator[tuple[Store, dict[str, str]]]:
    """`world` with the batch `one` of n units, of which both people have labelled those from `first` to `last` (default: all)."""
    db, truth = world(folder)
    with open_study(db) as store:
        draw(store, "one", n, seed=3)
        label(store, "one", truth, first, n if last is None else last, skip)
        yield store, truth


def sealed_world(folder: Path) -> tuple[Path, dict[str, str]]:
    """A study that can be split, with 200 units that people labelled, and the truth by unit; its judge is always right."""
    # Every claim has words of its own: items of the same words would be one question of a split.
    named = ["support" if x < 0.5 else "refute" for x in np.random.default_rng(4).random(UNITS)]
    made = [U(judges={"m/one": t}, claim=f"Claim {i}.") for i, t in enumerate(named)]
    db, truth = study(folder / "s.db", made), {f"study:{i}/p": t for i, t in enumerate(named)}
    with open_study(db) as store:
        draw(store, "one", 200, seed=3)
        label(store, "one", truth, 0, 200)
    return db, truth


def draw(store: Store, name: str, n: int, **plan: Any) -> list[str]:
    return new_batch(store, load_task("stance"), BatchPlan(name, PEOPLE, n, **plan)).notes


def label(
    store: Store,
    batch: str,
    truth: dict[str, str],
    first: int,
    last: int,
    skip: int = 0,
    people: tuple[str, ...] = PEOPLE,
) -> None:
    """The people label their positions from `first` to `last`; each errs on units of their own. Of ten `skip` are skipped."""
    for k, person in enumerate(people):
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
    """The rulings of a report, whose sentences are all short."""
    result = rule(store, load(store, ReportOptions(**asked)))[0]
    for one in result:
        assert words.count(one.sentence) <= words.MOST, one.sentence
    return result


def sequences(store: Store, field: str = "stance") -> list[drawing.DrawnSequence]:
    """The sequences of all batches, whatever judge they test."""
    return drawing.sequences(store, drawing.read_drawn_batches(store, field))


def judges_tested(store: Store, batch: str) -> list[str]:
    """The models of the judges that a batch tests."""
    query = "SELECT model FROM batch_judges JOIN runs USING (run_id) WHERE batch = ? ORDER BY model"
    return [model for (model,) in store.conn.execute(query, [batch])]
