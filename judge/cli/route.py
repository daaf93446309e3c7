"""judge route: select the units that a judge may label alone, with a guaranteed agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judge.asking import judges
from judge.cli.task_options import check_files, field_option, reference_option, whole_runs
from judge.commands import command
from judge.console import INSIDE, db_option, json_option, note
from judge.document.terminal import print_result
from judge.errors import Exit, UsageError
from judge.gates import Gate, decide, output_option
from judge.store import Store

if TYPE_CHECKING:
    from judge.improve.route_check import RouteCheck


@click.command()
@click.argument("task_name", metavar="TASK")
@click.option("--run", "run", metavar="RUN", help="Judge run that labels the units.")
@click.option(
    "--check",
    "check",
    metavar="ROUTE",
    help="Test this stored route on new reference labels. Exit with code 5 unless it passes.",
)
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    help="With --check: use only units that the judge labelled on or after this day.",
)
@click.option(
    "--then",
    metavar="RUN",
    help="Second judge, for units that the first judge does not accept. People label the remaining units.",
)
@click.option(
    "--agree",
    default=0.9,
    type=INSIDE,
    help="Minimum agreement of the accepted labels with the reference.",
)
@click.option(
    "--confidence",
    default=0.95,
    type=INSIDE,
    help="Confidence level of the guarantee. A sealed test may require a higher level.",
)
@output_option(".html", help="Write the curve (.html) or the outcome (.xml, .md). Repeatable.")
@field_option
@reference_option
@db_option
@json_option
@whole_runs
def route(task_name: str, **options: Any) -> int:
    """Find the units that a judge can label without people.

    On these units, the agreement with the reference is at least --agree, with the given confidence.

    \b
    judge route stance --run 01K9ZX3M --agree 0.9 --confidence 0.95
    judge route stance --run 01K9ZX3M --then 01K9ZY7Q --reference decided -o route.html
    annotate batches new rest stance --draw route --run 01KA1B2C --annotators alice,bob
    judge route stance --check 01KA1B2C --output route.xml

    The command lowers a threshold on the judge's confidence step by step. It stops when a test can no longer
    rule out that the judge is wrong too often. The order of the steps is chosen on a separate set of
    questions, which are not used for these tests.

    The accepted units are stored as a derived run. If the task is split (judge split), the test uses the
    questions in the sealed test, and each use is logged. If no threshold passes, the exit code is 5.
    """
    from judge.document.formats import write_pages
    from judge.improve import route as routing
    from judge.improve.route_check import check_again
    from judge.improve.route_document import as_document

    if (options["check"] is None) == (options["run"] is None):
        raise UsageError("specify the judge with --run RUN, or a stored route with --check ROUTE")
    files = options["output"]
    since = None if options["since"] is None else options["since"].date().isoformat()
    if since is not None and options["check"] is None:
        raise UsageError("--since requires --check ROUTE")
    if options["check"] is not None:
        with Store.open(options["db"], create=False) as store:
            again = check_again(store, options["check"], since)
        gate = _gate(again)
        print_result("route-check", again.as_json(), gate.why, options["as_json"])
        decide(f"judge route {task_name} --check {again.run}", [gate], files)
        return Exit.DONE
    for page in files.pages:
        # Checked before a look at the sealed test is used up.
        check_files(page)
    with Store.open(options["db"], create=False) as store:
        chosen, kept = judges.route(
            store,
            task_name,
            options["run"],
            options["then"],
            agree=options["agree"],
            confidence=options["confidence"],
            field=options["field"],
            reference=options["reference"],
        )
    shown = as_document(chosen)
    write_pages(files.pages, shown)
    print_result("route", routing.as_json(chosen, kept), shown, options["as_json"])
    if files.junit or files.summaries:
        reason = f"a guarantee of {chosen.agree:.0%} at {chosen.confidence:.0%} " + (
            "is shown" if chosen.at is not None else "is not shown at any threshold"
        )
        decide(
            f"judge route {task_name}", [Gate("the guarantee is shown", chosen.at is not None, reason)], files
        )
    # Without files no gate is reported, but the exit code is the same.
    if chosen.at is None:
        return Exit.BELOW
    if kept is not None:
        note(
            f"the accepted units are stored as run {kept}; to give the others to people: "
            + command(
                "annotate batches new NAME",
                chosen.table.task.task_id,
                "--draw",
                "route",
                "--run",
                kept,
                "--annotators",
                "A,B",
            )
        )
    return Exit.DONE


def _gate(again: RouteCheck) -> Gate:
    """Return the gate for a stored route."""
    # A guarantee that few labels can neither confirm nor refute fails, because a build must not depend on
    # it.
    result = "holds" if again.holds else "is broken" if again.is_broken else "is not shown"
    share = "" if not again.units else f", agreement {1 - again.wrong / again.units:.3f}"
    newer = "" if again.since is None else f" judged since {again.since}"
    reason = (
        f"the guarantee of {again.agree:.0%} agreement with {again.reference} {result}: {again.units:,} accepted units{newer} whose labels "
        f"were not used to test the route ({again.questions:,} questions), {again.wrong:,} wrong{share}, p {again.p:.4f}, level {again.level:.4g}"
    )
    return Gate("the guarantee of the route holds", again.holds, reason)
