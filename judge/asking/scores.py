"""What `judge score`, `judge suite` and their methods in Python ask of a paper."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

from judge import plugins
from judge.errors import UsageError
from judge.importers import conditions
from judge.suites import papers
from judge.suites.paper import Asked, Paper

INTERVALS: Mapping[str, Any] = {"interval": "bca", "confidence": 0.95, "replicates": 1000, "seed": 0}
"""How the intervals of a score are made unless something else is asked for."""


def asked(paper: Paper, options: Mapping[str, Any]) -> Asked:
    """What the options of a command ask for. Raises UsageError for those that do not go together."""
    if options.get("condition") is not None and paper.name in conditions.CONDITIONS:
        there = conditions.known(paper.name)
        raise UsageError(
            f"--condition: {paper.name} scores conditions of its own, each for what it is: {there}"
        )
    if options["sample"] is not None and options["limit"] is None:
        raise UsageError("--sample goes with -n: how many questions")
    judges = options.get("judges")
    if judges is None and len(options["models"]) > 1:
        raise UsageError("several judges: say how to put them together: --judges is 'mean' or 'majority'")
    readings = {o.name: options[o.name.replace("-", "_")] for o in paper.options}
    return asked_so(options, majority=judges == "majority", options=readings)


def asked_so(given: Mapping[str, Any], **own: Any) -> Asked:
    """What options of these names ask for, and `own`; the others keep their defaults."""
    known = {one.name: given[one.name] for one in fields(Asked) if one.name in given}
    return Asked(**{**known, **own})


class ScoreArguments(TypedDict, total=False):
    """What a score may be asked for in Python: the options of `judge score`, by name.

    `model` is a name, or several with `judges`; `limit` a number of questions or a share of them ("10%"); `readings` are
    the paper's own options by name; `interval` is bca, percentile or None (or "none", as on the command line).
    """

    model: str | Sequence[str]
    runs: Sequence[str]
    judges: str | None
    by: str | None
    reference: str | None
    batch: str | None
    condition: str | None
    dataset: str | None
    limit: str | int | None
    sample: int | None
    parts: Sequence[str]
    partial: bool
    rationale: str | None
    readings: Mapping[str, str | float]
    interval: Literal["bca", "percentile", "none"] | None
    confidence: float
    replicates: int
    seed: int


class Prepared(NamedTuple):
    """A paper, what is asked of it, and the keyword arguments of `judge.suites.result.score` or `board`."""

    paper: Paper
    asked: Asked
    how: dict[str, Any]


def prepare(paper_name: str, system: str | None = None, **given: Unpack[ScoreArguments]) -> Prepared:
    """What these arguments ask for. Raises UsageError for those that do not go together."""
    paper = paper_of(paper_name)
    readings = {name: str(value) for name, value in (given.get("readings") or {}).items()}
    if not paper.corrects and given.get("reference") is not None:
        readings["reference"] = str(given["reference"])
    model, limit = given.get("model") or (), given.get("limit")
    several = {"runs": given.get("runs") or (), "parts": given.get("parts") or ()}
    for name, value in several.items():
        if isinstance(value, str):
            raise UsageError(f"{name}={value!r}: a list of names, as in {name}=[{value!r}]")
    options = {
        "sample": None,
        **given,
        "models": (model,) if isinstance(model, str) else tuple(model),
        **{name: tuple(value) for name, value in several.items()},
        "system": system,
        "limit": None if limit is None else amount(str(limit)),
        **_readings(paper, readings),
    }
    own = {name: given.get(name) for name in ("judges", "by")}
    own |= {name: given.get(name) if paper.corrects else None for name in ("reference", "batch")}
    intervals = {**INTERVALS, **{name: value for name, value in given.items() if name in INTERVALS}}
    if intervals["interval"] == "none":
        intervals["interval"] = None
    return Prepared(paper, asked(paper, options), {**own, **intervals})


def amount(value: str) -> str:
    """A number of questions from 1, or a share of them of more than 0 and at most 100 %. Raises UsageError."""
    number = re.fullmatch(r"(\d+(?:\.\d+)?)%|[1-9]\d*", value)
    if number is None or (number[1] is not None and not 0 < float(number[1]) <= 100):
        raise UsageError(f"'{value}' is no number from 1, nor a share as 10%")
    return value


def paper_of(name: str) -> Paper:
    """The paper called so. Raises UsageError naming those that there are."""
    found = papers.find(name)
    if found is None:
        known = [*papers.PAPERS, *plugins.names("papers")]
        raise UsageError(f"no paper '{name}'; there are: {', '.join(known)}")
    return found


def _readings(paper: Paper, given: Mapping[str, str]) -> dict[str, str]:
    """Every option of the paper by its Python name. Raises UsageError for one that it has not, or another choice."""
    known = {option.name.replace("-", "_"): option for option in paper.options}
    for name, value in given.items():
        option = known.get(name.replace("-", "_"))
        if option is None:
            raise UsageError(f"{paper.name} has no reading '{name}'; there are: {', '.join(known) or 'none'}")
        if option.choices and value not in option.choices:
            raise UsageError(f"{name}={value}: one of {', '.join(option.choices)}")
    own = {name.replace("-", "_"): value for name, value in given.items()}
    return {name: own.get(name, option.default) for name, option in known.items()}
