"""Build the results of a paper or a task, filtered and sorted, for `judge results` and `Study.results`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.asking.scores import paper_of, readings_of, request_of
from judge.errors import UsageError
from judge.papers.engine import papers
from judge.results.table import (
    MeasureColumn,
    Results,
    keep_where,
    merge_results,
    of_paper,
    of_run,
    sort_worst_first,
)
from judge.store import export, listing
from judge.store.answers import ALL, HUMAN
from judge.store.study import Store


def results_of(
    store: Store,
    name: str | None,
    *,
    per: str | None = None,
    sort: str | None = None,
    where: Sequence[str] = (),
    readings: Mapping[str, str] | None = None,
    **options: Any,
) -> tuple[Results, MeasureColumn | None]:
    """Return the results of a paper, or of the newest run of a task (default: of the newest run), worst first, and the measure
    by which they are sorted.

    `readings` are the paper's own options. `options` are the others of `judge score`: runs, system, condition, dataset, parts. Raises UsageError if there is no such paper
    or task, or if an option does not fit.
    """
    if name is not None and papers.find(name) is not None:
        paper = paper_of(name)
        given: Mapping[str, Any] = {**readings_of(paper, readings or {}), **options}
        several = options.get("system") == ALL
        each = [{**given, "system": system} for system in _list_systems(store)] if several else [given]
        results = merge_results(
            [of_paper(store, paper, request_of(store, paper, of_system), per) for of_system in each]
        )
    else:
        if readings:
            raise UsageError("--paper-option sets an option of a paper: name the paper first")
        results = of_run(store, _find_run(store, name, options.get("runs") or ()))
        if per not in (None, results.per):
            raise UsageError(f"--per {per}: this run labelled units of the kind {results.per}")
        _restrict(store, results, options)
    keep_where(results, where)
    return results, sort_worst_first(results, sort)


def _list_systems(store: Store) -> list[str]:
    """Return the systems with answers, without the people whose answers a paper compares them with."""
    names = dict.fromkeys(str(row["system"]) for row in listing.list_systems(store))
    if not names:
        raise UsageError(f"--system {ALL}: the study has no answers")
    return [name for name in names if name != HUMAN] or list(names)


def _find_run(store: Store, task: str | None, runs: Sequence[str]) -> str:
    """Return the newest run of a task, or the named run."""
    if len(runs) > 1:
        raise UsageError("results of a task are those of one run: give --run once")
    if runs and task is None:
        return str(runs[0])
    stored_runs = export.list_runs(store)
    fit = [
        run
        for run in stored_runs
        if (task is None or task in (run["task"], run["task"].rpartition(".")[0]))
        and (not runs or runs[0] in (run["run_id"], run["model"]))
    ]
    if not fit:
        names = sorted({run["task"].rpartition(".")[0] for run in stored_runs})
        known = ", ".join([*papers.PAPERS, *names])
        raise UsageError(
            f"there is no paper '{task}', and no run of such a task; available: {known}"
            if task
            else "the study has no run"
        )
    return str(max(fit, key=lambda run: run["started"])["run_id"])


def _restrict(store: Store, results: Results, options: Mapping[str, Any]) -> None:
    """Keep the rows of the requested system, condition and data set. Raises UsageError for a name that the study lacks."""
    known = {
        "dataset": [row["dataset"] for row in listing.list_datasets(store)],
        "system": [row["system"] for row in listing.list_systems(store)],
        "condition": [row["condition"] for row in listing.list_systems(store)],
    }
    for name, there in known.items():
        wanted = options.get(name)
        if wanted is None or (name == "system" and wanted == ALL):
            continue
        if wanted not in there:
            available = ", ".join(sorted({str(value) for value in there})) or "none"
            raise UsageError(f"--{name} {wanted}: the study has no such {name}; available: {available}")
        results.rows = [row for row in results.rows if row[name] == wanted]
