"""Code that the HTTP providers share: one aiohttp session, retry times, and errors without secrets.

The vendors' clients supply keys, headers and base URLs. Calls are posted here as bytes, because the clients' response
models cost several times the CPU time of the call itself.
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
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from judge.addresses import ServerAddress
from judge.errors import (
    KeyProblem,
    ProviderError,
    RateLimited,
    Rejected,
    ServerFault,
    Unreachable,
)
from judge.providers import waits
from judge.providers.connections import SpacedConnector, TimeLimit
from judge.providers.options import LookedUpOptions
from judge.types import Json

LONGEST_MESSAGE = 300
CONNECT_SECONDS = 15.0
MOST_BYTES = 8 * 2**20
"""A longer answer is not a model's reply. The longest replies, with probabilities, have about 100 kB."""
# The vendors' clients refuse to start without a key, or search for one in other places.
NO_KEY = "no-key-was-given"
WITHOUT_CREDENTIALS = frozenset(
    ("host", "accept", "accept-encoding", "connection", "content-type", "content-length", "transfer-encoding",
     "user-agent", "anthropic-version", "anthropic-beta")
)  # fmt: skip
"""The headers that are kept in a request without credentials."""
# The shape of a key, also of a masked one (`sk-pr****abcd`): vendors repeat a refused key in their message.
_KEY_LIKE = re.compile(r"\b(?:sk|rk|pk)-[\w\-*.]{6,}|\bBearer\s+\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One HTTP response with its body. `headers` are case-insensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Complaint:
    """The content of an error body of any shape: a printable message, and the vendor's code and parameter."""

    status: int
    message: str
    code: str = ""
    param: str = ""


class Connection(ABC):
    """A connection to a server that reports errors without its secrets."""

    def __init__(self, secrets: Sequence[str | None]) -> None:
        self._secrets = tuple(s for s in secrets if s)

    async def post(self, path: str, body: bytes) -> HttpAnswer:
        """POST JSON bytes. Raises Unreachable if no complete answer arrived or if the answer is a web page."""
        return await self._send("POST", path, body)

    async def get(self, path: str) -> HttpAnswer:
        """Make a GET request. Raises Unreachable if no complete answer arrived or if the answer is a web page."""
        return await self._send("GET", path, None)

    @abstractmethod
    async def _send(self, method: str, path: str, body: bytes | None) -> HttpAnswer:
        """Make one call."""

    @abstractmethod
    async def close(self) -> None:
        """Close every connection; safe to call twice."""

    def complaint(self, answer: HttpAnswer) -> Complaint:
        """Parse an error body, and remove this connection's secrets."""
        return complaint(answer, self._secrets)

    def clean(self, text: str) -> str:
        """Remove this connection's secrets from a string."""
        return clean(text, self._secrets)


def complaint(answer: HttpAnswer, secrets: Sequence[str] = ()) -> Complaint:
    """Parse an error body: `{"error": {message, code, param}}`, its variants, or plain text."""
    body = decoded(answer.body)
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
    """A connection pool to one server, with fixed headers."""

    def __init__(
        self,
        at: ServerAddress,
        headers: Mapping[str, str],
        timeout: float,
        secrets: Sequence[str],
        looked_up: LookedUpOptions,
    ) -> None:
        self._at, self._timeout, self._query = at, timeout, looked_up.query
        super().__init__((*secrets, at.password, *looked_up.secrets))
        self._urls: dict[str, URL] = {}
        if at.login is not None:
            # Credentials in the URL are meant for this very server, so they override the key.
            headers = {k: v for k, v in headers.items() if k.lower() not in ("authorization", "x-api-key")}
            login = base64.b64encode(f"{at.login}:{at.password or ''}".encode()).decode()
            headers["Authorization"] = f"Basic {login}"
        # Headers that the user names explicitly override both.
        headers = {
            **{k: v for k, v in headers.items() if k.lower() not in looked_up.headers},
            **looked_up.headers,
        }
        # 0.45 s of CPU time per 1,000 calls, against 1.3 s through the SDK's own request path.
        self._session = aiohttp.ClientSession(
            connector=SpacedConnector(),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT_SECONDS, timeout)),
            cookie_jar=aiohttp.DummyCookieJar(),
            # LookedUpOptions up once: aiohttp's own trust_env would read the environment for every call.
            proxy=_proxy(at),
        )

    async def _send(self, method: str, path: str, body: bytes | None) -> HttpAnswer:
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = URL(self._at.url + path).extend_query(self._query)
        try:
            # Redirects are not followed: they would carry prompts and keys to another server.
            async with (
                TimeLimit(self._timeout),
                self._session.request(method, url, data=body, allow_redirects=False) as response,
            ):
                answer = HttpAnswer(response.status, response.headers, await self._body(response))
        except aiohttp.ConnectionTimeoutError as e:
            raise Unreachable(f"{self._at.url}: cannot connect in time", sent=False) from e
        except TimeoutError as e:
            raise Unreachable(f"{self._at.url}: no answer within {self._timeout:g} s", timed_out=True) from e
        except aiohttp.ClientConnectorError as e:
            raise Unreachable(f"{self._at.url}: cannot connect: {self.clean(_reason(e))}", sent=False) from e
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as e:
            raise Unreachable(f"{self._at.url}: connection lost: {self.clean(_reason(e))}") from e
        # Servers with a web interface return it for every unknown address, with status 200.
        if answer.status == 200 and answer.headers.get("Content-Type", "").startswith("text/html"):
            raise Unreachable(
                f"{self._at.url}: the answer is a web page: check the address, which ends with /v1 for most servers",
                sent=False,
            )
        return answer

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the body. Raises ServerFault as soon as the body is longer than any reply can be."""
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
                    f"{self._at.url}: an answer of more than {MOST_BYTES // 2**20} MB; not read"
                )
        return b"".join(parts)

    async def close(self) -> None:
        """Close every connection; safe to call twice."""
        await self._session.close()


def key_from(variable: str) -> str:
    """Return the key in an environment variable, or an empty string if the variable is not set. Raises
    KeyProblem if a header cannot contain the key.
    """
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable():
        raise KeyProblem(f"{variable} contains characters that a key cannot have")
    return key


def sent_headers(*parts: Mapping[str, object]) -> dict[str, str]:
    """Return a client's headers without undefined headers, the placeholder for a missing key, and telemetry.

    The calls are not made by the client, and its seven additional headers would cost CPU time on both sides.
    """
    return {
        k: v
        for part in parts
        for k, v in part.items()
        if isinstance(v, str) and NO_KEY not in v and not k.lower().startswith("x-stainless-")
    }


def failure(
    answer: HttpAnswer, complaint: Complaint, who: str, model: str, key_variable: str
) -> ProviderError:
    """Return the error for an HTTP status other than 200."""
    status = answer.status
    problem = f": {complaint.message}" if complaint.message else ""
    if status in (401, 403):
        return KeyProblem(f"{who} refused the key (HTTP {status}){problem}; check {key_variable}")
    if status in (429, 529):
        word = "overloaded" if status == 529 else "rate limit"
        return RateLimited(f"{who}: {word} (HTTP {status}){problem}", waits.retry_after(answer.headers))
    if status in (408, 409) or status >= 500:
        return ServerFault(
            f"{who}: HTTP {status}{problem}", waits.retry_after(answer.headers), overloaded=status == 503
        )
    if status == 404:
        return Rejected(f"{who} does not know model '{model}' or this address (HTTP 404){problem}", status)
    if 300 <= status < 400:
        return Rejected(f"{who} answered with a redirect (HTTP {status}); give its final address", status)
    return Rejected(f"{who} refused the request (HTTP {status}){problem}", status)


def text_of(content: Json) -> str:
    """Return a message's content, which is a string or a list of `{text}` parts, as a string that can be stored."""
    if isinstance(content, list):
        content = "".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    if not isinstance(content, str):
        return ""
    # JSON can contain a lone surrogate, which neither a database nor a file accepts.
    return content if content.isascii() else content.encode("utf-8", "replace").decode()


def decoded(body: bytes | str) -> Json:
    """Return the parsed JSON of a body, or None if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _reason(error: BaseException) -> str:
    """Return the text of a connection error, or its class name if it has no text."""
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message} (SSL_CERT_FILE names a file of those to trust)"
    if isinstance(error, ssl.SSLError):
        return f"no TLS: {(error.reason or str(error)).replace('_', ' ').lower()} (does it speak plain http?)"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def _proxy(at: ServerAddress) -> str | None:
    """Return the proxy that the environment specifies for this server, or None for loopback addresses."""
    if at.is_loopback or proxy_bypass(at.host):
        return None
    proxies = getproxies()
    proxy = proxies.get(urlsplit(at.url).scheme) or proxies.get("all")
    return proxy if proxy and proxy.startswith(("http://", "https://")) else None
