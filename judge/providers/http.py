"""Code that the HTTP providers share: connections, and errors that contain no secrets.

The vendors' clients supply keys, headers and base URLs, but the requests are sent by this module. The
clients' response models would take several times as much CPU time as the call itself.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import aiohttp
from yarl import URL

from judge.addresses import ServerAddress, find_proxy
from judge.errors import (
    KeyProblem,
    ProviderError,
    RateLimited,
    Rejected,
    ServerFault,
    Unreachable,
)
from judge.providers import waits
from judge.providers.connections import SpacedConnector, TimeLimit, is_new
from judge.providers.keys import mask_keys
from judge.providers.options import LookedUpOptions
from judge.types import Json

LONGEST_MESSAGE = 300
CONNECT_SECONDS = 15.0
MOST_BYTES = 8 * 2**20
"""The maximum size of a response body in bytes.

The largest replies, with probabilities, are about 100 kB, so a larger response cannot be a model's reply.
"""
# Without a key, the vendors' clients raise an error or search for a key in other places.
NO_KEY = "no-key-was-given"
WITHOUT_CREDENTIALS = frozenset(
    ("host", "accept", "accept-encoding", "connection", "content-type", "content-length", "transfer-encoding",
     "user-agent", "anthropic-version", "anthropic-beta")
)  # fmt: skip
"""The only headers in a request without credentials."""
# Matches keys and masked keys (`sk-pr****abcd`), because vendors repeat a rejected key in their messages.
_KEY_LIKE = re.compile(r"\b(?:sk|rk|pk)-[\w\-*.]{6,}|\bBearer\s+\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One HTTP response with its body. The names in `headers` are case-insensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Complaint:
    """An error reported by a server: a printable message, and the vendor's error code and parameter name."""

    status: int
    message: str
    code: str = ""
    param: str = ""


class Connection(ABC):
    """A connection to a server. The errors that the connection raises never contain its secrets."""

    def __init__(self, secrets: Sequence[str | None]) -> None:
        self._secrets = tuple(s for s in secrets if s)

    async def post(self, path: str, body: bytes) -> HttpAnswer:
        """Send JSON bytes in a POST request. Return the response without this connection's keys.

        Raises Unreachable if the response is incomplete or is a web page, and ServerFault if it is not valid HTTP.
        """
        return self._mask(await self._send("POST", path, body))

    async def get(self, path: str) -> HttpAnswer:
        """Send a GET request. The result and the errors are those of `post`."""
        return self._mask(await self._send("GET", path, None))

    def _mask(self, answer: HttpAnswer) -> HttpAnswer:
        """Remove the keys from a response. A reply is then stored and printed without them."""
        return replace(answer, body=mask_keys(answer.body, self._secrets))

    @abstractmethod
    async def _send(self, method: str, path: str, body: bytes | None) -> HttpAnswer:
        """Send one HTTP request."""

    @abstractmethod
    async def close(self) -> None:
        """Close all connections. Safe to call twice."""

    def complaint(self, answer: HttpAnswer) -> Complaint:
        """Parse an error response, and remove this connection's secrets from it."""
        return complaint(answer, self._secrets)

    def clean(self, text: str) -> str:
        """Remove this connection's secrets from a string."""
        return clean(text, self._secrets)


def complaint(answer: HttpAnswer, secrets: Sequence[str] = ()) -> Complaint:
    """Parse the body of an error response.

    The body is `{"error": {message, code, param}}`, a variant of this form, or plain text.
    """
    body = decode_json(answer.body)
    if isinstance(body, list) and len(body) == 1:
        # Google wraps its error bodies in a list.
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = error if isinstance(error, dict) else {}
    text = fields.get("message") or fields.get("detail") or error
    if body is None:
        text = answer.body[:2000].decode("utf-8", "replace")
    code = fields.get("code") or fields.get("type") or ""
    shown = text if isinstance(text, str) else json.dumps(text)
    return Complaint(answer.status, clean(shown, secrets), str(code), str(fields.get("param") or ""))


