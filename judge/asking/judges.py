"""Calibrate, route, compare and improve judges of a task that is given by name, for the command line and Python."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from judge.asking.run import Asking, Stop, provider_of
from judge.errors import UsageError
from judge.providers.base import PairReader
from judge.run_options import RunOptions
from judge.store import Store
from judge.types import Json

if TYPE_CHECKING:
    from judge.derive.calibrate import Calibrated, Prior
    from judge.improve.contest import Contest
    from judge.improve.outcome import Improved
    from judge.improve.rewrite import Rewriter
    from judge.improve.route import Route
    from judge.labels.panel import Panel
    from judge.labels.split import Split
    from judge.prompts.load import Task
    from judge.runner.plan import RunDisplay
    from judge.stats.bootstrap import IntervalOptions


def field_of(task: Task, name: str | None) -> str:
    """Return the requested field, or the task's only field with labels.

    Raises UsageError for an unknown or ambiguous field.
    """
    if name is not None:
        if name not in task.fields:
            raise UsageError(f"task {task.name} has no field '{name}'; it has {', '.join(task.fields)}")
        return name
    labelled = [q.field for q in task.spec.questions if q.labels]
    if len(labelled) != 1:
        raise UsageError(
            f"task {task.name} has {len(labelled)} fields with labels; choose one with --field: {', '.join(task.fields)}"
        )
    return labelled[0]


def panel_of(store: Store, task: Task, field: str, runs: Sequence[str] = ()) -> Panel:
    """Return the labels for the field from people and from the named runs, or from all runs if none is named.

    Labels in sealed tests are included. The caller must either exclude them, or record that the sealed test was used.
    """
    from judge.labels.scope import Scope, read_panel

    with store.reading_once():
        return read_panel(store, Scope(field, task.name, runs=tuple(runs)), distributions=False, opened=True)


def _choose_split(
    store: Store, task_name: str, field: str | None, reference: str | None
) -> tuple[Task, Split | None, str, str | None]:
    """Return the task, its split, the field and the reference. The defaults for field and reference come from the split."""
    from judge.labels import split as parts
    from judge.store import export

    task = export.find_task(store, task_name)
    split = parts.find(store, task)
    name = split.drawn.field if split and not field else field_of(task, field)
    # The parts were balanced by these labels.
    word = reference or (split.drawn.reference if split and split.drawn.field == name else None)
    return task, split, name, word


def compare(
    store: Store,
    task_name: str,
    runs: Sequence[str] = (),
    *,
    part: str | None = None,
    confidence: float = 0.95,
    field: str | None = None,
    reference: str | None = None,
) -> Contest:
    """Compare runs of a task on the same units (`judge compare`). Raises the same errors as `suites.contest.compare`."""
    from judge.improve import contest

    if len(runs) == 1:
        raise UsageError("--run must be given at least twice; omit --run to compare all runs of the task")
    task, split, name, word = _choose_split(store, task_name, field, reference)
    panel = panel_of(store, task, name, runs)
    return contest.compare(
        store, panel, word, split=split, part=part, confidence=confidence, named=bool(runs)
    )


def route(
    store: Store,
    task_name: str,
    run: str,
    then: str | None = None,
    *,
    agree: float = 0.9,
    confidence: float = 0.95,
    field: str | None = None,
    reference: str | None = None,
    keep: bool = True,
) -> tuple[Route, str | None]:
    """Find a route for these runs (`judge route`). Return the route, and the id of the derived run that stores it.

    The id is None if no threshold meets the guarantee, or if `keep` is False. Raises the same errors as
    `suites.route.route`.
    """
    from judge.improve import route as routing

    _, split, name, word = _choose_split(store, task_name, field, reference)
    runs = [run, *([then] if then else [])]
    routed = routing.route(store, name, runs, agree=agree, confidence=confidence, reference=word, split=split)
    kept = routing.keep(routed)[0] if routed.at is not None and keep else None
    return routed, kept


@dataclass(frozen=True, eq=False)
class CalibrationOutcome:
    """The result of `calibrate`. `reference` is the name of the reference labels.

    `run_id` is the id of the stored run. If no run was stored, it is None, and `why` gives the reason. `known` is True
    if the study already had this run.
    """

    result: Calibrated
    parent: Mapping[str, Any]
    reference: str | None
    run_id: str | None
    known: bool
    why: str | None

    def as_json(self) -> dict[str, Json]:
        """Return the result in the documented JSON form."""
        result = self.result
        return {
            "run_id": self.run_id,
            "known": self.known,
            "not_kept": self.why,
            "parent": self.parent["run_id"],
            "task": self.parent["task"],
            "field": result.field,
            "method": result.method,
            "reference": self.reference,
            "parameters": dict(result.parameters),
            "fitted": None
            if result.fitted is None
            else {
                "units": result.fitted.units,
                "questions": len(result.fitted.folds),
                "sha256": result.fitted.sha256,
            },
            "measures": list_comparisons(result),
            "signal": result.signal.as_json() if result.signal else None,
            "has_signal": result.has_signal,
            "improved": result.repaired,
            "shares": {label: {"before": b, "after": a} for label, (b, a) in result.shares.items()},
            "units_without_probabilities": result.n_plain,
            "notes": list(result.notes),
        }


def list_comparisons(result: Calibrated) -> list[dict[str, Json]]:
    """Return the measures before and after calibration, in the documented JSON shape."""
    return [
        {
            "before": before.as_json(),
            "after": after.as_json(),
            "difference": difference.as_json() if difference else None,
        }
        for before, after, difference in result.measures
    ]


def calibrate(
    store: Store,
    task_name: str,
    run: str | None = None,
    *,
    method: str | None = None,
    prior: str | None = None,
    field: str | None = None,
    reference: str | None = None,
    keep: bool = True,
    **options: Unpack[IntervalOptions],
) -> CalibrationOutcome:
    """Calibrate a judge's label probabilities (`judge calibrate`).

    `method` is batch, bias, temperature or isotonic. The default is bias if there are reference labels, and batch
    otherwise. `prior` is only used by batch; it is uniform, gold, or LABEL=SHARE,... Raises the same errors as
    `derive.calibrate.calibrate`.
    """
    from judge import derive
    from judge.derive.calibrate import calibrate as put_right
    from judge.store import export

    task = export.find_task(store, task_name)
    name = field_of(task, field)
    table = derive.read_runs(store, [run or derive.newest(store, task, name)], name)
    parent = table.runs[0]
    if table.task.task_id != task.task_id:
        raise UsageError(f"run {parent['run_id']} belongs to {table.task.name}, not to {task.task_id}")
    truth = derive.reference(store, table, name, reference)
    # Bias calibration needs labels. Batch calibration needs none, but the shares of the labels.
    method = method or ("bias" if truth is not None else "batch")
    shares = prior_of(prior, method, table.task.domain(name))
    result = put_right(table, truth, name, method, shares, **options)
    # A calibration that may do harm is shown, but not stored as a judge.
    reason = _explain_not_stored(result, shares) if keep else "dry run"
    run_id, known = None, False
    if reason is None:
        run_id, known = derive.keep(
            store, table, "calibrated", method, {name: result.made},
            parameters=result.parameters, fitted=result.fitted,
        )  # fmt: skip
    return CalibrationOutcome(result, parent, truth.word if truth else None, run_id, known, reason)


def prior_of(text: str | None, method: str, domain: list[str]) -> Prior | None:
    """Parse the expected shares of the labels. Raises UsageError if they are invalid or do not fit the method."""
    from judge.derive.calibrate import Prior

    if text is None:
        return None
    if method != "batch":
        raise UsageError(
            "--prior requires --method batch, because the other methods estimate the shares from the labels"
        )
    if text in ("uniform", "gold"):
        return Prior(text)
    shares: dict[str, float] = {}
    for part in text.split(","):
        label, separator, share = part.rpartition("=")
        label = label.strip()
        try:
            value = float(share)
        except ValueError:
            value = math.nan
        if not separator or label not in domain or label in shares or not 0 < value < 1:
            raise UsageError(
                f"--prior {text}: must be uniform, gold, or a share between 0 and 1 for each of {', '.join(domain)}, e.g. {domain[0]}=0.2,..."
            )
        shares[label] = value
    # Three equal shares are typed as 0.33 each and add up to 0.99.
    if set(shares) != set(domain) or abs(sum(shares.values()) - 1) > 0.01:
        raise UsageError(f"--prior {text}: the shares of {', '.join(domain)} must add up to 1")
    total = sum(shares.values())
    return Prior("given", tuple(shares[label] / total for label in domain))


def _explain_not_stored(result: Calibrated, prior: Prior | None) -> str | None:
    """Return the reason why the run is not stored, or None if it is stored."""
    if result.has_signal is False:
        return (
            f"{result.method} calibration found no signal: the probabilities carry no information about the reference labels. "
            "--method batch may still help, because it only needs the label shares (--prior)"
        )
    # With a label of 5 %, assuming equal shares lowered kappa from .51 to .19, so nothing is stored if the shares are unknown.
    if result.method == "batch" and prior is None:
        return (
            "the label shares are not known, and batch calibration with wrong shares makes labels worse; to store this judge, "
            "set the shares with --prior (uniform, gold, or LABEL=SHARE,...)"
        )
    if result.fit.why:
        return result.fit.why
    return None


def improve(
    store: Store,
    asking: Asking,
    *,
    field: str | None = None,
    reference: str | None = None,
    anyway: bool = False,
    progress: RunDisplay | None = None,
    rewriter: Rewriter | None = None,
    stop: Stop | None = None,
) -> Improved:
    """Search for a better judge and test it on the sealed test (`judge improve`). Opens and closes the `rewriter`.

    Raises UsageError if the task is not split or has too few labels, and Halted if a run ended before its last unit.
    """
    from judge.improve.improve import Improve
    from judge.runner import open_patiently
    from judge.runner.flow import Flow

    if asking.plan.task.spec.raw:
        raise UsageError(
            f"{asking.plan.task.name} is a raw task, which is sent exactly as written in its file, so there is no prompt to improve"
        )
    name = field_of(asking.plan.task, field)

    async def work(rewriter: Rewriter | None) -> Improved:
        if stop is not None:
            stop.bind()
        try:
            plan = await open_patiently(asking.provider, asking.plan, store=store)
            if rewriter is not None:
                # The limits apply to both models, so the cost of opening the judge is subtracted.
                left = plan.subtract(*filter(None, [plan.opened]))
                opened = (await open_patiently(rewriter.provider, left, rewriter.price, store=store)).opened
                rewriter = dataclasses.replace(rewriter, opened=opened)
            flow = Flow(store, asking.provider, plan, progress)
            return await Improve(store, flow, plan.task, name, reference, rewriter).go(anyway)
        finally:
            if rewriter is not None:
                await rewriter.provider.close()
            if progress is not None:
                progress.end()
            await asking.provider.close()

    # The same lock as `judge run`, because both would request the same units.
    with store.run_lock(f"{asking.plan.task.name} {asking.plan.model}"):
        return asyncio.run(work(rewriter))


def rewriter_of(model: str, asking: Asking, options: RunOptions) -> Rewriter:
    """Return the model that rewrites instructions.

    If this model has the same vendor as the judge, it uses the judge's --base-url and options. Raises UsageError if the
    vendor is unknown or the model only scores pairs of texts. Also raises UsageError if there is a cost limit, but the
    price is unknown.
    """
    from judge.improve.rewrite import Rewriter
    from judge.runner.prices import find, require_price

    plan = asking.plan
    same = model.partition("/")[0] == plan.model.partition("/")[0]
    # A key of one vendor must not be sent to another vendor.
    reached = options if same else dataclasses.replace(options, base_url=(), settings={})
    provider = provider_of(model, reached)
    if isinstance(provider, PairReader):
        raise UsageError(
            f"--rewriter {model}: this model cannot rewrite instructions, because it only scores pairs of texts"
        )
    price = find(model, provider.describe(), plan.prices)
    return Rewriter(model, provider, price if plan.max_cost is None else require_price(model, price))
