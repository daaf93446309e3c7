"""A server's address: taken apart and normalised in one place.

Every address that may receive a key or a prompt goes through `server`, so that a host has one spelling: lower case, in
ASCII, and without a dot at its end. What is compared (`judge.permissions`) is then what is connected to.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from judge.errors import UsageError

_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A base URL taken apart: `url` has no credentials and may be shown; `login` and `password` may not."""

    url: str
    host: str
    port: int
    login: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """Host and port as they are typed and shown: `gpu.lab:8000`, without the port where it is that of https."""
        return self.name if self.port == _PORTS["https"] else f"{self.name}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: what a key is given to. Another port may be another person's server, and http is read
        by everybody on the way."""
        return f"{self.url.partition(':')[0]}://{self.name}:{self.port}"

    @property
    def name(self) -> str:
        """The host as it stands in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def is_within(self, domain: str) -> bool:
        """Whether the host is the domain or below it."""
        return self.host == domain or self.host.endswith(f".{domain}")


def server(base_url: str) -> ServerAddress:
    """Take a base URL apart. Raises UsageError unless it is http(s)://host[:port][/path]."""
    try:
        parts = urlsplit(base_url.strip())
        host, port = _normalised(parts.hostname or ""), parts.port
    except ValueError:  # UnicodeError, of a host that no name server knows, is one too
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in _PORTS or not host or parts.query or parts.fragment:
        # The address is not repeated: it may hold a password.
        raise UsageError("the base URL must look like http://host:port/v1 (no query, no fragment)")
    netloc = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    return ServerAddress(
        url=urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", "")),
        host=host,
        port=port or _PORTS[parts.scheme],
        login=unquote(parts.username) if parts.username is not None else None,
        password=unquote(parts.password) if parts.password is not None else None,
    )


def no_proxy(at: ServerAddress) -> dict[str, None] | None:
    """The `mounts` of an httpx client for this server: no proxy of the environment for this machine, where keys would pass
    another server on the way."""
    return dict.fromkeys(("http://", "https://", "all://")) if at.is_loopback else None


def _normalised(host: str) -> str:
    """The one spelling of a host. Raises ValueError for what is none."""
    try:
        return ipaddress.ip_address(host).compressed
    except ValueError:
        name = host.removesuffix(".").encode("idna").decode() if host else host
    if not _NAME.fullmatch(name):
        raise ValueError(f"not a host: {host!r}")
    return name.lower()
