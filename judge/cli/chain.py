"""Shared code of the commands that chain runs of several tasks.

It adds the options that these commands share, and opens each of their two providers once.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from judge.asking.run import provider_of
from judge.cli.models import model_option
from judge.cli.options import options_of
from judge.cli.progress import Progress
from judge.cli.run_result import exit_code
from judge.console import combine_options, db_option, json_option
from judge.run_options import RunOptions
from judge.store import Store

if TYPE_CHECKING:
    from judge.runner.flow import Flow
    from judge.runner.plan import Plan

T = TypeVar("T")
chained = combine_options(
    model_option(),
    options_of(
        *("limit", "where", "concurrency", "retry", "max", "max_output_tokens", "temperature"),
        *("base_url", "settings", "prompts"),
    ),
    db_option,
    json_option,
)
"""A decorator that adds to a command the options of `judge run` that apply to every run in the chain."""


async def run_in_chain(
    store: Store,
    write: Plan,
    check: Plan,
    options: RunOptions,
    work: Callable[[Flow, Flow], Awaitable[T]],
) -> T | int:
    """Call `work` with two flows: one for the model that writes and one for the model that checks.

    A flow is a sequence of runs. If both models are the same, one flow is used for both.

    Returns the result of `work` or, if a run ended before its last unit, the exit code of that run.
    """
    from judge.runner import open_patiently
    from judge.runner.flow import Flow, Halted

    writer = provider_of(write.model, options)
    checker = writer if check.model == write.model else provider_of(check.model, options)
    progress = Progress(sys.stderr)
    try:
        write = await open_patiently(writer, write, store=store)
        if checker is not writer:
            # One limit for both models: the probes of the first server are already paid for.
            opened = (
                await open_patiently(checker, check.subtract(*filter(None, [write.opened])), store=store)
            ).opened
            # Runs of the second server report its start-up cost themselves. For runs of the first server,
            # that cost reduces the limit.
            check, write = replace(check, opened=opened), write.subtract(*filter(None, [opened]))
        first = second = Flow(store, writer, write, progress)
        if checker is not writer:
            # One list of reports, so that a limit counts the calls of both models.
            second = Flow(store, checker, check, progress, first.reports)
        return await work(first, second)
    except Halted as halted:
        progress.end()
        # The progress line is ended first, because this text is printed below it.
        return exit_code(halted.report)
    finally:
        progress.end()
        for provider in (writer, checker):
            await provider.close()
