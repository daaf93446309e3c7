"""judge calibrate: a judge whose label probabilities are put right, as a run of its own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from judge.cli.chosen import field_of, field_option, reference_option
from judge.cli.scoring import how, interval_options
from judge.console import db_option, emit_json, json_option, note, table, visible
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.derive.calibrate import Calibrated, Prior
    from judge.types import Measure


@click.command()
@click.argument("task_name", metavar="TASK")
@click.option("--run", "run_name", metavar="RUN", help="Default: the newest asked run with probabilities.")
@click.option(
    "--method",
    type=click.Choice(["batch", "bias", "temperature", "isotonic"]),
    help="Default: bias where there are labels, else batch.",
)
@click.option(
    "--prior",
    metavar="uniform|gold|L=0.2,...",
    help="With batch: the shares of the labels that are to be expected; gold: those of the reference.",
)
@click.option("--dry-run", is_flag=True, help="Show before and after; keep nothing.")
@field_option
@reference_option
@interval_options
@db_option
@json_option
def calibrate(task_name: str, **options: Any) -> int:
    """Put a judge's label probabilities right, and show what that does on questions nothing was fitted on.

    \b
    judge calibrate stance
    judge calibrate stance --method batch --prior support=0.3,refute=0.3,neutral=0.4
    judge calibrate stance --run 01K9ZX3M --method temperature --reference decided

    batch takes no labels: it assumes the shares of --prior, and without them shows what equal shares would give and
    keeps nothing. bias (a temperature and a bias for each label), temperature and isotonic (two labels) are fitted on
    labels, cross-fitted by question; a sealed test (judge split) is left alone. The result is a run beside the one it
    was made from: it stands in reports under its own name, and scores read it only where it is named.
    """
    from judge import derive
    from judge.derive.calibrate import calibrate as put_right
    from judge.store import Store, export

    with Store.open(options["db"], create=False) as store:
        task = export.known_task(store, task_name)
        field = field_of(task, options["field"])
        found = derive.read(store, [options["run_name"] or derive.newest(store, task, field)], field)
        own = found.runs[0]
        if found.task.task_id != task.task_id:
            raise UsageError(f"run {own['run_id']} is one of {found.task.name}, not of {task.task_id}")
        truth = derive.reference(store, found, field, options["reference"])
        method = options["method"] or ("bias" if truth is not None else "batch")
        prior = _prior(options["prior"], method, found.task.domain(field))
        result = put_right(found, truth, field, method, prior, **how(options))
        why = "dry run" if options["dry_run"] else _not_kept(result, prior)
        run_id, known = None, False
        if why is None:
            run_id, known = derive.keep(
                store, found, "calibrated", method, {field: result.made},
                parameters=result.parameters, fitted=result.fitted,
            )  # fmt: skip
    if options["as_json"]:
        emit_json("calibrate", _document(result, own, truth.word if truth else None, run_id, known, why))
        return Exit.DONE
    print(visible(_text(result, own, truth.word if truth else None)))
    for told in result.notes:
        note(f"note: {told}")
    if why is not None:
        print(visible(f"nothing is kept: {why}"))
    else:
        there = "the study has it already, as" if known else "kept as"
        print(f"{there} run {run_id}; next: judge runs show {run_id} -d {options['db']}")
    return Exit.DONE


def _prior(text: str | None, method: str, domain: list[str]) -> Prior | None:
    from judge.derive.calibrate import Prior

    if text is None:
        return None
    if method != "batch":
        raise UsageError("--prior goes with --method batch: the others take the shares from the labels")
    if text in ("uniform", "gold"):
        return Prior(text)
    shares: dict[str, float] = {}
    for part in text.split(","):
        label, found, share = part.rpartition("=")
        label = label.strip()
        try:
            value = float(share)
        except ValueError:
            value = math.nan
        if not found or label not in domain or label in shares or not 0 < value < 1:
            raise UsageError(
                f"--prior {text}: uniform, gold, or a share between 0 and 1 for each of {', '.join(domain)}, as {domain[0]}=0.2,..."
            )
        shares[label] = value
    if set(shares) != set(domain) or abs(sum(shares.values()) - 1) > 0.01:
        raise UsageError(f"--prior {text}: the shares of {', '.join(domain)} together must be 1")
    total = sum(shares.values())
    return Prior("given", tuple(shares[label] / total for label in domain))


def _not_kept(result: Calibrated, prior: Prior | None) -> str | None:
    """Why the run is not kept; None when it is."""
    if result.has_signal is False:
        return "no signal to repair was found: on these labels the probabilities do not tell labels apart, and no calibration changes that"
    if result.method == "batch" and prior is None:
        return (
            "the shares of the labels are not known, and batch calibration with wrong ones does harm; name them "
            "with --prior (uniform, gold, or LABEL=SHARE,...) to keep this judge"
        )
    if result.fit.why:
        return result.fit.why
    return None


def _text(result: Calibrated, run: Any, word: str | None) -> str:
    lines = [
        f"{result.method} calibration of run {run['run_id']} ({run['model']}, {run['task']}), field {result.field}"
    ]
    if result.fitted is not None:
        f = result.fitted
        lines.append(
            f"fitted on {f.units:,} labels of '{f.reference}' in {len(f.folds):,} questions, cross-fitted by question"
        )
    elif result.method == "batch":
        lines.append(f"fitted on no labels; target shares: {result.parameters['prior']}")
    if result.measures:
        interval = f"{result.measures[0][1].confidence * 100:g} % interval"
        head = ["measure", "before", "after", "after - before", interval, "units", "questions"]
        lines += ["", table(head, _rows(result))]
    lines += ["", table(["label", "share before", "after"], [[k, *v] for k, v in result.shares.items()]), ""]
    lines.append(_fit_text(result))
    if result.n_plain:
        lines.append(f"{result.n_plain:,} units have a label without probabilities: theirs stays as it is")
    lines += _said(result, word)
    return "\n".join(lines)


def _rows(result: Calibrated) -> list[list[Any]]:
    rows = []
    for before, after, difference in result.measures:
        d = difference.value if difference else None
        if difference is None and before.value is not None and after.value is not None:
            d = after.value - before.value
        interval = (
            ""
            if difference is None or difference.low is None
            else f"{difference.low:+.3f} … {difference.high:+.3f}"
        )
        units = (difference or after).n_units
        rows.append(
            [_name(after), before.value, after.value, d, interval, units, (difference or after).n_clusters]
        )
    return rows


def _name(m: Measure) -> str:
    return m.measure + (f" ({m.weights})" if m.weights else "")


def _fit_text(result: Calibrated) -> str:
    p = result.parameters
    if "steps" in p:
        return f"isotonic, {len(p['steps'][0]):,} probabilities"
    told = [f"temperature {p['temperature']:.3f}"] if result.method != "batch" else []
    told += [f"{label} {b:+.3f}" for label, b in p.get("bias", {}).items()]
    return "fitted: " + ", ".join(told)


def _said(result: Calibrated, word: str | None) -> list[str]:
    """What the numbers mean, in sentences."""
    if not result.measures:
        return ["no labels to compare with: whether this helps is unknown"]
    said = [f"{_name(m)}: {m.reason}" for pair in result.measures for m in pair[:2] if m.reason]
    s = result.signal
    if s is not None and s.value is not None and s.low is not None:
        sure = s.low > 0
        told = "a signal" if sure else "none is shown"
        if not sure and result.has_signal:
            told = "too few labels to show it, but kappa is above 0"
        said.append(
            f"the probabilities tell {s.value:+.3f} nats ({s.low:+.3f} … {s.high:+.3f}) of a label beyond its share: {told}"
        )
    kappa = result.measures[0][2]
    if result.has_signal is False:
        return said
    if result.repaired:
        said.append(f"agreement with '{word}' rose, on questions that nothing was fitted on")
    elif kappa is None or kappa.value is None:
        said.append(
            f"whether agreement with '{word}' rose is undefined: {kappa.reason if kappa else 'no labels'}"
        )
    elif kappa.low is None:
        said.append(f"whether agreement with '{word}' rose is not told without an interval")
    else:
        told = (
            "fell"
            if kappa.high is not None and kappa.high < 0
            else "no improvement shown: it may have risen or not"
        )
        said.append(
            f"agreement with '{word}': {told}"
            + (" (temperature changes no label)" if result.method == "temperature" else "")
        )
    if result.method == "batch" and result.parameters["prior"] == "assumed":
        said.append("equal shares of the labels are only assumed: shown, not recommended")
    return said


def _document(
    result: Calibrated, run: Any, word: str | None, run_id: str | None, known: bool, why: str | None
) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "known": known,
        "not_kept": why,
        "parent": run["run_id"],
        "task": run["task"],
        "field": result.field,
        "method": result.method,
        "reference": word,
        "parameters": dict(result.parameters),
        "fitted": None
        if result.fitted is None
        else {
            "units": result.fitted.units,
            "questions": len(result.fitted.folds),
            "sha256": result.fitted.sha256,
        },
        "measures": [
            {
                "before": before.as_json(),
                "after": after.as_json(),
                "difference": difference.as_json() if difference else None,
            }
            for before, after, difference in result.measures
        ],
        "signal": result.signal.as_json() if result.signal else None,
        "has_signal": result.has_signal,
        "improved": result.repaired,
        "shares": {label: {"before": b, "after": a} for label, (b, a) in result.shares.items()},
        "units_without_probabilities": result.n_plain,
        "notes": list(result.notes),
    }
