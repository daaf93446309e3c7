"""How often the verdict errs, on simulated studies: the tables of docs/verdict.md.

    python -m benchmarks.verdict --studies 400                 all cells, those at hand already left out
    python -m benchmarks.verdict --cells "labels=2 people=3 kappa=0.67" --studies 1000 --again
    python -m benchmarks.verdict --show                        the cells that miss their target, and the power
    python -m benchmarks.verdict --looks --studies 4000        the margin cells, looked at at every place
    python -m benchmarks.verdict --panels                      adding, duplicating and splitting a person
    python -m benchmarks.verdict --judges-together --studies 1000    1, 2, 3 and 5 judges that one batch tests
    python -m benchmarks.verdict --careless --studies 1000    a weak judge beside a person who guesses on a part of the units
    python -m benchmarks.verdict --findings --studies 400  draws by the judge's label, and judges compared on them
    python -m benchmarks.verdict --copies                      people who copied the judge, and people who guess

A person knows the truth of a unit with probability sqrt(kappa) and else guesses by the shares of the labels, so that two
people have that kappa with each other; so does a judge with a skill of its own. In questions of 5 units truth, knowing
and guessing are drawn once for a question with probability sqrt(.3), so that two units of one have
correlation .3 in each. Truth about every rate (the kappas, the recalls) is computed from the model. Seeded by cell.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from judge.stats import compare
from judge.stats.condition_estimates import IntervalArrays, estimates
from judge.stats.conditions import ConditionArrays, decide, rule
from judge.stats.looks import PLACES, Draw, boundary, compute_spent, places_until
from judge.stats.objections import compare_persons
from judge.stats.pairwise import find_copies
from judge.stats.ratings import BoolArray, FloatArray, IntArray, Ratings
from judge.stats.verdict_inputs import (
    DISTRUST,
    HOLDS,
    IN_PART,
    TRUST,
    UNDECIDED,
    Limits,
    Sums,
    sums,
    sums_by_person,
)

TOGETHER = Path(__file__).with_name("verdict_together.csv")
NUMBERS = (1, 2, 3, 5)
LOOKS = Path(__file__).with_name("verdict_looks.csv")
TABLE = Path(__file__).with_name("verdict_rates.csv")
JUDGES = ("good", "inside", "margin", "worse", "random", "uniform", "constant", "blind")
LOOKED_AT = ("good", "margin", "misses", "over-calls", "random", "uniform", "constant")
"""Judges of the margin cells, which are looked at at every place. Two are as good as a person but for the rarest label: one
gives it too seldom, so that it finds it .2 less often than another person, and one too often, so that its label means .2 less."""
RARE = ("misses", "over-calls")
CORRELATION = 0.3
BLOCK = 150_000  # units of one block of studies: it stays in the cache, more or less


class Cell(NamedTuple):
    """`people` 1, 2, 3, 5; `guessers` of them guess; `minority` is the share of the rarest label."""

    labels: int
    people: int
    guessers: int
    kappa: float
    minority: float
    units: int
    per_question: int


class Rates(NamedTuple):
    """Shares of studies. `false_shown`: some label that is truly missed was called shown, in a verdict of trust."""

    trust: float
    whole: float
    distrust: float
    false_shown: float


COLUMNS = [*Cell._fields, "judge", "studies", *Rates._fields, "truth", "truly_missed"]


def cells() -> Iterator[Cell]:
    for labels, people, minority, units, per in product(
        (2, 3), (1, 2, 3, 5), (0.5, 0.1, 0.05), (30, 100, 300, 1000), (1, 5)
    ):
        for kappa in (0.67, 0.4, 0.1):
            yield Cell(labels, people, 0, kappa, minority, units, per)
        if people == 5:
            yield Cell(labels, people, 3, 0.67, minority, units, per)


def shares(cell: Cell) -> FloatArray:
    """The rarest label stands last."""
    rest = [1 - cell.minority] if cell.labels == 2 else [(1 - cell.minority) / 2] * 2
    return np.array([*rest, cell.minority])


def skill(cell: Cell, judge: str) -> float | None:
    """With what probability the judge knows; None for those that do not work that way."""
    person = sqrt(cell.kappa)
    if judge == "good":
        return person
    if judge == "random":
        return 0.0
    if judge in ("inside", "margin", "worse"):
        # One person: against the threshold .667; more: the margin .1 below people's kappa. Inside: half of that below it.
        target = 0.667 if cell.people == 1 else cell.kappa - 0.1
        target += {"inside": 0.05, "margin": 0.0, "worse": -0.15}[judge]
        return min(1.0, max(0.0, target / person))
    return None


class Drawn:
    """People and judges of some studies of one cell."""

    def __init__(self, cell: Cell, studies: int, rng: np.random.Generator) -> None:
        self.cell, self.studies, self.rng = cell, studies, rng
        self.p = shares(cell)
        self.edges = np.cumsum(self.p)[:-1].astype(np.float32)
        self.truth = self._mixed(self._labels)
        self.clusters = np.arange(cell.units) // cell.per_question
        able = cell.people - cell.guessers
        self.people = np.stack(
            [self._rater(sqrt(cell.kappa) if i < able else 0.0) for i in range(cell.people)], axis=-1
        )
        self._good: IntArray | None = None

    def judge(self, name: str) -> IntArray:
        known = skill(self.cell, name)
        if name == "good" or name == "blind":
            if self._good is None:
                self._good = self._rater(sqrt(self.cell.kappa))
            if name == "good":
                return self._good
            return np.where(self._good == self.cell.labels - 1, 0, self._good)
        if name in ("misses", "over-calls"):
            last, turned = (
                self.cell.labels - 1,
                self.rng.random(self.truth.shape) < turned_share(self.cell, name),
            )
            own = self._rater(sqrt(self.cell.kappa))
            if name == "misses":
                return np.where((own == last) & turned, 0, own)
            return np.where((own == 0) & turned, last, own)
        if known is not None:
            return self._rater(known)
        if name == "uniform":
            return self.rng.integers(0, self.cell.labels, self.truth.shape)
        return np.full(self.truth.shape, int(self.p.argmax()))

    def _labels(self, shape: tuple[int, ...]) -> IntArray:
        u = self.rng.random(shape, dtype=np.float32)
        found = (u > self.edges[0]).astype(np.int64)
        for edge in self.edges[1:]:
            found += u > edge
        return found

    def _mixed(self, draw: Any) -> Any:
        """Drawn anew for each unit, or with a chance once for all units of the question."""
        n, per = self.cell.units, self.cell.per_question
        fresh = draw((self.studies, n))
        if per == 1:
            return fresh
        shared = np.repeat(draw((self.studies, n // per)), per, axis=1)
        return np.where(self.rng.random(fresh.shape, dtype=np.float32) < sqrt(CORRELATION), shared, fresh)

    def _rater(self, known: float) -> IntArray:
        guess = self._mixed(self._labels)
        if known <= 0:
            return guess
        knows = self._mixed(lambda shape: self.rng.random(shape, dtype=np.float32) < known)
        return np.where(knows, self.truth, guess)


def turned_share(cell: Cell, judge: str) -> float:
    """The share of its labels that a judge turns into another one, so that (d) of the rarest label lies at -.2.

    With people and judge alike P(X says L | Y says L) = r = kappa + (1 - kappa) p. Turning a share t of its L leaves t r of
    them unfound: t = .2 / r. Turning a share t of its 0 adds t P(judge 0) to its L, of which a share s = (1 - kappa) p
    (two labels; the chance that another person says L where it says 0) are L: solve (p r + t a s) / (p + t a) = r - .2.
    """
    p = shares(cell)
    rare, a = float(p[-1]), float(p[0])
    r, s = cell.kappa + (1 - cell.kappa) * rare, (1 - cell.kappa) * rare
    if judge == "misses":
        return 0.2 / r
    return 0.2 * rare / (a * (r - 0.2 - s))


def truth(cell: Cell, judge: str) -> tuple[float, float, list[bool]]:
    """From the model: (a) (with one person the agreement), people's kappa, and which labels the judge misses."""
    p = shares(cell)

    def table(known: float) -> FloatArray:
        return known * np.eye(len(p)) + (1 - known) * p

    known = skill(cell, judge)
    if known is not None:
        mine = table(known)
    elif judge == "uniform":
        mine = np.full((len(p), len(p)), 1 / len(p))
    elif judge == "constant":
        mine = np.eye(len(p))[np.full(len(p), int(p.argmax()))]
    else:
        mine = table(sqrt(cell.kappa))
        mine[:, 0] += mine[:, -1]
        mine[:, -1] = 0
    people = [table(sqrt(cell.kappa) if i < cell.people - cell.guessers else 0.0) for i in range(cell.people)]
    pooled = sum(people) / len(people)
    with_judge = pooled.T @ (p[:, None] * mine)
    judge_shares = with_judge.sum(axis=0)
    chance = float(p @ judge_shares)
    kappa = (float(np.trace(with_judge)) - chance) / (1 - chance)
    if len(people) == 1:
        return kappa, 0.0, [False] * len(p)
    pairs = [a.T @ (p[:, None] * b) for i, a in enumerate(people) for j, b in enumerate(people) if i != j]
    among = sum(pairs) / len(pairs)
    ceiling = (float(np.trace(among)) - float(p @ p)) / (1 - float(p @ p))
    gap = (np.diag(with_judge) - np.diag(among)) / p
    return kappa - ceiling, ceiling, [bool(g <= -0.2 + 1e-9) for g in gap]


