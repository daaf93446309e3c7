"""judge score: a paper's numbers from the labels that a study has."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.asking.scores import asked
from judge.cli import board as board_cli
from judge.cli.compare import compare
from judge.cli.scored import emit
from judge.cli.scoring import (
    F,
    Papers,
    by_option,
    how,
    interval_options,
    paper_options,
    rows_options,
    systems_option,
)
from judge.cli.thresholds import score_gate_options, score_gates, thresholds
from judge.console import db_option, note, output_options, say, together
from judge.errors import Exit, UsageError
from judge.gates import GateFiles, decide, gate_options
from judge.labels.words import HELP
from judge.store import Store
from judge.suites.paper import Paper
from judge.suites.papers import PAPERS
from judge.suites.steps import Incomplete

if TYPE_CHECKING:
    from judge.suites.board import Axis


@click.group(cls=Papers)
def score() -> None:
    """A paper's measures from the labels of the study, with intervals over questions.

    \b
    judge score garage
    judge score garage -m openai/gpt-5-mini --by density
    judge score raguard --system openai/gpt-5-mini --json
    judge score garage --system mine -o mine.html
    judge score garage --system all -o board.html
    judge score garage --system mine --fail-under factuality=0.7 --on lower --junit gates.xml

    Where runs are missing it prints the commands that make them, and exits with 1; judge suite PAPER types them
    for you. What the papers print stands beside: another judge, other answers, other rows.
    """


def _reference_options(paper: Paper) -> Callable[[F], F]:
    """Whose labels correct the judge's; none for a paper that has another use for them."""
    if not paper.corrects:
        return together()
    return together(
        click.option(
            "--reference",
            "--correct-by",
            "reference",
            metavar="WHO",
            help=f"Correct the judge's means by labels of people (PPI++): {HELP}.",
        ),
        click.option("--batch", help="With --reference: only the labels of this annotation batch."),
    )


def _command(paper: Paper) -> click.Command:
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
        type=click.Choice(["mean", "majority", "each"]),
        help="Several judges: the mean over them, their majority, or each on a leaderboard of judges.",
    )
    @_reference_options(paper)
    @click.option(
        "--rationale",
        type=click.Choice(["none", "before", "after", "quote"]),
        help="Only runs that asked for reasoning so (default: the latest complete ones).",
    )
    @click.option(
        "--partial", is_flag=True, help="Score what there is: units not judged yet lower the coverage."
    )
    @systems_option
    @click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write the score, or the leaderboard, as a page or table: .html, .md, .tex or .csv.",
    )
    @score_gate_options
    @gate_options
    @rows_options
    @paper_options(paper)
    @interval_options
    @by_option
    @db_option
    @output_options
    def command(**options: Any) -> int:
        from judge.suites.result import score as scored

        contenders, axis = _contenders(options)
        limits = thresholds(options["fail_under"], options["fail_over"])
        if limits and contenders:
            raise UsageError(f"{limits[0].option} goes with one system and one judge, not with a leaderboard")
        if limits and options["on"] == "lower" and options["interval"] == "none":
            raise UsageError("--on lower needs intervals: leave out --interval none")
        board_cli.check_target(options["output"])
        with Store.open(options["db"], create=False) as store:
            try:
                if contenders:
                    each = {"models": (), "judges": None} if axis == "judge" else {}
                    wanted = asked(paper, options | each)
                    names = board_cli.names_of(store, paper, wanted, contenders)
                    board_cli.make(store, paper, wanted, names, axis, options)
                    return Exit.DONE
                found = scored(
                    store,
                    paper,
                    asked(paper, options),
                    judges=options["judges"],
                    by=options["by"],
                    reference=options["reference"] if paper.corrects else None,
                    batch=options.get("batch"),
                    **how(options),
                )
            except Incomplete as missing:
                return tell_missing(missing, paper, options["db"])
        measures = [line.measure for line in found.lines if not line.stratum]
        gates = score_gates(limits, measures, options["on"])
        emit(found, options["as_json"], options["as_csv"])
        if options["output"] is not None:
            from judge.suites.board import of_one

            board_cli.write(of_one(found, options["confidence"]), options["output"])
        sys.stdout.flush()
        title = f"judge score {paper.name}" + (f" of {found.system}" if found.system else "")
        decide(title, gates, GateFiles(options["junit"], options["summary"]))
        return Exit.DONE

    return command


def _contenders(options: dict[str, Any]) -> tuple[tuple[str, ...], Axis]:
    """Who is compared, and on which axis; nobody for the score of one. Puts the one system where `asked` looks for it.

    Raises UsageError for options that do not go together.
    """
    systems, models, each = options["systems"], options["models"], options["judges"] == "each"
    options["system"] = systems[0] if len(systems) == 1 and systems != ("all",) else None
    several = len(systems) > 1 or systems == ("all",)
    if each and several:
        raise UsageError("a leaderboard has one axis: several --system, or --judges each with several -m")
    if each and len(models) < 2:
        raise UsageError("--judges each compares several judges: give -m several times")
    if each:
        return models, "judge"
    return (systems, "system") if several else ((), "system")


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
        say(step.command())
    return Exit.ERROR


score.add_command(compare)
score.make = _command
for _paper in PAPERS.values():
    score.add_command(_command(_paper))
