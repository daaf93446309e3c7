"""Anthropic's message batches: https://docs.anthropic.com/en/api/creating-message-batches.

A batch is posted together with its requests, and the vendor cannot store a mark that identifies it. Only the
results of a batch therefore show which job it belongs to. If the response to a batch's creation was lost, the
results of all later batches are searched for the job's requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from judge.errors import ServerFault
from judge.jobs import results
from judge.jobs.account import BatchService, BatchState, FoundBatch
from judge.providers import bill, http
from judge.providers.anthropic import KEY, OWN_URL
from judge.types import Json

_HEAD, _TAIL = b'{"requests": [', b"]}"


class AnthropicBatches(BatchService):
    """The batches of one Anthropic account."""

    title, own_url, variable = "Anthropic", OWN_URL, KEY

    def __init__(self, base_url: str, sends_key: bool) -> None:
        import anthropic

        super().__init__(base_url, sends_key, anthropic, anthropic.Anthropic, anthropic.AnthropicError)
        self._batches = self._client.messages.batches

    def create(self, path: Path, upload_id: str | None, mark: str) -> str:
        """Start a batch with the file's lines, which are streamed from the disk. Return the batch's id."""
        # Each line end becomes a comma, except the last one.
        size = len(_HEAD) + path.stat().st_size - 1 + len(_TAIL)
        headers = {"Content-Type": "application/json", "Content-Length": str(size)}
        with self.errors_as_ours():
            # Streamed from the disk: the method of the client takes all requests of up to 256 MB as objects.
            response = self._client.post(
                "/v1/messages/batches",
                cast_to=object,
                content=_build_body(path),
                options={"headers": headers},
            )
        return self.get_new_id(response)

    def find(self, mark: str, since: datetime) -> Iterator[FoundBatch]:
        """Yield all batches of the account created since `since`, newest first. The list does not show which
        job a batch belongs to.
        """
        for name, row in self.iterate_pages(self._batches.with_raw_response.list, "after_id"):
            if _time(row.get("created_at")) < since:
                return
            # A batch of this API has no metadata, so only its results show which job it belongs to.
            yield FoundBatch(name, None, row.get("processing_status") == "ended")

    def state(self, batch_id: str) -> BatchState:
        """Return the state of a batch. The counts are 0 until the batch has ended."""
        response = self.object(partial(self._batches.with_raw_response.retrieve, batch_id))
        status = self.clean(str(response.get("processing_status")))
        counts = response.get("request_counts")
        numbers = {
            n: bill.read_count(v) or 0 for n, v in (counts if isinstance(counts, dict) else {}).items()
        }
        total = sum(numbers.values())
        # One of the vendor's servers may report the end before the results are available.
        ended = status == "ended" and isinstance(response.get("results_url"), str)
        return BatchState(
            status, ended, total - numbers.get("processing", 0), total, answered=numbers.get("succeeded", 0)
        )

    def fetch(self, batch_id: str, state: BatchState, suffix: str, path: Path) -> None:
        """Write the results of a batch that has ended."""
        with self._results(batch_id) as answer:
            results.keep(path, answer.iter_bytes(), self.key, self.who)

    def custom_ids(self, batch_id: str) -> Iterator[str]:
        """Yield the custom ids in the results of an ended batch."""
        with self._results(batch_id) as answer:
            for line in answer.iter_lines():
                row = http.decode_json(line)
                if isinstance(row, dict) and isinstance(row.get("custom_id"), str):
                    yield row["custom_id"]

    def cancel(self, batch_id: str) -> None:
        """Ask the vendor to stop the batch."""
        self.object(partial(self._batches.with_raw_response.cancel, batch_id))

    @contextmanager
    def _results(self, batch_id: str) -> Iterator[Any]:
        response = self.object(partial(self._batches.with_raw_response.retrieve, batch_id))
        url = urlsplit(str(response.get("results_url") or ""))
        if url.netloc and url.netloc != urlsplit(self.at.url).netloc:
            # The client would send the key along.
            raise ServerFault(
                f"{self.who}: the results were not fetched, because they are on another server, to which the API key must not be sent"
            )
        with (
            self.errors_as_ours(),
            self._batches.with_streaming_response.results(batch_id) as answer,
        ):
            yield answer


def _build_body(path: Path) -> Iterator[bytes]:
    """Yield `{"requests": [LINE,LINE]}` in parts while reading the file."""
    yield _HEAD
    with path.open("rb") as file:
        for number, line in enumerate(file):
            yield (b"," if number else b"") + line.rstrip(b"\n")
    yield _TAIL


def _time(value: Json) -> datetime:
    """Parse a time. Return the current time if the text is invalid.

    The list of batches is read until a batch is too old. An invalid time must not end the list early.
    """
    try:
        parsed = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return datetime.now(UTC)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
