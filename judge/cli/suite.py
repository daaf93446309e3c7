"""judge suite: use one model to create all the data that a paper's scores need, and compute the scores."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from judge.asking.scores import INTERVALS, list_readings, paper_of
from judge.asking.suite import ASKING, estimate_suite
from judge.asking.suite import suite as make
from judge.cli import leaderboard, score_options
from judge.cli.estimate import estimate_option
from judge.cli.options import options_of
from judge.cli.progress import Progress
from judge.cli.run_result import exit_code
from judge.cli.score_output import emit_score
from judge.console import db_option, json_option, note, notes, pairs
from judge.document.terminal import emit_rows
from judge.errors import Exit, UsageError
from judge.gates import output_option
from judge.papers.engine.paper import ScoreRequest
from judge.papers.engine.steps import Step
from judge.run_options import RunOptions
from judge.store import Store

if TYPE_CHECKING:
    from judge.runner.estimate import Forecast


def amount(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check that the value is a number of questions or a share such as 10%. Raises BadParameter if it is neither."""
    number = re.fullmatch(r"(\d+(?:\.\d+)?)%|[1-9]\d*", value or "1")
    if number is None or (number[1] is not None and not 0 < float(number[1]) <= 100):
        raise click.BadParameter(
            f"'{value}' must be a whole number of at least 1, or a share such as 10%", ctx, param
        )
    return value


@click.command()
@click.argument("paper_name", metavar="PAPER")
@click.option(
    "-m", "--model", required=True, help="Model that judges. Without --system, it also generates the answers."
)
@score_options.systems_option
@score_options.also_generate_option
@score_options.condition_option
@score_options.dataset_option
@score_options.part_option
@score_options.readings_option
@click.option(
    "-n", "limit", metavar="N|P%", callback=amount, help="Use only the first N questions, or a share (10%)."
)
@click.option(
    "--sample", type=int, metavar="SEED", help="With -n: random seed for drawing a sample of the questions."
)
@options_of(*ASKING)
@estimate_option
@output_option(
    ".html",
    ".md",
    ".tex",
    ".csv",
    ".json",
    gates=False,
    help="Write the result to FILE. The extension selects the format. Repeatable.",
)
@json_option
@db_option
def suite(paper_name: str, model: str, **options: Any) -> int:
    """Start all runs that a PAPER needs, with one model, and score them.

    \b
    judge suite garage -m openai/gpt-5-mini
    judge suite raguard -m llamacpp/smollm2 -n 20 --sample 1
    judge suite mirage -m openai/llama --base-url http://127.0.0.1:8000/v1
    judge suite garage -m openai/gpt-5-mini --system ours --system theirs

    PAPER is the name of a judge score command. That command also prints which runs the paper needs. With
    --paper-option, the runs and scores use another value of one of its options.

    Labels that are already stored are not requested again. Run the same command again to resume. To run the
    steps one by one, use judge answers generate, judge run and judge score.
    """
    paper = paper_of(paper_name)
    source = click.get_current_context().get_parameter_source
    run_settings = RunOptions.from_options({name: options[name] for name in ASKING})
    # Only typed options select the stored runs to resume, because a default is not a choice of the user.
    given = [name for name in ASKING if source(name) is click.core.ParameterSource.COMMANDLINE]
    if options["sample"] is not None and options["limit"] is None:
        raise UsageError("--sample requires -n, the number of questions")
    readings = pairs(options["readings"], "--paper-option")
    wanted = ScoreRequest(
        models=(run_settings.asked_as or model,),
        options=list_readings(paper, readings) if readings else {},
        **{
            name: options[name]
            for name in ("condition", "dataset", "limit", "sample", "parts", "also_generate")
        },
    )
    with Store.open(options["db"], create=False) as store:
        systems = leaderboard.names_of(store, paper, wanted, options["systems"])
        if options["is_estimate"]:
            steps = estimate_suite(store, paper, wanted, systems, model, run_settings, given)
            return _print_estimate(steps, paper.name, options["as_json"])
        # If systems are compared later, their single scores need no intervals.
        score = {"interval": None} if len(systems) > 1 else score_options.get_interval_settings(INTERVALS)
        done = make(
            store,
            paper,
            wanted,
            systems,
            model,
            run_settings,
            given,
            lambda: Progress(sys.stderr),
            lambda text: note(f"suite: {text}"),
            **score,
        )
        notes(done.performed.problems, "not kept")
        if done.performed.stopped is not None:
            code = exit_code(done.performed.stopped)
            # A run that was stopped by a limit ends without an error.
            return code if code != Exit.DONE else Exit.INCOMPLETE
        if len(systems) > 1:
            # Only judge score has these options.
            plain = {"judges": None, "by": None, "reference": None, **INTERVALS}
            leaderboard.make(store, paper, done.request, systems, "system", {**options, **plain})
        else:
            emit_score(done.results[0], options["as_json"], options["output"].pages, INTERVALS["confidence"])
    return Exit.DONE if done.has_every_label else Exit.INCOMPLETE


def _print_estimate(steps: Sequence[tuple[Step, Forecast | None]], paper_name: str, as_json: bool) -> int:
    """Print the cost of the steps that the suite would perform first."""
    rows = [
        {
            "step": step.why,
            "calls": None if forecast is None else forecast.calls,
            "input_tokens": None if forecast is None else forecast.input_tokens,
            "output_tokens": None if forecast is None else forecast.output_tokens,
            "dollars": None if forecast is None else forecast.online,
            "seconds": None if forecast is None else forecast.seconds,
        }
        for step, forecast in steps
    ]
    emit_rows("suite_estimate", rows, list(rows[0]) if rows else ["step"], as_json)
    note(
        "note: later steps depend on the results of these steps and are not included"
        if steps
        else f"nothing is missing: judge score {paper_name} computes the scores without a model call"
    )
    return Exit.DONE
