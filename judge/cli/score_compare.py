"""judge score compare: compare two judges on the same units, or two systems on the rows that both have."""

from __future__ import annotations

from typing import Any

import click

from judge.asking.scores import request_from
from judge.cli.score_gates import worse_gates
from judge.cli.score_options import (
    condition_option,
    dataset_option,
    get_interval_settings,
    interval_options,
    runs_option,
)
from judge.cli.score_output import write_whole
from judge.console import db_option, document, json_option
from judge.document.csv import csv_text
from judge.document.terminal import print_result
from judge.errors import UsageError
from judge.gates import decide, output_option
from judge.papers.engine.papers import PAPERS
from judge.store import Store


@click.command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--axis",
    type=click.Choice(["judge", "system"]),
    default="judge",
    help="Compare judges (or runs), or systems.",
)
@runs_option
@click.option(
    "--paper",
    "papers",
    multiple=True,
    type=click.Choice([*PAPERS]),
    metavar="PAPER",
    help="Compare only this paper's measures. Repeatable.",
)
@click.option("--system", metavar="NAME", help="System whose answers are judged, if there are several.")
@condition_option
@dataset_option
@click.option("--reference", metavar="WHO", help="Also show the agreement of both judges with these labels.")
@interval_options
@click.option(
    "--fail-if-worse",
    multiple=True,
    metavar="MEASURE",
    help="With --axis system: exit with code 5 if B is significantly worse on this measure. Repeatable.",
)
@output_option(
    ".csv",
    ".json",
    help="Write a table (.csv, .json) or the pass/fail checks (.xml, .md) to FILE. Repeatable.",
)
@json_option
@db_option
def compare(first: str, second: str, **options: Any) -> None:
    """Compare every measure of two judges or two systems.

    \b
    judge score compare openai/gpt-5-mini anthropic/claude-sonnet-5
    judge score compare 01K9ZX3M 01K9ZY7Q -o swap.csv
    judge score compare gpt-4 llama-2 --axis system --paper garage
    judge score compare main branch --axis system --paper garage --fail-if-worse factuality

    Judges A and B are either runs of one task, or models with all their runs. Both judges are scored on the
    same units. Units that only one judge labelled are left out, and the coverage shows how many.

    Each difference is B minus A. For its interval, the same questions are resampled for A and B. The output
    lists the measures of the papers first, and then the label shares of each task.

    --fail-if-worse runs a paired test, clustered by question, with Holm's correction for the given measures.
    At --confidence 0.95, at most 2.5 % of CI builds fail if nothing changed.
    """
    from judge.papers.engine.chosen import judges
    from judge.papers.engine.swap import swap, systems
    from judge.papers.engine.swap_document import as_document, list_differences

    on_systems = options["axis"] == "system"
    if on_systems and (options["system"] or options["reference"]):
        raise UsageError(
            "--axis system: A and B name the systems; --system and --reference can be used only to compare judges"
        )
    if options["fail_if_worse"] and not on_systems:
        raise UsageError(
            "--fail-if-worse requires --axis system: a different judge's value is neither better nor worse; "
            "judge compare tests judges against people"
        )
    # Without --paper, every paper is tried, and papers that do not fit the runs are left out.
    papers = {name: PAPERS[name] for name in options["papers"] or PAPERS}
    with Store.open(options["db"], create=False) as store:
        models, runs = judges(store, options["runs"])
        if models and not on_systems:
            raise UsageError(
                "--run cannot name the judges to compare, which are A and B; use it only for runs of other tasks, which both judges share"
            )
        wanted = request_from(options, models=models, runs=runs)
        if on_systems:
            comparison = systems(store, papers, first, second, wanted, **get_interval_settings(options))
        else:
            comparison = swap(
                store,
                papers,
                first,
                second,
                wanted,
                reference=options["reference"],
                **get_interval_settings(options),
            )
    # Checked before anything is printed, because a wrong name is a usage error.
    gates = worse_gates(options["fail_if_worse"], comparison.differences, papers, options["confidence"])
    print_result("score_compare", comparison.as_json(), as_document(comparison), options["as_json"])
    rows = list_differences(comparison)
    for path in options["output"].pages:
        is_json = path.suffix.lower() == ".json"
        write_whole(
            path, document("score_compare", comparison.as_json()) if is_json else csv_text(rows, [*rows[0]])
        )
    decide(f"judge score compare {first} {second}", gates, options["output"])
