"""A lead is told who deviates: in simulated studies, and in a batch with the real commands."""

import json
from pathlib import Path

import numpy as np
import pytest

from annotate.leading.deviation import find_deviations
from annotate.leading.watch import look
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.stats import Ratings
from tests.annotate.agreement_helpers import annotate
from tests.tui.studies import drawn

STUDIES = 200


def share_named(kind: str, n: int, share: float = 0.5) -> tuple[float, float]:
    """The shares of studies in which the third of three people is named, and the first, who is careful.

    Careful people copy the truth with probability r = sqrt(.7), and otherwise draw from the shares of the labels. Two of them
    then have a kappa of r^2 = .7. The third always gives one label, guesses, guesses on half of the units, or is careful.
    """
    rng = np.random.default_rng(n)
    r, p = np.sqrt(0.7), [share, 1 - share]
    named = np.zeros(2)
    for _ in range(STUDIES):
        truth = rng.choice(2, n, p=p)
        codes = np.column_stack(
            [np.where(rng.random(n) < r, truth, rng.choice(2, n, p=p)) for _ in range(3)]
        ).astype(np.int64)
        guesses = rng.choice(2, n, p=p)
        if kind == "constant":
            codes[:, 2] = 1
        elif kind != "careful":
            codes[:, 2] = np.where(rng.random(n) < {"guess": 1.0, "half": 0.5}[kind], guesses, codes[:, 2])
        found = {
            d.person: d.is_named
            for d in find_deviations(Ratings.from_codes(codes, ["x", "y"], ["a", "b", "c"]))
        }
        named += found["c"], found["a"]
    first, second = named / STUDIES
    return float(first), float(second)


@pytest.mark.parametrize("kind", ["constant", "guess"])
def test_who_gives_one_label_or_guesses_is_named_within_60_units(kind: str) -> None:
    named, careful = share_named(kind, 60)
    assert named >= 0.95 and careful <= 0.05


def test_careful_people_are_named_in_about_one_of_twenty_looks() -> None:
    # .05 with a standard error of sqrt(.05 .95 / 400) = .011 over two people.
    assert np.mean(share_named("careful", 300)) <= 0.05 + 2 * 0.011


def test_the_statistic_is_the_difference_of_two_kappas() -> None:
    """Without ties and missing labels it can be derived by hand.

    100 units, half of each label. a and b agree on all units; c differs from them on 30. The others' agreement is 1. The
    observed agreement of c with them is .7. Both sides have shares of one half, so chance agreement is .5, and the kappa is
    (.7 - .5) / .5 = .4. The difference is .6.
    """
    truth = np.repeat([0, 1], 50)
    other = truth.copy()
    other[:15], other[50:65] = 1, 0
    [first, *rest] = find_deviations(
        Ratings.from_codes(np.column_stack([truth, truth, other]), ["x", "y"], ["a", "b", "c"])
    )
    assert (first.person, first.n_units, first.is_named) == ("c", 100, True)
    assert first.value == pytest.approx(0.6) and first.low is not None and 0 < first.low < 0.6
    assert (first.commonest, first.others) == (0.5, 0.5)
    assert not any(d.is_named for d in rest)


def test_two_people_cannot_deviate_from_each_other() -> None:
    assert find_deviations(Ratings.from_codes([[0, 1], [1, 1]] * 20, ["x", "y"], ["a", "b"])) == []


def test_watch_and_report_name_the_person_but_no_label(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=40, each=1, n=40, annotators=["alice", "bob", "cyd"])
    truth = ["support", "refute"] * 20
    with open_study(path) as store:
        for person in ("alice", "bob", "cyd"):
            with Desk.open(store, "pilot", person) as desk:
                for position in range(1, desk.total + 1):
                    unit = desk.load(position).unit_id
                    label = truth[sum(unit.encode()) % 2]
                    desk.label(position, "stance", "neutral" if person == "cyd" else label)
        document = look(store, "pilot")
    first = document["deviations"][0]
    assert (first["person"], first["commonest"], first["others"], first["is_named"]) == (
        "cyd",
        1.0,
        0.0,
        True,
    )
    shown = " ".join(annotate("watch", "pilot", "--once", "-d", path).stdout.split())
    assert "cyd agrees with the others less than they agree with each other" in shown
    assert "gives one label to 100%, where the others give it to 0%" in shown
    assert "neutral" not in shown and "refute" not in shown
    report = annotate("report", "-d", path, "--field", "stance", "--json")
    [section] = [s for s in json.loads(report.stdout)["sections"] if s["key"] == "who"]
    assert "cyd agrees with the others less" in json.dumps(section)
