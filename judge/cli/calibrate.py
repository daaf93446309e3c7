"""judge calibrate: calibrate a judge's label probabilities, and store the calibrated judge as a new run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judge.asking import judges
from judge.cli.score_options import get_interval_settings, interval_options
from judge.cli.task_options import field_option, reference_option, whole_runs
from judge.commands import command
from judge.console import db_option, emit_json, json_option, notes, print_lines
from judge.document.terminal import table
from judge.store import Store

if TYPE_CHECKING:
    from judge.derive.calibrate import Calibrated


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
    print_lines(_text(result, done.parent, done.reference))
    notes(result.notes)
    if done.why is not None:
        print_lines(f"not stored: {done.why}")
    else:
        outcome = "already in the study as" if done.known else "stored as"
        print(f"{outcome} run {done.run_id}; next: {command('judge runs show', done.run_id)}")


def _text(result: Calibrated, run: Any, word: str | None) -> str:
    lines = [
        f"{result.method} calibration of run {run['run_id']} ({run['model']}, {run['task']}), field {result.field}"
    ]
    if result.fitted is not None:
        f = result.fitted
        lines.append(
            f"fitted on {f.units:,} labels from '{f.reference}' for {len(f.folds):,} questions, cross-fitted by question"
        )
    elif result.method == "batch":
        lines.append(f"fitted without labels; target shares: {result.parameters['prior']}")
    if result.measures:
        interval = f"{result.measures[0][1].confidence * 100:g} % interval"
        head = ["measure", "before", "after", "after - before", interval, "units", "questions"]
        lines += ["", table(head, _rows(result))]
    lines += ["", table(["label", "share before", "after"], [[k, *v] for k, v in result.shares.items()]), ""]
    lines.append(_fit_text(result))
    if result.n_plain:
        lines.append(
            f"{result.n_plain:,} units have a label without probabilities; their labels are unchanged"
        )
    lines += _describe_results(result, word)
    return "\n".join(lines)


def _rows(result: Calibrated) -> list[list[Any]]:
    rows = []
    for before, after, difference in result.measures:
        d = difference.value if difference else None
        # Without an interval, nothing can be tested, but the difference is still shown.
        if difference is None and before.value is not None and after.value is not None:
            d = after.value - before.value
        interval = (
            ""
            if difference is None or difference.low is None
            else f"{difference.low:+.3f} … {difference.high:+.3f}"
        )
        units = (difference or after).n_units
        rows.append(
            [after.title, before.value, after.value, d, interval, units, (difference or after).n_clusters]
        )
    return rows


def _fit_text(result: Calibrated) -> str:
    p = result.parameters
    # An isotonic fit is a curve, without a temperature or a bias.
    if "steps" in p:
        return f"isotonic, {len(p['steps'][0]):,} probabilities"
    # Batch calibration fits no temperature.
    parts = [f"temperature {p['temperature']:.3f}"] if result.method != "batch" else []
    parts += [f"{label} {b:+.3f}" for label, b in p.get("bias", {}).items()]
    return "fitted: " + ", ".join(parts)


def _describe_results(result: Calibrated, word: str | None) -> list[str]:
    """Return sentences that explain the results."""
    if not result.measures:
        return ["there are no labels to compare with, so it is unknown whether calibration helps"]
    sentences = [f"{m.title}: {m.reason}" for pair in result.measures for m in pair[:2] if m.reason]
    s = result.signal
    if s is not None and s.value is not None and s.low is not None:
        sure = s.low > 0
        verdict = "a signal" if sure else "no signal is shown"
        if not sure and result.has_signal:
            # A weak signal that orders the units is still a signal, even if few labels cannot show it.
            verdict = "too few labels to show a signal, but kappa is above 0"
        sentences.append(
            f"the probabilities carry {s.value:+.3f} nats ({s.low:+.3f} … {s.high:+.3f}) of information beyond the label shares: {verdict}"
        )
    kappa = result.measures[0][2]
    # Without a signal nothing is stored, so any change in agreement would be chance.
    if result.has_signal is False:
        return sentences
    if result.repaired:
        sentences.append(f"agreement with '{word}' rose on questions that were not used for fitting")
    elif not result.n_changed:
        sentences.append(f"no label changed on the units labelled by '{word}', so the agreement is unchanged")
    elif kappa is None or kappa.value is None:
        sentences.append(
            f"the change in agreement with '{word}' is undefined: {kappa.reason if kappa else 'no labels'}"
        )
    elif kappa.low is None:
        sentences.append(f"without an interval, it cannot be tested whether agreement with '{word}' rose")
    else:
        verdict = (
            "fell"
            if kappa.high is not None and kappa.high < 0
            else "no improvement shown; the agreement may or may not have risen"
        )
        sentences.append(f"agreement with '{word}': {verdict}")
    if result.method == "batch" and result.parameters["prior"] == "assumed":
        # If a label is rare, equal shares make the judge worse (judge.asking.judges has numbers).
        sentences.append("equal label shares are only an assumption: the result is shown but not recommended")
    return sentences
