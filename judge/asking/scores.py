"""Build requests for a paper's scores from the options of `judge score`, or from arguments in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

from judge import plugins
from judge.errors import UsageError
from judge.importers import conditions
from judge.papers.engine import papers
from judge.papers.engine.paper import Paper, ScoreRequest
from judge.store import Store

REPLICATES = 1000
"""Number of bootstrap resamples of questions for each interval."""
INTERVALS: Mapping[str, Any] = {"interval": "bca", "confidence": 0.95}
"""The default settings for the intervals of a score."""


def request_of(store: Store, paper: Paper, options: Mapping[str, Any]) -> ScoreRequest:
    """Build the request from the options of a command. Raises UsageError for options that cannot be combined."""
    if options.get("condition") is not None and paper.name in conditions.CONDITIONS:
        there = conditions.list_conditions(paper.name)
        raise UsageError(
            f"--condition cannot be used with {paper.name}, which scores each of its conditions separately: {there}"
        )
    from judge.papers.engine import chosen

    models, runs = chosen.judges(store, options["runs"])
    # A mean over judges and a score for each judge answer different questions, so neither is the default.
    if options.get("judges") is None and len(models) > 1:
        raise UsageError("several judges are named: choose --judges mean or --judges each")
    readings = {o.name: options[o.name.replace("-", "_")] for o in paper.options}
    return request_from(options, models=models, runs=runs, options=readings)


def request_from(given: Mapping[str, Any], **changes: Any) -> ScoreRequest:
    """Build a request from the given options, overridden by `changes`. Other fields take their default values."""
    known = {option.name: given[option.name] for option in fields(ScoreRequest) if option.name in given}
    return ScoreRequest(**{**known, **changes})


class ScoreArguments(TypedDict, total=False):
    """The arguments of a score in Python, named like the options of `judge score`.

    `runs` names one or more models, runs or panels as judges. `readings` maps the names of the paper's own options to
    values. `interval` is "bca", "percentile", or None for no intervals ("none" is also accepted).
    """

    runs: str | Sequence[str]
    judges: str | None
    by: str | None
    reference: str | None
    condition: str | None
    dataset: str | None
    parts: Sequence[str]
    partial: bool
    readings: Mapping[str, str | float]
    interval: Literal["bca", "percentile", "none"] | None
    confidence: float


class Prepared(NamedTuple):
    """A paper, a request, and the keyword arguments for `judge.papers.engine.result.score` or `judge.papers.engine.board.board`."""

    paper: Paper
    request: ScoreRequest
    how: dict[str, Any]


def prepare(
    store: Store, paper_name: str, system: str | None = None, **given: Unpack[ScoreArguments]
) -> Prepared:
    """Build the request from these arguments. Raises UsageError for arguments that cannot be combined."""
    paper = paper_of(paper_name)
    readings = {name: str(value) for name, value in (given.get("readings") or {}).items()}
    if not paper.corrects and given.get("reference") is not None:
        readings["reference"] = str(given["reference"])
    runs, parts = given.get("runs") or (), given.get("parts") or ()
    # A string is also a sequence, so each of its letters would be interpreted as a part.
    if isinstance(parts, str):
        raise UsageError(f"parts={parts!r}: must be a list of names, e.g. parts=[{parts!r}]")
    options = {
        **given,
        "runs": (runs,) if isinstance(runs, str) else tuple(runs),
        "parts": tuple(parts),
        "system": system,
        **readings_of(paper, readings),
    }
    score_options: dict[str, Any] = {name: given.get(name) for name in ("judges", "by")}
    score_options["reference"] = given.get("reference") if paper.corrects else None
    intervals = {**INTERVALS, **{name: value for name, value in given.items() if name in INTERVALS}}
    # "none" is the value on the command line.
    if intervals["interval"] == "none":
        intervals["interval"] = None
    return Prepared(
        paper, request_of(store, paper, options), {**score_options, **intervals, "replicates": REPLICATES}
    )


def paper_of(name: str) -> Paper:
    """Return the paper with this name. Raises UsageError for an unknown name; the message lists the known names."""
    paper = papers.find(name)
    if paper is None:
        known = [*papers.PAPERS, *plugins.names("papers")]
        raise UsageError(f"unknown paper '{name}'; available: {', '.join(known)}")
    return paper


def list_readings(paper: Paper, given: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the paper's options by their names on the command line. Raises the errors of `readings_of`."""
    values = readings_of(paper, given)
    return {option.name: values[option.name.replace("-", "_")] for option in paper.options}


def readings_of(paper: Paper, given: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the paper's options, which are given by their Python names.

    Raises UsageError for an unknown option or value.
    """
    known = {option.name.replace("-", "_"): option for option in paper.options}
    for name, value in given.items():
        option = known.get(name.replace("-", "_"))
        if option is None:
            raise UsageError(f"{paper.name} has no option '{name}'; available: {', '.join(known) or 'none'}")
        if option.choices and value not in option.choices:
            raise UsageError(f"{name}={value}: must be one of {', '.join(option.choices)}")
    readings = {name.replace("-", "_"): value for name, value in given.items()}
    return {name: readings.get(name, option.default) for name, option in known.items()}
