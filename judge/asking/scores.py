"""A paper's scores as they are asked for, by `judge score` and from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from judge import plugins
from judge.errors import UsageError
from judge.store import Store
from judge.suites import papers
from judge.suites.paper import Asked, Paper

if TYPE_CHECKING:
    from judge.suites.result import Result


def asked(paper: Paper, options: Mapping[str, Any]) -> Asked:
    """What the options of a command ask for. Raises UsageError for those that do not go together."""
    if options["sample"] is not None and options["limit"] is None:
        raise UsageError("--sample goes with -n: how many questions")
    judges = options.get("judges")
    if judges is None and len(options["models"]) > 1:
        raise UsageError(
            "several judges: say how to put them together with --judges mean or --judges majority"
        )
    readings = {o.name: options[o.name.replace("-", "_")] for o in paper.options}
    return asked_so(options, majority=judges == "majority", options=readings)


def asked_so(given: Mapping[str, Any], **own: Any) -> Asked:
    """What options of these names ask for, and `own`; the others keep their defaults."""
    known = {one.name: given[one.name] for one in fields(Asked) if one.name in given}
    return Asked(**{**known, **own})


def score(
    store: Store,
    paper_name: str,
    *,
    model: str | Sequence[str] = (),
    runs: Sequence[str] = (),
    judges: str | None = None,
    by: str | None = None,
    reference: str | None = None,
    batch: str | None = None,
    system: str | None = None,
    condition: str | None = None,
    dataset: str | None = None,
    limit: str | int | None = None,
    sample: int | None = None,
    parts: Sequence[str] = (),
    partial: bool = False,
    rationale: str | None = None,
    readings: Mapping[str, str] | None = None,
    how: Mapping[str, Any] | None = None,
) -> Result:
    """A paper's measures, as `judge score PAPER` has them; `readings` are the paper's own options, `how` the intervals'.

    Raises Incomplete where runs are missing, UsageError for what is not there or not clear.
    """
    from judge.suites.result import score as scored

    paper = paper_of(paper_name)
    own = {option.name for option in paper.options}
    # A paper with another use for the word takes the reference as a reading.
    has_own = "reference" in own
    if has_own and reference is not None:
        readings = {**(readings or {}), "reference": reference}
    wanted = asked(
        paper,
        {
            "models": (model,) if isinstance(model, str) else tuple(model),
            "runs": tuple(runs),
            "judges": judges,
            "system": system,
            "condition": condition,
            "dataset": dataset,
            "limit": None if limit is None else str(limit),
            "sample": sample,
            "parts": tuple(parts),
            "partial": partial,
            "rationale": rationale,
            **_readings(paper, readings or {}),
        },
    )
    return scored(
        store,
        paper,
        wanted,
        judges=judges,
        by=by,
        reference=None if has_own else reference,
        batch=None if has_own else batch,
        **dict(how or {}),
    )


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
