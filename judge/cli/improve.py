"""judge improve: a better way to ask, found on tune and proved on the sealed test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.asking import judges
from judge.asking.run import prepare
from judge.cli.asked import exit_code
from judge.cli.chosen import field_option
from judge.cli.models import provider_options
from judge.cli.progress import Progress
from judge.cli.run import of_run
from judge.cli.tasks import prompts_option
from judge.console import TO_WRITE, db_option, json_option, notes, table, tell, write_page
from judge.errors import Exit, UsageError
from judge.files import PAGE, RECIPE, format_of
from judge.labels.words import HELP
from judge.run_options import RunOptions
from judge.store import Store

if TYPE_CHECKING:
    from judge.improve.found import Improved


@click.command()
@click.argument("task_name", metavar="TASK")
@click.option("-m", "--model", required=True, help="The judge to improve: vendor/model.")
@click.option("--reference", metavar="WHO", help=f"{HELP}. Default: that of the split.")
@click.option(
    "--anyway", is_flag=True, help="Search although the judge agrees with people as well as they do."
)
@click.option(
    "--rewriter",
    metavar="MODEL",
    help="Let this model rewrite the instructions, from what the judge gets wrong on learn.",
)
@click.option(
    "--recipe", type=TO_WRITE, help="Where a proved recipe is written.  [default: TASK.recipe.yaml]"
)
@click.option("-o", "--output", type=TO_WRITE, help="A page with all that was tried: FILE.html.")
@of_run(
    "max_tokens", "max_cost", "prices", "concurrency", "patience", "max_output_tokens", "temperature", "seed"
)
@click.option("--as", "asked_as", metavar="NAME", help="The judge's NAME, where judge run gave it one.")
@field_option
@provider_options
@prompts_option
@db_option
@json_option
def improve(task_name: str, model: str, **options: Any) -> int:
    """Look for a better way to ask MODEL, and prove it on questions that nothing was chosen on.

    \b
    judge improve stance -m openai/gpt-5-mini --reference decided --max-tokens 500000
    judge improve stance -m llamacpp/smollm2 -o improved.html

    The task must be split (judge split). A ladder, cheapest first: calibration, answer mode and label order, guidelines
    shown, examples from learn, and with --rewriter MODEL instructions that it rewrites. Candidates are halved on tune;
    the best and today's task meet once on the sealed test, which is a logged look. Where the lower bound of the
    difference is above 0, a recipe is written, and judge run --recipe FILE makes it a judge; where the instructions
    changed, a new version of the task beside it. Where the judge agrees with people as well as they agree with each
    other, nothing is tried (--anyway): then the guidelines come first. The same command goes on where it was stopped.
    """
    from judge.improve.page import as_html, as_json, written
    from judge.runner.flow import Halted

    for path, endings in ((options["recipe"], RECIPE), (options["output"], PAGE)):
        if path is None:
            continue
        format_of(path, endings)
        if not path.resolve().parent.is_dir():
            raise UsageError(f"{path}: no such folder to write to")
    given = RunOptions.of({**options, "recipe": None})  # here it is what is written
    with Store.open(options["db"], create=False) as store:
        prepared = prepare(task_name, model, given, store)
        rewriter = judges.rewriter_of(options["rewriter"], prepared, given) if options["rewriter"] else None
        try:
            outcome = judges.improve(
                store,
                prepared,
                field=options["field"],
                reference=options["reference"],
                anyway=options["anyway"],
                progress=Progress(sys.stderr),
                rewriter=rewriter,
            )
        except Halted as halted:
            return exit_code(halted.report)
    path = written(outcome, options["recipe"]) if outcome.proved else None
    write_page(options["output"], lambda: as_html(outcome))
    tell("improve", as_json(outcome, path), _text(outcome, path), options["as_json"])
    notes(outcome.notes)
    if outcome.refused:
        return Exit.ERROR
    return Exit.INCOMPLETE if outcome.stopped and outcome.proof is None else Exit.DONE


def _text(found: Improved, path: Path | None) -> str:
    from judge.improve.page import sentences

    head = ["step", "candidate", "kappa", "labelled", "questions of tune", "tokens a unit"]
    rows = [
        [t.rung, t.recipe.words, "undefined" if t.kappa is None else f"{t.kappa:.3f}", t.coverage, t.n_questions,
         None if t.tokens is None else round(t.tokens)]
        for t in found.tried
    ]  # fmt: skip
    heading = f"{found.task.name} with {found.model}, field {found.field}, against {found.reference}"
    return "\n".join([heading, "", table(head, rows), "", *sentences(found, path)])
