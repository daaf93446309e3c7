"""judge drift: whether a judge has changed behind its name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from judge.asking.judges import field_of
from judge.asking.run import in_study, prepare
from judge.cli.asked import exit_code
from judge.cli.chosen import field_option, reference_option
from judge.cli.models import provider_options
from judge.cli.progress import Progress
from judge.cli.run import of_run
from judge.cli.tasks import prompts_option
from judge.console import db_option, json_option, tell
from judge.errors import Exit, UsageError
from judge.gates import Gate, GateFiles, decide, gate_options
from judge.run_options import RunOptions
from judge.store import Store

if TYPE_CHECKING:
    from judge.asking.anchors import AnchorDraw
    from judge.asking.drift import DriftCheck

ENOUGH = 0.8
"""Power below which the draw says that the set is too small or too noisy."""


@click.command()
@click.argument("task_name", metavar="TASK")
@click.option("-m", "--model", required=True, help="The judge: vendor/model.")
@click.option(
    "--anchors",
    type=click.IntRange(2),
    metavar="N",
    help="Draw N anchors and ask about them for the first time, instead of a check.",
)
@click.option("--again", is_flag=True, help="With --anchors: a new set, although there is one.")
@click.option("--as", "asked_as", metavar="NAME", help="The judge's NAME, where judge run gave it one.")
@of_run(
    *("where", "concurrency", "patience", "max_tokens", "max_cost", "prices", "max_output_tokens"),
    *("temperature", "no_temperature", "seed", "answers", "rationale", "label_order", "orders", "guidelines"),
    "examples",
)
@gate_options
@field_option
@reference_option
@provider_options
@prompts_option
@db_option
@json_option
def drift(task_name: str, model: str, anchors: int | None, again: bool, **options: Any) -> int:
    """Ask about a fixed set of units again, and test whether MODEL still answers as it did.

    \b
    judge drift stance -m openai/gpt-5-mini --anchors 100
    judge drift stance -m openai/gpt-5-mini --junit drift.xml

    --anchors draws the set once, units with labels by people first, and asks about each three times. A check asks three times
    again, always anew, and compares: an exact test by unit, which holds for every judge and every noise. "The judge changed"
    ends with 5. At most 5 % of sets see a false alarm in 52 checks. The settings must be those of the draw. Beside the
    test stand the change in agreement with people, and another model name or system_fingerprint of the server.
    """
    from judge.asking import anchors as anchor_sets
    from judge.asking import drift as drifting

    if again and anchors is None:
        raise UsageError("--again goes with --anchors N")
    given = RunOptions.of(options)
    files = GateFiles(options["junit"], options["summary"])
    if anchors is not None and (files.junit or files.summary):
        raise UsageError("--junit and --summary go with a check: leave --anchors out")
    with Store.open(options["db"], create=False) as store:
        prepared = in_study(store, prepare(task_name, model, given, store), given)
        field = field_of(prepared.plan.task, options["field"])
        progress = Progress(sys.stderr)
        if anchors is not None:
            drawn = anchor_sets.draw(store, prepared, field, anchors, again=again, progress=progress)
            if not isinstance(drawn, anchor_sets.AnchorDraw):
                return exit_code(drawn)
            tell(
                "drift",
                {**_about(prepared, field), "drawn": drawn.as_json()},
                _drawn(drawn),
                options["as_json"],
            )
            return Exit.DONE
        result = drifting.check(store, prepared, field, reference=options["reference"], progress=progress)
        if not isinstance(result, drifting.DriftCheck):
            return exit_code(result)
    tell("drift", {**_about(prepared, field), "checked": result.as_json()}, _text(result), options["as_json"])
    sys.stdout.flush()
    decide(f"judge drift {prepared.plan.task.name} with {prepared.plan.model}", [_gate(result)], files)
    return Exit.DONE


def _about(asked: Any, field: str) -> dict[str, Any]:
    return {"task": asked.plan.task.name, "model": asked.plan.model, "field": field}


def _drawn(drawn: AnchorDraw) -> str:
    from judge.asking.anchors import CHANGED, REPLIES

    lines = [
        f"set {drawn.number}: {drawn.units:,} anchors, {drawn.labelled:,} of them with a label by people or gold, {REPLIES} replies each",
        f"reply noise {drawn.noise:.1%}: a check finds a change on {CHANGED:.0%} of the anchors with probability {drawn.power:.2f} (simulated)",
    ]
    if drawn.power < ENOUGH:
        lines.append(
            f"that is less than {ENOUGH:g}: draw more anchors (--anchors N --again), or lower the temperature"
        )
    return "\n".join(lines)


def _text(found: DriftCheck) -> str:
    from judge.asking.anchors import REPLIES

    lines = [
        f"set {found.number}, check {found.check}: {found.units:,} anchors, {REPLIES} replies each"
        + (f"; {found.left_out:,} left out, because calls about them failed" if found.left_out else ""),
        f"replies that differ from those of the beginning: {found.apart[1]:.1%} of the pairs (reply noise then: {found.apart[0]:.1%})",
    ]
    if found.changed:
        some = ", ".join(f"{unit} ({first} -> {now})" for unit, first, now in found.changed[:5])
        more = f" and {len(found.changed) - 5:,} more" if len(found.changed) > 5 else ""
        lines.append(f"{len(found.changed):,} anchors have another usual label now: {some}{more}")
    d = found.difference
    if d.value is None:
        lines.append(f"change in agreement with people: undefined: {d.reason}")
    else:
        span = "" if d.low is None or d.high is None else f" ({d.low:+.3f} … {d.high:+.3f})"
        lines.append(
            f"agreement with {found.reference}: {found.first.value:.3f}, now {found.now.value:.3f}, "
            f"change {d.value:+.3f}{span} on {d.n_units:,} anchors"
        )
    return "\n".join([*lines, *(f"- {text}" for text in found.notes)])


def _gate(found: DriftCheck) -> Gate:
    name = "the judge has not changed"
    if found.p is None:
        return Gate(name, False, "whether the judge changed is undefined: no anchor has all its replies")
    verdict = "the judge changed" if found.is_changed else "no change shown"
    p = "p < 0.0001" if found.p < 0.0001 else f"p {found.p:.4f}"
    d = found.difference
    detail = ""
    if d.value is not None and d.low is not None and d.high is not None:
        detail = f"; agreement with people {d.value:+.3f} ({d.low:+.3f} … {d.high:+.3f})"
    return Gate(
        name, not found.is_changed, f"{verdict} ({p}, level {0.05 / 52:.5f}, {found.units:,} anchors){detail}"
    )
