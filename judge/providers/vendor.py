"""Code shared by providers that call a vendor's API: addresses, keys and connections."""

from __future__ import annotations

import json
import ssl
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from judge.addresses import find_proxy, no_proxy, server
from judge.errors import KeyProblem, MissingExtra, ProviderError, ServerFault, Unreachable, UsageError
from judge.providers import http, options
from judge.providers.base import Settings
from judge.providers.connections import TimeLimit
from judge.providers.options import LookedUpOptions
from judge.types import Json


class Vendor(ABC):
    """Base class for a model that is called through an HTTP API.

    A subclass must set the attributes that this class only declares. Settings are `base_url` (default: see
    `_address`), `timeout` in seconds per call, and `options`. Raises UsageError if the base URL or an option is
    invalid.
    """

    vendor: str
    title: str
    """The vendor's name. Errors use it for the vendor's own servers, and name other servers by address."""
    host: str
    """The vendor's domain. Its subdomains are also the vendor's own servers."""
    library: str
    """The vendor's Python package, which supplies keys, headers and clients."""
    own_client: str
    """The name of the package's client class for the vendor's own servers."""
    key: str
    key_headers: Sequence[str] = ("authorization",)
    """Headers that replace the key if the user sets one of them."""
    known: Collection[str]
    """The names of the vendor's options. Those that are also in `facts` are not part of a run's identity."""
    facts: Collection[str] = ()
    taken: Collection[str] = options.FLAGS
    """Fields of the request body that are set by command-line flags."""
    label_codes: bool = False
    max_concurrency: int | None = None

    def __init__(self, name: str, settings: Settings) -> None:
        self._at = server(self._address(settings))
        self._is_vendors_own = self._at.is_within(self.host)
        self._options = options.parse_options(self.vendor, settings.options, self.known, self.taken)
        self._key = self._options.key or self.key
        self._name, self.timeout = name, settings.timeout
        self._who = self.title if self._is_vendors_own else self._at.url
        self._wire: http.Connection | None = None
        self._sdk = ""
        self._reports: str | None = None

    @abstractmethod
    def _address(self, settings: Settings) -> str:
        """Return the base URL."""

    def describe(self) -> Mapping[str, Json]:
        """Return the base URL without credentials, and the other facts that all vendors share."""
        return {
            "vendor": self.vendor,
            "model": self._name,
            "base_url": self._at.url,
            "label_codes": self.label_codes,
            "options": {k: v for k, v in self._options.identity().items() if k not in self.facts},
            "own_server": self._is_vendors_own,
            "reports": self._reports,
            "timeout": self.timeout,
            "sdk": self._sdk,
        }

    async def close(self) -> None:
        """Close the connections. Safe to call twice."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    def _error(self, answer: http.HttpAnswer, said: http.Complaint) -> ProviderError:
        return http.failure(answer, said, self._who, self._name, self._key)

    def _fault_in(self, wire: http.Connection, answer: http.HttpAnswer, problem: ValueError) -> ProviderError:
        """Return the error for a response with status 200 that contains no reply. `problem` says what is wrong."""
        said = wire.complaint(answer)
        if (status := http.status_of(said)) is not None:
            # Some gateways forward an error with status 200.
            return self._error(replace(answer, status=status), replace(said, status=status))
        if answer.body.lstrip().startswith((b"data:", b"event:", b":")):
            problem = ValueError("is a stream of events, although none was requested")
        detail = "" if http.decode_json(answer.body) is None else f": {said.message}"
        return ServerFault(f"{self._who}: the response {problem}{detail}", answered=True)

    def _connect(self) -> http.Connection:
        if self._wire is None:
            self._wire = self._make_connection()
        return self._wire

    def _make_connection(self) -> http.Connection:
        """Return a connection with the key and headers of the vendor's client.

        The client itself sends no requests.
        """
        key, looked_up = self._look_up()
        library, make = self._client_class(self.own_client)
        # This client sends nothing, so it needs no certificates. Loading them takes longer than all other steps here.
        unused = library.DefaultAsyncHttpxClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        client = make(api_key=key or http.NO_KEY, base_url=self._at.url, max_retries=0, http_client=unused)
        # The client does not send the requests itself, so its seven telemetry headers would only cost CPU time.
        headers = {
            name: value
            for name, value in {**client.auth_headers, **client.default_headers}.items()
            if isinstance(value, str)
            and http.NO_KEY not in value
            and not name.lower().startswith("x-stainless-")
        }
        if self._options.key or self._options.is_keyless:
            # The client also reads other variables (ANTHROPIC_AUTH_TOKEN, OPENAI_ORG_ID), which belong to the usual
            # key and must not be sent to another server.
            headers = {
                k: v
                for k, v in headers.items()
                if k.lower() in http.WITHOUT_CREDENTIALS or (key and key in v)
            }
        return http.Wire(self._at, headers, self.timeout, [key], looked_up)

    def _look_up(self) -> tuple[str, LookedUpOptions]:
        """Return the API key (empty if none is needed) and the values that the options refer to.

        Raises KeyProblem if a required value is missing.
        """
        key, looked_up = self._read_key(), options.look_up(self._options)
        given = any(map(self._options.has_header, self.key_headers))
        if not key and (self._options.key or self._is_vendors_own) and not given:
            raise KeyProblem(f"{self._key} is not set; export it, or use another server with --base-url")
        return key, looked_up

    def _read_key(self) -> str:
        """Return the API key, or an empty string if no key is set or none may be sent.

        Raises KeyProblem if the key contains characters that a header cannot contain.
        """
        return "" if self._options.is_keyless else http.key_from(self._key)

    def _client(self, name: str, extra: str, secrets: Sequence[str], **given: Any) -> http.Connection:
        """Return a connection that uses the class `name` of the vendor's package as its client.

        `given` contains additional arguments for the client. Raises KeyProblem, MissingExtra or UsageError.
        """
        looked_up = options.look_up(self._options)
        # The client reads the proxy from the environment by itself, and ignores one that it does not support.
        find_proxy(self._at)
        library, make = self._client_class(name)
        transport = library.DefaultAioHttpClient(
            follow_redirects=False, timeout=self.timeout, mounts=no_proxy(self._at)
        )
        try:
            client = make(
                max_retries=0,
                timeout=self.timeout,
                http_client=transport,
                default_headers=dict(looked_up.headers) or None,
                default_query=dict(looked_up.query) or None,
                **{name: value for name, value in given.items() if value is not None},
            )
        except ValueError as e:
            raise UsageError(f"{self._who}: {http.clean(str(e), looked_up.secrets)}") from e
        except Exception as e:
            raise credentials(e, self._who, extra, looked_up.secrets) from e
        return Client(library, client, self._who, self.timeout, (*secrets, *looked_up.secrets), extra)

    def _client_class(self, name: str) -> tuple[Any, Any]:
        """Return the vendor's library and its class `name`."""
        library = import_module(self.library)
        self._sdk = f"{self.library} {library.__version__}"
        return library, getattr(library, name)


