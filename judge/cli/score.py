"""judge score: a paper's numbers from the labels that a study has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from judge.cli.compare import compare
from judge.cli.scored import emit
from judge.cli.scoring import F, asked, by_option, how, interval_options, paper_options, rows_options
from judge.console import db_option, note, output_options, visible
from judge.errors import Exit
from judge.labels.words import HELP
from judge.suites.paper import Paper
from judge.suites.papers import PAPERS
from judge.suites.steps import Incomplete


@click.group()
def score() -> None:
    """A paper's measures from the labels of the study, with intervals over questions.

    \b
    judge score garage
    judge score garage -m openai/gpt-5-mini --by density
    judge score raguard --system openai/gpt-5-mini --json

    Where runs are missing it prints the commands that make them, and exits with 1; judge suite PAPER types them
    for you. What the papers print stands beside: another judge, other answers, other rows.
    """


def _reference_options(paper: Paper) -> Callable[[F], F]:
    """Whose labels correct the judge's; none for a paper that has another use for them."""

    def add(function: F) -> F:
        if _has_own(paper):
            return function
        for option in (
            click.option("--batch", help="With --reference: only the labels of this annotation batch."),
            click.option(
                "--reference",
                "--correct-by",
                "reference",
                metavar="WHO",
                help=f"Correct the judge's means by labels of people (PPI++): {HELP}.",
            ),
        ):
            function = option(function)
        return function

    return add


def _has_own(paper: Paper) -> bool:
    return any(option.name == "reference" for option in paper.options)


def _command(paper: Paper) -> click.Command:
    own = _has_own(paper)

    @click.command(paper.name, help=_help(paper), short_help=paper.title)
    @click.option(
        "-m",
        "--model",
        "models",
        multiple=True,
        help="The judge whose runs are read (several with --judges).",
    )
    @click.option(
        "--run", "runs", multiple=True, help="Take this run for its task (several times for several)."
    )
    @click.option(
        "--judges",
        type=click.Choice(["mean", "majority"]),
        help="Several judges: the mean over them, or their majority.",
    )
    @_reference_options(paper)
    @click.option(
        "--rationale",
        type=click.Choice(["none", "before", "after"]),
        help="Only runs that asked for reasoning so (default: the latest complete ones).",
    )
    @click.option(
        "--partial", is_flag=True, help="Score what there is: units not judged yet lower the coverage."
    )
    @rows_options
    @paper_options(paper)
    @interval_options
    @by_option
    @db_option
    @output_options
    def command(**options: Any) -> int:
        from judge.store import Store
        from judge.suites.result import score as scored

        with Store.open(options["db"], create=False) as store:
            try:
                found = scored(
                    store,
                    paper,
                    asked(paper, options),
                    judges=options["judges"],
                    by=options["by"],
                    reference=None if own else options["reference"],
                    batch=None if own else options["batch"],
                    **how(options),
                )
            except Incomplete as missing:
                return tell_missing(missing, paper, options["db"])
        emit(found, options["as_json"], options["as_csv"])
        return Exit.DONE

    return command


def _help(paper: Paper) -> str:
    parts = "\n".join(f"  {part.name:<20} {part.help}" for part in paper.parts)
    return f"{paper.title}.\n\n\b\njudge score {paper.name}\njudge score {paper.name} --part {paper.parts[0].name} --json\n\n\b\nParts:\n{parts}"


def tell_missing(missing: Incomplete, paper: Paper, db: Path) -> int:
    """Print what is missing on stderr, and the commands for it on stdout: they can be piped into a shell."""
    note(f"judge: the score '{paper.name}' is incomplete:")
    for step in missing.steps:
        note(f"  {step.why}")
    note("run these, then ask again (judge suite does both; --partial scores what there is):")
    for step in missing.steps:
        print(visible(step.command(str(db))))
    return Exit.ERROR


score.add_command(compare)
for _paper in PAPERS.values():
    score.add_command(_command(_paper))
