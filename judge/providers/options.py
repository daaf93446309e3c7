"""Parse the `--option` values that every HTTP provider accepts in addition to its vendor's own options.

    body.a.b=JSON       field b of object a in the body of every request; body=JSON sets several fields
    header.X=env:NAME   header X with the value of the environment variable NAME
    query.k=VALUE       k=VALUE in the query of every URL; query.k=env:NAME takes the value from NAME
    key=env:NAME        the API key is in NAME instead of the vendor's usual variable; key=none sends no key

Values from the environment are looked up when the connection is made. They are never stored, logged or shown.
A run stores only the names of headers.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from judge.errors import KeyProblem, UsageError
from judge.permissions import NO_KEY
from judge.types import Json

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# Headers that aiohttp writes itself, and headers that would change the request that is counted.
_NOT_OURS = {"host", "content-length", "transfer-encoding", "connection", "content-type", "content-encoding"}
FLAGS = {
    "temperature": "--temperature",
    "seed": "--seed",
    "max_tokens": "--max-output-tokens",
    "max_completion_tokens": "--max-output-tokens",
    "logprobs": "--answers",
    "top_logprobs": "--answers",
    "response_format": "--answers",
    "model": "-m",
}
# A second choice (`n`) would be paid for but not used, and streams are not requested.
_WRITTEN = {"messages", "system", "stream", "stream_options", "n"}


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The parsed options.

    `vendor_options` contains the vendor's options as typed. `body` contains fields for every request.
    `headers` and `query` map names to values. Values of the form `env:NAME` have not been looked up yet.
    `key` is the environment variable that contains the API key, or None for the vendor's usual variable.
    """

    vendor_options: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Json] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    is_keyless: bool = False
    """Whether to withhold all credentials from the environment, except for the headers and query parameters that
    are set here.
    """

    def identity(self) -> dict[str, str]:
        """Return the options that are part of a run's identity.

        These are the vendor options, body fields and query parameters as typed, and the names of headers. The
        NAME in `env:NAME` is omitted, because the name of a variable does not affect the answers.
        """
        named = {f"header.{name}": "env:" for name in self.headers}
        named |= {f"query.{k}": "env:" if v.startswith("env:") else v for k, v in self.query.items()}
        # The body is sorted JSON, because the order in which its fields were typed does not make a different judge.
        return {**self.vendor_options, **({"body": _canonical(self.body)} if self.body else {}), **named}

    def has_header(self, header: str) -> bool:
        """Return whether these options set the header."""
        return header.lower() in self.headers


@dataclass(frozen=True, slots=True)
class LookedUpOptions:
    """Headers and query parameters with their values. `secrets` lists the values that messages must not contain."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def parse_options(
    vendor: str,
    given: Mapping[str, str] | None,
    known: Collection[str],
    taken: Collection[str] = FLAGS,
) -> ServerOptions:
    """Parse the options of an HTTP provider.

    `known` lists the vendor's own options, and `taken` lists the body fields that are set by command-line
    flags. Raises UsageError for an unknown option, an invalid value, or a field that has its own flag.
    """
    vendor_options: dict[str, str] = {}
    body: dict[str, Json] = {}
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    key, is_keyless = None, False
    for name, value in (given or {}).items():
        part, _, rest = name.partition(".")
        if name in known:
            vendor_options[name] = value
        elif name == "key" and value == NO_KEY:
            is_keyless = True
        elif name == "key":
            key = _variable(name, value)
        elif part == "body":
            _set_field(body, name, rest, value, taken)
        elif part == "header" and rest:
            headers[_header(name, rest)] = f"env:{_variable(name, value)}"
        elif part == "query" and rest:
            query[rest] = f"env:{_variable(name, value)}" if value.startswith("env:") else value
        else:
            more = "body.FIELD, header.NAME, query.NAME, key"
            raise UsageError(f"{vendor} has no option '{name}' (known: {', '.join([*sorted(known), more])})")
    return ServerOptions(vendor_options, body, headers, query, key, is_keyless)


def look_up(options: ServerOptions) -> LookedUpOptions:
    """Look up the values in the environment. Raises KeyProblem if a variable is not set or cannot be sent."""
    headers = {name: _value(f"header.{name}", value) for name, value in options.headers.items()}
    query = {k: _value(f"query.{k}", v) if v.startswith("env:") else v for k, v in options.query.items()}
    kept = [*headers.values(), *(query[k] for k, v in options.query.items() if v.startswith("env:"))]
    # Servers may repeat a header such as `Bearer …` without its first word, or a URL with the value
    # percent-encoded. All of these forms are secret.
    parts = [part for value in kept for part in (value, value.rpartition(" ")[2], quote(value, safe=""))]
    return LookedUpOptions(headers, query, tuple(dict.fromkeys(parts)))


def merge(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return `ours` merged recursively with `theirs`. If both have a value, the value from `theirs` is used."""
    out = dict(ours)
    for name, value in theirs.items():
        inner = out.get(name)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        out[name] = merge(inner, value) if both and inner is not None else value
    return out


def _set_field(body: dict[str, Json], option: str, path: str, text: str, taken: Collection[str]) -> None:
    """Set one field of the request body from the value of an option."""
    try:
        value = json.loads(text, parse_constant=lambda word: _refuse_number(option, word))
    except (ValueError, RecursionError):
        raise UsageError(
            f"--option {option}: the value is not valid JSON; strings need quotes: {option}='\"...\"'"
        ) from None
    names = path.split(".") if path else []
    if not all(names):
        raise UsageError(f"--option {option}: the path contains an empty name; write body.FIELD.FIELD=JSON")
    if not names and not isinstance(value, dict):
        raise UsageError("--option body: must be a JSON object; to set a single field, use body.FIELD=JSON")
    for name in reversed(names):
        value = {name: value}
    for name in value:
        if name in _WRITTEN or name in taken:
            how = f"use {FLAGS[name]}" if name in FLAGS else "adjudge sets it itself"
            raise UsageError(f"--option body.{name}: this field cannot be set here; {how}")
    body.update(merge(body, value))


def _refuse_number(option: str, word: str) -> None:
    # Python's parser accepts NaN and Infinity, which are not valid JSON and which servers reject.
    raise UsageError(f"--option {option}: {word} is not a JSON number")


def _header(option: str, name: str) -> str:
    if not _HEADER.fullmatch(name) or name.lower() in _NOT_OURS:
        raise UsageError(f"--option {option}: this header cannot be set")
    return name.lower()


def _variable(option: str, value: str) -> str:
    """Return the NAME in `env:NAME`. Raises UsageError if the value has a different form.

    The error does not repeat the value, because the value may be a secret.
    """
    before, colon, name = value.partition(":")
    if before != "env" or not colon or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(
            f"--option {option}: put the value into an environment variable NAME and write {option}=env:NAME, "
            "so that it is neither stored nor shown"
        )
    return name


def _value(option: str, reference: str) -> str:
    name = reference.removeprefix("env:")
    value = os.environ.get(name, "").strip()
    if not value:
        raise KeyProblem(f"--option {option}: the environment variable {name} is not set")
    # A line break would end the header and begin another one.
    if not value.isascii() or not value.isprintable():
        raise KeyProblem(
            f"--option {option}: the environment variable {name} contains characters that cannot be sent"
        )
    return value


def _canonical(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
