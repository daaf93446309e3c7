"""judge run --recipe FILE, where the file names a panel: every member is asked, and what they say is pooled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judge.cli.asked import dry_run, exit_code, finish, traced, watching
from judge.cli.panel import document
from judge.console import emit_json, note, say, visible
from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.asking.run import Asking, Ran, RunOptions


def run_panel(task_name: str, model: str | None, given: RunOptions, options: dict[str, Any]) -> int | None:
    """The run of a panel's recipe; None when the recipe is one judge's."""
    from judge.asking import panel as panels
    from judge.asking import run as asking
    from judge.improve.panel import find
    from judge.store import Store

    assert given.recipe is not None
    panel = find(given.recipe)
    if panel is None:
        return None
    extra = [flag for flag, there in (("-m", model), ("--batch", options["batch"])) if there]
    if extra:
        raise UsageError(
            f"{', '.join(extra)}: a panel's recipe names its models, which are asked in single calls"
        )
    every = panels.members(task_name, panel, given)
    with Store.open(options["db"], create=False) as store:
        every = [asking.in_study(store, own, given) for own in every]
        if options["dry_run"]:
            return max(dry_run(store, own.plan, own.provider, options["as_json"]) for own in every)

        def ask(own: Asking) -> Ran:
            with watching(own.plan, options) as progress, traced(own.provider, own.plan, options["otel"]):
                ran = asking.run(store, own, progress)
            if not options["as_json"]:
                note(visible(f"member {own.plan.model}: run {ran.calibrated or ran.report.run_id}"))
            return ran

        done, made = panels.run(store, panel, every, ask)
        last = done[-1]
        then = asking.what_next(store, last)
    if made is None:
        return finish(last.plan, last.report, options, then)
    if options["as_json"]:
        emit_json("panel", document(made, None, [], []))
    else:
        n, own = int(made.pooled.only.sum()), made.pooled
        say(f"run {made.run_id}: {panel.method} of {len(done)} judges on {n:,} units of {panel.task}")
        print(f"all agree on {own.unanimous:,} of the {own.n_full:,} units that every member labelled")
        if any(ran.report.price is not None for ran in done):
            print(f"cost: ${sum(ran.report.spent.cost for ran in done):.4f}")
        print(f"next: judge runs show {made.run_id} -d {options['db']}")
        print(f"then: {then} -d {options['db']}")
    for said in dict.fromkeys(
        [*(text for ran in done for text in ran.report.remarks(ran.plan)), *made.pooled.notes]
    ):
        note(f"note: {said}")
    return max(exit_code(ran.report) for ran in done)
