"""Decide which settings a file from somebody else may contain (docs/security.md).

Tasks, labels, weights and options are accepted from any file. Three settings are accepted only from the user:
the server to call, the environment variables that are sent to it, and the folder of a job. The user sets them
on the command line, in a Python call, in the environment or in the configuration folder. They are refused if
only a recipe, a task file or a study sets them.

A permission is for a pair of a server and a variable, so a key for one server is never sent to another
server. A server that a file names may be called in four cases:

- It belongs to the vendor, or the environment names it (OPENAI_BASE_URL). It receives the vendor's usual key.
- --allow names it. It receives the vendor's usual key.
- It is remembered from an earlier command. It receives the variables that the user allowed for it then.
- It runs on this machine (loopback). It receives no key.

In each case, --allow env:NAME permits another variable. Everything that the user names is stored in
`allowed.jsonl` in the configuration folder: one line for each pair of a server and a variable (or no
variable), and one line for each folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from judge.addresses import ServerAddress, server
from judge.commands import command
from judge.errors import UsageError

FILE = "allowed.jsonl"
NO_KEY = "none"
"""If the provider option `key` has this value, no key is sent."""
_VARIABLE = re.compile(r"\s*env:\s*(\w+)\s*")
_URL = re.compile(r"(\w*)://([^/\s\"'\\?#]+)")
_PLACE = re.compile(
    r"((?:\S*@)?(?:(?:[\w-]+\.)+[^\W\d][\w-]*\.?(?::\d+)?|\d+(?:\.\d+){3}(?::\d+)?|\[[\da-f:.]+\](?::\d+)?|[\w.-]+:\d+))(?:[/?#]\S*)?",
    re.IGNORECASE,
)
"""Matches a server address without a scheme: a name with dots, an IP address, or a host with a port."""
_BETWEEN = re.compile(r"(?:[\s,;|=\"'<>(){}]|//)+")
"""Matches the text between addresses without a scheme: spaces, `//`, and the punctuation of lists, pairs and
JSON.
"""
BUILT_IN = frozenset(
    ("anthropic", "azure", "bedrock", "embedded", "llamacpp", "onnx", "openai", "openai-decisions", "scripted", "vertex")
)  # fmt: skip
"""The vendors in `judge.providers`. None of their options selects a server."""


@dataclass(frozen=True, slots=True)
class Usual:
    """What is usual for a vendor.

    `domain` is the domain of its servers. `keys` lists the environment variables that may contain its API
    key. `base_url` is the environment variable with the address of another server.
    """

    domain: str
    keys: tuple[str, ...]
    base_url: str


_OPENAI = Usual("openai.com", ("OPENAI_API_KEY",), "OPENAI_BASE_URL")
_USUAL = {
    "openai": _OPENAI,
    "openai-decisions": _OPENAI,
    "anthropic": Usual("anthropic.com", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "ANTHROPIC_BASE_URL"),
}
"""The vendors that can be called without a key.

Clouds (Azure, Bedrock, Vertex) are not listed, because their clients always send credentials that they find
themselves. A server for a cloud therefore needs its own permission, even if it runs on this machine or is
permitted for another vendor. These credentials are stored under a name such as `azure/`, which cannot be the
name of a variable.
"""

_named: set[tuple[str, str | None]] = set()
_named_folders: set[Path] = set()
# Permissions are also kept in memory. If the configuration folder is read-only, they remain valid in this
# process.


@dataclass(frozen=True, slots=True)
class Allowed:
    """The hosts, variables and folders that the user allows in files (--allow)."""

    hosts: Sequence[str] = ()
    variables: Sequence[str] = ()
    folders: Sequence[Path] = ()

    @classmethod
    def from_values(cls, values: Sequence[str]) -> Allowed:
        """Sort the values of --allow into variables (env:NAME), folders (with a slash) and hosts."""
        folders = [v for v in values if "/" in v and "://" not in v]
        variables = [v.partition(":")[2] for v in values if v.startswith("env:")]
        hosts = [v for v in values if v not in folders and not v.startswith("env:")]
        return cls(hosts, variables, [Path(folder) for folder in folders])

    def has(self, address: ServerAddress) -> bool:
        """Return whether --allow names this server, either by host or by host and port."""
        return any(
            name == address.name and port in (None, address.port)
            for name, port in map(_parse_host, self.hosts)
        )


NOTHING_ALLOWED = Allowed()


def configuration_folder() -> Path:
    """Return adjudge's folder in the user's configuration directory."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The XDG specification says that relative paths are ignored. A relative path would point into the
    # working directory, which may belong to somebody else.
    return (folder if folder.is_absolute() else Path.home() / ".config") / "adjudge"


