"""judge compare: compare runs of one task with one reference on the same units."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import console
from judge.asking import judges
from judge.cli.task_options import check_files, field_option, reference_option, whole_runs
from judge.document.csv import csv_line
from judge.store import Store

if TYPE_CHECKING:
    from judge.improve.contest import Contest


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
    from judge.document.formats import write_pages
    from judge.document.terminal import print_result
    from judge.improve import contest
    from judge.improve.contest_document import as_document

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
    page = as_document(comparison)
    write_pages([options["output"]] if options["output"] else [], page)
    if options["units"] is not None:
        _write_units(options["units"], comparison)
    print_result("compare", contest.as_json(comparison), page, options["as_json"])


def _write_units(path: Path, contest: Contest) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        for n, row in enumerate(contest.units()):
            file.write(("" if n else csv_line(row)) + csv_line(row.values()))
    console.note(f"wrote {path}: {contest.n_shared:,} units")
