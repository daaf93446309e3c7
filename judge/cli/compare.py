"""judge compare: compare runs of one task with one reference on the same units."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import console
from judge.asking import judges
from judge.cli.task_options import check_files, field_option, reference_option, whole_runs
from judge.store import Store

if TYPE_CHECKING:
    from judge.suites.contest import Contest

MOST_TOLD = 3
"""Number of pairs whose errors are printed label by label. The page and --json include every pair."""


@click.command("compare")
@click.argument("task_name", metavar="TASK")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="RUN",
    help="Compare this run. Repeatable (default: all runs of the task).",
)
@click.option(
    "--part",
    type=click.Choice(["open", "learn", "tune", "test", "all"]),
    help="Part of the questions, if the task is split. 'open' means learn and tune. 'test' "
    "and 'all' use the sealed test, and each use is logged.  [default: open]",
)
@click.option(
    "--confidence",
    default=0.95,
    type=console.INSIDE,
    help="Confidence level of the intervals. The sealed test uses its own level instead.",
)
@click.option("-o", "--output", type=console.TO_WRITE, help="Write the comparison to this .html file.")
@click.option(
    "--units", type=console.TO_WRITE, help="Write all shared units with their labels to this .csv file."
)
@field_option
@reference_option
@console.db_option
@console.json_option
@whole_runs
def compare(task_name: str, **options: Any) -> None:
    """Compare runs of a task on the same units.

    The table shows each run's agreement with the reference, its errors, cost and time.

    \b
    judge compare stance --run 01K9ZX3M --run 01K9ZY7Q --reference decided
    judge compare stance --part test -o compared.html

    Agreement is Cohen's kappa on the units that have a reference label and a label from every run. Each pair
    of runs is compared with a paired test, clustered by question. Holm's method corrects the p values for the
    number of pairs. Differences are B minus A.

    If the task is split (judge split), the questions in the sealed test are left out. To use them, add --part
    test. Each use of the sealed test is logged, and the k-th use is tested at the level .05 / 2^k.
    """
    from judge.suites import contest
    from judge.suites.contest_page import as_html

    # Checked first, because the comparison may use up a look at the sealed test.
    check_files(options["output"], options["units"])
    with Store.open(options["db"], create=False) as store:
        comparison = judges.compare(
            store,
            task_name,
            options["runs"],
            part=options["part"],
            confidence=options["confidence"],
            field=options["field"],
            reference=options["reference"],
        )
    console.write_page(options["output"], lambda: as_html(comparison))
    if options["units"] is not None:
        _write_units(options["units"], comparison)
    if options["as_json"]:
        console.emit_json("compare", contest.as_json(comparison))
    else:
        console.print_lines(_text(comparison))


def _write_units(path: Path, contest: Contest) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        for n, row in enumerate(contest.units()):
            if not n:
                writer.writerow(row)
            # Texts come from other people, and a spreadsheet would run a formula in them.
            writer.writerow([console.csv_cell(value) for value in row.values()])
    console.note(f"wrote {path}: {contest.n_shared:,} units")


def _text(contest: Contest) -> str:
    from judge.suites.contest_page import number, span

    where = {None: "", "open": " in learn and tune", "all": ", including the sealed test"}.get(
        contest.part, f" in {contest.part}"
    )
    lines = [
        f"{contest.panel.field} against {contest.reference.text}: {contest.coefficient} on the {contest.n_shared:,} units "
        f"({contest.n_clusters:,} questions{where}) that all runs labelled"
    ]
    if contest.look is not None:
        lines.append(
            f"look {contest.look.look} at the sealed test: tested at {contest.level:.4g}, intervals at {100 * (1 - contest.level):.4g} %"
        )
    rows = [
        [
            # The names of runs are too long for the heads of the tables below.
            chr(ord("A") + n) if n < 26 else str(n + 1),
            c.name,
            "undefined" if c.kappa.value is None else number(c.kappa.value),
            span(c.kappa.low, c.kappa.high),
            number(c.agreement),
            f"{c.n_labelled:,} of {c.n_asked:,}",
            # A single unit costs a fraction of a cent.
            number(None if c.spent.cost is None else 1000 * c.spent.cost),
            number(c.spent.seconds),
            ", ".join(sorted(c.front)),
        ]
        for n, c in enumerate(contest.contenders)
    ]
    names = [row[0] for row in rows]
    interval = f"{100 * contest.contenders[0].kappa.confidence:.6g} % interval"
    head = [
        "",
        "run",
        "kappa",
        interval,
        "agreement",
        "labelled of asked",
        "$ per 1,000",
        "s a unit",
        "front",
    ]
    lines += ["", console.table(head, rows), ""]
    pairs = [
        [
            f"{names[d.second]} - {names[d.first]}",
            "undefined" if (change := d.kappa.difference).value is None else f"{change.value:+.3f}",
            span(d.kappa.difference.low, d.kappa.difference.high, True),
            "" if (p := d.kappa.adjusted) is None else "<0.001" if p < 0.0005 else f"{p:.3f}",
            "shown" if contest.is_shown(d) else "not shown",
            sum(d.only_first),
            sum(d.only_second),
            sum(d.neither),
        ]
        for d in contest.duels
    ]
    heads = ["B - A", "difference", interval, "p (Holm)", "", "only A right", "only B right", "neither"]
    lines.append(console.table(heads, pairs))
    for d in contest.duels[:MOST_TOLD]:
        first, second = names[d.first], names[d.second]
        each = [
            [label, d.both[k], d.only_first[k], d.only_second[k], d.neither[k]]
            for k, label in enumerate(contest.table.domain)
        ]
        head = [contest.reference.word, "both right", f"only {first}", f"only {second}", "neither"]
        lines += ["", f"where {first} and {second} are right", console.table(head, each)]
        if some := contest.examples(d):
            lines.append(f"{first} right, {second} wrong, for example: {', '.join(some)}")
    if len(contest.duels) > MOST_TOLD:
        lines += [
            "",
            f"{len(contest.duels) - MOST_TOLD} more pairs are in --json and on the page (-o FILE.html)",
        ]
    front = [c for c in contest.contenders if c.front]
    lines.append("")
    if front:
        lines.append("- front: no other run reaches this kappa at a lower cost or in less time")
    lines.append(
        "- paired t-test of jackknife pseudo-values, clustered by question, with Holm's correction over all pairs"
    )
    lines += [f"- {text}" for text in contest.notes]
    for d in contest.duels:
        if d.kappa.difference.reason:
            lines.append(f"- {names[d.second]} - {names[d.first]}: {d.kappa.difference.reason}")
    return "\n".join(lines)
