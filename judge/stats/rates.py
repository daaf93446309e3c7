"""The error rates of the verdict in simulated studies: the table that benchmarks/verdict.py writes."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from judge.stats.decision import Verdict

TABLE = Path(__file__).with_name("verdict_rates.csv")
PEOPLE, UNITS = (1, 2, 3, 5), (30, 100, 300, 1000)
MINORITY, KAPPA = (0.05, 0.1, 0.5), (0.1, 0.4, 0.67)
GUESSING = ("random", "uniform", "constant")


@dataclass(frozen=True)
class World:
    """A kind of study that benchmarks/verdict.py simulates."""

    labels: int
    people: int
    kappa: float
    minority: float
    units: int
    per_question: int


@lru_cache
def table() -> Mapping[World, Mapping[str, tuple[int, float, float]]]:
    """Return the error rates for each kind of simulated study and each judge.

    The rates are (number of studies, share of verdicts for trust, share of verdicts against trust). Studies
    in which some annotators guess are left out.
    """
    cells: dict[World, dict[str, tuple[int, float, float]]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if int(row["guessers"]):
                continue
            cell = World(
                int(row["labels"]),
                int(row["people"]),
                float(row["kappa"]),
                float(row["minority"]),
                int(row["units"]),
                int(row["per_question"]),
            )
            rates = int(row["studies"]), float(row["trust"]), float(row["distrust"])
            cells.setdefault(cell, {})[row["judge"]] = rates
    return cells


def nearest(verdict: Verdict) -> World | None:
    """Return the kind of simulated study that is most like this study, among those with no more evidence.

    Return None if every kind has more evidence.
    """
    evidence = verdict.conditions[0]
    units, questions = evidence.n_units, evidence.n_clusters
    if not units or units < UNITS[0]:
        return None
    people = len(verdict.people) or 1
    kappa = KAPPA[-1]
    if verdict.regime == "people":
        agree = next(c.value for c in verdict.conditions if c.name == "people_agree")
        kappa = _find_step(KAPPA, agree if agree is not None else 0.0)
    counts = verdict.of.sums.shares[0].sum(axis=0)
    # A declared label that nobody uses does not count, as in the simulation.
    counts = counts[counts > 0]
    labels = 2 if len(counts) == 2 else 3
    share = float(counts.min() / counts.sum()) if len(counts) > 1 else 0.0
    rare_enough = [minority for minority in MINORITY if rarest(labels, minority) <= share + 1e-9]
    return World(
        labels,
        int(_find_step(PEOPLE, people)),
        kappa,
        max(rare_enough, default=MINORITY[0]),
        int(_find_step(UNITS, units)),
        1 if units == questions else 5,
    )


def rarest(labels: int, minority: float) -> float:
    """Return the share of the rarest label in a cell: one label has the share `minority`, and the other
    labels have equal shares.
    """
    return min(minority, (1 - minority) / (labels - 1))


def describe_rates(verdict: Verdict) -> str:
    """Return a sentence with the error rates in the most similar simulated studies; empty if there are none."""
    cell = nearest(verdict)
    if cell is None or cell not in table():
        return ""
    rates = table()[cell]
    studies = rates["good"][0]
    guessing = max(rates[judge][1] for judge in GUESSING)
    people = "1 person" if cell.people == 1 else f"{cell.people} people with kappa {cell.kappa:g}"
    limit = "the threshold" if cell.people == 1 else "the margin"
    return (
        f"Error rates of this rule in {studies:,} simulated studies of the most similar kind, with no more evidence "
        f"({people}, {cell.units:,} units, {cell.per_question} per question, {cell.labels} labels, the rarest with "
        f"{100 * rarest(cell.labels, cell.minority):g} %): a judge as good as a person is trusted in "
        f"{rates['good'][1]:.0%} and not trusted in {rates['good'][2]:.0%}; a judge at {limit} is trusted in "
        f"{rates['margin'][1]:.1%}; a judge that guesses or gives only one label is trusted in {guessing:.1%}."
    )


def _find_step(steps: tuple[float, ...], value: float) -> float:
    """Return the largest step that is not above the value, or the first step if all are above it."""
    return max((step for step in steps if step <= value + 1e-9), default=steps[0])
