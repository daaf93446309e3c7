"""Both vendors' batches on 127.0.0.1, on top of their servers for single calls, and everything that goes wrong there.

https://platform.openai.com/docs/api-reference/batch and https://docs.anthropic.com/en/api/creating-message-batches
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from tests.loopback.anthropic_server import AnthropicServer
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import LoopbackServer, Out, arguments, header, serve

Line = dict[str, Any]


@dataclass
class Batch:
    """One batch: its lines, how often it will still say that it is not done, and its results by kind of file."""

    batch_id: str
    lines: list[Line]
    created: datetime
    late: int
    early: int
    metadata: dict[str, str] = field(default_factory=dict)
    input_file: str = ""
    status: str = "in_progress"
    results: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


class Batching(LoopbackServer):
    """What both have in common.

    `late`: how often a batch is asked for before it has ended. `early`: how often it is answered with 404 before that.
    `outcome(line)`: ok, expired, cancelled, error (400), busy (500) or lost (no line at all). `unordered`: results are
    shuffled. `ends_as`: the status at the end. `listed_late`: how often the list does not show a new batch. `takes`:
    how many lines a batch may have. `asked` counts how often each custom id was in a batch, `paid` how often it was
    answered, `created` the batches.
    """

    key: str | None
    says_sizes = True
    """Whether files of results have a length before they are fetched (OpenAI's have)."""

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self.late = self.early = self.listed_late = 0
        self.unordered = False
        self.ends_as = ""
        self.takes = 100_000
        self.outcome: Callable[[Line], str] = lambda line: "ok"
        self.asked: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()
        self.created = 0
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        self.lost_answers = 0
        """So many batches to come are begun, and the answer that says so is lost."""
        self.not_sent = 0
        """So many posts of a batch to come are lost before they are anything."""

    def stats(self) -> dict[str, int]:
        twice = sum(n > 1 for n in self.paid.values())
        return {
            **super().stats(),
            "batches": self.created,
            "paid": sum(self.paid.values()),
            "paid_twice": twice,
            "asked": sum(self.asked.values()),
        }

    def begin(self, lines: list[Line], **more: Any) -> Out:
        """A batch begun, answered with how it stands."""
        if self.not_sent:
            self.not_sent -= 1
            return Out(b"", 200, close="reset")
        self.created += 1
        self.asked.update(line["custom_id"] for line in lines)
        batch = Batch(f"batch_{self.created}", lines, datetime.now(UTC), self.late, self.early, **more)
        self.batches[batch.batch_id] = batch
        out = Out(json.dumps(self.shown(batch)).encode())
        if self.lost_answers:
            self.lost_answers -= 1
            out.close = "reset"
        return out

    def retrieved(self, batch: Batch) -> Out:
        """How a batch stands, after its time has gone on."""
        if batch.early:
            batch.early -= 1
            return self.error(404, Fault("404", message="no such batch"))
        self.move_on(batch)
        return Out(json.dumps(self.shown(batch)).encode())

    def move_on(self, batch: Batch) -> None:
        """What time does elsewhere: being looked at."""
        if batch.status in ("in_progress", "cancelling", "canceling"):
            batch.late -= 1
            if batch.late < 0:
                # Whoever posted it had the key.
                key, self.key = self.key, None
                self.end(batch)
                self.key = key

    def listed(self) -> list[Batch]:
        """The newest first; new ones may not show yet."""
        if self.listed_late:
            self.listed_late -= 1
            return []
        for batch in self.batches.values():
            self.move_on(batch)
        return sorted(self.batches.values(), key=lambda b: -int(b.batch_id.partition("_")[2]))

    def ordered(self, lines: list[Line]) -> list[Line]:
        return random.Random(7).sample(lines, len(lines)) if self.unordered else lines

    def shown(self, batch: Batch) -> dict[str, Any]:
        raise NotImplementedError

    def end(self, batch: Batch) -> None:
        raise NotImplementedError


class OpenAIBatchServer(Batching, OpenAIServer):
    """OpenAI's files and batches beside its chat completions."""

    def respond(self, method: str, path: str, head: str, payload: bytes) -> Out:
        words = path.removeprefix("/v1/").split("/")
        if words[0] not in ("files", "batches"):
            return super().respond(method, path, head, payload)
        if (refused := self._refused({}, head)) is not None:
            return refused
        match (method, words):
            case ("POST", ["files"]):
                name = f"file_{len(self.files) + 1}"
                self.files[name] = _uploaded(head, payload)
                return Out(json.dumps({"id": name, "object": "file", "purpose": "batch"}).encode())
            case ("GET", ["files", name, "content"]) if name in self.files:
                return Out(self.files[name])
            case ("GET", ["files", name]) if name in self.files and self.says_sizes:
                document = {"id": name, "object": "file", "bytes": len(self.files[name])}
                return Out(json.dumps(document).encode())
            case ("POST", ["batches"]):
                return self._begin(json.loads(payload))
            case ("GET", ["batches"]):
                return Out(json.dumps(_page(self.listed(), head, "after", self.shown)).encode())
            case ("GET", ["batches", name]) if name in self.batches:
                return self.retrieved(self.batches[name])
            case ("POST", ["batches", name, "cancel"]) if name in self.batches:
                self.batches[name].status = "cancelling"
                return Out(json.dumps(self.shown(self.batches[name])).encode())
        return self.error(404, Fault("404", message="no such address"))

    def _begin(self, body: dict[str, Any]) -> Out:
        stored = self.files.get(body["input_file_id"])
        if stored is None:
            return self.error(400, Fault("400", message="no such file"))
        lines = [json.loads(line) for line in stored.splitlines()]
        out = self.begin(lines, metadata=body.get("metadata") or {}, input_file=body["input_file_id"])
        if len(lines) > self.takes:
            self.batches[f"batch_{self.created}"].status = "failed"
        return out

    def end(self, batch: Batch) -> None:
        output, errors = [], []
        for line in batch.lines:
            kind = "cancelled" if batch.status == "cancelling" and batch.counts["ok"] else self.outcome(line)
            batch.counts[kind] += 1
            row: Line = {"id": "batch_req", "custom_id": line["custom_id"], "error": None}
            if kind == "ok":
                answer = self.answer(line["body"], "", None)
                row["response"] = {
                    "status_code": answer.status,
                    "request_id": "r",
                    "body": json.loads(answer.body),
                }
                (output if answer.status == 200 else errors).append(row)
                self.paid[line["custom_id"]] += 1
            elif kind in ("error", "busy"):
                status = 400 if kind == "error" else 500
                row["response"] = {"status_code": status, "body": {"error": {"message": f"injected {kind}"}}}
                errors.append(row)
            elif kind != "lost":
                row |= {"response": None, "error": {"code": f"batch_{kind}", "message": f"the batch {kind}"}}
                errors.append(row)
        for name, rows in (("output", output), ("error", errors)):
            if rows:
                file_id = f"file_{len(self.files) + 1}"
                text = "".join(json.dumps(row) + "\n" for row in self.ordered(rows))
                self.files[file_id] = text.encode()
                batch.results[name] = file_id
        plain = "cancelled" if batch.status == "cancelling" else "completed"
        batch.status = self.ends_as or plain

    def shown(self, batch: Batch) -> dict[str, Any]:
        ended = batch.status not in ("in_progress", "cancelling")
        done = batch.counts["ok"]
        document = {
            "id": batch.batch_id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "status": batch.status,
            "input_file_id": batch.input_file,
            "created_at": int(batch.created.timestamp()),
            "metadata": batch.metadata,
            "request_counts": {
                "total": len(batch.lines),
                "completed": done,
                "failed": sum(batch.counts.values()) - done if ended else 0,
            },
            "output_file_id": batch.results.get("output"),
            "error_file_id": batch.results.get("error"),
        }
        if batch.status == "failed":
            reason = {"code": "too_many", "message": f"more than {self.takes} lines", "line": None}
            document["errors"] = {"object": "list", "data": [reason]}
        return document


class AnthropicBatchServer(Batching, AnthropicServer):
    """Anthropic's message batches beside its messages."""

    def respond(self, method: str, path: str, head: str, payload: bytes) -> Out:
        start = "/v1/messages/batches"
        if not path.startswith(start):
            return super().respond(method, path, head, payload)
        if (refused := self._unknown_key(head)) is not None:
            return refused
        words = [word for word in path[len(start) :].split("/") if word]
        match (method, words):
            case ("POST", []):
                lines = json.loads(payload)["requests"]
                if len(lines) > self.takes:
                    return self.error(413, Fault("413", message=f"more than {self.takes} requests"))
                return self.begin(lines)
            case ("GET", []):
                return Out(json.dumps(_page(self.listed(), head, "after_id", self.shown)).encode())
            case ("GET", [name]) if name in self.batches:
                return self.retrieved(self.batches[name])
            case ("GET", [name, "results"]) if name in self.batches and self.batches[name].results:
                return Out(self.batches[name].results["results"].encode())
            case ("POST", [name, "cancel"]) if name in self.batches:
                if self.batches[name].status == "ended":
                    return self.error(400, Fault("400", message="it has ended"))
                self.batches[name].status = "canceling"
                return Out(json.dumps(self.shown(self.batches[name])).encode())
        return self.error(404, Fault("404", message="Not found"))

    def end(self, batch: Batch) -> None:
        rows = []
        for line in batch.lines:
            kind = "cancelled" if batch.status == "canceling" and batch.counts["ok"] else self.outcome(line)
            batch.counts[kind] += 1
            result: dict[str, Any] = {"type": "canceled" if kind == "cancelled" else kind}
            if kind == "ok":
                answer = self.answer(line["params"], "anthropic-version: 1\r\n" * 2, None)
                message = json.loads(answer.body)
                result = {"type": "succeeded", "message": message}
                if answer.status == 200:
                    self.paid[line["custom_id"]] += 1
                else:
                    result = {"type": "errored", "error": message}
            elif kind in ("error", "busy"):
                inner = {
                    "type": "invalid_request_error" if kind == "error" else "api_error",
                    "message": f"injected {kind}",
                }
                result = {"type": "errored", "error": {"type": "error", "error": inner}}
            if kind != "lost":
                rows.append({"custom_id": line["custom_id"], "result": result})
        batch.results["results"] = "".join(json.dumps(row) + "\n" for row in self.ordered(rows))
        batch.status = "ended"

    def shown(self, batch: Batch) -> dict[str, Any]:
        ended = batch.status == "ended"
        names = {
            "succeeded": "ok",
            "errored": "error",
            "canceled": "cancelled",
            "expired": "expired",
        }
        counts = {name: batch.counts[kind] if ended else 0 for name, kind in names.items()}
        results = f"http://127.0.0.1:{self.port}/v1/messages/batches/{batch.batch_id}/results"
        return {
            "id": batch.batch_id,
            "type": "message_batch",
            "processing_status": batch.status,
            "request_counts": {"processing": 0 if ended else len(batch.lines), **counts},
            "created_at": batch.created.isoformat(),
            "expires_at": batch.created.isoformat(),
            "ended_at": batch.created.isoformat() if ended else None,
            "cancel_initiated_at": None,
            "archived_at": None,
            "results_url": results if ended else None,
        }


def _page(
    batches: list[Batch], head: str, cursor: str, shown: Callable[[Batch], dict[str, Any]]
) -> dict[str, Any]:
    """A page of a list, from the query in the request's first line."""
    query = parse_qs(head.split(" ", 2)[1].partition("?")[2])
    names = [b.batch_id for b in batches]
    start = names.index(query[cursor][0]) + 1 if cursor in query else 0
    size = min(int(query.get("limit", ["20"])[0]), 3)  # small pages, so that there are several
    rows = [shown(b) for b in batches[start : start + size]]
    ids = [row["id"] for row in rows] or [None]
    more = start + size < len(batches)
    return {"object": "list", "data": rows, "first_id": ids[0], "last_id": ids[-1], "has_more": more}


def _uploaded(head: str, payload: bytes) -> bytes:
    """The file in a multipart form."""
    boundary = b"--" + header(head, "content-type").partition("boundary=")[2].strip('"').encode()
    for part in payload.split(boundary):
        about, separator, content = part.partition(b"\r\n\r\n")
        if separator and b'name="file"' in about:
            return content.removesuffix(b"\r\n")
    return b""


def main() -> None:
    """`python -m tests.loopback.batches_server --vendor openai --late 2`"""
    parser = arguments("both vendors' batches on 127.0.0.1")
    parser.add_argument("--vendor", choices=["openai", "anthropic"], default="openai")
    parser.add_argument("--late", type=int, default=0)
    parser.add_argument("--early", type=int, default=0)
    options = parser.parse_args()
    kind = OpenAIBatchServer if options.vendor == "openai" else AnthropicBatchServer
    server = kind(delay=options.delay, port=options.port, record=options.record)
    server.late, server.early = options.late, options.early
    serve(server, options.fault)


if __name__ == "__main__":
    main()
