"""The papers' protocols from Python: outputs of systems in, what a score lacks made, scores and leaderboards out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from adjudge.options import SuiteArguments, known_names, run_options
from adjudge.outcome import Outcome
from adjudge.terms import call_of
from judge.asking.scores import INTERVALS, ScoreArguments, prepare
from judge.errors import BadInput, LimitReached, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from judge.asking.run import Stop
    from judge.asking.systems import Outputs
    from judge.runner.plan import RunDisplay, RunReport
    from judge.store import Store
    from judge.suites.board import Board
    from judge.suites.result import Result

ALL = "all"
"""In place of a list of systems: every system that the paper can score."""


def import_outputs(
    store: Store,
    data: Any,
    outputs: Outputs,
    dataset: str | None = None,
    maps: Mapping[str, str] | None = None,
    label_maps: Mapping[str, Mapping[str, str]] | None = None,
) -> Outcome:
    """Outputs of systems into the study, out of a file, a table or rows. Raises as `judge.asking.systems.import_files`."""
    from adjudge.frames import rows_of
    from adjudge.incoming import refuse_index
    from judge.asking.systems import import_files, import_rows
    from judge.importers.answers import KEYS
    from judge.importers.base import Options
    from judge.importers.importing import check_names

    said: list[str] = []
    options = Options(dataset, maps or {}, label_maps or {}, said.append)
    if isinstance(data, str | Path):
        done = import_files(store, [Path(data)], options, outputs)
    elif outputs.stage is not None:
        raise UsageError(f"{type(data).__name__}: rankings are the path of a TREC run file")
    else:
        rows, columns = rows_of(data)
        name = "rows" if columns is None else "DataFrame"
        check_names(columns or (), name)
        refuse_index(data, columns, {*KEYS, *options.maps.values()})
        done = import_rows(store, name, rows, options, outputs, cells=columns is not None)
    new = sum(n for row in done.rows() for name, n in row.items() if name in ("answers", "verdicts", "lists"))
    notes = [*said, *done.lacks, *(f"skipped: {text}" for text in done.skipped)]
    document = {"study": str(store.path), "rows": done.rows(), "skipped": done.skipped}
    return Outcome(f"{new:,} new outputs in {store.path}", document, done.rows(), notes)


def systems_asked(system: Any, systems: Any) -> list[str] | None:
    """The systems named by the arguments `system` (one name) and `systems` (a list, or "all": None is returned).

    The list is empty when none is named. Raises UsageError for what is neither.
    """
    if system is not None and systems:
        raise UsageError("system= names one system, systems= several: give one of the two")
    if system is not None and not isinstance(system, str):
        raise UsageError(f"system={system!r}: one name; several go in systems={list(system)!r}")
    if system == ALL:
        raise UsageError(f"system={ALL!r}: one name; for every system of the study give systems={ALL!r}")
    if systems == ALL:
        return None
    if isinstance(systems, str):
        raise UsageError(f"systems={systems!r}: a list of names, as in systems=[{systems!r}], or {ALL!r}")
    return [system] if system is not None else list(systems or ())


def scores(
    store: Store, paper_name: str, systems: list[str] | None, given: ScoreArguments, method: str = "scores"
) -> pd.DataFrame:
    """The scores of each system as one frame, a row a system and measure. Raises Incomplete with calls that make the rest."""
    from judge.suites.result import score

    known_names(given, ScoreArguments, method)
    paper, asked, _ = prepare(paper_name, **given)
    results = []
    names: list[str | None] = [*_named(store, paper, asked, systems)]
    for system in names or [None]:
        paper, asked, how = prepare(paper_name, system, **given)
        with _calls_for_steps(paper.name):
            results.append(score(store, paper, asked, **how))
    return _frame(results)


def board(store: Store, paper_name: str, systems: list[str] | None, given: ScoreArguments) -> Outcome:
    """The leaderboard of systems, or with judges="each" of judges, on the rows that all of them share."""
    from judge.suites import board as boards
    from judge.suites.board_files import as_html

    known_names(given, ScoreArguments, "board")
    each = given.get("judges") == "each"
    if each:
        models = given.get("model") or ()
        names = [models] if isinstance(models, str) else list(models)
        given = cast(ScoreArguments, {**given, "judges": None, "model": ()})
    paper, asked, how = prepare(paper_name, **given)
    if not each:
        names = _named(store, paper, asked, systems)
    with _calls_for_steps(paper.name):
        found = boards.board(store, paper, asked, names, axis="judge" if each else "system", **how)
    title = f"{paper.title}: {len(found.contenders)} {found.axis}s on the rows that all share"
    document = found.as_json()
    return Outcome(title, document, _board_rows(found), _told(found), page=as_html(found))


def suite(
    store: Store,
    paper_name: str,
    model: str,
    systems: list[str] | None,
    given: SuiteArguments,
    watched: RunDisplay,
    stop: Stop,
) -> pd.DataFrame:
    """Make what the scores of each system lack, with the model as the judge; then the scores, as `scores`.

    Raises what ended a run, and LimitReached where a limit did.
    """
    from judge.asking.suite import ASKING
    from judge.asking.suite import suite as make

    known_names(given, SuiteArguments, "suite")
    asking = {name: value for name, value in given.items() if name in ASKING}
    own = run_options(asking)
    of_score: Any = {
        name: value for name, value in given.items() if name not in ASKING and name != "also_generate"
    }
    paper, asked, how = prepare(paper_name, **of_score)
    asked = replace(asked, also_generate=bool(given.get("also_generate", False)))
    names = _named(store, paper, asked, systems)
    of_result = {name: how[name] for name in ("by", *INTERVALS)}
    done = make(store, paper, asked, names, model, own, list(asking), lambda: watched, stop=stop, **of_result)
    if done.performed.stopped is not None:
        _raise(done.performed.stopped)
    return _frame(done.results, [f"not kept: {text}" for text in done.performed.problems])


def _raise(report: RunReport) -> None:
    """Raise what ended a run before there was a score."""
    if (error := report.ending) is not None:
        raise error
    if report.interrupted:
        raise KeyboardInterrupt
    raise LimitReached(f"stopped: {report.stopped}; {report.pending} units to go; the same call goes on")


def _named(store: Store, paper: Any, asked: Any, systems: list[str] | None) -> list[str]:
    """The systems named, or all that the paper can score. Raises BadInput for one that the study has no output of."""
    from judge.providers.base import is_model
    from judge.store.listing import list_outputs
    from judge.suites.board import all_systems

    if systems is None:
        return all_systems(store, paper, asked)
    there = {str(row["system"]) for row in list_outputs(store)}
    models = {str(row[0]) for row in store.conn.execute("SELECT DISTINCT model FROM runs")}
    for name in systems:
        if name not in there | models and not is_model(name):
            told = ", ".join(sorted(there)) or "none"
            raise BadInput(f"no system '{name}' in the study; there are: {told}")
    return systems


@contextmanager
def _calls_for_steps(paper: str) -> Iterator[None]:
    """Add to Incomplete the calls that make what is missing."""
    from judge.suites.steps import Incomplete

    try:
        yield
    except Incomplete as missing:
        missing.add_note("these calls make what is missing:")
        for call in dict.fromkeys(call_of(step, paper) for step in missing.steps):
            missing.add_note(call)
        raise


def _frame(results: Sequence[Result], notes: Sequence[str] = ()) -> pd.DataFrame:
    """A row a system and measure; what the numbers rest on is in `attrs`."""
    from adjudge.frames import MEASURES, frame

    columns = (
        *("system", "stratum"),
        *(name for name in MEASURES if name not in ("field", "level", "weights", "annotators")),
    )
    rows = [{**line.as_json(), "system": found.system} for found in results for line in found.lines]
    documents = [found.as_json() for found in results]
    shared = {name: documents[0][name] for name in ("title", "dataset", "condition", "readings")}
    told = [text for found in results for text in (*_prefixed(found, len(results)), *_lacking(found.lacking))]
    return frame(
        rows,
        (*columns, "missing"),
        **shared,
        system=documents[0]["system"],
        runs=[run for document in documents for run in document["runs"]],
        lacking=[gap for document in documents for gap in document["lacking"]],
        other_runs=[run for document in documents for run in document["other_runs"]],
        notes=list(dict.fromkeys([*told, *notes])),
    )


def _prefixed(found: Result, n: int) -> list[str]:
    """A score's notes; with several systems each says whose it is."""
    return [f"{found.system}: {text}" if n > 1 else text for text in found.notes]


def _lacking(gaps: Sequence[Any]) -> list[str]:
    """What systems have no output for, each with the call that adds it."""
    return [
        f"missing: {gap.system} has no {'ranking of its own' if gap.condition == 'ranking' else f'output under {gap.condition!r}'}; "
        f"this adds it: {gap.add}"
        for gap in gaps
    ]


def _told(found: Board) -> list[str]:
    return [*found.notes, *_lacking(found.lacking)]


def _board_rows(found: Board) -> list[dict[str, Any]]:
    """A row a measure, stratum and contender, by the column names of the leaderboard's CSV file."""
    from judge.suites.board_files import COLUMNS, cells_of

    return [dict(zip(COLUMNS, values, strict=True)) for values in cells_of(found)]