def measure(cell: Cell, judges: Sequence[str], studies: int) -> dict[str, Rates]:
    seed = np.random.SeedSequence([round(1000 * float(x)) for x in cell])
    rng = np.random.default_rng(seed)
    limits = Limits()
    agreement = np.eye(cell.labels)
    counts = {judge: np.zeros(4) for judge in judges}
    missed = {judge: np.array(truth(cell, judge)[2]) for judge in judges}
    left = studies
    while left:
        block = min(left, max(1, BLOCK // cell.units))
        left -= block
        drawn = Drawn(cell, block, rng)
        for judge in judges:
            labels = drawn.judge(judge)
            found = rule(sums(labels, drawn.people, drawn.clusters, agreement, 1 - agreement), limits)
            counts[judge] += _counted(found, missed[judge])
    return {judge: Rates(*(counts[judge] / studies).tolist()) for judge in judges}


def _counted(found: ConditionArrays, missed: np.ndarray[Any, Any]) -> FloatArray:
    trust = np.isin(found.decision, (TRUST, IN_PART))
    return np.array(
        [
            trust.sum(),
            (found.decision == TRUST).sum(),
            (found.decision == DISTRUST).sum(),
            (trust & ((found.recall_states == HOLDS) & missed).any(axis=1)).sum(),
        ],
        dtype=np.float64,
    )


class LookedAt(NamedTuple):
    """Of one judge in one cell, [studies, looks]: the decision at each look, and (d) of the rarest label in its verdicts of trust."""

    decision: IntArray
    finds: BoolArray
    means: BoolArray


def objected(apart: IntervalArrays) -> BoolArray:
    """[studies]: a person agrees with the others too little, so that the verdict is no trust."""
    raised: BoolArray = (np.nan_to_num(apart.low, nan=-np.inf) > Limits.apart).any(axis=1)
    return raised


def at_every_place(judges: Sequence[IntArray], drawn: Drawn, share: float) -> Iterator[list[ConditionArrays]]:
    """The rule at every place up to the number of units, for each judge, at this share of the level.

    An objection against a person turns trust into undecided, as `verdict` does.
    """
    agreement, limits, cell = np.eye(drawn.cell.labels), Limits(), drawn.cell
    places = places_until(cell.units)
    spent = [share * level for level in compute_spent(places, cell.units)]
    whole = [sums(j, drawn.people, drawn.clusters, agreement, 1 - agreement) for j in judges]
    persons = list(sums_by_person(drawn.people, drawn.clusters, agreement)) if cell.people > 2 else []
    information = [np.zeros((drawn.studies, 0)) for _ in judges]
    for k, place in enumerate(places):
        questions = place // cell.per_question
        apart = np.zeros(drawn.studies, dtype=bool)
        if persons:
            apart = objected(compare_persons([_first(one, questions) for one in persons]))
        found = []
        for j, labels in enumerate(whole):
            of = estimates(_first(labels, questions), limits)
            information[j] = np.column_stack([information[j], of.information])
            z = boundary(information[j], spent[: k + 1])
            one = decide(of, limits, 2 * ndtr(z) - 1)
            trust = np.isin(one.decision, (TRUST, IN_PART))
            found.append(replace(one, decision=np.where(trust & apart, UNDECIDED, one.decision)))
        yield found


def looked_at(cell: Cell, judges: Sequence[str], studies: int) -> dict[str, LookedAt]:
    """Studies that are looked at at every place up to `cell.units`, each look as strict as the boundary says."""
    rng = np.random.default_rng(np.random.SeedSequence([7, *(round(1000 * float(x)) for x in cell)]))
    parts: dict[str, list[LookedAt]] = {judge: [] for judge in judges}
    left = studies
    while left:
        block = min(left, max(1, BLOCK // cell.units))
        left -= block
        drawn = Drawn(cell, block, rng)
        at: dict[str, list[LookedAt]] = {judge: [] for judge in judges}
        labels = [drawn.judge(judge) for judge in judges]
        for found in at_every_place(labels, drawn, 1.0):
            for judge, one in zip(judges, found, strict=True):
                trust = np.isin(one.decision, (TRUST, IN_PART))
                shown = (one.recall_states[:, -1] == HOLDS, one.precision_states[:, -1] == HOLDS)
                at[judge].append(LookedAt(one.decision, trust & shown[0], trust & shown[1]))
        for judge, looks_at in at.items():
            parts[judge].append(LookedAt(*(np.stack(x, axis=1) for x in zip(*looks_at, strict=True))))
    return {j: LookedAt(*(np.concatenate(x) for x in zip(*some, strict=True))) for j, some in parts.items()}


def looks(studies: int, again: bool) -> None:
    """The margin cells and their neighbours, with a look at every place: a row a cell and judge, printed and stored.

    `wrong` is the share of studies with a wrong verdict at any look: trust at the margin (for a judge that misses or over-calls
    the rarer label: trust for that label in that direction) or of a guess, distrust of one as good as a person. `labels` is the
    mean number of units until a decision, 1,000 where none is made. Rows at hand are left out, so that a run can be stopped.
    """
    started = time.perf_counter()
    rows = {} if again or not LOOKS.exists() else {_looks_key(row): row for row in _read(LOOKS)}
    for people, minority, per in product((1, 2, 3, 5), (0.5, 0.1), (1, 5)):
        cell = Cell(2, people, 0, 0.67, minority, PLACES[-1], per)
        for judge in (j for j in LOOKED_AT if people > 1 or j not in RARE):
            # Rates of 1 % and less, and those of a judge that is far from any limit, need fewer studies.
            n = studies if judge in ("margin", *RARE) else max(1, studies // 4)
            row: dict[str, Any] = {
                "people": people,
                "minority": minority,
                "per_question": per,
                "judge": judge,
                "studies": n,
            }
            if _looks_key(row) in rows:
                continue
            row |= _looked(looked_at(cell, [judge], n)[judge], judge)
            rows[_looks_key(row)] = row
            print(*row.values(), flush=True)
            with LOOKS.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, [*row], lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows.values())
    margin = [float(row["wrong"]) for row in rows.values() if row["judge"] == "margin"]
    print(
        f"margin: mean {np.mean(margin):.4f}, highest {max(margin):.4f}; {time.perf_counter() - started:.0f} s"
    )


def together(studies: int) -> None:
    """1, 2, 3 and 5 judges that one batch tests, looked at at every place: a row a cell and number, printed and stored.

    `wrong` is the share of studies in which any of so many judges at the margin is trusted at any look. `good_by_300` and so on:
    a judge as good as a person, one of so many, is trusted by then. Rows at hand are left out, so that a run can be stopped.
    """
    rows = {_together_key(row): row for row in (_read(TOGETHER) if TOGETHER.exists() else [])}
    for people, minority, per in product((2, 3, 5), (0.5, 0.1), (1, 5)):
        cell = Cell(2, people, 0, 0.67, minority, PLACES[-1], per)
        for number in NUMBERS:
            row: dict[str, Any] = {
                "people": people,
                "minority": minority,
                "per_question": per,
                "judges": number,
            }
            row |= {"studies": studies}
            if _together_key(row) in rows:
                continue
            wrong, good = beside_each_other(cell, number, studies)
            row |= {"wrong": f"{wrong.any(axis=1).mean():.4f}"}
            ever = np.maximum.accumulate(good, axis=1).mean(axis=0)
            row |= {f"good_by_{place}": f"{share:.3f}" for place, share in zip(PLACES, ever, strict=True)}
            rows[_together_key(row)] = row
            print(*row.values(), flush=True)
            with TOGETHER.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, [*row], lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows.values())
    for number in NUMBERS:
        wrong_of = [float(row["wrong"]) for row in rows.values() if int(row["judges"]) == number]
        print(f"{number} judges: mean {np.mean(wrong_of):.4f}, highest {max(wrong_of):.4f}")


def beside_each_other(cell: Cell, number: int, studies: int) -> tuple[BoolArray, BoolArray]:
    """[studies, places]: any of so many judges at the margin is trusted; a good judge at the same share of the level is."""
    rng = np.random.default_rng(np.random.SeedSequence([29, number, *(round(1000 * float(x)) for x in cell)]))
    parts: list[tuple[BoolArray, BoolArray]] = []
    left = studies
    while left:
        block = min(left, max(1, BLOCK // cell.units))
        left -= block
        drawn = Drawn(cell, block, rng)
        labels = [drawn.judge(name) for name in ("good", *("margin" for _ in range(number)))]
        trusted = [
            np.stack([np.isin(one.decision, (TRUST, IN_PART)) for one in found])
            for found in at_every_place(labels, drawn, Draw(judges=number).share)
        ]
        parts.append(
            (
                np.stack([t[1:].any(axis=0) for t in trusted], axis=1),
                np.stack([t[0] for t in trusted], axis=1),
            )
        )
    return np.concatenate([w for w, _ in parts]), np.concatenate([g for _, g in parts])


def _together_key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("people", "minority", "per_question", "judges", "studies"))


def careless(studies: int) -> None:
    """A judge of kappa .56 with careful people, beside three people of whom one guesses on a part of the units.

    One look at 100, 300 and 450 units. Printed: how often it is trusted without the objection and with it, and how often the
    objection is raised. A share of 0 has three equal people.
    """
    for minority, units, share in product((0.5, 0.2, 0.1), (100, 300, 450), (0.0, 0.25, 0.5, 1.0)):
        rng = np.random.default_rng([units, round(100 * minority), round(100 * share)])
        cell = Cell(2, 3, 0, 0.67, minority, units, 1)
        drawn = Drawn(cell, studies, rng)
        judge = drawn._rater(0.56 / sqrt(cell.kappa))
        people = drawn.people.copy()
        guess = rng.random(people.shape[:2]) < share
        people[..., 2] = np.where(guess, drawn._rater(0.0), people[..., 2])
        found = rule(sums(judge, people, drawn.clusters, np.eye(2), 1 - np.eye(2)), Limits())
        trust = np.isin(found.decision, (TRUST, IN_PART))
        apart = objected(compare_persons(sums_by_person(people, drawn.clusters, np.eye(2))))
        print(
            f"rarer label {minority}, {units} units, one of three guesses on {share:.0%}: trusted {trust.mean():.3f} by the "
            f"conditions, {(trust & ~apart).mean():.3f} with the objection, which is raised in {apart.mean():.3f} of {studies}",
            flush=True,
        )


def builds(studies: int) -> None:
    """What a gate on the verdict of a fresh checkout lets pass, where nothing records the judge and the looks.

    Three people, single-unit questions, the rarer label on half of the units, judges at the margin. Printed: how often any
    of ten judges passes at 300 units, each tested as if it were the only one, and how often one judge passes in any of the
    builds of a table that grows by 25 units from 100 to 300.
    """
    cell, block = Cell(2, 3, 0, 0.67, 0.5, 300, 1), 500
    rng = np.random.default_rng(31)
    of_ten, of_builds = 0, 0
    for _ in range(studies // block):
        drawn = Drawn(cell, block, rng)

        def passes(judge: IntArray, n: int, drawn: Drawn = drawn) -> BoolArray:
            of = sums(judge[:, :n], drawn.people[:, :n], drawn.clusters[:n], np.eye(2), 1 - np.eye(2))
            return np.isin(rule(of, Limits()).decision, (TRUST, IN_PART))

        judges = [drawn.judge("margin") for _ in range(10)]
        of_ten += int(np.any([passes(judge, 300) for judge in judges], axis=0).sum())
        of_builds += int(np.any([passes(judges[0], n) for n in range(100, 301, 25)], axis=0).sum())
    n = studies // block * block
    print(
        f"any of ten judges: {of_ten / n:.3f}; any build of a growing table: {of_builds / n:.3f} of {n} studies"
    )


def findings(studies: int) -> None:
    """What a draw half and half over the judge's labels does to a rule that takes it for a plain one.

    3,000 units, 10 % of them relevant. Three people find 85 % and are wrong on 1 % of the others; the judge finds 30 % and is
    wrong on .1 %. A second judge has the same rates and errors of its own: the two are compared on units that were drawn over the
    first one's labels. Weights and refused verdicts keep both out: the report computes no verdict and no test on such a draw.
    """
    rng = np.random.default_rng(1)
    trusted = {"plain": 0, "half and half": 0}
    unequal = {"plain": 0, "half and half": 0}
    for _ in range(studies):
        truth = rng.random(3000) < 0.1
        people = np.stack(
            [np.where(truth, rng.random(3000) < 0.85, rng.random(3000) < 0.01) for _ in range(3)], axis=1
        )
        first, second = (np.where(truth, rng.random(3000) < 0.3, rng.random(3000) < 0.001) for _ in range(2))
        order = rng.permutation(3000)
        found = np.concatenate([order[first[order]][:150], order[~first[order]]])[:300]
        for name, units in (("plain", order[:300]), ("half and half", found)):
            labels = people[None, units].astype(np.int64)
            of = sums(first[None, units].astype(np.int64), labels, np.arange(300), np.eye(2), 1 - np.eye(2))
            trusted[name] += int(rule(of, Limits()).decision[0] in (TRUST, IN_PART))
            codes = np.column_stack([first[units], second[units], people[units].sum(axis=1) > 1]).astype(
                np.int64
            )
            table = Ratings.from_codes(codes, ["no", "yes"], ["one", "two", "majority"])
            (pair,) = compare(table, ["one", "two"], "majority", "cohen_kappa")
            unequal[name] += int(pair.p_value is not None and pair.p_value < 0.05)
    for name in trusted:
        print(
            f"{name}: a judge that finds 30 % trusted in {trusted[name] / studies:.3f}, two judges alike told apart in "
            f"{unequal[name] / studies:.3f} of {studies} studies"
        )


def _looks_key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("people", "minority", "per_question", "judge", "studies"))


def _looked(found: LookedAt, judge: str) -> dict[str, Any]:
    """The rates of one row of the table of looks."""
    trust = np.isin(found.decision, (TRUST, IN_PART))
    wrong = {
        "misses": found.finds,
        "over-calls": found.means,
        "good": found.decision == DISTRUST,
    }.get(judge, trust)
    decided = found.decision != UNDECIDED
    first = np.where(decided.any(axis=1), decided.argmax(axis=1), len(PLACES) - 1)
    ever = np.maximum.accumulate(trust, axis=1).mean(axis=0)
    return {
        "wrong": f"{wrong.any(axis=1).mean():.4f}",
        **{f"trusted_by_{place}": f"{share:.3f}" for place, share in zip(PLACES, ever, strict=True)},
        "labels": round(float(np.array(PLACES)[first].mean())),
    }


def _first(whole: Sums, questions: int) -> Sums:
    """The sums of the first questions of each study."""
    arrays = {
        f.name: getattr(whole, f.name)
        for f in fields(whole)
        if f.name not in ("agreement", "alone", "weighted")
    }
    return replace(whole, **{name: a[:, :questions] for name, a in arrays.items()})


def targets(row: dict[str, Any]) -> list[tuple[str, float, float]]:
    """(what, its rate, the most it may be) for one line of the table."""
    cell, judge = _cell(row), str(row["judge"])
    value, ceiling, missed = truth(cell, judge)
    found = []
    guessing = judge in ("random", "uniform", "constant")
    if guessing:
        found.append(("guessing judge trusted", float(row["trust"]), 0.01))
    elif value <= 0.667 + 1e-9 if cell.people == 1 else value <= -0.1 + 1e-9 or ceiling <= 0.2:
        found.append(("false trust", float(row["trust"]), 0.05))
    if any(missed):
        found.append(("missed label called shown", float(row["false_shown"]), 0.05))
    # At the margin itself either verdict is false, as is distrust of a judge that is a little worse than people.
    if judge in ("good", "inside", "margin") and value >= (0.667 if cell.people == 1 else -0.1) - 1e-9:
        found.append(("false distrust", float(row["distrust"]), 0.05))
    return found


def power_targets(row: dict[str, Any]) -> float | None:
    """The least share of trust for a judge as good as a person, where one is asked for."""
    cell = _cell(row)
    if row["judge"] != "good" or cell.labels != 2 or cell.kappa != 0.67 or cell.guessers:
        return None
    if cell.minority != 0.5 or cell.per_question != 1 or cell.people == 1:
        return None
    return {300: {2: 0.6, 3: 0.7, 5: 0.75}[cell.people], 1000: 0.95}.get(cell.units)


def exact_low(rate: float, n: int) -> float:
    """The exact lower 95 % bound (Clopper and Pearson, one-sided)."""
    from scipy.special import betaincinv

    k = round(rate * n)
    return 0.0 if k == 0 else float(betaincinv(k, n - k + 1, 0.05))


def exact_high(rate: float, n: int) -> float:
    k = round(rate * n)
    from scipy.special import betaincinv

    return 1.0 if k == n else float(betaincinv(k + 1, n - k, 0.95))


def panels(studies: int) -> None:
    """How many random judges a change of people turns into trusted ones: at most 1 % of the thousand."""
    for people, minority in product((1, 2, 3, 5), (0.5, 0.1)):
        cell = Cell(2, people, 0, 0.67, minority, 300, 1)
        rng = np.random.default_rng([people, round(100 * minority)])
        drawn = Drawn(cell, studies, rng)
        judge, who = drawn.judge("random"), drawn.people
        half = np.arange(cell.units) % 2 == 0
        parts = [
            np.where(half, who[..., :1].swapaxes(1, 2), -1),
            np.where(half, -1, who[..., :1].swapaxes(1, 2)),
        ]
        split = [part.swapaxes(1, 2) for part in parts]
        guesser = drawn._rater(0.0)[..., None]
        changes = {
            "as they are": who,
            "a guesser added": np.concatenate([who, guesser], axis=2),
            "one twice": np.concatenate([who, who[..., :1]], axis=2),
            "one split": np.concatenate([*split, who[..., 1:]], axis=2),
        }
        for name, changed in changes.items():
            found = rule(sums(judge, changed, drawn.clusters, np.eye(2), 1 - np.eye(2)), Limits())
            trusted = int(np.isin(found.decision, (TRUST, IN_PART)).sum())
            print(
                f"{people} people, minority {minority}: {name}: {trusted} of {studies} random judges trusted"
            )


COPIES = (
    # (judge, what each person does: own labels, guesses, or the judge's but for a share that is turned, drawn, or own)
    ("random", "turned:.03 own"),
    ("random", "turned:.03 turned:.03 own"),
    ("random", "turned:.03 turned:.03 own own"),
    ("random", "turned:.03 turned:.03 turned:.03 turned:.03 own"),
    ("random", "drawn:.2 drawn:.2 drawn:.2 own"),
    ("random", "own:.2 own:.2 own"),
    ("random", "own:.5 own:.5 own"),
    ("random", "own:.3 own:.3 own:.3 own:.3 own"),
    ("random", "turned:.03 turned:.03 turned:.03 turned:.03 turned:.03 own"),
    ("worse", "turned:.03 turned:.03 own own"),
    ("good", "own own own"),
    ("good", "own own guess"),
    ("good", "own own own guess"),
    ("good", "own own own own guess"),
    ("good", "own own own guess guess"),
)


def copies(studies: int) -> None:
    """Judges beside people who copied them, or who guess: how often they are trusted, by the conditions and with `find_copies`."""
    for minority, units in product((0.5, 0.1), (100, 300)):
        for seed, (judge, told) in enumerate(COPIES):
            who = told.split()
            cell = Cell(2, len(who), 0, 0.67, minority, units, 1)
            drawn = Drawn(cell, studies, np.random.default_rng([seed, units, round(100 * minority)]))
            labels = drawn.judge(judge)
            people = np.stack([_person(drawn, labels, kind) for kind in who], axis=-1)
            found = rule(sums(labels, people, drawn.clusters, np.eye(2), 1 - np.eye(2)), Limits())
            trust = np.isin(found.decision, (TRUST, IN_PART))
            kept = trust & ~_copied(labels, people)
            what = f"{judge}, {units} units, minority {minority}: {told}"
            print(f"{what:100s} {trust.mean():.3f} {kept.mean():.3f} of {studies}")


def _copied(judge: IntArray, people: IntArray) -> BoolArray:
    """[studies]: what would be trust is undecided, as somebody's labels are nearly the judge's."""
    names = [f"person {i}" for i in range(people.shape[2])]
    tables = (Ratings.from_codes(codes, ["a", "b"], names) for codes in people)
    return np.array([bool(find_copies(table, own)) for table, own in zip(tables, judge, strict=True)])


def _person(drawn: Drawn, judge: IntArray, kind: str) -> IntArray:
    how, _, share = kind.partition(":")
    own = drawn._rater(0.0 if how == "guess" else sqrt(drawn.cell.kappa))
    if not share:
        return own
    instead = {"own": own, "turned": 1 - judge, "drawn": drawn._rater(0.0)}[how]
    return np.where(drawn.rng.random(judge.shape) < float(share), instead, judge)


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(
        *(float(row[f]) if f in ("kappa", "minority") else int(row[f]) for f in Cell._fields)  # type: ignore[arg-type]
    )


def stored() -> list[dict[str, Any]]:
    return _read(TABLE) if TABLE.exists() else []


def _read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def store(rows: list[dict[str, Any]]) -> None:
    rows.sort(key=lambda row: (*_cell(row), JUDGES.index(row["judge"])))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def show(rows: list[dict[str, Any]]) -> None:
    asked = missing = 0
    for row in rows:
        n, told = int(row["studies"]), " ".join(f"{f}={row[f]}" for f in (*Cell._fields, "judge"))
        for what, rate, most in targets(row):
            asked += 1
            if exact_low(rate, n) > most:
                missing += 1
                print(f"MISSES  {told}: {what} {rate:.3f} of {n} (target {most})")
        least = power_targets(row)
        if least is not None:
            reached = exact_high(float(row["trust"]), n) >= least
            print(
                f"{'power ' if reached else 'WEAK  '}  {told}: trust {float(row['trust']):.3f} (at least {least})"
            )
    print(f"{len(rows):,} cells, {asked:,} targets, {missing:,} missed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--cells", default="", help="as in 'labels=2 people=3,5 units=300'")
    parser.add_argument("--judges", default=",".join(JUDGES))
    parser.add_argument("--again", action="store_true", help="measure what is in the table already, too")
    parser.add_argument("--seconds", type=float, default=230, help="stop starting cells after so long")
    parser.add_argument("--dry", action="store_true", help="print, do not store")
    parser.add_argument(
        "--panels", action="store_true", help="random judges when people are added, doubled, split"
    )
    parser.add_argument(
        "--copies", action="store_true", help="judges beside people who copied them, or guess"
    )
    parser.add_argument("--looks", action="store_true", help="the margin cells, with a look at every place")
    parser.add_argument("--show", action="store_true", help="what the table says")
    parser.add_argument("--judges-together", action="store_true", help="several judges that one batch tests")
    parser.add_argument("--careless", action="store_true", help="a weak judge beside a careless person")
    parser.add_argument(
        "--builds", action="store_true", help="builds of a fresh checkout with a gate on the verdict"
    )
    parser.add_argument("--findings", action="store_true", help="draws over the judge's labels")
    given = parser.parse_args()
    if given.judges_together or given.careless:
        (together if given.judges_together else careless)(given.studies)
        return
    if given.findings or given.builds:
        (findings if given.findings else builds)(given.studies)
        return
    if given.panels or given.copies:
        (panels if given.panels else copies)(given.studies)
        return
    if given.looks:
        looks(given.studies, given.again)
        return
    rows = stored()
    if given.show:
        show(rows)
        return
    wanted = {
        name: [float(v) for v in value.split(",")]
        for name, value in (part.split("=") for part in given.cells.split())
    }
    chosen = [c for c in cells() if all(float(getattr(c, name)) in v for name, v in wanted.items())]
    at_hand = {(_cell(row), row["judge"]): row for row in rows}
    judges = given.judges.split(",")
    started, done, fresh = time.perf_counter(), 0, []
    for cell in chosen:
        todo = [j for j in judges if given.again or (cell, j) not in at_hand]
        if not todo:
            continue
        if time.perf_counter() - started > given.seconds:
            break
        for judge, rates in measure(cell, todo, given.studies).items():
            value, _, missed = truth(cell, judge)
            row = {
                **cell._asdict(),
                "judge": judge,
                "studies": given.studies,
                **{k: f"{v:.4f}".rstrip("0").rstrip(".") for k, v in rates._asdict().items()},
                "truth": f"{value:.3f}",
                "truly_missed": sum(missed),
            }
            at_hand[cell, judge] = row
            fresh.append(row)
        done += 1
        if not given.dry and done % 20 == 0:
            store(list(at_hand.values()))
    if not given.dry:
        store(list(at_hand.values()))
    show(fresh)
    left = sum(1 for c in chosen if any((c, j) not in at_hand for j in judges))
    print(f"{done} cells in {time.perf_counter() - started:.0f} s, {left} left", file=sys.stderr)


if __name__ == "__main__":
    main()