def check_server(
    source: str | Path | None,
    vendor: str,
    base_url: str | None,
    options: Mapping[str, str],
    allowed: Allowed = NOTHING_ALLOWED,
) -> dict[str, str]:
    """Check a server and its provider options, and remember the server. Return the options to call it with.

    `source` is the file that sets the server and the options, or None if the user sets them. If the server
    may not receive the vendor's usual key, the returned options contain `key=none`. Raises UsageError for a
    setting that a file may not contain. The message names the host, the variable and the options to type.
    """
    at = None if base_url is None else server(base_url)
    variables = [match[1] for value in options.values() if (match := _VARIABLE.fullmatch(value))]
    usual = _USUAL.get(vendor)
    implied = [] if usual else [f"{vendor}/"]
    if usual and "key" not in options:
        implied = [name for name in usual.keys if os.environ.get(name, "").strip()]
    if source is not None:
        places = [at] if at is not None else []
        places += [
            place for value in _get_plugin_options(vendor, options).values() for place in _addresses(value)
        ]
        hosts = [place for place in places if not _is_permitted(place, vendor, allowed)]
        refused = [name for name in variables if not _may_receive(at, vendor, name, allowed)]
        if hosts or refused:
            raise _refusal(source, hosts, refused)
        # Checked even if no key is set, because the vendors' clients read other variables too
        # (OPENAI_ORG_ID).
        sent = (implied or usual.keys[:1]) if usual and "key" not in options else []
        if not all(_may_receive(at, vendor, name, allowed) for name in sent):
            options, implied = {**options, "key": NO_KEY}, []
    for name in [*variables, *implied] or [None]:
        _remember_server(at, vendor, name)
    return dict(options)


def is_permitted(vendor: str, base_url: str) -> bool:
    """Return whether a server that a file names may be called without --allow.

    Printed commands contain only such servers.
    """
    try:
        return _is_permitted(server(base_url), vendor, NOTHING_ALLOWED)
    except UsageError:
        return False


