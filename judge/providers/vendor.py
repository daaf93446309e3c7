"""What the vendors' APIs have in common: where they are, their keys, their connections, and what is asked beside requests."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any

from judge.errors import KeyProblem, ProviderError
from judge.providers import http, options, sdk
from judge.providers.base import Settings
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
        self._at = http.server(self._address(settings))
        self._own = self._at.host == self.host or self._at.host.endswith(f".{self.host}")
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
        return http.Wire(self._at, headers, self.timeout, [key], asked)

    def _looked_up(self) -> tuple[str, Looked]:
        """The key, empty where none is needed, and what the options name. Raises KeyProblem."""
        key, asked = http.key_from(self._key), options.look_up(self._options)
        given = any(map(self._options.gives, self.key_headers))
        if not key and (self._options.key or self._own) and not given:
            raise KeyProblem(f"{self._key} is not set: export it, or name another server with --base-url")
        return key, asked

    def _client(
        self, name: str, extra: str, secrets: Sequence[str], asked: Looked, **given: Any
    ) -> http.Door:
        """A connection through the vendor's client of this name, of the extra. Raises KeyProblem, MissingExtra, UsageError."""
        library, make = self._client_class(name)
        client = sdk.made(make, library, self._who, asked, self.timeout, extra, **given)
        return sdk.Client(library, client, self._who, self.timeout, (*secrets, *asked.secrets), extra)

    def _client_class(self, name: str) -> tuple[Any, Any]:
        """The vendor's library, and its client class of this name."""
        library = import_module(self.library)
        self._sdk = f"{self.library} {library.__version__}"
        return library, getattr(library, name)
