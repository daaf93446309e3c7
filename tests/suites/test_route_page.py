"""The page of a route: which step is marked as chosen."""

import re
from types import SimpleNamespace
from typing import Any

from judge.stats.selective import PathStep
from judge.suites.route import PathPlace
from judge.suites.route_page import as_html


def test_the_chosen_step_is_marked_although_the_first_one_tests_nothing() -> None:
    # The first step accepts no unit that tests it, and so has no dot. The second of three is chosen.
    counts = ((0, 0, None), (40, 1, 0.975), (60, 9, 0.85))
    steps = [PathStep(n, n, wrong, agreement, 0.01, n < 60) for n, wrong, agreement in counts]
    places = [PathPlace(0, 0.9 - n / 10, 100 * n, n / 3) for n in (1, 2, 3)]
    table = SimpleNamespace(runs=[{"model": "m"}], run_ids=["R"])
    truth = SimpleNamespace(word="gold")
    route: Any = SimpleNamespace(
        table=table, truth=truth, field="stance", agree=0.9, level=0.05, look=None, at=1, n_units=300,
        steps=steps, places=places, people=[], notes=[],
    )  # fmt: skip
    dots = dict(re.findall(r'<g class="(\w+)"><title>([^<]*)</title>', as_html(route)))
    assert dots.keys() == {"chosen", "fails"}
    assert "1 of 40 tested ones wrong" in dots["chosen"]