def remove_servers(vendor: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the provider options for a printed command, without options that name a server that is not
    permitted.
    """
    searched = _get_plugin_options(vendor, options)
    return {
        name: value
        for name, value in options.items()
        if all(_is_permitted(at, vendor, NOTHING_ALLOWED) for at in _addresses(searched.get(name, "")))
    }


def check_folder(source: Path, folder: Path, job_id: str, allowed: Allowed = NOTHING_ALLOWED) -> None:
    """Raise UsageError if the study `source` sets a job folder that the user has not allowed.

    The default folder of a job, next to the study, needs no permission.
    """
    real = folder.resolve()
    beside = source.resolve().parent
    # Links are resolved, because a link in the default location could point to any folder.
    is_default = real.parent.parent == beside and real.parent.suffix == ".jobs" and real.name == job_id
    if is_default or real in _named_folders or any(real == given.resolve() for given in allowed.folders):
        if not is_default:
            remember_folder(real)
        return
    if ["folder", str(real)] not in _read_remembered():
        raise UsageError(
            f"{source}: sets the folder of job {job_id} to {real}, which requires your permission; to allow this folder: "
            + command("judge jobs read", job_id, "--allow", real, study=source)
        )


def file_in(folder: Path, name: str) -> Path:
    """Return the path of a file within a job's folder. Raises UsageError for a path outside it."""
    path = folder / name
    # A link could make a job post or overwrite another file of the user.
    if not name.isprintable() or Path(name).name != name or name in ("", "..") or path.is_symlink():
        raise UsageError(
            f"{path}: the files of a job must be in the job's folder and must not be links; nothing was done"
        )
    return path


def remember_folder(folder: Path) -> None:
    """Remember a job folder that the user named."""
    real = folder.resolve()
    if real not in _named_folders:
        _named_folders.add(real)
        _append(["folder", str(real)])


def _is_permitted(address: ServerAddress, vendor: str, allowed: Allowed) -> bool:
    """Return whether a server that a file names may be called, with or without a key."""
    if _with_usual_key(address, vendor, allowed):
        return True
    if vendor not in _USUAL:
        return (address.origin, f"{vendor}/") in _servers()
    return address.is_loopback or any(origin == address.origin for origin, _ in _servers())


def _may_receive(address: ServerAddress | None, vendor: str, variable: str, allowed: Allowed) -> bool:
    """Return whether a permitted server may receive a variable.

    If `address` is None, the vendor's default server is meant.
    """
    usual = _USUAL.get(vendor)
    is_usual = usual is not None and variable in usual.keys
    return (
        variable in allowed.variables
        or (_get_remembered_name(address, vendor), variable) in _servers()
        or (is_usual and (address is None or _with_usual_key(address, vendor, allowed)))
    )


def _with_usual_key(address: ServerAddress, vendor: str, allowed: Allowed) -> bool:
    """Return whether a server may receive the vendor's usual key.

    A server may receive it if it belongs to the vendor, if the environment names it, or if --allow names it.
    """
    usual = _USUAL.get(vendor)
    is_vendors = usual is not None and address.origin.startswith("https:") and address.is_within(usual.domain)
    if is_vendors or allowed.has(address):
        return True
    home = _find_server(vendor)
    return home is not None and home.origin == address.origin


def _refusal(source: str | Path, hosts: Sequence[ServerAddress], variables: Sequence[str]) -> UsageError:
    names = [f"the host {at.place}" for at in hosts] + [
        f"the environment variable {name}" for name in variables
    ]
    words = [f"--allow {at.place}" for at in hosts] + [f"--allow env:{name}" for name in variables]
    return UsageError(
        f"{source}: sets {' and '.join(names)}, which requires your permission; if you trust this file, "
        f"add {' '.join(words)}"
    )


def _get_plugin_options(vendor: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options that may contain a server's address.

    For a plugin, these are all options. For a built-in provider, there are none.
    """
    return {} if vendor in BUILT_IN else options


def _addresses(value: str) -> list[ServerAddress]:
    """Return the server addresses in an option of a plugin, with or without a scheme."""
    addresses = [
        f"{'http' if scheme == 'http' else 'https'}://{place}" for scheme, place in _URL.findall(value)
    ]
    if not addresses:
        # A word in brackets is either an IPv6 address or an element of a list, so both readings are tried.
        words = [word for part in _BETWEEN.split(value) for word in (part, part.strip("[]"))]
        addresses = [f"https://{match[1]}" for word in words if (match := _PLACE.fullmatch(word))]
    return list(dict.fromkeys(server(url) for url in addresses))


def _parse_host(given: str) -> tuple[str, int | None]:
    """Parse a host in --allow. Return its name and port, or None for any port. Raises UsageError."""
    with suppress(UsageError):
        at = server(given if "://" in given else f"https://{given}")
        has_port = "://" in given or re.search(r":\d+\s*$", given) is not None
        return at.name, at.port if has_port else None
    raise UsageError(
        f"--allow {given}: must be a host (gpu.lab), a host and a port (gpu.lab:8000), env:VARIABLE, or a folder (./jobs)"
    )


def _get_remembered_name(address: ServerAddress | None, vendor: str) -> str:
    """Return the name under which a server is remembered.

    The name is the server's address. If `address` is None, the name is the address in the environment or, if there
    is no such address, the vendor's name.
    """
    home = _find_server(vendor) if address is None else address
    return vendor if home is None else home.origin


def _find_server(vendor: str) -> ServerAddress | None:
    """Return the server set in the environment for a vendor, or None."""
    usual = _USUAL.get(vendor)
    named = os.environ.get(usual.base_url, "").strip() if usual else ""
    return server(named) if named else None


def _remember_server(address: ServerAddress | None, vendor: str, variable: str | None) -> None:
    origin = _get_remembered_name(address, vendor)
    pair = origin, variable
    is_known = any(known == origin for known, _ in _servers())
    needs_no_permission = variable is None and (address is None or address.is_loopback or is_known)
    usual = _USUAL.get(vendor)
    is_usual = (
        usual is not None and variable in usual.keys and (address is None or address.is_within(usual.domain))
    )
    # Without an address, a cloud's client sends its credentials to the cloud, which needs no permission.
    is_clouds = address is None and variable == f"{vendor}/"
    if not (needs_no_permission or is_usual or is_clouds or pair in _servers()):
        _named.add(pair)
        _append(["server", *pair])


def _servers() -> set[tuple[str, str | None]]:
    """Return the pairs of a server and a variable that the user has allowed.

    The variable is None if the user has allowed only the server.
    """
    pairs = {(row[1], row[2]) for row in _read_remembered() if row[0] == "server" and len(row) == 3}
    return _named | {(origin, name) for origin, name in pairs if origin is not None}


def _read_remembered() -> list[list[str | None]]:
    """Return the valid lines of `allowed.jsonl`, parsed."""
    try:
        lines = (configuration_folder() / FILE).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []
    rows = []
    for line in lines:
        # A damaged line must not revoke the permissions in the other lines.
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, list) and row and all(cell is None or isinstance(cell, str) for cell in row):
                rows.append(row)
    return rows


def _append(row: Sequence[str | None]) -> None:
    """Append a line to the file. If the file cannot be written, the permission is valid only in this process."""
    with suppress(OSError):
        configuration_folder().mkdir(parents=True, exist_ok=True)
        path = configuration_folder() / FILE
        # Only the user can read or write the file, whatever the umask, because it decides which servers
        # receive keys.
        with open(
            path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)
        ) as file:
            file.write(json.dumps(row) + "\n")
