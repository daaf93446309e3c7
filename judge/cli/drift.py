"""judge drift: test whether the judge behind a model name has changed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from judge.asking.judges import field_of
from judge.asking.run import complete_asking, prepare, task_of, use_settings_of
from judge.cli.options import judge_options, options_of
from judge.cli.progress import Progress
from judge.cli.run_result import exit_code
from judge.cli.task_options import field_option, reference_option
from judge.console import db_option, json_option
from judge.document.cells import difference, interval
from judge.document.terminal import print_result
from judge.errors import Exit, UsageError
from judge.gates import Gate, decide, output_option
from judge.run_options import RunOptions
from judge.store import Store

if TYPE_CHECKING:
    from judge.asking.drift import DriftCheck


@click.command()
@click.argument("task_name", metavar="TASK")
@judge_options
@click.option(
    "--anchors",
    type=click.IntRange(2),
    metavar="N",
    help="Draw N anchor units and label them for the first time, without a test.",
)
@click.option("--again", is_flag=True, help="With --anchors: draw a new set even if a set exists.")
@options_of("where", "concurrency", "max", "patience", "asked_as", "base_url", "settings")
@output_option(help="Write the result to a .xml (JUnit) or .md file. Repeatable.")
@field_option
@reference_option
@db_option
@json_option
def drift(task_name: str, model: str | None, anchors: int | None, again: bool, **options: Any) -> int:
    """Test whether a judge still gives the same labels as before.

    \b
    judge drift stance -m openai/gpt-5-mini --anchors 100
    judge drift stance -m openai/gpt-5-mini --output drift.xml

    First, --anchors draws a fixed set of units and labels each unit three times. Units with human labels are
    drawn first. Use --run RUN to take the settings of a stored run.

    Every later check labels the same set three more times, with the same settings. It compares the old and
    the new labels with an exact test by unit, which is valid for every judge. If the judge changed, the exit
    code is 5. Over 52 checks, at most 5 % of sets cause a false alarm.

    The output also shows the change in agreement with human labels. If the server reports a new model name or
    system_fingerprint, the output names it.
    """
    from judge.asking import anchors as anchor_sets
    from judge.asking import drift as drifting
    from judge.asking.drift_document import as_document, describe_draw

    if again and anchors is None:
        raise UsageError("--again requires --anchors N")
    given = RunOptions.from_options(options)
    files = options["output"]
    # A draw tests nothing, and a build would regard its file as a passed test.
    if anchors is not None and (files.junit or files.summaries):
        raise UsageError("--output writes the result of a check, so it cannot be combined with --anchors")
    with Store.open(options["db"], create=False) as store:
        run = options["like"]
        if run is None and model is not None and anchors is None:
            # A check uses the settings of the draw.
            run = anchor_sets.newest_run(store, task_of(store, task_name, None), given.asked_as or model)
        model, given = use_settings_of(store, run, model, given)
        # Checked before a call is made: examples and passages may be missing in this study.
        prepared = complete_asking(store, prepare(task_name, model, given, store), given)
        field = field_of(prepared.plan.task, options["field"])
        progress = Progress(sys.stderr)
        if anchors is not None:
            drawn = anchor_sets.draw(store, prepared, field, anchors, again=again, progress=progress)
            if not isinstance(drawn, anchor_sets.AnchorDraw):
                return exit_code(drawn)
            print_result(
                "drift",
                {**_about(prepared, field), "drawn": drawn.as_json()},
                describe_draw(drawn),
                options["as_json"],
            )
            return Exit.DONE
        result = drifting.check(store, prepared, field, reference=options["reference"], progress=progress)
        if not isinstance(result, drifting.DriftCheck):
            return exit_code(result)
    print_result(
        "drift",
        {**_about(prepared, field), "checked": result.as_json()},
        as_document(result),
        options["as_json"],
    )
    decide(f"judge drift {prepared.plan.task.name} with {prepared.plan.model}", [_gate(result)], files)
    return Exit.DONE


def _about(prepared: Any, field: str) -> dict[str, Any]:
    return {"task": prepared.plan.task.name, "model": prepared.plan.model, "field": field}


def _gate(result: DriftCheck) -> Gate:
    name = "the judge has not changed"
    # An undefined test fails, because a build must not pass if every call failed.
    if result.p is None:
        return Gate(name, False, "the test is undefined: no anchor has all its replies")
    verdict = "the judge changed" if result.is_changed else "no change shown"
    p = "p < 0.0001" if result.p < 0.0001 else f"p {result.p:.4f}"
    d = result.difference
    detail = ""
    if d.value is not None and d.low is not None and d.high is not None:
        detail = f"; agreement with people {difference(d.value)} ({interval(d.low, d.high)})"
    return Gate(
        name,
        not result.is_changed,
        # The 52 checks of a year of weekly builds share a level of 5 %.
        f"{verdict} ({p}, level {0.05 / 52:.5f}, {result.units:,} anchors){detail}",
    )
