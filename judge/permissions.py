"""Decide what a file from somebody else may configure. No other module decides this (docs/security.md).

Tasks, labels, weights and options are accepted from any file. Three things are accepted from the user only:
the server that is called, the environment variables that it receives, and the folder of a job. The user
specifies them on the command line, in a Python call, in the environment or in the configuration folder. If
only a recipe, a task file or a study specifies them, they are not accepted.

Servers and variables are permitted in pairs, so that a key that was given to one server does not reach
another. A server that a file names is permitted when it is

- the vendor's own, or the one that the environment names (OPENAI_BASE_URL): with the vendor's usual variable;
- named by --allow: with the vendor's usual variable;
- remembered: with the variables that it received when the user named it;
- on this machine (loopback): without a variable.

--allow env:NAME adds a variable to each of these. Whatever the user names is stored in `allowed.jsonl` in the
configuration folder: one line for each pair of a server and a variable (or no variable), and one for each
folder.
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
"""The value of the option `key` with which no key is sent."""
_VARIABLE = re.compile(r"\s*env:\s*(\w+)\s*")
_URL = re.compile(r"(\w*)://([^/\s\"'\\?#]+)")
_PLACE = re.compile(
    r"((?:\S*@)?(?:(?:[\w-]+\.)+[^\W\d][\w-]*\.?(?::\d+)?|\d+(?:\.\d+){3}(?::\d+)?|\[[\da-f:.]+\](?::\d+)?|[\w.-]+:\d+))(?:[/?#]\S*)?",
    re.IGNORECASE,
)
"""A server address without a scheme: a name with dots, an IP address, or a host with a port."""
_BETWEEN = re.compile(r"(?:[\s,;|=\"'<>(){}]|//)+")
"""Separators of addresses without a scheme: spaces, and the marks of lists, pairs and JSON. `//` begins an address."""
BUILT_IN = frozenset(
    ("anthropic", "azure", "bedrock", "embedded", "llamacpp", "onnx", "openai", "openai-decisions", "scripted", "vertex")
)  # fmt: skip
"""The vendors of `judge.providers`. None of their options chooses a server."""


@dataclass(frozen=True, slots=True)
class Usual:
    """A vendor's domain, the variables with its keys, and the variable that names another server."""

    domain: str
    keys: tuple[str, ...]
    base_url: str


_OPENAI = Usual("openai.com", ("OPENAI_API_KEY",), "OPENAI_BASE_URL")
_USUAL = {
    "openai": _OPENAI,
    "openai-decisions": _OPENAI,
    "anthropic": Usual("anthropic.com", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "ANTHROPIC_BASE_URL"),
}
"""The vendors that can be called without a key. Clouds (Azure, Bedrock, Vertex) always send credentials that
they find by themselves, so a server that a file names for them is never permitted just because it is on
this machine, or because the user asked it as another vendor. The credentials that they find are stored as
`azure/`, which cannot be the name of a variable.
"""

_named: set[tuple[str, str | None]] = set()
_named_folders: set[Path] = set()
# Also in memory: what the user names holds for this process even if the configuration folder is read-only.


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the user allows files to specify: the values of --allow."""

    hosts: Sequence[str] = ()
    variables: Sequence[str] = ()
    folders: Sequence[Path] = ()

    @classmethod
    def of(cls, values: Sequence[str]) -> Allowed:
        """Return the values of --allow by kind: env:VARIABLE, a folder (with a slash), or a host."""
        folders = [v for v in values if "/" in v and "://" not in v]
        variables = [v.partition(":")[2] for v in values if v.startswith("env:")]
        hosts = [v for v in values if v not in folders and not v.startswith("env:")]
        return cls(hosts, variables, [Path(folder) for folder in folders])

    def has(self, at: ServerAddress) -> bool:
        """Return whether --allow names the server, by its host, or by host and port."""
        return any(name == at.name and port in (None, at.port) for name, port in map(_named_host, self.hosts))


NOTHING_ALLOWED = Allowed()


def configuration_folder() -> Path:
    """Return the user's configuration folder, in which adjudge stores what it remembers."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The XDG specification says that a relative folder is ignored. It would be relative to the working
    # directory, which may belong to somebody else.
    return (folder if folder.is_absolute() else Path.home() / ".config") / "adjudge"


