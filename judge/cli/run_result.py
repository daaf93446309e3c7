"""The end of a run: the summary that every command with model calls prints, and the exit code."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judge.commands import command
from judge.console import emit_json, note, notes, shorten, suggests_next
from judge.errors import Exit

if TYPE_CHECKING:
    from judge.runner import Plan, RunReport
    from judge.store import Store

MOST_OF_REPLY = 120
"""Maximum length of a reply that is shown as a sample."""


def finish(
    plan: Plan, report: RunReport, options: dict[str, Any], then: str, unparsed: Sequence[str] = ()
) -> int:
    """Print the result of a run, and return its exit code.

    `unparsed` contains the lines that `describe_unparsed` returned.
    """
    from judge.runner.plan import STATUSES

    document = report.as_json(plan)
    if options["as_json"]:
        emit_json("run", document)
    else:
        # A run whose units all have an answer takes no measurable time.
        rate = sum(report.ended.values()) / report.seconds if report.seconds > 0 else 0.0
        shown = (*STATUSES, "reused", "already_judged")
        counts = " · ".join(f"{document[s]} {s.replace('_', ' ')}" for s in shown if document[s] or s == "ok")
        print(f"run {report.run_id}: {plan.task.name} with {plan.model}")
        print(
            f"{report.labelled} of {report.units} units have a label ({counts}) in {report.seconds:.1f} s, {rate:.1f}/s"
        )
        if report.price is not None:
            # The server may have billed a call whose reply was lost, so its maximum cost is counted.
            lost = (
                f", including {report.spent.lost} lost calls at their maximum cost"
                if report.spent.lost
                else ""
            )
            if report.spent.uncounted:
                lost += (
                    f", including {report.spent.uncounted} calls without token counts at their maximum cost"
                )
            print(f"cost: ${report.spent.cost:.4f}{lost} (prices: {report.price.source})")
        if report.labelled and not report.stopped and suggests_next():
            print(f"next: {command('judge runs show', report.run_id)}")
            print(f"then: {then}")
    notes(report.remarks(plan))
    for line in unparsed:
        note(line)
    # This comes after the counts, because it raises the error that ended the run. The labels are already
    # stored and paid for.
    code = exit_code(report)
    # The earlier use of a run counts against its limits, so the same command would stop at once.
    if report.stopped and not (plan.max_tokens is None and plan.max_cost is None):
        note(
            "--max also counts the tokens and dollars that the run used earlier; raise the limit that was reached"
        )
    return code


def describe_unparsed(store: Store, run_id: str, counts: Mapping[str, int]) -> list[str]:
    """If most replies are unparsed, return a sample of them and the command to type next.

    Otherwise, return an empty list.

    `counts` maps each status to its number of replies.
    """
    from judge.store.export import find_named_run
    from judge.store.runs import read_unparsed_sample

    n, total = counts.get("unparsed", 0), sum(counts.values())
    if 2 * n <= total:
        return []
    run = find_named_run(store, run_id)
    reply = read_unparsed_sample(store.conn, run_id)
    # The run stores the form that was used, even if the command had `auto`.
    mode = json.loads(run["options"]).get("mode")
    if mode in ("codes", "words"):
        form, more = "letters" if mode == "codes" else "words", ("--answers", "json")
        advice = f"the model does not answer with the requested {form}. Request JSON instead"
    else:
        advice, more = "retry them, or choose another model", ("--retry", "unparsed")
    sample = f", such as {shorten(reply, MOST_OF_REPLY)!r}" if reply is not None else ""
    # The whole command is repeated, because the address and other options are needed again.
    repeated = suggests_next() and not _has_password()
    line = (
        shlex.join(["judge", *sys.argv[1:], *more])
        if repeated
        else command("judge run", run["task"], "-m", run["model"], *more)
    )
    return [f"{n:,} of {total:,} replies are unparsed{sample}: {advice}:", f"  {line}"]


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
    if _has_password():
        return "the same command"
    return shlex.join(["judge", *sys.argv[1:]])


def _has_password() -> bool:
    """Return whether the typed command may contain a password in a base URL.

    Such a command is not printed again.
    """
    return any("@" in a for a in sys.argv if "//" in a)
