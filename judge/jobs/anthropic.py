"""Anthropic's message batches: https://docs.anthropic.com/en/api/creating-message-batches

A batch is posted with all of its requests and carries no mark of ours. One whose answer was lost is looked for among
those begun since; whose it is shows in its results.
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
from judge.jobs.account import Account, BatchState, FoundBatch
from judge.providers import bill, http
from judge.providers.anthropic import KEY, OWN_URL
from judge.types import Json

_HEAD, _TAIL = b'{"requests": [', b"]}"


class AnthropicBatches:
    """The batches of one account."""

    def __init__(self, base_url: str, sends_key: bool) -> None:
        import anthropic

        self._account = Account(base_url, OWN_URL, "Anthropic", KEY, sends_key)
        self.who = self._account.who
        self._client = anthropic.Anthropic(**self._account.settings(anthropic, anthropic.AnthropicError))
        self._batches = self._client.messages.batches

    def upload(self, path: Path, name: str) -> None:
        """Nothing: the requests go with the batch."""

    def create(self, path: Path, upload_id: str | None, mark: str) -> str:
        """Begin a batch of the file's lines, which are read as they are sent; its id."""
        # As many commas as line ends, but the last one.
        size = len(_HEAD) + path.stat().st_size - 1 + len(_TAIL)
        headers = {"Content-Type": "application/json", "Content-Length": str(size)}
        with self._account.told():
            found = self._client.post(
                "/v1/messages/batches",
                cast_to=object,
                content=_posted(path),
                options={"headers": headers},
            )
        return self._account.begun(found)

    def find(self, mark: str, since: datetime) -> Iterator[FoundBatch]:
        """All batches of the account that were begun since then, the newest first: they do not say whose they are."""
        for name, row in self._account.listed(self._batches.with_raw_response.list, "after_id"):
            if _time(row.get("created_at")) < since:
                return
            yield FoundBatch(name, None, row.get("processing_status") == "ended")

    def state(self, batch_id: str) -> BatchState:
        """How a batch stands; its counts stay 0 until the end."""
        found = self._account.object(partial(self._batches.with_raw_response.retrieve, batch_id))
        status = self._account.clean(str(found.get("processing_status")))
        counts = found.get("request_counts")
        numbers = {n: bill.counted(v) or 0 for n, v in (counts if isinstance(counts, dict) else {}).items()}
        total = sum(numbers.values())
        ended = status == "ended" and isinstance(found.get("results_url"), str)
        return BatchState(
            status, ended, total - numbers.get("processing", 0), total, answered=numbers.get("succeeded", 0)
        )

    def fetch(self, batch_id: str, state: BatchState, suffix: str, path: Path) -> None:
        """Write the results of a batch that has ended."""
        with self._results(batch_id) as answer:
            results.keep(path, answer.iter_bytes(), self._account.key, self.who)

    def custom_ids(self, batch_id: str) -> Iterator[str]:
        """The requests that the results of an ended batch name."""
        with self._results(batch_id) as answer:
            for line in answer.iter_lines():
                row = http.decoded(line)
                if isinstance(row, dict) and isinstance(row.get("custom_id"), str):
                    yield row["custom_id"]

    def cancel(self, batch_id: str) -> None:
        """Ask to stop it."""
        self._account.object(partial(self._batches.with_raw_response.cancel, batch_id))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @contextmanager
    def _results(self, batch_id: str) -> Iterator[Any]:
        found = self._account.object(partial(self._batches.with_raw_response.retrieve, batch_id))
        url = urlsplit(str(found.get("results_url") or ""))
        if url.netloc and url.netloc != urlsplit(self._account.at.url).netloc:
            # The key goes with the call.
            raise ServerFault(f"{self.who}: the results are said to be at another server; not fetched")
        with self._account.told(), self._batches.with_streaming_response.results(batch_id) as answer:
            yield answer


def _posted(path: Path) -> Iterator[bytes]:
    """`{"requests": [LINE,LINE]}`, as it is read."""
    yield _HEAD
    with path.open("rb") as file:
        for number, line in enumerate(file):
            yield (b"," if number else b"") + line.rstrip(b"\n")
    yield _TAIL


def _time(value: Json) -> datetime:
    """A time; what is none counts as now, so that the search goes on."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return datetime.now(UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
