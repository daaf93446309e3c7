"""Parse and normalise server addresses.

Every address that may receive a key or a prompt goes through `server`. A host therefore has only one form:
lower case, ASCII, no trailing dot. The address that `judge.permissions` checks is exactly the address that is
connected to.
"""

import ipaddress
import os
import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from judge.errors import UsageError

_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A parsed base URL. `url` has no credentials and may be shown. `login` and `password` must not be shown."""

    url: str
    host: str
    port: int
    # Not in the repr, because logs and error messages print addresses.
    login: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """Host and port as shown to users: `gpu.lab:8000`, without the default port of https."""
        return self.name if self.port == _PORTS["https"] else f"{self.name}:{self.port}"

    @property
    def origin(self) -> str:
        """The scheme, host and port. A key is sent only to the origin that it belongs to.

        The same host with another port may be somebody else's server, and http traffic can be read in
        transit.
        """
        return f"{self.url.partition(':')[0]}://{self.name}:{self.port}"

    @property
    def name(self) -> str:
        """The host as it is written in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def is_loopback(self) -> bool:
        """Whether the server runs on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def is_within(self, domain: str) -> bool:
        """Return whether the host is this domain or one of its subdomains."""
        # The dot matters: notopenai.com is not a subdomain of openai.com.
        return self.host == domain or self.host.endswith(f".{domain}")


def server(base_url: str) -> ServerAddress:
    """Parse a base URL. Raises UsageError unless it is http(s)://host[:port][/path]."""
    try:
        parts = urlsplit(base_url.strip())
        host, port = _normalise_host(parts.hostname or ""), parts.port
    except ValueError:
        # Includes UnicodeError, for a host that cannot be encoded.
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in _PORTS or not host or parts.query or parts.fragment:
        # The address is not repeated, because it may contain a password.
        raise UsageError("the base URL must have the form http://host:port/v1, without a query or fragment")
    # The URL is built from its parts, because the typed URL may contain a password.
    netloc = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    return ServerAddress(
        url=urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", "")),
        host=host,
        port=port or _PORTS[parts.scheme],
        login=unquote(parts.username) if parts.username is not None else None,
        password=unquote(parts.password) if parts.password is not None else None,
    )


def find_proxy(address: ServerAddress) -> str | None:
    """Return the proxy that the environment names for this server, or None if it names none.

    The result is also None for a server on this machine. Raises UsageError for a proxy that is not supported: a
    call that ignored it would leave the network by another way than the user chose.
    """
    if address.is_loopback or proxy_bypass(address.host):
        return None
    proxies, scheme = getproxies(), address.url.partition(":")[0]
    kind = next((kind for kind in (scheme, "all") if proxies.get(kind)), None)
    if kind is None:
        return None
    proxy = proxies[kind]
    if not proxy.lower().startswith(("http://", "https://")):
        name = next(
            (n for n in (f"{kind}_proxy", f"{kind}_PROXY".upper()) if os.environ.get(n)), f"{kind}_proxy"
        )
        # The value may contain a password, so only its scheme is shown.
        form = f"{proxy.partition('://')[0]}://" if "://" in proxy else "a value without http://"
        raise UsageError(
            f"{name}: {form} is not supported, and no call was sent; use a proxy of the form http://HOST:PORT, or add "
            f"{address.host} to NO_PROXY"
        )
    return proxy


def no_proxy(address: ServerAddress) -> dict[str, None] | None:
    """Return the `mounts` of an httpx client that bypass the environment's proxy for a server on this
    machine.

    Without them, the proxy would receive the keys.
    """
    return dict.fromkeys(("http://", "https://", "all://")) if address.is_loopback else None


def _normalise_host(host: str) -> str:
    """Return the normalised form of a host name. Raises ValueError if the host is invalid."""
    try:
        # ::1 and 0:0:0:0:0:0:0:1 are the same host, so they must share their permissions.
        return ipaddress.ip_address(host).compressed
    except ValueError:
        # The resolver ignores a trailing dot, so a check must ignore it too. IDNA encodes look-alike
        # letters differently.
        name = host.removesuffix(".").encode("idna").decode() if host else host
    if not _NAME.fullmatch(name):
        raise ValueError(f"not a host: {host!r}")
    return name.lower()
