"""What a vendor's batches are: posted, found again, looked at, fetched. One file for each vendor.

Every method is one call to the server, or some pages of them, and raises a ProviderError. Nothing is stored here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from judge.errors import ProviderError, Rejected, ServerFault, UsageError
from judge.providers import http
from judge.types import Json

NOT_FOUND = 404
SUFFIXES = {"openai": ("output", "errors"), "anthropic": ("results",)}
"""What files of results a batch has."""


@dataclass(frozen=True, slots=True)
class BatchState:
    """How a batch stands. `status` is the vendor's word; `done` of `total` requests, as far as it says.

    `failed` says why the vendor took none of the requests; `results` names what can be fetched once it has ended, and
    `answered` is how many of its lines are answers.
    """

    status: str
    ended: bool
    done: int | None = None
    total: int | None = None
    failed: str | None = None
    results: Mapping[str, str] | None = None
    answered: int = 0


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """A batch of the account; `mine` is None where it does not say whose it is."""

    batch_id: str
    mine: bool | None
    ended: bool


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


def service_of(vendor: str, base_url: str | None) -> BatchService:
    """The vendor's batches, with the key of the environment. Raises KeyProblem or UsageError."""
    if base_url is None:
        raise UsageError(
            "this job is for a program of yours: run its files, then judge jobs read JOB RESULTS..."
        )
    if vendor == "anthropic":
        from judge.jobs.anthropic import AnthropicBatches

        return AnthropicBatches(base_url)
    from judge.jobs.openai import OpenAIBatches

    return OpenAIBatches(base_url)


def object_in(body: bytes, who: str) -> dict[str, Json]:
    """The JSON object of an answer. Raises ServerFault for anything else."""
    found = http.decoded(body)
    if not isinstance(found, dict):
        raise ServerFault(f"{who}: the answer is no JSON object")
    return found


def text_in(found: Mapping[str, Json], name: str, who: str) -> str:
    """A text of an answer. Raises ServerFault when it has none."""
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise ServerFault(f"{who}: the answer has no '{name}'")
    return value


def refused(
    status: int, headers: Mapping[str, str], body: bytes, who: str, key: str, secret: str
) -> ProviderError:
    """The error for an answer that is none."""
    answer = http.HttpAnswer(status, headers, body)
    said = http.complaint(answer, [secret] if secret else [])
    if status == NOT_FOUND:
        told = f": {said.message}" if said.message else ""
        return Rejected(f"{who}: not found (HTTP 404){told}", status)
    return http.failure(answer, said, who, "", key)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write a file that gets its name when it is whole."""
    partial = path.with_name(path.name + ".part")
    try:
        yield partial
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
