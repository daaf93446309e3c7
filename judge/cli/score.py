"""judge score: compute a paper's measures from the labels in a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.asking.scores import request_of
from judge.cli import leaderboard, score_options
from judge.cli.options import Sectioned
from judge.cli.score_compare import compare
from judge.cli.score_gates import score_gate_options, score_gates, thresholds
from judge.cli.score_output import emit_score
from judge.console import combine_options, db_option, json_option, note, print_lines
from judge.errors import Exit, UsageError
from judge.gates import decide, output_option
from judge.papers.engine.paper import Paper
from judge.papers.engine.papers import PAPERS
from judge.papers.engine.steps import Incomplete
from judge.store import Store

if TYPE_CHECKING:
    from judge.papers.engine.board import Axis


@click.group(cls=score_options.Papers)
def score() -> None:
    """Compute a paper's measures from stored labels.

    Each measure has an interval, with the question as the cluster.

    \b
    judge score garage
    judge score garage -m openai/gpt-5-mini --by density
    judge score raguard --system openai/gpt-5-mini --json
    judge score garage --system mine -o mine.html
    judge score garage --system all -o board.html -o board.csv
    judge score garage --system mine --fail-under factuality=0.7 --on lower -o gates.xml

    If runs are missing, the command prints how to start them and exits with 1. judge suite PAPER starts them
    for you. The paper's published numbers are shown for comparison. They come from other judges, answers and data.
    """


def _sections(paper: Paper) -> dict[str, list[str]]:
    """Return the options of a paper's command, in the order in which the help shows them."""
    readings = [o.name.replace("-", "_") for o in paper.options]
    rows = [*(["systems"] if paper.has_systems else []), *(["condition"] if paper.corrects else [])]
    return {
        "What": [*rows, "datasets", "parts", "by", *readings],
        "Runs": ["runs", *(["judges"] if paper.is_judged else []), "partial"],
        "Intervals and correction": [*(["reference"] if paper.corrects else []), "interval", "confidence"],
        "Pass/fail checks": ["fail_under", "fail_over", "on"],
        "Output": [*(["table"] if paper.tables else []), "output", "as_json", "db"],
    }


judges_option = click.option(
    "--judges",
    type=click.Choice(["mean", "each"]),
    help="With several judges: compute their mean, or compare each judge.",
)
reference_option = click.option(
    "--reference",
    metavar="WHO",
    help="Use these human labels to correct the judge's bias (PPI++).",
)


def _command(paper: Paper) -> click.Command:
    @click.command(
        paper.name, help=_help(paper), short_help=paper.title, cls=Sectioned, sections=_sections(paper)
    )
    @combine_options(*([score_options.systems_option] if paper.has_systems else []))
    @combine_options(*([score_options.condition_option] if paper.corrects else []))
    @score_options.datasets_option
    @score_options.part_option
    @score_options.by_option
    @score_options.paper_options(paper)
    @score_options.runs_option
    @combine_options(*([judges_option] if paper.is_judged else []))
    @click.option("--partial", is_flag=True, help="Score incomplete data, and show the coverage.")
    @combine_options(*([reference_option] if paper.corrects else []))
    @score_options.interval_options
    @score_gate_options
    @combine_options(*([score_options.table_option] if paper.tables else []))
    @output_option(
        *([".svg"] if paper.tables else []),
        ".html",
        ".md",
        ".tex",
        ".csv",
        ".json",
        help="Write the result to FILE. The extension selects the format; .xml has the "
        "pass/fail checks. Repeatable.",
    )
    @json_option
    @db_option
    def command(**options: Any) -> int:
        from judge.papers.engine.result import score as scored

        # Papers without systems, judges or a correction do not have these options.
        options = {"systems": (), "judges": None, "reference": None, "table": None, **options}
        options["dataset"] = _only_dataset(options)
        limits = thresholds(options["fail_under"], options["fail_over"])
        if limits and options["on"] == "lower" and options["interval"] == "none":
            raise UsageError("--on lower requires intervals: omit --interval none")
        with Store.open(options["db"], create=False) as store:
            if options["table"]:
                return _print_tables(store, paper, options)
            contenders, axis = _contenders(store, options)
            if limits and contenders:
                raise UsageError(
                    f"{limits[0].option} requires one system and one judge, and cannot be used with a leaderboard"
                )
            try:
                if contenders:
                    # Each judge is a row of the leaderboard, so the request itself names none.
                    each = {"runs": (), "judges": None} if axis == "judge" else {}
                    wanted = request_of(store, paper, options | each)
                    names = leaderboard.names_of(store, paper, wanted, contenders)
                    leaderboard.make(store, paper, wanted, names, axis, options)
                    return Exit.DONE
                result = scored(
                    store,
                    paper,
                    request_of(store, paper, options),
                    judges=options["judges"],
                    by=options["by"],
                    reference=options["reference"] if paper.corrects else None,
                    **score_options.get_interval_settings(options),
                )
            except Incomplete as missing:
                return print_missing(missing, paper, options["db"])
        # A limit applies to the whole data; measures of a stratum have the same names.
        measures = [line.measure for line in result.lines if not line.stratum]
        # Checked before anything is printed, because a wrong name is a usage error.
        gates = score_gates(limits, measures, options["on"])
        emit_score(result, options["as_json"], options["output"].pages, options["confidence"])
        title = f"judge score {paper.name}" + (f" of {result.system}" if result.system else "")
        decide(title, gates, options["output"])
        return Exit.DONE

    return command


