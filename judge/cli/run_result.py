"""The end of a run: the summary that every command with model calls prints, and the exit code."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from judge.commands import command
from judge.console import emit_json, note, notes, suggests_next
from judge.errors import Exit

if TYPE_CHECKING:
    from judge.runner import Plan, RunReport


def finish(plan: Plan, report: RunReport, options: dict[str, Any], then: str) -> int:
    """Print the result of a run, and return its exit code."""
    from judge.runner.plan import STATUSES

    document = report.as_json(plan)
    if options["as_json"]:
        emit_json("run", document)
    else:
        # A run whose units all have an answer takes no measurable time.
        rate = sum(report.ended.values()) / report.seconds if report.seconds > 0 else 0.0
        counts = " · ".join(f"{document[s]} {s}" for s in (*STATUSES, "reused") if document[s] or s == "ok")
        print(f"run {report.run_id}: {plan.task.name} with {plan.model}")
        print(
            f"{report.labelled} of {report.units} units have a label ({counts}) in {report.seconds:.1f} s, {rate:.1f}/s"
        )
        if report.price is not None:
            # The server may have billed a call whose reply was lost, so it counts with its maximum.
            lost = f", {report.spent.lost} lost calls at their maximum cost" if report.spent.lost else ""
            if report.spent.uncounted:
                lost += f", {report.spent.uncounted} calls without token counts at their maximum cost"
            print(f"cost: ${report.spent.cost:.4f}{lost} (prices: {report.price.source})")
        if report.labelled and not report.stopped and suggests_next():
            print(f"next: {command('judge runs show', report.run_id)}")
            print(f"then: {then}")
    notes(report.remarks(plan))
    # After the counts: this raises the error that ended the run, and the labels so far are stored and paid
    # for.
    code = exit_code(report)
    # The earlier use of a run counts against its limits, so the same command would stop at once.
    if report.stopped and not (plan.max_tokens is None and plan.max_cost is None):
        note(
            "--max also counts the tokens and dollars that the run used earlier; raise the limit that was reached"
        )
    return code


def exit_code(report: RunReport) -> int:
    """Print the notes of a run and return its exit code. Raises the error that ended the run, if there is one."""
    error = report.ending
    if report.interrupted or error is not None:
        note(f"stopped with {report.pending} units to go; to resume: {_resume_line()}")
    if report.interrupted:
        if error is not None:
            note(f"judge: {error}")
        return Exit.INTERRUPTED
    if error is not None:
        raise error
    if report.stopped:
        note(f"stopped: {report.stopped}; {report.pending} units to go; to resume: {_resume_line()}")
    return Exit.DONE if report.labelled == report.units else Exit.INCOMPLETE


def _resume_line() -> str:
    # A base URL may carry a password; such a line is not repeated on the screen.
    if any("@" in a for a in sys.argv if "//" in a):
        return "the same command"
    return shlex.join(["judge", *sys.argv[1:]])
