"""Lines of batch files: write a request in a vendor's format, and read a line of results.

OpenAI (and vLLM's `run-batch`): https://platform.openai.com/docs/api-reference/batch. Anthropic:
https://docs.anthropic.com/en/api/creating-message-batches. Results are untrusted: a line can only set the result
of the request that it names.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from judge.providers import http
from judge.providers.keys import mask_keys
from judge.types import Json, Reply, Request

URL = "/v1/chat/completions"
LIMITS = {"openai": (50_000, 200_000_000), "anthropic": (100_000, 255_990_000)}
"""The maximum number of lines and bytes in one file. Anthropic's 256 MB include a few bytes around the lines."""
LONGEST_LINE = 2 * http.MOST_BYTES
# These errors concern the key, the rate or the server and not the request, so the request may be sent again.
_PASSING = {401, 403, 408, 409, 425, 429, 529}
_NOT_ASKED = {"expired", "canceled", "cancelled"}


class BatchReader(Protocol):
    """The parts of a provider that work without a connection."""

    def body(self, request: Request) -> bytes:
        """Return the request's body, which is the same as in a single call."""

    def parse_answer(self, body: Json, request: Request) -> Reply:
        """Return the reply from the JSON of a successful answer. Raises ValueError if the JSON contains no reply."""

    def refusal(self, complaint: http.Complaint) -> Reply | None:
        """Return a reply if the error reports a refusal or a truncated answer, and None for any other error."""


@dataclass(frozen=True, slots=True)
class ResultLine:
    """The result of one request: a reply, or the reason why there is none.

    `unasked` is True if the request was not processed, because it expired, it was cancelled, or the server
    was busy. Such a request may be sent again. `paid` is True if the call may have been billed although there
    is no reply.
    """

    custom_id: str
    reply: Reply | None = None
    reason: str | None = None
    unasked: bool = False
    paid: bool = False


def request_line(vendor: str, custom_id: str, body: bytes) -> bytes:
    """Return one request as a line."""
    if vendor == "anthropic":
        return b'{"custom_id": "%s", "params": %s}\n' % (custom_id.encode(), body)
    # Joined as bytes, so that a line has exactly the body of a single call.
    head = b'{"custom_id": "%s", "method": "POST", "url": "%s", "body": ' % (custom_id.encode(), URL.encode())
    return head + body + b"}\n"


def custom_id(request_sha: str, attempt: int) -> str:
    """Return the request's id: the first 40 hex digits of its hash, and the attempt number. Anthropic limits
    ids to 64 characters.
    """
    # The id includes the attempt, so that a late result of an earlier job is not stored as the result of a retry.
    return f"{request_sha[:40]}-{attempt}"


def raw_lines(path: Path, keys: Sequence[str] = ()) -> Iterator[tuple[int, Json]]:
    """Yield the number and the JSON of each line that is not empty, one at a time.

    The keys are removed from the lines, because a server may echo them. Lines are counted from 1. The JSON is None if the line is not valid JSON.
    """
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            # The rest of an endless line is read in pieces and dropped, so that it cannot fill the memory.
            if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
                while rest := file.readline(LONGEST_LINE):
                    if rest.endswith(b"\n"):
                        break
                yield number, None
            elif line.strip():
                yield number, http.decode_json(mask_keys(line, keys))


def read_line(vendor: str, row: Json, provider: BatchReader, request: Request) -> ResultLine | None:
    """Return the result in a line, or None if the line does not name a request.

    `request` contains the parts that all requests share.
    """
    name = row.get("custom_id") if isinstance(row, dict) else None
    if not isinstance(name, str) or not name:
        return None
    try:
        outcome = _read_anthropic(row) if vendor == "anthropic" else _read_openai(row)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return ResultLine(name, reason="the result line does not have the vendor's format", paid=True)
    if isinstance(outcome, ResultLine):
        return outcome
    status, body = outcome
    if status == 200:
        try:
            return ResultLine(name, provider.parse_answer(body, request))
        except ValueError as e:
            return ResultLine(name, reason=f"the response {e}", paid=True)
    complaint = http.complaint(http.HttpAnswer(status, {}, json.dumps(body).encode()))
    if (reply := provider.refusal(complaint)) is not None:
        return ResultLine(name, reply)
    reason = f"HTTP {status}" + (f": {complaint.message}" if complaint.message else "")
    return ResultLine(name, reason=reason, unasked=status in _PASSING or status >= 500)


def _read_openai(row: dict[str, Json]) -> ResultLine | tuple[int, Json]:
    response, error = row.get("response"), row.get("error")
    if response is None:
        if not isinstance(error, dict):
            raise ValueError("neither a response nor an error")
        code, message = str(error.get("code") or ""), str(error.get("message") or "")
        return ResultLine(row["custom_id"], reason=http.clean(f"{code}: {message}".strip(": ")), unasked=True)
    status, body = response["status_code"], response.get("body")
    if isinstance(status, bool) or not isinstance(status, int):
        raise ValueError("no HTTP status")
    # vLLM puts the reason beside an empty body.
    return status, error if status != 200 and not body and error else body


def _read_anthropic(row: dict[str, Json]) -> ResultLine | tuple[int, Json]:
    result = row["result"]
    kind = result["type"]
    if kind == "succeeded":
        return 200, result["message"]
    if kind == "errored":
        error = result["error"]
        inner = error.get("error") if isinstance(error.get("error"), dict) else error
        return http.status_of(http.Complaint(0, "", str(inner.get("type")))) or 500, {"error": inner}
    if kind in _NOT_ASKED:
        return ResultLine(row["custom_id"], reason=str(kind), unasked=True)
    raise ValueError("the result type is unknown")
