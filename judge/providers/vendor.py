"""What the vendors' APIs have in common: where they are, their keys, their connections, and what is asked beside requests."""

from __future__ import annotations

import json
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

from judge.addresses import no_proxy, server
from judge.errors import KeyProblem, MissingExtra, ProviderError, Unreachable, UsageError
from judge.providers import http, options
from judge.providers.base import Settings
from judge.providers.connections import TimeLimit
from judge.providers.options import Looked


class Vendor(ABC):
    """One model behind an API. A class of its own says what stands here without a value.

    Settings: `base_url` (default: `_address`), `timeout` in seconds for one call, `options`. Raises UsageError for a base
    URL or option that cannot be used.
    """

    vendor: str
    title: str
    """The vendor as errors name it, at its own address."""
    host: str
    """Where the vendor's own servers are, and below."""
    library: str
    """The vendor's package: it gives keys, headers and clients."""
    own_client: str
    """Its client for the vendor's own address."""
    key: str
    key_headers: Sequence[str] = ("authorization",)
    """Headers that stand for a key where the user gives them."""
    known: Collection[str]
    """Its own options; those of `facts` make no other run."""
    facts: Collection[str] = ()
    taken: Collection[str] = options.FLAGS
    """Fields of the body that the runner writes."""
    label_codes: bool = False
    max_concurrency: int | None = None

    def __init__(self, name: str, settings: Settings) -> None:
        self._at = server(self._address(settings))
        self._own = self._at.is_within(self.host)
        self._options = options.read(self.vendor, settings.options, self.known, self.taken)
        self._key = self._options.key or self.key
        self._name, self.timeout = name, settings.timeout
        self._who = self.title if self._own else self._at.url
        self._wire: http.Door | None = None
        self._sdk = ""
        self._reports: str | None = None

    @abstractmethod
    def _address(self, settings: Settings) -> str:
        """The base URL."""

    async def close(self) -> None:
        """Close the connections; safe to call twice."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    async def _asked_of(self, path: str, body: bytes | None = None) -> http.HttpAnswer:
        """A good answer to a GET, or to a POST of a body. Raises as `complete`."""
        wire = self._connect()
        answer = await (wire.get(path) if body is None else wire.post(path, body))
        if answer.status != 200:
            raise self._error(answer, wire.complaint(answer))
        return answer

    def _error(self, answer: http.HttpAnswer, said: http.Complaint) -> ProviderError:
        return http.failure(answer, said, self._who, self._name, self._key)

    def _connect(self) -> http.Door:
        if self._wire is None:
            self._wire = self._wired()
        return self._wire

    def _wired(self) -> http.Door:
        """A connection with the key and the headers of the vendor's client, whose own request path is not used."""
        key, asked = self._looked_up()
        library, make = self._client_class(self.own_client)
        # Trusting nobody, because it sends nothing: reading the machine's certificates takes longer than all else here.
        unused = library.DefaultAsyncHttpxClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        client = make(api_key=key or http.NO_KEY, base_url=self._at.url, max_retries=0, http_client=unused)
        headers = http.sent_headers(client.auth_headers, client.default_headers)
        if self._options.key or self._options.is_keyless:
            # The client finds more in the environment (ANTHROPIC_AUTH_TOKEN, OPENAI_ORG_ID), which belongs to another key.
            headers = {
                k: v
                for k, v in headers.items()
                if k.lower() in http.WITHOUT_CREDENTIALS or (key and key in v)
            }
        return http.Wire(self._at, headers, self.timeout, [key], asked)

    def _looked_up(self) -> tuple[str, Looked]:
        """The key, empty where none is needed, and what the options name. Raises KeyProblem."""
        key, asked = self._own_key(), options.look_up(self._options)
        given = any(map(self._options.gives, self.key_headers))
        if not key and (self._options.key or self._own) and not given:
            raise KeyProblem(f"{self._key} is not set: export it, or name another server with --base-url")
        return key, asked

    def _own_key(self) -> str:
        """The key, empty where none is set or none is to be sent. Raises KeyProblem for one no header can hold."""
        return "" if self._options.is_keyless else http.key_from(self._key)

    def _client(
        self, name: str, extra: str, secrets: Sequence[str], asked: Looked, **given: Any
    ) -> http.Door:
        """A connection through the vendor's client of this name, of the extra. Raises KeyProblem, MissingExtra, UsageError."""
        library, make = self._client_class(name)
        mounts = no_proxy(self._at)
        client = made(make, library, self._who, asked, self.timeout, extra, mounts, **given)
        return Client(library, client, self._who, self.timeout, (*secrets, *asked.secrets), extra)

    def _client_class(self, name: str) -> tuple[Any, Any]:
        """The vendor's library, and its client class of this name."""
        library = import_module(self.library)
        self._sdk = f"{self.library} {library.__version__}"
        return library, getattr(library, name)


