"""Access the batches of one account at a vendor: post, find, look up and fetch them. Each vendor has its own
module.

Every method makes one call to the server, or one call for each page, and raises ProviderError if it fails.
The methods do not store anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from judge.addresses import find_proxy, no_proxy, server
from judge.errors import KeyProblem, ProviderError, Rejected, ServerFault, Unreachable
from judge.providers import http
from judge.types import Json

NOT_FOUND = 404
PAGE = 100
SUFFIXES = {"openai": ("output", "errors"), "anthropic": ("results",)}
"""The kinds of result files of a batch."""
SECONDS = 600.0
"""Time-out of one call. Uploading a file of 200 MB takes a long time."""


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state of a batch.

    `status` is the vendor's own term. According to the vendor, `done` of `total` requests are finished.

    If the vendor rejected the whole batch, `failed` is the reason. When the batch has ended, `results` names
    the files to download, and `answered` is the number of answers in them.
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
    """A batch in the account. `is_ours` is None if the batch does not show which job it belongs to."""

    batch_id: str
    is_ours: bool | None
    ended: bool


class BatchService(ABC):
    """The batches of one account: the steps that differ between vendors, and the parts that are the same for all.

    `title`, `own_url` and `variable` are the vendor's name, its address, and the environment variable that
    contains its key.
    """

    title: str
    own_url: str
    variable: str

    def __init__(self, base_url: str, sends_key: bool, sdk: Any, client: Any, error: type[Exception]) -> None:
        """Connect with the vendor's client.

        `sdk` is the vendor's package, `client` is the client class in it, and `error` is the base class of
        its exceptions. Raises KeyProblem if there is no key for the vendor's own server.
        """
        import ssl

        import httpx2

        self.at = server(base_url)
        # The client reads the proxy from the environment by itself, and ignores one that it does not support.
        proxy = find_proxy(self.at)
        self.key = http.key_from(self.variable) if sends_key else ""
        is_vendor = self.at.url == self.own_url
        if is_vendor and not self.key:
            raise KeyProblem(f"{self.variable} is not set; export it to continue this job")
        self.who = self.title if is_vendor else self.at.url
        self._sdk, self._error, self._transport = sdk, error, httpx2
        # Loading all certificates takes longer than a call to a local server over plain HTTP, which needs
        # none. A proxy may need them.
        plain = self.at.url.startswith("http:") and proxy is None
        self._client = client(
            api_key=self.key or http.NO_KEY,
            base_url=self.at.url,
            # Lost batches are searched for first. A post that the client repeats would be paid twice.
            max_retries=0,
            timeout=SECONDS,
            http_client=sdk.DefaultHttpxClient(
                # A redirect would carry prompts and the key to another server.
                follow_redirects=False,
                verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
                event_hooks={} if sends_key else {"request": [_remove_credentials]},
                mounts=no_proxy(self.at),
            ),
        )

    def upload(self, path: Path, name: str) -> str | None:
        """Upload the file of requests. Return the file's id, or None if the file is uploaded together with
        the batch.
        """
        return None

    @abstractmethod
    def create(self, path: Path, upload_id: str | None, mark: str) -> str:
        """Start a batch, which is the step that costs money.

        Returns the batch's id. `mark` is stored with the batch if the vendor supports that.
        """

    @abstractmethod
    def find(self, mark: str, since: datetime) -> Iterator[FoundBatch]:
        """Yield the batches that were created since `since` and are marked with `mark`.

        If the vendor cannot store marks, yield all batches that were created since then.
        """

    @abstractmethod
    def state(self, batch_id: str) -> BatchState:
        """Return the state of a batch.

        Raises Rejected with status 404 if the server does not know the batch (yet).
        """

    @abstractmethod
    def fetch(self, batch_id: str, state: BatchState, suffix: str, path: Path) -> None:
        """Write one result file. The file is empty if there are no results."""

    def custom_ids(self, batch_id: str) -> Iterator[str]:
        """Yield the custom ids in the results of an ended batch.

        Yield nothing if the vendor stores a mark with each batch, because the mark then identifies the batch.
        """
        return iter(())

    @abstractmethod
    def cancel(self, batch_id: str) -> None:
        """Ask the vendor to stop the batch. Requests that are finished by then have results."""

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def object(self, call: Callable[[], Any]) -> dict[str, Json]:
        """Return the JSON object in the response to a raw client call. Raises ServerFault if the response is
        anything else.
        """
        with self.errors_as_ours():
            body = http.decode_json(call().http_response.content)
        if not isinstance(body, dict):
            raise ServerFault(f"{self.who}: the response is not a JSON object")
        return body

    def iterate_pages(self, call: Callable[..., Any], cursor: str) -> Iterator[tuple[str, dict[str, Json]]]:
        """Yield the (id, object) pairs of a paged list. `cursor` is the parameter name for the last id on a page."""
        after: str | None = None
        while True:
            position: dict[str, Any] = {} if after is None else {cursor: after}
            page = self.object(partial(call, limit=PAGE, **position))
            rows = page.get("data")
            for row in rows if isinstance(rows, list) else []:
                if (name := self.id_in(row)) is not None:
                    yield name, row
                    after = name
            # A server that repeats its last page must not be read for ever.
            if not rows or page.get("has_more") is not True or after == position.get(cursor):
                return

    @contextmanager
    def errors_as_ours(self) -> Iterator[None]:
        """Convert the client's errors to ProviderError."""
        try:
            yield
        # `from None`, because the exceptions of a client may repeat the key in their text.
        except self._sdk.APIStatusError as e:
            raise self._make_refusal(e.response) from None
        except self._sdk.APIConnectionError as e:
            raise self._make_unreachable(e.__cause__ or e) from None
        except self._transport.HTTPError as e:
            raise self._make_unreachable(e) from None
        except self._error as e:
            raise ServerFault(f"{self.who}: {self.clean(str(e))}") from None

    def id_in(self, entry: Json) -> str | None:
        """Return the id of an object from the server, or None if it has none."""
        name = entry.get("id") if isinstance(entry, dict) else None
        # Ids are stored and printed. An id that repeats the key would carry it into the study.
        return name if isinstance(name, str) and name and self.clean(name) == name else None

    def get_new_id(self, entry: Json) -> str:
        """Return the id of a new upload or batch. Raises ServerFault if it has no id that can be stored."""
        name = self.id_in(entry)
        if name is None:
            raise ServerFault(f"{self.who}: the response has no 'id'")
        return name

    def clean(self, text: str) -> str:
        """Return a server's text with the key removed."""
        return http.clean(text, [self.key] if self.key else [])

    def _make_refusal(self, response: Any) -> ProviderError:
        """Return the error that corresponds to a response with an error status."""
        answer = http.HttpAnswer(response.status_code, response.headers, response.read())
        complaint = http.complaint(answer, [self.key] if self.key else [])
        # The unknown object belongs to a job. `http.failure` would report an unknown model instead.
        if answer.status == NOT_FOUND:
            message = f": {complaint.message}" if complaint.message else ""
            return Rejected(f"{self.who}: not found (HTTP 404){message}", NOT_FOUND)
        return http.failure(answer, complaint, self.who, "", self.variable)

    def _make_unreachable(self, error: BaseException) -> Unreachable:
        # Only a connection that was never made is certain to have sent nothing.
        sent = not isinstance(error, self._transport.ConnectError | self._transport.ConnectTimeout)
        reason = self.clean(str(error) or type(error).__name__)
        return Unreachable(f"{self.who}: {'connection lost' if sent else 'cannot connect'}: {reason}", sent)


def _remove_credentials(request: Any) -> None:
    """Remove from an HTTP request the credentials that the vendor's client has read from the environment."""
    for name in list(request.headers):
        # The clients expect their own headers (x-stainless-) in the request when they read the answer.
        if name.lower() not in http.WITHOUT_CREDENTIALS and not name.lower().startswith("x-stainless-"):
            del request.headers[name]