# Azure, Bedrock and Vertex are called through a vendor's own client class, which builds their addresses, tokens and
# signatures (SigV4, Google's refreshed tokens). Retries are off, and the client's response models are not used.
# Redirects are not followed, because they would send prompts and keys to another server.


_RAW = {"X-Stainless-Raw-Response": "true"}
# Parts of the clients' messages when their optional packages are missing.
_MISSING = ("pip install", "No module named")


class Client(http.Connection):
    """A connection that sends requests with a vendor's client (from `openai` or `anthropic`).

    `who` is the server's name in error messages. Every call raises KeyProblem if there are no credentials,
    and MissingExtra if the package that looks up credentials is not installed.
    """

    def __init__(
        self, vendor: Any, client: Any, who: str, timeout: float, secrets: Sequence[str | None], extra: str
    ) -> None:
        super().__init__(secrets)
        self._vendor, self._client, self._who, self._timeout = vendor, client, who, timeout
        self._extra = extra

    async def _send(self, method: str, path: str, body: bytes | None) -> http.HttpAnswer:
        # A new dictionary each time, because the clients modify their arguments.
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
            raise self._make_timeout() from e
        except self._vendor.APIConnectionError as e:
            cause = e.__cause__ or e
            # Only if no connection was made is it certain that nothing was sent.
            if type(cause).__name__ in ("ConnectError", "ConnectTimeout"):
                said = self.clean(str(cause)) or type(cause).__name__
                raise Unreachable(f"{self._who}: cannot connect: {said}", sent=False) from e
            if isinstance(e, self._vendor.APITimeoutError):
                raise self._make_timeout() from e
            raise Unreachable(f"{self._who}: connection lost: {self.clean(str(cause))}") from e
        except Exception as e:
            # All other errors come from the client's look-up of credentials.
            raise credentials(e, self._who, self._extra, self._secrets) from e
        return http.HttpAnswer(raw.status_code, raw.headers, raw.content)

    def _make_timeout(self) -> Unreachable:
        return Unreachable(f"{self._who}: no response within {self._timeout:g} s", timed_out=True)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def credentials(error: Exception, who: str, extra: str, secrets: Sequence[str]) -> KeyProblem | MissingExtra:
    """Return the error for a client that has no credentials, or lacks the package that looks up credentials."""
    said = http.clean(str(error), secrets) or type(error).__name__
    if isinstance(error, ImportError) or any(word in str(error) for word in _MISSING):
        return MissingExtra(f"{who} needs adjudge[{extra}]; run pip install 'adjudge[{extra}]' ({said})")
    return KeyProblem(f"{who}: no credentials found: {said}")
