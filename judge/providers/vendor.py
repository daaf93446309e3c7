"""The parts that the vendors' APIs have in common: addresses, keys and connections."""

from __future__ import annotations

import json
import ssl
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

from judge.addresses import no_proxy, server
from judge.errors import KeyProblem, MissingExtra, ProviderError, Unreachable, UsageError
from judge.providers import http, options
from judge.providers.base import Settings
from judge.providers.connections import TimeLimit
from judge.providers.options import LookedUpOptions
from judge.types import Json


class Vendor(ABC):
    """One model that is called through an API. A subclass sets the attributes that have no value here.

    Settings: `base_url` (default: `_address`), `timeout` in seconds for one call, `options`. Raises UsageError for a base
    URL or option that cannot be used.
    """

    vendor: str
    title: str
    """The vendor's name in errors, at its own address."""
    host: str
    """The vendor's domain; its subdomains count as well."""
    library: str
    """The vendor's Python package, which supplies keys, headers and clients."""
    own_client: str
    """The name of the package's client class for the vendor's own address."""
    key: str
    key_headers: Sequence[str] = ("authorization",)
    """Headers that replace the key if the user gives them."""
    known: Collection[str]
    """The vendor's options. Options in `facts` do not change the run's identity."""
    facts: Collection[str] = ()
    taken: Collection[str] = options.FLAGS
    """Fields of the request body that the runner writes."""
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
        """Close the connections; safe to call twice."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    def _error(self, answer: http.HttpAnswer, said: http.Complaint) -> ProviderError:
        return http.failure(answer, said, self._who, self._name, self._key)

    def _connect(self) -> http.Connection:
        if self._wire is None:
            self._wire = self._wired()
        return self._wire

    def _wired(self) -> http.Connection:
        """Return a connection with the key and the headers of the vendor's client, whose own request path is not used."""
        key, looked_up = self._looked_up()
        library, make = self._client_class(self.own_client)
        # This client sends nothing, so it needs no certificates; loading them takes longer than everything else here.
        unused = library.DefaultAsyncHttpxClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        client = make(api_key=key or http.NO_KEY, base_url=self._at.url, max_retries=0, http_client=unused)
        headers = http.sent_headers(client.auth_headers, client.default_headers)
        if self._options.key or self._options.is_keyless:
            # The client reads more from the environment (ANTHROPIC_AUTH_TOKEN, OPENAI_ORG_ID), which belongs to the usual
            # key and must not reach another server.
            headers = {
                k: v
                for k, v in headers.items()
                if k.lower() in http.WITHOUT_CREDENTIALS or (key and key in v)
            }
        return http.Wire(self._at, headers, self.timeout, [key], looked_up)

    def _looked_up(self) -> tuple[str, LookedUpOptions]:
        """Return the key (empty if none is needed) and the values that the options refer to. Raises
        KeyProblem if one is missing.
        """
        key, looked_up = self._own_key(), options.look_up(self._options)
        given = any(map(self._options.gives, self.key_headers))
        if not key and (self._options.key or self._is_vendors_own) and not given:
            raise KeyProblem(f"{self._key} is not set: export it, or name another server with --base-url")
        return key, looked_up

    def _own_key(self) -> str:
        """Return the key, which is empty if none is set or none is to be sent. Raises KeyProblem if a header
        cannot contain the key.
        """
        return "" if self._options.is_keyless else http.key_from(self._key)

    def _client(self, name: str, extra: str, secrets: Sequence[str], **given: Any) -> http.Connection:
        """Return a connection that uses the vendor's client of this name, with its aiohttp transport.

        `given` are further arguments of the client. Raises KeyProblem, MissingExtra or UsageError.
        """
        looked_up = options.look_up(self._options)
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
        """Return the vendor's library, and its client class of this name."""
        library = import_module(self.library)
        self._sdk = f"{self.library} {library.__version__}"
        return library, getattr(library, name)


# Servers that are called through a vendor's own client class: Azure, Bedrock, Vertex. The client builds their addresses,
# tokens and signatures (SigV4, Google's refreshed tokens). Retries are off, its response models are not used, and
# redirects are not followed: they would carry prompts and keys to another server.


_RAW = {"X-Stainless-Raw-Response": "true"}
# Parts of the clients' messages when their optional packages are missing.
_MISSING = ("pip install", "No module named")


class Client(http.Connection):
    """A vendor's client (from `openai` or `anthropic`) as a connection to its server. `who` is the server's
    name in errors.

    Every call raises KeyProblem if there are no credentials, and MissingExtra if the package that searches
    for them is missing.
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
            raise self._late() from e
        except self._vendor.APIConnectionError as e:
            cause = e.__cause__ or e
            # Only a connection that was never made is certain to have sent nothing.
            if type(cause).__name__ in ("ConnectError", "ConnectTimeout"):
                said = self.clean(str(cause)) or type(cause).__name__
                raise Unreachable(f"{self._who}: cannot connect: {said}", sent=False) from e
            if isinstance(e, self._vendor.APITimeoutError):
                raise self._late() from e
            raise Unreachable(f"{self._who}: connection lost: {self.clean(str(cause))}") from e
        except Exception as e:
            # All other errors come from the clients' search for credentials.
            raise credentials(e, self._who, self._extra, self._secrets) from e
        return http.HttpAnswer(raw.status_code, raw.headers, raw.content)

    def _late(self) -> Unreachable:
        return Unreachable(f"{self._who}: no answer within {self._timeout:g} s", timed_out=True)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def credentials(error: Exception, who: str, extra: str, secrets: Sequence[str]) -> KeyProblem | MissingExtra:
    """Return the error for a client that has no credentials or lacks the package that searches for them."""
    said = http.clean(str(error), secrets) or type(error).__name__
    if isinstance(error, ImportError) or any(word in str(error) for word in _MISSING):
        return MissingExtra(
            f"{who} needs the extra adjudge[{extra}]: pip install 'adjudge[{extra}]' ({said})"
        )
    return KeyProblem(f"{who}: no credentials: {said}")
