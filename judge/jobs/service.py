"""What a vendor's batches are: posted, found again, looked at, fetched. One file for each vendor.

Every method is one call to the server, or some pages of them, and raises a ProviderError. Nothing is stored here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Protocol

from judge.errors import UsageError
from judge.jobs.account import BatchState, FoundBatch
from judge.permissions import NOTHING_ALLOWED, Allowed, check_server
from judge.store.jobs import Job

SUFFIXES = {"openai": ("output", "errors"), "anthropic": ("results",)}
"""What files of results a batch has."""


class BatchService(Protocol):
    """A vendor's batches behind one account."""

    who: str

    def upload(self, path: Path, name: str) -> str | None:
        """Post the file of requests; its id, None where it goes with the batch."""

    def create(self, path: Path, upload_id: str | None, mark: str) -> str:
        """Begin a batch, which is what is paid for; its id. `mark` is kept with it where the vendor can."""

    def find(self, mark: str, since: datetime) -> Iterator[FoundBatch]:
        """The account's batches that were begun since then and may be the one with this mark."""

    def state(self, batch_id: str) -> BatchState:
        """How a batch stands. Raises Rejected with status 404 when the server does not know it (yet)."""

    def fetch(self, batch_id: str, state: BatchState, suffix: str, path: Path) -> None:
        """Write one file of results; an empty one where there is none."""

    def custom_ids(self, batch_id: str) -> Iterator[str]:
        """The requests of an ended batch, by what it says of them."""

    def cancel(self, batch_id: str) -> None:
        """Ask the vendor to stop it; what is done by then has results."""

    def close(self) -> None:
        """Close the connections."""


def service_of(study: Path, job: Job, allowed: Allowed = NOTHING_ALLOWED) -> BatchService:
    """The batches at the server of a job, with the key of the environment where that server may have it.

    Raises KeyProblem, and UsageError for a server that the study may not choose (`judge.permissions`).
    """
    base_url = job.base_url
    if base_url is None:
        raise UsageError(
            "this job is for a program of yours: run its files, then judge jobs read JOB RESULTS..."
        )
    vendor = "anthropic" if job.vendor == "anthropic" else "openai"
    sends_key = "key" not in check_server(study, vendor, base_url, {}, allowed)
    if vendor == "anthropic":
        from judge.jobs.anthropic import AnthropicBatches

        return AnthropicBatches(base_url, sends_key)
    from judge.jobs.openai import OpenAIBatches

    return OpenAIBatches(base_url, sends_key)