def clean(text: str, secrets: Sequence[str] = ()) -> str:
    """Return a message from a server as one short line without keys or control characters."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    text = _KEY_LIKE.sub("[key]", text)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"


class Wire(Connection):
    """A pool of connections to one server. Every request has the same headers."""

    def __init__(
        self,
        address: ServerAddress,
        headers: Mapping[str, str],
        timeout: float,
        secrets: Sequence[str],
        looked_up: LookedUpOptions,
    ) -> None:
        self._at, self._timeout, self._query = address, timeout, looked_up.query
        super().__init__((*secrets, address.password, *looked_up.secrets))
        # Every call needs the address, so it is parsed only once.
        self._urls: dict[str, URL] = {}
        if address.login is not None:
            # Credentials in the URL are meant for this server, so they override the key.
            headers = {k: v for k, v in headers.items() if k.lower() not in ("authorization", "x-api-key")}
            login = base64.b64encode(f"{address.login}:{address.password or ''}".encode()).decode()
            headers["Authorization"] = f"Basic {login}"
            self._secrets += (login,)
        # Headers that the user sets explicitly override both.
        headers = {
            **{k: v for k, v in headers.items() if k.lower() not in looked_up.headers},
            **looked_up.headers,
        }
        self._connector = SpacedConnector()
        # This session takes 0.45 s of CPU time per 1,000 calls. The SDK's own request path takes 1.3 s.
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT_SECONDS, timeout)),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Looked up only once, because aiohttp's own trust_env would read the environment for every call.
            proxy=find_proxy(address),
        )

    async def _send(self, method: str, path: str, body: bytes | None) -> HttpAnswer:
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = URL(self._at.url + path).extend_query(self._query)
        is_new.set(False)
        has_begun = False
        try:
            # Redirects are not followed, because they would send prompts and keys to another server.
            async with (
                TimeLimit(self._timeout),
                self._session.request(method, url, data=body, allow_redirects=False) as response,
            ):
                has_begun = True
                answer = HttpAnswer(response.status, response.headers, await self._body(response))
                self._connector.limit_idle(response.headers.get("Keep-Alive", ""))
        except aiohttp.ConnectionTimeoutError as e:
            raise Unreachable(f"{self._at.url}: timed out while connecting", sent=False) from e
        except TimeoutError as e:
            raise Unreachable(
                f"{self._at.url}: no response within {self._timeout:g} s", timed_out=True
            ) from e
        except aiohttp.ClientConnectorError as e:
            raise Unreachable(f"{self._at.url}: cannot connect: {self.clean(_reason(e))}", sent=False) from e
        except aiohttp.ClientResponseError as e:
            raise ServerFault(
                f"{self._at.url}: the response is not valid HTTP: {self.clean(e.message)}", answered=True
            ) from e
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as e:
            # A server may close an idle connection at the moment when a request is sent over it.
            stale = not has_begun and not is_new.get()
            if stale:
                self._connector.close_idle()
            raise Unreachable(
                f"{self._at.url}: connection lost: {self.clean(_reason(e))}", stale=stale
            ) from e
        # Servers with a web interface return a page with status 200 for every unknown address.
        if answer.status == 200 and answer.headers.get("Content-Type", "").startswith("text/html"):
            raise Unreachable(
                f"{self._at.url}: the response is a web page; check the address, which ends with /v1 for most servers",
                sent=False,
            )
        return answer

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the response body. Raises ServerFault as soon as the body exceeds MOST_BYTES."""
        size = response.content_length
        if size is not None and size <= MOST_BYTES and "content-encoding" not in response.headers:
            return await response.read()
        parts, size = [], 0
        async for part in response.content.iter_any():
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                response.close()
                raise ServerFault(
                    f"{self._at.url}: the response exceeds {MOST_BYTES // 2**20} MB", answered=True
                )
        return b"".join(parts)

    async def close(self) -> None:
        """Close all connections. Safe to call twice."""
        await self._session.close()


