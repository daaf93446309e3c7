"""Execute runs in provider batches, or through request files, for `judge run --batch`, `judge run --offline` and Python."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from judge.asking.run import Asking, Ran, add_earlier_cost, finish_run
from judge.errors import UsageError
from judge.run_options import RunOptions
from judge.store import Store

if TYPE_CHECKING:
    from judge.jobs.write import Written
    from judge.runner import Plan


def run_in_batches(
    store: Store,
    asking: Asking,
    options: RunOptions,
    notify: Callable[[str], None] = lambda text: None,
) -> Ran:
    """Request the missing judgements in batches of the provider, and wait for the results.

    `notify` is called with a message at every change of state. If an error ended the run early, the report contains the error.
    Raises StudyError if another process executes the same run, UsageError for options that batches do not support, and
    the errors of `Provider.open`.
    """
    from judge.jobs.whole import Waiting, run_batches
    from judge.store.selection import check_any

    check(asking, options)
    plan = asking.plan
    check_any(store, plan.task, plan.selection)
    with store.run_lock(f"{plan.task.name} {plan.model}"):
        asking = add_earlier_cost(store, asking)
        report = run_batches(
            store, asyncio.run(_probe_provider(store, asking)), asking.provider, Waiting(notify=notify)
        )
        return finish_run(store, asking, report)


def write_files(store: Store, asking: Asking, options: RunOptions, folder: Path) -> Written:
    """Write the pending requests of a run to files, which the user's own program processes.

    Raises the same errors as `run_in_batches`.
    """
    from judge.jobs.offline import Offline
    from judge.jobs.write import write_job
    from judge.store.selection import check_any

    check(asking, options, offline=True)
    plan = asking.plan
    check_any(store, plan.task, plan.selection)
    with store.run_lock(f"{plan.task.name} {plan.model}"):
        # No server is asked here, so probabilities are used only where the user requests codes or words.
        provider = Offline(asking.provider, plan.sampling.answers in ("codes", "words"))
        return write_job(store, plan, provider, folder)


def check(asking: Asking, options: RunOptions, *, offline: bool = False) -> None:
    """Raise UsageError if an option does not work with batches or request files."""
    from judge.jobs.offline import reader_of

    if len(options.base_url) > 1:
        raise UsageError(
            "--base-url can only be repeated for single calls, because a batch is sent to one server"
        )
    reader_of(asking.provider)
    # The vendor's client posts a batch without the headers and the query of single calls.
    of_calls = [n for n in options.settings if n.partition(".")[0] in ("header", "query") or n == "key"]
    if of_calls and not offline:
        raise UsageError(
            f"--option {of_calls[0]} is only supported for single calls: omit this option to use a batch"
        )


async def _probe_provider(store: Store, asking: Asking) -> Plan:
    """Open the provider, probe the model and close the provider. Return the plan with the cost of the probes added.

    The provider is not needed afterwards, because batches use the vendor's client.
    """
    from judge.prompts.render import CODES
    from judge.providers.openai import Provider as OpenAI
    from judge.runner import open_patiently

    try:
        plan = await open_patiently(asking.provider, asking.plan, store=store)
        if isinstance(asking.provider, OpenAI):
            questions = plan.task.spec.questions
            # A batch cannot find out how a server restricts answers to the labels, so single calls do.
            await asking.provider.learn(CODES[: len(plan.task.domain(questions[0].field))])
        return plan
    finally:
        await asking.provider.close()