# Servers that are reached through a vendor's own client class: Azure, Bedrock, Vertex.
#
# Their addresses, tokens and signatures (SigV4, Google's refreshed tokens) are the client's business. Retries are off, its
# response models are left aside, and redirects are not followed: they would carry prompts and keys to another server.


_RAW = {"X-Stainless-Raw-Response": "true"}
# What the clients say when their optional packages are not there.
_MISSING = ("pip install", "No module named")


class Client(http.Door):
    """A vendor's client (an `openai` or `anthropic` one) as a way to its server; `who` names it in errors.

    Every call raises KeyProblem without credentials, and MissingExtra without the package that looks for them.
    """

    def __init__(
        self, vendor: Any, client: Any, who: str, timeout: float, secrets: Sequence[str | None], extra: str
    ) -> None:
        super().__init__(secrets)
        self._vendor, self._client, self._who, self._timeout = vendor, client, who, timeout
        self._extra = extra

    async def _send(self, method: str, path: str, body: bytes | None) -> http.HttpAnswer:
        # A dictionary of its own each time: the clients write into what they are given.
        given: dict[str, Any] = {"cast_to": object, "options": {"headers": dict(_RAW)}}
        try:
            async with TimeLimit(self._timeout):
                if body is None:
                    answer = await self._client.get(path, **given)
                else:
                    answer = await self._client.post(path, body=json.loads(body), **given)
                raw = answer.http_response
        except self._vendor.APIStatusError as e:
            raw = e.response
        except TimeoutError as e:
            raise self._late() from e
        except self._vendor.APIConnectionError as e:
            cause = e.__cause__ or e
            # Only a connection that never stood is sure to have sent nothing.
            if type(cause).__name__ in ("ConnectError", "ConnectTimeout"):
                said = self.clean(str(cause)) or type(cause).__name__
                raise Unreachable(f"{self._who}: cannot connect: {said}", sent=False) from e
            if isinstance(e, self._vendor.APITimeoutError):
                raise self._late() from e
            raise Unreachable(f"{self._who}: connection lost: {self.clean(str(cause))}") from e
        except Exception as e:
            # What is left comes from the clients' search for credentials.
            raise credentials(e, self._who, self._extra, self.clean) from e
        return http.HttpAnswer(raw.status_code, raw.headers, raw.content)

    def _late(self) -> Unreachable:
        return Unreachable(f"{self._who}: no answer within {self._timeout:g} s", timed_out=True)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def made(
    make: Callable[..., Any],
    vendor: Any,
    who: str,
    asked: Looked,
    timeout: float,
    extra: str,
    mounts: Mapping[str, None] | None,
    **given: Any,
) -> Any:
    """A client of this class, with its own aiohttp transport; `mounts` are those of `judge.addresses.no_proxy`.

    Raises KeyProblem, MissingExtra or UsageError.
    """
    transport = vendor.DefaultAioHttpClient(follow_redirects=False, timeout=timeout, mounts=mounts)
    try:
        return make(
            max_retries=0,
            timeout=timeout,
            http_client=transport,
            default_headers=dict(asked.headers) or None,
            default_query=dict(asked.query) or None,
            **{name: value for name, value in given.items() if value is not None},
        )
    except ValueError as e:
        raise UsageError(f"{who}: {http.clean(str(e), asked.secrets)}") from e
    except Exception as e:
        raise credentials(e, who, extra, lambda text: http.clean(text, asked.secrets)) from e


def credentials(
    error: Exception, who: str, extra: str, clean: Callable[[str], str]
) -> KeyProblem | MissingExtra:
    """The error for a client that has found no credentials, or not the package that looks for them."""
    said = clean(str(error)) or type(error).__name__
    if isinstance(error, ImportError) or any(word in str(error) for word in _MISSING):
        return MissingExtra(
            f"{who} needs the extra adjudge[{extra}]: pip install 'adjudge[{extra}]' ({said})"
        )
    return KeyProblem(f"{who}: no credentials: {said}")
