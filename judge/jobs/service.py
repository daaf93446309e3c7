"""Select the client for the batches of a job."""

from __future__ import annotations

from pathlib import Path

from judge.commands import command
from judge.errors import UsageError
from judge.jobs.account import BatchService
from judge.permissions import NOTHING_ALLOWED, Allowed, check_server
from judge.store.jobs import Job

SUFFIXES = {"openai": ("output", "errors"), "anthropic": ("results",)}
"""The kinds of result files of a batch."""


def service_of(study: Path, job: Job, allowed: Allowed = NOTHING_ALLOWED) -> BatchService:
    """Return the client for the batches at the job's server. The key is only used if that server may receive it.

    Raises KeyProblem, and UsageError if the study is not allowed to choose that server (`judge.permissions`).
    """
    base_url = job.base_url
    if base_url is None:
        raise UsageError(
            f"this job is for another program; process its files with that program, then type: {command('judge jobs read', job.job_id, 'RESULTS')}"
        )
    vendor = "anthropic" if job.vendor == "anthropic" else "openai"
    # The address comes from the study, which may have been written by another user.
    sends_key = "key" not in check_server(study, vendor, base_url, {}, allowed)
    if vendor == "anthropic":
        from judge.jobs.anthropic import AnthropicBatches

        return AnthropicBatches(base_url, sends_key)
    from judge.jobs.openai import OpenAIBatches

    return OpenAIBatches(base_url, sends_key)
