"""judge route: where a judge may stand alone, with a promise."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from judge.asking import judges
from judge.cli.chosen import check_files, field_option, reference_option, whole_runs
from judge.commands import command
from judge.console import INSIDE, TO_WRITE, db_option, json_option, note, table, tell, write_page
from judge.errors import Exit, UsageError
from judge.gates import Gate, GateFiles, decide, gate_options
from judge.store import Store

if TYPE_CHECKING:
    from judge.suites.route import Route, RouteCheck


@click.command()
@click.argument("task_name", metavar="TASK")
@click.option("--run", "run", metavar="RUN", help="The judge, A.")
@click.option(
    "--check",
    "check",
    metavar="ROUTE",
    help="Test the promise of this kept route on labels that did not test it: exit 5 unless they show it again.",
)
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    help="With --check: only units that the judge labelled on this day or later.",
)
@click.option("--then", metavar="RUN", help="A second judge, B, for what A leaves; people get the rest.")
@click.option(
    "--agree",
    default=0.9,
    type=INSIDE,
    help="How often the accepted labels agree with the reference, at least.",
)
@click.option("--confidence", default=0.95, type=INSIDE, help="Of the promise.")
@click.option("-o", "--output", type=TO_WRITE, help="The curve as a page: FILE.html.")
@click.option(
    "--dry-run", is_flag=True, help="Keep no derived judge. A look at a sealed test is logged all the same."
)
@gate_options
@field_option
@reference_option
@db_option
@json_option
@whole_runs
def route(task_name: str, **options: Any) -> int:
    """Find the units on which a run may stand alone: it agrees with the reference at least so often, as promised.

    \b
    judge route stance --run 01K9ZX3M --agree 0.9 --confidence 0.95
    judge route stance --run 01K9ZX3M --then 01K9ZY7Q --reference decided -o route.html
    annotate batches new rest stance --from-route 01KA1B2C --annotators alice,bob
    judge route stance --check 01KA1B2C --junit route.xml

    A threshold of the judge's confidence is lowered step by step along an order fixed on questions that do not test it,
    until a test of "it is wrong too often" no longer rejects. The accepted units become a derived judge. Where the task is
    split (judge split), the sealed test tests the promise: a look, which is logged. Exit code 5: no threshold holds.
    """
    from judge.suites import route as routing
    from judge.suites.route_page import as_html

    if (options["check"] is None) == (options["run"] is None):
        raise UsageError("name the judge with --run RUN, or a kept route with --check ROUTE")
    files = GateFiles(options["junit"], options["summary"])
    since = None if options["since"] is None else options["since"].date().isoformat()
    if since is not None and options["check"] is None:
        raise UsageError("--since goes with --check ROUTE")
    if options["check"] is not None:
        with Store.open(options["db"], create=False) as store:
            again = routing.check_again(store, options["check"], since)
        gate = _gate(again)
        tell("route-check", again.as_json(), gate.why, options["as_json"])
        sys.stdout.flush()
        decide(f"judge route {task_name} --check {again.run}", [gate], files)
        return Exit.DONE
    check_files(options["output"])
    with Store.open(options["db"], create=False) as store:
        found, kept = judges.route(
            store,
            task_name,
            options["run"],
            options["then"],
            agree=options["agree"],
            confidence=options["confidence"],
            field=options["field"],
            reference=options["reference"],
            keep=not options["dry_run"],
        )
    write_page(options["output"], lambda: as_html(found))
    tell("route", routing.as_json(found, kept), _text(found), options["as_json"])
    if files.junit or files.summary:
        why = f"a promise of {found.agree:.0%} at {found.confidence:.0%} " + (
            "is shown" if found.at is not None else "is shown by no threshold"
        )
        decide(f"judge route {task_name}", [Gate("the promise is shown", found.at is not None, why)], files)
    if found.at is None:
        return Exit.BELOW
    if kept is not None:
        note(
            f"the accepted units are run {kept}; the others for people: "
            + command(
                "annotate batches new NAME",
                found.table.task.task_id,
                "--from-route",
                kept,
                "--annotators",
                "A,B",
            )
        )
    return Exit.DONE


def _gate(again: RouteCheck) -> Gate:
    """A promise that few labels can neither show nor refute fails, too: a build must not rest on it."""
    result = "holds" if again.holds else "is broken" if again.is_broken else "is not shown"
    share = "" if not again.units else f", agreement {1 - again.wrong / again.units:.3f}"
    newer = "" if again.since is None else f" judged since {again.since}"
    why = (
        f"the promise of {again.agree:.0%} agreement with {again.reference} {result}: {again.units:,} accepted units{newer} with labels "
        f"that did not test it ({again.questions:,} questions), {again.wrong:,} wrong{share}, p {again.p:.4f}, level {again.level:.4g}"
    )
    return Gate("the route's promise holds", again.holds, why)


def _text(found: Route) -> str:
    names = [str(run["model"]) for run in found.table.runs]
    share = 1 - found.level
    lines = [
        f"{found.field}: {', then '.join(names)} against {found.truth.word}; agreement of {found.agree:.0%} at least, "
        f"with {share:.4g} confidence"
    ]
    if found.look is not None:
        lines.append(f"look {found.look.look} at the sealed test: tested at {found.level:.4g}")
    rows = [
        [
            "AB"[p.judge],
            "all" if p.threshold < 0 else f"{p.threshold:.3f}",
            f"{p.coverage:.1%}",
            p.n_accepted,
            s.accepted,
            s.wrong,
            "" if s.agreement is None else f"{s.agreement:.3f}",
            "<0.001" if s.p < 0.0005 else f"{s.p:.3f}",
            "holds" if s.holds else "not shown",
        ]
        for p, s in zip(found.places, found.steps, strict=True)
    ]
    head = ["judge", "from", "coverage", "units", "tested", "wrong", "agreement", "p", "promise"]
    lines += ["", table(head, rows), ""]
    if found.at is None:
        lines.append("no threshold holds: nowhere on this path is the promise shown")
    else:
        place = found.places[found.at]
        shown = [
            f"{name} from {'any confidence' if t < 0 else f'{t:.3f}'} on"
            for name, t in zip(names, found.thresholds, strict=True)
            if t is not None
        ]
        lines.append(
            f"accepted: {place.n_accepted:,} of {found.n_units:,} units ({place.coverage:.1%}): {'; '.join(shown)}"
        )
    for m in found.people:
        value = m.reason if m.value is None else m.with_interval
        lines.append(f"people with each other, {m.measure}: {value}, {m.n_units:,} units")
    return "\n".join([*lines, "", *(f"- {text}" for text in found.notes)])
