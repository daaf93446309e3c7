"""The page of a route: which step is marked as chosen."""

from types import SimpleNamespace
from typing import Any

from judge.document.blocks import Figure
from judge.improve.route import PathPlace
from judge.improve.route_document import as_document
from judge.stats.selective import PathStep


def test_the_chosen_step_is_marked_although_the_first_one_tests_nothing() -> None:
    # The first step accepts no unit that tests it, and so has no dot. The second of three is chosen.
    counts = ((0, 0, None), (40, 1, 0.975), (60, 9, 0.85))
    steps = [PathStep(n, n, wrong, agreement, 0.01, n < 60) for n, wrong, agreement in counts]
    places = [PathPlace(0, 0.9 - n / 10, 100 * n, n / 3) for n in (1, 2, 3)]
    table = SimpleNamespace(runs=[{"model": "m"}], run_ids=["R"])
    truth = SimpleNamespace(word="gold")
    route: Any = SimpleNamespace(
        table=table, truth=truth, field="stance", agree=0.9, level=0.05, look=None, at=1, n_units=300,
        steps=steps, places=places, people=[], notes=[], thresholds=[0.7],
    )  # fmt: skip
    document = as_document(route)
    [figure] = [b for section in document.sections for b in section.blocks if isinstance(b, Figure)]
    # The intervals are exact binomial ones: 39 of 40 and 51 of 60, from R's binom.test.
    points = [
        (p["x"], p["y"], p["chosen"], round(p["low"], 4), round(p["high"], 4)) for p in figure.data["points"]
    ]
    assert points == [(2 / 3, 0.975, True, 0.8684, 0.9994), (1.0, 0.85, False, 0.7343, 0.9290)]
    assert "200 of 300 units" in dict(document.about)["accepted"]
