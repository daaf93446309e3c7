"""judge improve: search for a better judge on the tuning questions, and test it on the sealed test."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from judge.asking import judges
from judge.asking.run import prepare, use_settings_of
from judge.cli.options import judge_options, options_of
from judge.cli.progress import Progress
from judge.cli.run_result import exit_code
from judge.cli.task_options import field_option
from judge.console import db_option, json_option
from judge.errors import Exit, UsageError
from judge.gates import output_option
from judge.labels.words import HELP
from judge.run_options import RunOptions
from judge.store import Store

if TYPE_CHECKING:
    pass


@click.command()
@click.argument("task_name", metavar="TASK")
@judge_options
@click.option(
    "--reference", metavar="WHO", help=f"Reference labels: {HELP}. Default: the reference of the split."
)
@click.option(
    "--anyway",
    is_flag=True,
    help="Search even if the judge agrees with people as well as they agree with each other.",
)
@click.option(
    "--rewriter",
    metavar="MODEL",
    help="Model that rewrites the instructions, based on the judge's errors on the learning questions.",
)
@output_option(
    *(".html", ".yaml", ".yml"),
    gates=False,
    help="Write the attempts (.html) or the recipe (.yaml) to FILE. Repeatable.",
)
@options_of("max", "concurrency", "asked_as", "base_url", "settings")
@field_option
@db_option
@json_option
def improve(task_name: str, model: str | None, **options: Any) -> int:
    """Search for a better judge, and test it on sealed questions.

    \b
    judge improve stance -m openai/gpt-5-mini --reference decided --max 500ktokens
    judge improve stance -m llamacpp/smollm2 -o improved.html

    The task must be split (judge split). The search tries cheap changes first: calibration, answer form,
    label order, guidelines, and few-shot examples from the learning questions. With --rewriter MODEL, that
    model also rewrites the instructions.

    The candidates are compared on the tuning questions. Then the best candidate is compared once with the
    current judge on the sealed test. This use of the sealed test is logged.

    If the lower bound of the difference is above 0, a recipe is written (default: TASK.recipe.yaml). To use
    the recipe, run judge run --recipe FILE. If the instructions changed, a new version of the task is also
    written.

    If the judge already agrees with people as well as they agree with each other, the command does not
    search. Improve the guidelines first, or search with --anyway. Run the same command again to resume.
    """
    from judge.document.formats import write_pages
    from judge.document.terminal import print_result
    from judge.improve.page import as_document, as_json, write_recipe
    from judge.runner.flow import Halted

    pages = [path for path in options["output"].pages if path.suffix.lower() == ".html"]
    recipes = [path for path in options["output"].pages if path not in pages]
    if len(recipes) > 1:
        raise UsageError("--output: specify only one recipe (.yaml)")
    given = RunOptions.from_options(options)
    with Store.open(options["db"], create=False) as store:
        model, given = use_settings_of(store, options["like"], model, given)
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
    # Only a recipe whose gain was shown on the sealed test is worth a file.
    path = write_recipe(outcome, recipes[0] if recipes else None) if outcome.proved else None
    shown = as_document(outcome, path)
    write_pages(pages, shown)
    print_result("improve", as_json(outcome, path), shown, options["as_json"])
    if outcome.refused:
        return Exit.ERROR
    # A limit may end the search after the test: then the result is complete.
    return Exit.INCOMPLETE if outcome.stopped and outcome.proof is None else Exit.DONE