def _only_dataset(options: Mapping[str, Any]) -> str | None:
    """Return the value of --dataset. Raises UsageError for several data sets, or for figures, without --table paper."""
    names, table = options["datasets"], options["table"]
    if len(names) > 1 and not table:
        raise UsageError(
            f"--dataset was given {len(names)} times: a score is computed on one data set; --table paper compares several"
        )
    if not table and any(path.suffix == ".svg" for path in options["output"].pages):
        raise UsageError("an .svg file has the figures of --table paper")
    return names[0] if len(names) == 1 else None


def _print_tables(store: Store, paper: Paper, options: dict[str, Any]) -> int:
    """Print the paper's own tables, and write them and the figures to the files."""
    from judge.cli.score_output import emit_tables
    from judge.papers.engine.paper_table import paper_tables

    if options["fail_under"] or options["fail_over"] or options["by"] or options["judges"] == "each":
        raise UsageError("--table paper cannot be used with --fail-under, --fail-over, --by or --judges each")
    wanted = request_of(store, paper, options)
    try:
        # `all` means every system of every data set.
        names = {
            name: None
            for dataset in options["datasets"] or (None,)
            for name in leaderboard.names_of(
                store, paper, replace(wanted, dataset=dataset), options["systems"]
            )
            if options["systems"]
        }
        made = paper_tables(
            store,
            paper,
            wanted,
            list(names),
            options["datasets"],
            **score_options.get_interval_settings(options),
        )
    except Incomplete as missing:
        return print_missing(missing, paper, options["db"])
    emit_tables(made, options["as_json"], options["output"].pages)
    return Exit.DONE


def _contenders(store: Store, options: dict[str, Any]) -> tuple[tuple[str, ...], Axis]:
    """Return the names of the contenders to compare, and their kind: systems or judges.

    If one judge scores one system, there is nothing to compare, so no names are returned. If exactly one
    system is given, it is also stored in `options["system"]`. Raises UsageError for options that cannot be
    combined.
    """
    systems, each = options["systems"], options["judges"] == "each"
    options["system"] = systems[0] if len(systems) == 1 and systems != ("all",) else None
    several = len(systems) > 1 or systems == ("all",)
    if not each:
        return (systems, "system") if several else ((), "system")
    from judge.papers.engine.chosen import judges

    if several:
        raise UsageError(
            "a leaderboard compares either systems or judges: repeat --system, or use --judges each and repeat --run"
        )
    models, _ = judges(store, options["runs"])
    if len(models) < 2:
        raise UsageError("--judges each compares several judges: give --run once for the model of each judge")
    return models, "judge"


def _help(paper: Paper) -> str:
    parts = "\n".join(f"  {part.name:<20} {part.help}" for part in paper.parts)
    return f"{paper.title}.\n\n\b\njudge score {paper.name}\njudge score {paper.name} --part {paper.parts[0].name} --json\n\n\b\nParts:\n{parts}"


def print_missing(missing: Incomplete, paper: Paper, db: Path) -> int:
    """Print the missing steps on stderr and their commands on stdout, which can be piped into a shell."""
    note(f"judge: the score '{paper.name}' is incomplete:")
    for step in missing.steps:
        note(f"  {step.why}")
    note(
        "run these commands, then repeat this one (judge suite does both; --partial scores the existing data):"
    )
    for step in missing.steps:
        print_lines(step.command())
    return Exit.ERROR


score.add_command(compare)
# The papers of plugins get their commands when they are typed.
score.make = _command
for _paper in PAPERS.values():
    score.add_command(_command(_paper))
