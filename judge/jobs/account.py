"""One account at a vendor whose batches are used: its connection, its answers, and its errors as ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.request import getproxies

from judge.addresses import no_proxy, server
from judge.errors import KeyProblem, ProviderError, Rejected, ServerFault, Unreachable
from judge.providers import http
from judge.types import Json

NOT_FOUND = 404
PAGE = 100
SECONDS = 600.0
"""For one call: a file of 200 MB takes its time."""


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


class Account:
    """What the vendors' clients have in common: how an answer is read, and their errors as ours.

    `own_url` and `name` are the vendor's; `variable` names the environment variable of its key.
    """

    def __init__(self, base_url: str, own_url: str, name: str, variable: str, sends_key: bool) -> None:
        """Raises KeyProblem for the vendor's own server without a key."""
        self.at = server(base_url)
        self.key = http.key_from(variable) if sends_key else ""
        self._hooks = {} if sends_key else {"request": [_without_credentials]}
        own = self.at.url == own_url
        if own and not self.key:
            raise KeyProblem(f"{variable} is not set: export it to go on with this job")
        self.who = name if own else self.at.url
        self._variable = variable

    def settings(self, sdk: Any, error: type[Exception]) -> dict[str, Any]:
        """What the client of `sdk` is made with: it tries nothing again, since what was lost is looked for first.

        `error` is the vendor's own, of which all others are kinds.
        """
        import ssl

        import httpx2

        self._sdk, self._error, self._transport = sdk, error, httpx2
        # Reading all certificates takes longer than a call to a server of one's own, whose address needs none; a proxy may.
        plain = self.at.url.startswith("http:") and not getproxies()
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True
        return {
            "api_key": self.key or http.NO_KEY,
            "base_url": self.at.url,
            "max_retries": 0,
            "timeout": SECONDS,
            # A redirect would carry prompts and key to another server.
            "http_client": sdk.DefaultHttpxClient(
                follow_redirects=False, verify=verify, event_hooks=self._hooks, mounts=no_proxy(self.at)
            ),
        }

    def object(self, call: Callable[[], Any]) -> dict[str, Json]:
        """The JSON object that a raw call of the client brings."""
        with self.told():
            body = call().http_response.content
        return object_in(body, self.who)

    def listed(self, call: Callable[..., Any], cursor: str) -> Iterator[tuple[str, dict[str, Json]]]:
        """The objects of a list with their ids, page by page; `cursor` names the one after which a page begins."""
        after: str | None = None
        while True:
            place: dict[str, Any] = {} if after is None else {cursor: after}
            page = self.object(partial(call, limit=PAGE, **place))
            rows = page.get("data")
            for row in rows if isinstance(rows, list) else []:
                if (name := self.id_in(row)) is not None:
                    yield name, row
                    after = name
            if not rows or page.get("has_more") is not True or after == place.get(cursor):
                return

    @contextmanager
    def told(self) -> Iterator[None]:
        """The client's errors as ours."""
        try:
            yield
        except self._sdk.APIStatusError as e:
            answer = e.response
            raise refused(
                answer.status_code, answer.headers, answer.read(), self.who, self._variable, self.key
            ) from None
        except self._sdk.APIConnectionError as e:
            raise self._lost(e.__cause__ or e) from None
        except self._transport.HTTPError as e:
            raise self._lost(e) from None
        except self._error as e:
            raise ServerFault(f"{self.who}: {self.clean(str(e))}") from None

    def id_in(self, found: Json) -> str | None:
        """The id of an object that the server tells of; None without one, or where the key stands in its place."""
        name = found.get("id") if isinstance(found, dict) else None
        return name if isinstance(name, str) and name and self.clean(name) == name else None

    def begun(self, found: Json) -> str:
        """The id of what was begun. Raises ServerFault when the answer has none that can be kept."""
        name = self.id_in(found)
        if name is None:
            raise ServerFault(f"{self.who}: the answer has no 'id'")
        return name

    def clean(self, text: str) -> str:
        """A server's words without the key."""
        return http.clean(text, [self.key] if self.key else [])

    def _lost(self, error: BaseException) -> Unreachable:
        sent = not isinstance(error, self._transport.ConnectError | self._transport.ConnectTimeout)
        why = self.clean(str(error) or type(error).__name__)
        return Unreachable(f"{self.who}: {'connection lost' if sent else 'cannot connect'}: {why}", sent)


def _without_credentials(request: Any) -> None:
    """Take out of an HTTP request what the vendor's client found in the environment."""
    for name in list(request.headers):
        # The clients find their own marks (x-stainless-) in the request when they read the answer.
        if name.lower() not in http.WITHOUT_CREDENTIALS and not name.lower().startswith("x-stainless-"):
            del request.headers[name]


def object_in(body: bytes, who: str) -> dict[str, Json]:
    """The JSON object of an answer. Raises ServerFault for anything else."""
    found = http.decoded(body)
    if not isinstance(found, dict):
        raise ServerFault(f"{who}: the answer is no JSON object")
    return found


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
