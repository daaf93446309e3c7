"""Fixed seeds of the simulation, and a second book that is right about small cases."""

from collections import Counter

import pytest

from tests.simulation.oracle import Entry, Oracle
from tests.simulation.run import Counts, plan, simulate
from tests.simulation.steps import STEPS
from tests.simulation.world import DERIVE

SEEDS = (1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("seed", SEEDS)
def test_everybody_s_labels_are_as_meant(seed: int) -> None:
    wrong = simulate(plan(seed, 24))
    assert wrong is None, "\n".join([*wrong[1], wrong[0], f"python -m tests.simulation --seed {seed}"])


def test_batches_are_drawn() -> None:
    """Without a batch, 15 of the 21 steps find nothing to act on, and the simulation tests little."""
    counts = Counts()
    for seed in SEEDS:
        simulate(plan(seed, 0), counts)
    assert counts.steps["draw_batch"]


def test_every_step_is_drawn() -> None:
    drawn = Counter(name for seed in range(40) for name, _ in plan(seed))
    assert set(drawn) == set(STEPS)


def test_the_second_book_by_hand() -> None:
    book = Oracle(DERIVE, asks={"b": "side"})
    unit, key = ("u", 0), ("ann", "side", "u", 0)
    book.logs["b", "ann"].append(Entry(unit, "label", "support", book.now()))
    # support is grade 1: one label and what follows from it.
    assert book.labels() == {key: "support", ("ann", "grade", "u", 0): "1"}
    book.outside[key]["import:1"] = ("refute", book.now())
    assert book.labels() == {("ann", "grade", "u", 0): "1"} and book.conflicts() == {key}
    book.resolve("latest")
    # The batch's support does not count, and neither does the grade that follows from it.
    assert book.labels() == {key: "refute"} and not book.conflicts()
    book.undo("b", "ann")
    assert book.labels() == {key: "refute"}
    book.logs["b", "ann"].append(Entry(unit, "label", "support", book.now()))
    assert book.conflicts() == {key}, "what is said later is compared anew"
