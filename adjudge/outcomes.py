"""Convert the results that the commands compute to `Outcome` objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.outcome import Outcome
from judge.types import attributes

if TYPE_CHECKING:
    from judge.asking.items import Imported
    from judge.asking.judges import CalibrationOutcome
    from judge.asking.panel import PanelOutcome
    from judge.asking.run import Ran
    from judge.document.blocks import Document
    from judge.improve.contest import Contest
    from judge.improve.outcome import Improved
    from judge.improve.route import Route
    from judge.runner.plan import RunReport
    from judge.store import Store


def imported(study: Path, done: Imported, said: Sequence[str]) -> Outcome:
    """Return the outcome of an import: the new rows, the skipped rows, and the tasks that fit the data."""
    rows = done.rows()
    notes = [*said, *done.notes, *(f"skipped: {text}" for text in done.skipped)]
    if done.tasks:
        notes.append(f"tasks that fit this data: {', '.join(done.tasks)}")
    document = {"study": str(study), "rows": rows, "skipped": done.skipped}
    new = sum(row.get("items", 0) for row in rows)
    return Outcome(f"{new:,} new item{'s' if new != 1 else ''} in {study}", document, rows, notes)


def raise_ending(report: RunReport) -> None:
    """Raise the error that ended a run, including KeyboardInterrupt."""
    if (error := report.ending) is not None:
        raise error
    if report.interrupted:
        # The stop button of a notebook ends the cell, as Ctrl-C ends a command.
        raise KeyboardInterrupt


def ran(done: Ran) -> Outcome:
    """Return the counts of a run. Raises the error that ended the run, if there is one."""
    from judge.runner.plan import STATUSES

    report, plan = done.report, done.plan
    raise_ending(report)
    document = report.as_json(plan)
    notes = report.remarks(plan)
    if report.stopped:
        notes.append(
            f"stopped: {report.stopped}; {report.pending} units to go; to continue, repeat the same call"
        )
    if done.calibrated is not None:
        notes.append(f"calibrated by the recipe: run {done.calibrated}")
    row = {
        name: document[name]
        for name in ("units", "labelled", *STATUSES, "reused", "already_judged", "pending")
    }
    title = f"run {report.run_id}: {report.labelled:,} of {report.units:,} units of {plan.task.name} have a label from {plan.model}"
    return Outcome(title, document, [row], notes, run_id=report.run_id)


def panel(done: Sequence[Ran], made: PanelOutcome | None) -> Outcome:
    """Return the outcome of a panel (several judges combined into one), with one row per judge.

    If a judge did not finish, no panel is stored, and `run_id` is None.
    """
    from judge.cli.panel import document

    if made is None:
        last = ran(done[-1])
        return replace(
            last, run_id=None, notes=[*last.notes, "the panel is stored when its last member has finished"]
        )
    # The panel contains the calibrated runs of its recipe instead of the original runs.
    rows = [{"member": member.plan.model, "run_id": run_id, "units": member.report.units, "labelled": member.report.labelled}
            for member, run_id in zip(done, made.table.run_ids, strict=True)]  # fmt: skip
    title = f"run {made.run_id}: {made.method} of {len(done)} judges on {int(made.pooled.only.sum()):,} units of {made.table.task.name}"
    notes = [
        *dict.fromkeys(text for member in done for text in member.report.remarks(member.plan)),
        *made.pooled.notes,
    ]
    return Outcome(title, document(made, None, [], []), rows, notes, run_id=made.run_id)


def calibrated(done: CalibrationOutcome) -> Outcome:
    """Return the measures before and after calibration, on questions that were not used for fitting."""
    rows = [
        {
            "measure": after.measure + (f" ({after.weights})" if after.weights else ""),
            "before": before.value,
            "after": after.value,
            "difference": d and d.value,
            "low": d and d.low,
            "high": d and d.high,
            **attributes(d or after, "n_units", "n_clusters", "coverage", "reason"),
        }
        for before, after, d in done.result.measures
    ]
    notes = [*done.result.notes, *([f"not stored: {done.why}"] if done.why else [])]
    title = f"{done.result.method} calibration of run {done.parent['run_id']} ({done.parent['model']})"
    return Outcome(title, done.as_json(), rows, notes, run_id=done.run_id)


def html_page(document: Document) -> str:
    """Return the document as an HTML page."""
    # The templates take long to import, and most calls need no page.
    from judge.document import html

    return html.render(document)


def routed(routing: Route, kept: str | None) -> Outcome:
    """Return the outcome of `judge route`, with one row per tested combination of thresholds.

    `kept` is the id of the run with the accepted units, or None if no run was stored.
    """
    from judge.improve.route import as_json
    from judge.improve.route_document import as_document

    document = as_json(routing, kept)
    result = "no threshold passes"
    if document["holds"]:
        result = (
            f"{document['accepted']:,} of {routing.n_units:,} units accepted ({document['coverage']:.1%})"
        )
    title = (
        f"{routing.field} against {routing.truth.word}: agreement of at least {routing.agree:.0%}: {result}"
    )
    return Outcome(
        title, document, document["steps"], routing.notes, run_id=kept, page=html_page(as_document(routing))
    )


def compared(contest: Contest) -> Outcome:
    """Return the comparison of runs on the units that all of them labelled, with one row per run.

    The document and the page also compare each pair of runs.
    """
    from judge.improve.contest import as_json
    from judge.improve.contest_document import as_document

    document = as_json(contest)
    title = (
        f"{document['field']} against {document['reference']}: {document['measure']} on {document['units']:,} units, "
        f"{document['questions']:,} questions"
    )
    return Outcome(title, document, document["runs"], contest.notes, page=html_page(as_document(contest)))


def improved(improvement: Improved, recipe: Path | None) -> Outcome:
    """Return the candidates that were tried, and the test of the chosen candidate."""
    from judge.improve.page import as_document, as_json, sentences

    document = as_json(improvement, recipe)
    title = f"{improvement.task.name} with {improvement.model}, field {improvement.field}, against {improvement.reference}"
    notes = [*sentences(improvement, recipe), *improvement.notes]
    return Outcome(
        title, document, document["tried"], notes, page=html_page(as_document(improvement, recipe))
    )


def results(store: Store, name: str | None, **options: Any) -> Outcome:
    """Return the table of results (`judge results`)."""
    from judge.results.build import results_of
    from judge.results.write import as_json

    table, _ = results_of(store, name, **options)
    return Outcome(table.title, as_json(table), table.rows, table.notes)
