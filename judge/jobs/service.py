"""The interface to a vendor's batches: post, find, look, fetch. Each vendor has one file.

Every method makes one call to the server, or a few pages of calls, and raises ProviderError. It stores
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Protocol

from judge.commands import command
from judge.errors import UsageError
from judge.jobs.account import BatchState, FoundBatch
from judge.permissions import NOTHING_ALLOWED, Allowed, check_server
from judge.store.jobs import Job

SUFFIXES = {"openai": ("output", "errors"), "anthropic": ("results",)}
"""The kinds of result files of a batch."""


class BatchService(Protocol):
    """The batches of one account at a vendor."""

    who: str

    def upload(self, path: Path, name: str) -> str | None:
        """Post the file of requests. Returns its id, or None if it is posted with the batch."""

    def create(self, path: Path, upload_id: str | None, mark: str) -> str:
        """Start a batch, which is the paid step.

        Returns its id. `mark` is stored with it if the vendor supports that.
        """

    def find(self, mark: str, since: datetime) -> Iterator[FoundBatch]:
        """Yield the account's batches since then that may be the one with this mark."""

    def state(self, batch_id: str) -> BatchState:
        """Return the state of a batch.

        Raises Rejected with status 404 if the server does not know it (yet).
        """

    def fetch(self, batch_id: str, state: BatchState, suffix: str, path: Path) -> None:
        """Write one file of results, empty if there are none."""

    def custom_ids(self, batch_id: str) -> Iterator[str]:
        """Yield the custom ids in the results of an ended batch."""

    def cancel(self, batch_id: str) -> None:
        """Ask the vendor to stop the batch; requests that are done by then have results."""

    def close(self) -> None:
        """Close the connections."""


def service_of(study: Path, job: Job, allowed: Allowed = NOTHING_ALLOWED) -> BatchService:
    """Return the batches at the job's server. The key is used only if that server may receive it.

    Raises KeyProblem, and UsageError for a server that the study may not choose (`judge.permissions`).
    """
    base_url = job.base_url
    if base_url is None:
        raise UsageError(
            f"this job is for another program; run its files there, then: {command('judge jobs read', job.job_id, 'RESULTS')}"
        )
    vendor = "anthropic" if job.vendor == "anthropic" else "openai"
    # The address comes from the study, which may be somebody else's.
    sends_key = "key" not in check_server(study, vendor, base_url, {}, allowed)
    if vendor == "anthropic":
        from judge.jobs.anthropic import AnthropicBatches

        return AnthropicBatches(base_url, sends_key)
    from judge.jobs.openai import OpenAIBatches

    return OpenAIBatches(base_url, sends_key)
