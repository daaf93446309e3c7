"""Commands that chain runs of several tasks: their options, and two providers opened once."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from judge.asking.run import provider_of
from judge.cli.asked import exit_code
from judge.cli.progress import Progress
from judge.cli.run import of_run
from judge.run_options import RunOptions
from judge.store import Store

if TYPE_CHECKING:
    from judge.runner.flow import Flow
    from judge.runner.plan import Plan

T = TypeVar("T")
chained = of_run(
    "model", "limit", "where", "concurrency", "retry", "max", "max_output_tokens", "temperature", "base_url", "settings",
    "prompts", "db", "as_json",
)  # fmt: skip
"""Gives a command the options of `judge run` that make sense for all the runs that it chains."""


async def in_chain(
    store: Store,
    write: Plan,
    check: Plan,
    options: RunOptions,
    work: Callable[[Flow, Flow], Awaitable[T]],
) -> T | int:
    """What `work` returns with a flow that writes and one that checks (the same one when the model is the
    same), or the exit code of the run that ended the chain."""
    from judge.runner import open_patiently
    from judge.runner.flow import Flow, Halted

    writer = provider_of(write.model, options)
    checker = writer if check.model == write.model else provider_of(check.model, options)
    progress = Progress(sys.stderr)
    try:
        write = await open_patiently(writer, write, store=store)
        if checker is not writer:
            opened = (
                await open_patiently(checker, check.less(*filter(None, [write.opened])), store=store)
            ).opened
            # Its own runs have it in their reports; to the others it is gone.
            check, write = replace(check, opened=opened), write.less(*filter(None, [opened]))
        first = second = Flow(store, writer, write, progress)
        if checker is not writer:
            second = Flow(store, checker, check, progress, first.reports)
        return await work(first, second)
    except Halted as halted:
        progress.end()
        return exit_code(halted.report)
    finally:
        progress.end()
        for provider in (writer, checker):
            await provider.close()