def check_server(
    source: str | Path | None,
    vendor: str,
    base_url: str | None,
    options: Mapping[str, str],
    allowed: Allowed = NOTHING_ALLOWED,
) -> dict[str, str]:
    """Return the provider options with which a server may be called, and remember the server.

    `source` is the file that specifies the server and the options, or None if the user does. A server that
    may not receive the vendor's usual key gets the option `key=none`. Raises UsageError, naming the host, the
    variable and the options to type, for anything that the file may not choose.
    """
    at = None if base_url is None else server(base_url)
    variables = [match[1] for value in options.values() if (match := _VARIABLE.fullmatch(value))]
    usual = _USUAL.get(vendor)
    implied = [] if usual else [f"{vendor}/"]
    if usual and "key" not in options:
        implied = [name for name in usual.keys if os.environ.get(name, "").strip()]
    if source is not None:
        places = [at] if at is not None else []
        places += [place for value in _of_plugins(vendor, options).values() for place in _addresses(value)]
        hosts = [place for place in places if not _is_permitted(place, vendor, allowed)]
        refused = [name for name in variables if not _may_receive(at, vendor, name, allowed)]
        if hosts or refused:
            raise _refusal(source, hosts, refused)
        # Also where no key is set: the vendors' clients find more in the environment (OPENAI_ORG_ID).
        sent = (implied or usual.keys[:1]) if usual and "key" not in options else []
        if not all(_may_receive(at, vendor, name, allowed) for name in sent):
            options, implied = {**options, "key": NO_KEY}, []
    for name in [*variables, *implied] or [None]:
        _remember_server(at, vendor, name)
    return dict(options)


def is_permitted(vendor: str, base_url: str) -> bool:
    """Return whether a server that a file specifies may be called without an option. Printed commands only
    contain such servers.
    """
    try:
        return _is_permitted(server(base_url), vendor, NOTHING_ALLOWED)
    except UsageError:
        return False