def key_from(variable: str) -> str:
    """Return the API key in an environment variable, or an empty string if the variable is not set.

    Raises KeyProblem if the key contains characters that a header cannot contain.
    """
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable():
        raise KeyProblem(f"{variable} contains characters that are not allowed in an API key")
    return key


def failure(
    answer: HttpAnswer, complaint: Complaint, who: str, model: str, key_variable: str
) -> ProviderError:
    """Return the error for a response whose status is not 200."""
    status = answer.status
    problem = f": {complaint.message}" if complaint.message else ""
    if status in (401, 403):
        return KeyProblem(f"{who} refused the key (HTTP {status}){problem}; check {key_variable}")
    if status in (429, 529):
        word = "overloaded" if status == 529 else "rate limit exceeded"
        return RateLimited(f"{who}: {word} (HTTP {status}){problem}", waits.retry_after(answer.headers))
    if status in (408, 409) or status >= 500:
        return ServerFault(
            f"{who}: HTTP {status}{problem}", waits.retry_after(answer.headers), overloaded=status == 503
        )
    if status == 404:
        return Rejected(f"{who}: model '{model}' or this address was not found (HTTP 404){problem}", status)
    if 200 <= status < 300:
        return ServerFault(f"{who}: HTTP {status} without an answer", answered=True)
    if 300 <= status < 400:
        return Rejected(f"{who} returned a redirect (HTTP {status}); set --base-url to its target", status)
    return Rejected(f"{who} refused the request (HTTP {status}){problem}", status)


_STATUSES = {
    "invalid_request_error": 400, "authentication_error": 401, "invalid_api_key": 401, "permission_error": 403,
    "permission_denied": 403, "billing_error": 403, "not_found_error": 404, "model_not_found": 404,
    "timeout_error": 408, "request_too_large": 413, "rate_limit_error": 429, "rate_limit_exceeded": 429,
    "insufficient_quota": 429, "api_error": 500, "server_error": 500, "overloaded_error": 529,
}  # fmt: skip
"""The HTTP statuses of the error types of Anthropic and OpenAI."""


def status_of(complaint: Complaint) -> int | None:
    """Return the HTTP status of an error that a server sent without it, or None if the error does not show it.

    Some gateways forward an error with status 200, and Anthropic's batches contain errors without a status.
    """
    code = complaint.code
    if code.isdecimal() and code.isascii() and len(code) == 3:
        return int(code) if 400 <= int(code) < 600 else None
    return _STATUSES.get(code.lower())


def text_of(content: Json) -> str:
    """Return a message's content as a string that can be stored.

    The content is either a string or a list of `{text}` parts, each of which begins a line.
    """
    if isinstance(content, list):
        content = "\n".join(str(p["text"]) for p in content if isinstance(p, dict) and p.get("text"))
    if not isinstance(content, str):
        return ""
    # JSON can contain a lone surrogate, which neither a database nor a file accepts.
    return content if content.isascii() else content.encode("utf-8", "replace").decode()


def name_of(value: Json) -> str | None:
    """Return the name of a model or a configuration, or None if the value is not printable text."""
    return value[:LONGEST_MESSAGE] if isinstance(value, str) and value and value.isprintable() else None


def decode_json(body: bytes | str) -> Json:
    """Return the parsed JSON of a body, or None if it is not JSON or an object has a key twice."""
    try:
        return json.loads(body, object_pairs_hook=_refuse_duplicates)
    except (ValueError, RecursionError):
        return None


def _refuse_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    # Python keeps the last of two values, and another program the first: such a body has no one meaning.
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return values


def _reason(error: BaseException) -> str:
    """Return a description of a connection error."""
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not trusted: {error.verify_message} (set SSL_CERT_FILE to a file of trusted certificates)"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or str(error)).replace('_', ' ').lower()} (use http:// if the server has no TLS)"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
