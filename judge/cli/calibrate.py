"""judge calibrate: calibrate a judge's label probabilities, and store the calibrated judge as a new run."""

from __future__ import annotations

from typing import Any

import click

from judge.asking import judges
from judge.cli.score_options import get_interval_settings, interval_options
from judge.cli.task_options import field_option, reference_option, whole_runs
from judge.commands import command
from judge.console import db_option, emit_json, json_option, notes, print_lines
from judge.document.terminal import show
from judge.store import Store


@click.command()
@click.argument("task_name", metavar="TASK")
@click.option(
    "--run",
    "run_name",
    metavar="RUN",
    help="Calibrate this run (default: the newest run with probabilities).",
)
@click.option(
    "--method",
    type=click.Choice(["batch", "bias", "temperature", "isotonic"]),
    help="Calibration method (default: bias if there are labels, otherwise batch).",
)
@click.option(
    "--prior",
    metavar="uniform|gold|L=0.2,...",
    help="With batch: expected label shares. 'gold' uses the shares in the reference labels.",
)
@field_option
@reference_option
@interval_options
@db_option
@json_option
@whole_runs
def calibrate(task_name: str, **options: Any) -> None:
    """Calibrate a judge's label probabilities.

    The result is tested on questions that were not used to fit it.

    \b
    judge calibrate stance
    judge calibrate stance --method batch --prior support=0.3,refute=0.3,neutral=0.4
    judge calibrate stance --run 01K9ZX3M --method temperature --reference decided

    The 'batch' method needs no labels. It assumes the label shares in --prior. Without --prior, it shows the
    effect of equal shares and stores nothing.

    The other methods are cross-fitted on reference labels, in folds of whole questions. The 'bias' method
    fits a temperature and a bias for each label, and 'temperature' fits only a temperature. The 'isotonic'
    method supports only tasks with two labels. Questions in a sealed test (judge split) are not used.

    The calibrated judge is stored as a new run. Reports list it under its own name. Scores use it only if you
    name it.
    """
    from judge.derive.calibrate_document import as_document

    with Store.open(options["db"], create=False) as store:
        done = judges.calibrate(
            store,
            task_name,
            options["run_name"],
            method=options["method"],
            prior=options["prior"],
            field=options["field"],
            reference=options["reference"],
            **get_interval_settings(options),
        )
    result = done.result
    if options["as_json"]:
        emit_json("calibrate", done.as_json())
        return
    show(as_document(result, done.parent, done.reference))
    notes(result.notes)
    if done.why is not None:
        print_lines(f"not stored: {done.why}")
    else:
        outcome = "already in the study as" if done.known else "stored as"
        print(f"{outcome} run {done.run_id}; next: {command('judge runs show', done.run_id)}")
