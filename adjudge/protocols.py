"""Apply the evaluation protocols of papers: import outputs, create missing labels, and return scores and leaderboards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.options import SuiteArguments, check_arguments, run_options
from adjudge.outcome import Outcome
from adjudge.outcomes import html_page, raise_ending
from adjudge.terms import call_of
from judge.asking.scores import ScoreArguments, prepare
from judge.errors import BadInput, LimitReached, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from judge.asking.run import Stop
    from judge.asking.systems import Outputs
    from judge.papers.engine.result import Result
    from judge.runner.plan import RunDisplay
    from judge.store import Store
    from judge.store.nuggets import Assigner

ALL = "all"
"""A value that can replace the list of systems. It selects every system that the paper can score."""


def import_outputs(
    store: Store,
    data: Any,
    outputs: Outputs,
    dataset: str | None = None,
    maps: Mapping[str, str] | None = None,
    label_maps: Mapping[str, Mapping[str, str]] | None = None,
) -> Outcome:
    """Import outputs of systems from a file, a table or rows. Raises the errors of `judge.asking.systems.import_files`."""
    from adjudge.incoming import rows_in_memory
    from judge.asking.systems import import_files, import_rows
    from judge.importers.answers import KEYS
    from judge.importers.base import Options
    from judge.importers.importing import check_names

    said: list[str] = []
    options = Options(dataset, maps or {}, label_maps or {}, said.append)
    if isinstance(data, str | Path):
        done = import_files(store, [Path(data)], options, outputs)
    elif outputs.stage is not None:
        raise UsageError(f"{type(data).__name__}: rankings must be the path of a TREC run file")
    else:
        name, rows, columns = rows_in_memory(data, {*KEYS, *options.maps.values()})
        check_names(columns or (), name)
        done = import_rows(store, name, rows, options, outputs, cells=columns is not None)
    new = sum(n for row in done.rows() for name, n in row.items() if name in ("answers", "verdicts", "lists"))
    notes = [*said, *done.lacks, *(f"skipped: {text}" for text in done.skipped)]
    document = {"study": str(store.path), "rows": done.rows(), "skipped": done.skipped}
    return Outcome(f"{new:,} new outputs in {store.path}", document, done.rows(), notes)


def import_nuggets(store: Store, data: Any, whose: Assigner, dataset: str | None, skip_bad: bool) -> Outcome:
    """Import nuggets from a file, a table or rows. Raises the errors of `judge.asking.nuggets.import_files`."""
    from adjudge.incoming import rows_in_memory
    from judge.asking.nuggets import import_files, import_rows

    if isinstance(data, str | Path):
        done = import_files(store, [Path(data)], whose, dataset, skip_bad)
    else:
        used = {"id", "nugget", "importance", "system", "assignment"}
        name, rows, _ = rows_in_memory(data, used)
        done = import_rows(store, name, rows, whose, dataset, skip_bad)
    rows = done.rows()
    new = sum(row["nuggets"] for row in rows)
    document = {"study": str(store.path), "rows": rows, "skipped": done.skipped}
    notes = [f"skipped: {text}" for text in done.skipped]
    return Outcome(f"{new:,} new nuggets in {store.path}", document, rows, notes)


def systems_asked(system: Any, systems: Any) -> list[str] | None:
    """Return the systems named by `system` (one name) or `systems` (a list). Return None for systems="all".

    The list is empty if no system is named. Raises UsageError if both are given, or if an argument has the wrong type.
    """
    if system is not None and systems:
        raise UsageError("system= names one system and systems= names several: use only one of them")
    if system is not None and not isinstance(system, str):
        raise UsageError(
            f"system={system!r}: must be one name; for several systems, use systems={list(system)!r}"
        )
    if system == ALL:
        raise UsageError(
            f"system={ALL!r}: must be one name; for every system in the study, use systems={ALL!r}"
        )
    if systems == ALL:
        return None
    # Otherwise each letter of the string would be used as a system.
    if isinstance(systems, str):
        raise UsageError(
            f"systems={systems!r}: must be a list of names, e.g. systems=[{systems!r}], or {ALL!r}"
        )
    return [system] if system is not None else list(systems or ())


def scores(store: Store, paper_name: str, systems: list[str] | None, given: ScoreArguments) -> pd.DataFrame:
    """Return scores as one frame with one row per system and measure.

    Raises Incomplete if data is missing. The error contains the calls that create the missing data.
    """
    from judge.papers.engine.result import score

    check_arguments(given, ScoreArguments.__annotations__, "scores")
    paper, request, _ = prepare(store, paper_name, **given)
    results = []
    names: list[str | None] = [*_list_systems(store, paper, request, systems)]
    for system in names or [None]:
        paper, request, how = prepare(store, paper_name, system, **given)
        with _calls_for_steps(paper.name):
            results.append(score(store, paper, request, **how))
    return _frame(results)


def board(store: Store, paper_name: str, systems: list[str] | None, given: ScoreArguments) -> Outcome:
    """Return a leaderboard of systems on the rows for which all systems have a value.

    If judges="each", the leaderboard compares judges instead of systems.
    """
    from judge.papers.engine import board as boards
    from judge.papers.engine.board_document import COLUMNS, as_document, cells_of

    check_arguments(given, ScoreArguments.__annotations__, "board")
    each = given.get("judges") == "each"
    paper, request, how = prepare(store, paper_name, **given)
    if each:
        # Each judge is a row of the leaderboard, so the request itself names none.
        names, request, how = list(request.models), replace(request, models=()), {**how, "judges": None}
    else:
        names = _list_systems(store, paper, request, systems)
    with _calls_for_steps(paper.name):
        table = boards.board(store, paper, request, names, axis="judge" if each else "system", **how)
    title = f"{paper.title}: {len(table.contenders)} {table.axis}s, compared on the rows that they all share"
    # The rows have the columns of the leaderboard's CSV file.
    rows = [dict(zip(COLUMNS, values, strict=True)) for values in cells_of(table)]
    notes = [*table.notes, *_lacking(table.lacking)]
    return Outcome(title, table.as_json(), rows, notes, page=html_page(as_document(table)))


def suite(
    store: Store,
    paper_name: str,
    model: str,
    systems: list[str] | None,
    given: SuiteArguments,
    watched: RunDisplay,
    stop: Stop,
) -> pd.DataFrame:
    """Create the data that is missing for the scores of each system, and return the same frame as `scores`.

    `model` is the judge. Raises the error that ended a run, and LimitReached if a limit ended it.
    """
    from judge.asking.suite import ASKING
    from judge.asking.suite import suite as make

    check_arguments(given, SuiteArguments.__annotations__, "suite")
    asking = {name: value for name, value in given.items() if name in ASKING}
    run_settings = run_options(asking)
    rows: Any = {name: given[name] for name in ("condition", "dataset", "parts", "readings") if name in given}
    paper, request, how = prepare(store, paper_name, **rows)
    limit = given.get("limit")
    request = replace(
        request,
        limit=None if limit is None else str(limit),
        sample=given.get("sample"),
        also_generate=bool(given.get("also_generate", False)),
    )
    names = _list_systems(store, paper, request, systems)
    done = make(
        store, paper, request, names, model, run_settings, list(asking), lambda: watched, stop=stop, **how
    )
    if (report := done.performed.stopped) is not None:
        raise_ending(report)
        raise LimitReached(
            f"stopped: {report.stopped}; {report.pending} units to go; to continue, repeat the same call"
        )
    return _frame(done.results, [f"not kept: {text}" for text in done.performed.problems])


def _list_systems(store: Store, paper: Any, request: Any, systems: list[str] | None) -> list[str]:
    """Return the named systems, or all systems that the paper can score. Raises BadInput for a system without output."""
    from judge.papers.engine.board import list_systems
    from judge.providers.base import is_model
    from judge.store.listing import list_outputs

    if systems is None:
        return list_systems(store, paper, request)
    there = {str(row["system"]) for row in list_outputs(store)}
    models = {str(row[0]) for row in store.conn.execute("SELECT DISTINCT model FROM runs")}
    for name in systems:
        # A model has no outputs before its first run.
        if name not in there | models and not is_model(name):
            listed = ", ".join(sorted(there)) or "none"
            raise BadInput(f"the study has no system '{name}'; available: {listed}")
    return systems


@contextmanager
def _calls_for_steps(paper: str) -> Iterator[None]:
    """Add notes to an Incomplete error. The notes list the calls that create the missing data."""
    from judge.papers.engine.steps import Incomplete

    try:
        yield
    except Incomplete as missing:
        # Python and notebooks print the notes of an exception below its message.
        missing.add_note("these calls create the missing data:")
        for call in dict.fromkeys(call_of(step, paper) for step in missing.steps):
            missing.add_note(call)
        raise


def _frame(results: Sequence[Result], notes: Sequence[str] = ()) -> pd.DataFrame:
    """Return a frame with one row per system and measure. Its `attrs` contain the origin of the numbers."""
    from adjudge.frames import MEASURES, frame

    columns = (
        *("system", "stratum"),
        *(name for name in MEASURES if name not in ("field", "level", "weights", "annotators")),
    )
    rows = [{**line.as_json(), "system": result.system} for result in results for line in result.lines]
    documents = [result.as_json() for result in results]
    shared = {name: documents[0][name] for name in ("title", "dataset", "condition", "readings")}
    remarks = []
    for result in results:
        # The notes of several systems are in one list.
        system = f"{result.system}: " if len(results) > 1 else ""
        remarks += [*(f"{system}{text}" for text in result.notes), *_lacking(result.lacking)]
    return frame(
        rows,
        (*columns, "missing"),
        **shared,
        system=documents[0]["system"],
        runs=[run for document in documents for run in document["runs"]],
        lacking=[gap for document in documents for gap in document["lacking"]],
        other_runs=[run for document in documents for run in document["other_runs"]],
        notes=list(dict.fromkeys([*remarks, *notes])),
    )


def _lacking(gaps: Sequence[Any]) -> list[str]:
    """Return the missing outputs of systems, each with the call that adds the output."""
    return [
        f"missing: {gap.system} has no {'ranking of its own' if gap.condition == 'ranking' else f'output under {gap.condition!r}'}; "
        f"to add it: {gap.add}"
        for gap in gaps
    ]