def without_servers(vendor: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the provider options for a printed command, without options that specify a forbidden server."""
    searched = _of_plugins(vendor, options)
    return {
        name: value
        for name, value in options.items()
        if all(_is_permitted(at, vendor, NOTHING_ALLOWED) for at in _addresses(searched.get(name, "")))
    }


def check_folder(source: Path, folder: Path, job_id: str, allowed: Allowed = NOTHING_ALLOWED) -> None:
    """Check the job folder that the study `source` specifies. Raises UsageError unless the user has specified
    that folder.

    The default folder of a job, beside the study, needs no permission.
    """
    real = folder.resolve()
    beside = source.resolve().parent
    # Both sides are resolved: a link in the default place could lead anywhere.
    is_default = real.parent.parent == beside and real.parent.suffix == ".jobs" and real.name == job_id
    if is_default or real in _named_folders or any(real == given.resolve() for given in allowed.folders):
        if not is_default:
            remember_folder(real)
        return
    if ["folder", str(real)] not in _remembered():
        raise UsageError(
            f"{source}: names the folder {real} for job {job_id}, which a study may not choose by itself; if it is yours: "
            + command("judge jobs read", job_id, "--allow", real, study=source)
        )


def file_in(folder: Path, name: str) -> Path:
    """Return the path of a file within a job's folder. Raises UsageError for a path outside it."""
    path = folder / name
    # Through a link, a job would post or overwrite another file of the user.
    if not name.isprintable() or Path(name).name != name or name in ("", "..") or path.is_symlink():
        raise UsageError(
            f"{path}: a study may only name files of its job's own folder, and no links; nothing was done"
        )
    return path


def remember_folder(folder: Path) -> None:
    """Remember a folder that the user named for a job."""
    real = folder.resolve()
    if real not in _named_folders:
        _named_folders.add(real)
        _append(["folder", str(real)])


def _is_permitted(at: ServerAddress, vendor: str, allowed: Allowed) -> bool:
    """Return whether a server that a file names may be called at all."""
    if _with_usual_key(at, vendor, allowed):
        return True
    if vendor not in _USUAL:
        return (at.origin, f"{vendor}/") in _servers()
    return at.is_loopback or any(origin == at.origin for origin, _ in _servers())


def _may_receive(at: ServerAddress | None, vendor: str, variable: str, allowed: Allowed) -> bool:
    """Return whether a permitted server may receive a variable. If `at` is None, the server is the vendor's
    usual one.
    """
    usual = _USUAL.get(vendor)
    is_usual = usual is not None and variable in usual.keys
    return (
        variable in allowed.variables
        or (_remembered_as(at, vendor), variable) in _servers()
        or (is_usual and (at is None or _with_usual_key(at, vendor, allowed)))
    )


def _with_usual_key(at: ServerAddress, vendor: str, allowed: Allowed) -> bool:
    """Return whether a server may get the vendor's usual key: the vendor's own, the environment's, or an allowed one."""
    usual = _USUAL.get(vendor)
    is_vendors = usual is not None and at.origin.startswith("https:") and at.is_within(usual.domain)
    if is_vendors or allowed.has(at):
        return True
    home = _home(vendor)
    return home is not None and home.origin == at.origin


def _refusal(source: str | Path, hosts: Sequence[ServerAddress], variables: Sequence[str]) -> UsageError:
    names = [f"the host {at.place}" for at in hosts] + [
        f"the environment variable {name}" for name in variables
    ]
    words = [f"--allow {at.place}" for at in hosts] + [f"--allow env:{name}" for name in variables]
    return UsageError(
        f"{source}: names {' and '.join(names)}, which a file may not choose by itself; if you trust it, "
        f"add {' '.join(words)}"
    )


def _of_plugins(vendor: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a plugin, which may name a server. No option of a built-in provider chooses a server."""
    return {} if vendor in BUILT_IN else options


def _addresses(value: str) -> list[ServerAddress]:
    """Return the addresses in a plugin's option, with or without a scheme."""
    addresses = [
        f"{'http' if scheme == 'http' else 'https'}://{place}" for scheme, place in _URL.findall(value)
    ]
    if not addresses:
        # A word in brackets is an IPv6 address, or the element of a list, so both readings are tried.
        words = [word for part in _BETWEEN.split(value) for word in (part, part.strip("[]"))]
        addresses = [f"https://{match[1]}" for word in words if (match := _PLACE.fullmatch(word))]
    return list(dict.fromkeys(server(url) for url in addresses))


def _named_host(given: str) -> tuple[str, int | None]:
    """Parse a value of --allow: the host, and its port (None: any port). Raises UsageError."""
    with suppress(UsageError):
        at = server(given if "://" in given else f"https://{given}")
        has_port = "://" in given or re.search(r":\d+\s*$", given) is not None
        return at.name, at.port if has_port else None
    raise UsageError(
        f"--allow {given}: write a host (gpu.lab), a host and a port (gpu.lab:8000), env:VARIABLE, or a folder (./jobs)"
    )


def _remembered_as(at: ServerAddress | None, vendor: str) -> str:
    """Return the name under which a server is remembered: its address, otherwise the server from the
    environment, otherwise the vendor's name.
    """
    home = _home(vendor) if at is None else at
    return vendor if home is None else home.origin


def _home(vendor: str) -> ServerAddress | None:
    """Return the server that the environment names for a vendor."""
    usual = _USUAL.get(vendor)
    named = os.environ.get(usual.base_url, "").strip() if usual else ""
    return server(named) if named else None


def _remember_server(at: ServerAddress | None, vendor: str, variable: str | None) -> None:
    origin = _remembered_as(at, vendor)
    pair = origin, variable
    is_known = any(known == origin for known, _ in _servers())
    needs_no_permission = variable is None and (at is None or at.is_loopback or is_known)
    usual = _USUAL.get(vendor)
    is_usual = usual is not None and variable in usual.keys and (at is None or at.is_within(usual.domain))
    # The credentials that a cloud's client finds by itself may only go to a server that the user has named.
    is_clouds = at is None and variable == f"{vendor}/"
    if not (needs_no_permission or is_usual or is_clouds or pair in _servers()):
        _named.add(pair)
        _append(["server", *pair])


def _servers() -> set[tuple[str, str | None]]:
    """Return the pairs of a server and a variable (None: no variable) that the user has named."""
    pairs = {(row[1], row[2]) for row in _remembered() if row[0] == "server" and len(row) == 3}
    return _named | {(origin, name) for origin, name in pairs if origin is not None}


def _remembered() -> list[list[str | None]]:
    """Return the lines of the file; malformed lines are skipped."""
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
    """Add a line. If the file cannot be written, the permission is only valid in this process."""
    with suppress(OSError):
        configuration_folder().mkdir(parents=True, exist_ok=True)
        path = configuration_folder() / FILE
        # Private to the user, whatever the umask: whoever could write this file would choose who receives
        # keys.
        with open(
            path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)
        ) as file:
            file.write(json.dumps(row) + "\n")
