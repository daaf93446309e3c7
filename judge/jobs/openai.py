"""Batches of OpenAI and compatible servers: https://platform.openai.com/docs/api-reference/batch.

A file is uploaded (free of charge), and then a batch refers to it (paid). The batch's metadata contain a
mark, which identifies the batch if the response to its creation was lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from judge.errors import Rejected, ServerFault
from judge.jobs import lines, results
from judge.jobs.account import BatchService, BatchState, FoundBatch
from judge.providers import bill
from judge.providers.openai import KEY, OWN_URL
from judge.types import Json

MARK = "adjudge"
_ENDED = {"completed", "failed", "expired", "cancelled"}


class OpenAIBatches(BatchService):
    """The batches of one OpenAI account."""

    title, own_url, variable = "OpenAI", OWN_URL, KEY

    def __init__(self, base_url: str, sends_key: bool) -> None:
        import openai

        super().__init__(base_url, sends_key, openai, openai.OpenAI, openai.OpenAIError)

    def upload(self, path: Path, name: str) -> str:
        """Upload a request file. Return the id that the server gave it."""
        with path.open("rb") as file:
            response = self.object(
                lambda: self._client.files.with_raw_response.create(file=(name, file), purpose="batch")
            )
        return self.get_new_id(response)

    def create(self, path: Path, upload_id: str | None, mark: str) -> str:
        """Start a batch for an uploaded file. Return the batch's id."""
        response = self.object(
            lambda: self._client.batches.with_raw_response.create(
                input_file_id=upload_id or "",
                endpoint=lines.URL,
                completion_window="24h",
                metadata={MARK: mark},
            )
        )
        return self.get_new_id(response)

    def find(self, mark: str, since: datetime) -> Iterator[FoundBatch]:
        """Yield the batches with this mark that were created since `since`, newest first."""
        for name, row in self.iterate_pages(self._client.batches.with_raw_response.list, "after"):
            if _seconds(row.get("created_at")) < since.timestamp():
                return
            marks = row.get("metadata")
            if isinstance(marks, dict) and marks.get(MARK) == mark:
                yield FoundBatch(name, True, str(row.get("status")) in _ENDED)

    def state(self, batch_id: str) -> BatchState:
        """Return the state of a batch."""
        response = self.object(lambda: self._client.batches.with_raw_response.retrieve(batch_id))
        status = self.clean(str(response.get("status")))
        counts = response.get("request_counts")
        counts = counts if isinstance(counts, dict) else {}
        done, failed, total = (bill.read_count(counts.get(n)) for n in ("completed", "failed", "total"))
        files = {
            suffix: name
            for suffix, field in (("output", "output_file_id"), ("errors", "error_file_id"))
            if isinstance(name := response.get(field), str) and name
        }
        # The vendor may name the output file a moment after the batch has ended.
        ended = status in _ENDED and (not done or "output" in files)
        # A failed batch may still have files with answers, which are read as usual.
        reason = (
            self.clean(_explain_refusal(response.get("errors"))) if status == "failed" and not files else None
        )
        return BatchState(
            status, ended, (done or 0) + (failed or 0), total, reason, files, answered=done or 0
        )

    def fetch(self, batch_id: str, state: BatchState, suffix: str, path: Path) -> None:
        """Write the output file or the error file of a batch."""
        name = (state.results or {}).get(suffix)
        if name is None:
            # An empty file shows later that there was nothing to fetch.
            path.write_bytes(b"")
            return
        size = self._size(name)
        with (
            self.errors_as_ours(),
            self._client.files.with_streaming_response.content(name) as answer,
        ):
            results.keep(path, answer.iter_bytes(), self.key, self.who, size)

    def _size(self, name: str) -> int | None:
        """Return the size of a file in bytes, or None if the server does not report it."""
        try:
            response = self.object(lambda: self._client.files.with_raw_response.retrieve(name))
        # Compatible servers may lack this route. The size is only a check of the download.
        except (Rejected, ServerFault):
            return None
        return bill.read_count(response.get("bytes"))

    def cancel(self, batch_id: str) -> None:
        """Ask the vendor to stop the batch."""
        self.object(lambda: self._client.batches.with_raw_response.cancel(batch_id))


def _seconds(value: Json) -> float:
    """Return a timestamp in seconds since 1970."""
    # An invalid time counts as later than any other, so that the search does not stop at it.
    return float("inf") if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def _explain_refusal(errors: Json) -> str:
    """Return up to three reasons why the vendor refused a request file."""
    rows = errors.get("data") if isinstance(errors, dict) else None
    reasons = [
        str(row.get("message")) + (f" (line {row['line']})" if row.get("line") is not None else "")
        for row in (rows if isinstance(rows, list) else [])[:3]
        if isinstance(row, dict)
    ]
    return "; ".join(reasons) or "the vendor gave no reason"
