"""The provider interface, and the look-up of a provider by `vendor/model`.

A provider sends one request and returns one reply, or raises a ProviderError. It never retries, waits or counts:
the runner is responsible for retries, rate limits and budgets. Keys come from the environment.
"""

import importlib
import os
import pkgutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from judge import plugins
from judge.errors import AdjudgeError, UsageError
from judge.providers.conformance import lack, lack_of_class
from judge.types import Json, Reply, Request


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings from the command line for a provider. `timeout` is in seconds, for one call."""

    base_url: str | None = None
    timeout: float = 120.0
    options: Mapping[str, str] | None = None
    """Provider options from `--option key=value` (llamacpp: n_ctx, threads; scripted: script)."""
    replicas: Sequence[str] = ()
    """Base URLs of further servers with the same model."""

    def vendor_options(self, vendor: str, *known: str) -> dict[str, str]:
        """Return the options. Raises UsageError unless all of them are among the known names."""
        options = dict(self.options or {})
        if unknown := sorted(set(options) - set(known)):
            raise UsageError(f"{vendor} has no option '{unknown[0]}' (known: {', '.join(known) or 'none'})")
        return options

    def whole(self, name: str, default: int) -> int:
        """Return an option that must be a positive whole number. Raises UsageError if it is not."""
        text = (self.options or {}).get(name, str(default))
        if not (text.isdecimal() and int(text)):
            raise UsageError(f"--option {name}={text}: must be a positive whole number")
        return int(text)


@dataclass(frozen=True, slots=True)
class Needs:
    """The requirements of a provider, for `judge models show`. Each provider's module states them as `NEEDS`.

    `key` is an environment variable, `packages` are names to import and `install` the command that installs
    them; `examples` are example models. `there` checks any other requirement (such as weights), and `needs`
    describes it.
    """

    examples: str = ""
    key: str | None = None
    packages: Sequence[str] = ()
    install: str = ""
    needs: str = ""
    there: Callable[[], bool] | None = None

    @property
    def words(self) -> str:
        """A description of the requirements."""
        parts = [f"{self.key} in the environment"] if self.key else []
        parts += [self.install] if self.packages else []
        return "; ".join([*parts, *([self.needs] if self.needs else [])]) or "nothing"

    def are_met(self) -> bool:
        """Return whether all requirements are met. Packages are searched for without importing them."""
        has_key = not self.key or bool(os.environ.get(self.key))
        return has_key and all(map(_is_there, self.packages)) and (self.there is None or self.there())


def _is_there(package: str) -> bool:
    """Return whether a package can be imported, without importing it; only its parent package is imported."""
    try:
        return find_spec(package) is not None
    # The parent package is missing, as `google` of `google.auth`.
    except ModuleNotFoundError:
        return False


def packaged(package: str, pattern: str) -> Path | None:
    """Return the path of a file in an installed package, without importing the package. Return None if the
    file is missing.
    """
    spec = find_spec(package)
    folders = (spec.submodule_search_locations or []) if spec else []
    # Sorted, so that every machine finds the same one of several files.
    return next((path for folder in folders for path in sorted(Path(folder).glob(pattern))), None)


def cores() -> int:
    """Return the number of cores that this process may use (macOS does not report it)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Provider(Protocol):
    """One model from one vendor, opened once per run. `BaseProvider` has defaults for everything except `complete`.

    Created as `Provider(name, settings)`: `name` is the part of `-m` after the vendor's slash. The
    constructor raises UsageError for an unknown name or option, and does not connect to anything before
    `open`.
    """

    label_codes: bool
    """Whether the model returns token log-probabilities for a one-character or one-word answer (known after
    `open`).
    """
    max_concurrency: int | None
    """Useful number of concurrent calls; None = no limit."""

    async def open(self) -> None:
        """Connect or load, and probe what the model supports. Raises ProviderError."""

    async def complete(self, request: Request) -> Reply:
        """Send one request. Raises ProviderError, and no other exception, if there is no reply."""

    async def close(self) -> None:
        """Release the resources that `open` acquired. Safe to call twice."""

    def describe(self) -> Mapping[str, Json]:
        """Return the facts to store with a run (base URL without credentials, output format). They must not
        contain secrets.
        """


class BaseProvider:
    """The base class of providers that do not use a vendor's client, whether built in or from a plugin.
    Everything except `complete` has a default.

    A subclass without `complete` is rejected before it is instantiated (`lack_of_class`). `name` is the part
    of `-m` after the vendor's slash; `settings` contains the servers and options from the command line.
    """

    label_codes: bool = False
    max_concurrency: int | None = None

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.settings = name, settings

    async def open(self) -> None:
        """Do nothing, because there is no connection."""

    async def close(self) -> None:
        """Do nothing, because there is nothing to release."""

    def describe(self) -> Mapping[str, Json]:
        """Return no facts."""
        return {}


Send = Callable[[], Awaitable[Reply | None]]
"""Sends one call and returns its reply, or None if the server's refusal is itself the answer."""


class Purse(Protocol):
    """Accounts for the start-up probes with which a provider finds out what its server supports."""

    async def pay(
        self, request: Request, send: Send, is_needed: Callable[[], bool] = lambda: True
    ) -> Reply | None:
        """Count a call of the request and return the result of `send`. Raises LimitReached if the call could
        exceed a limit.

        If a call has waited for its turn and is no longer needed, it is not sent and None is returned.
        """


class NoLimits:
    """A purse without limits."""

    async def pay(
        self, request: Request, send: Send, is_needed: Callable[[], bool] = lambda: True
    ) -> Reply | None:
        """Return the result of `send`."""
        return await send() if is_needed() else None


@runtime_checkable
class Probing(Protocol):
    """A provider whose `open` makes paid start-up probes. Each of them goes through the provider's purse."""

    purse: Purse


@runtime_checkable
class Learning(Protocol):
    """A provider that probes its server and can reuse the results stored in a study.

    `learnt_at` is the time of the probes (ISO 8601), empty before them.
    """

    learnt_at: str

    def learnt(self) -> Json:
        """Return the results of the probes so far, for `recall` in a later process."""

    def recall(self, learnt: Json, at: str) -> None:
        """Reuse the results of earlier probes, so that `open` makes none. Invalid results are ignored."""


@runtime_checkable
class PairReader(Protocol):
    """A classifier: a provider that compares a statement with its evidence, without a prompt."""

    reads_pairs: bool

    def suit(self, task: str, labels: Sequence[str]) -> None:
        """Prepare for these labels. Raises UsageError if the model does not support them."""


@runtime_checkable
class Masks(Protocol):
    """A provider whose server may restrict answers to the choices (known after `open`)."""

    mask: str | None
    """The mask in use, None = none."""
    chosen_mask: str
    """The user's choice: auto, none, or the name of a mask."""

    def hold(self, mask: str | None, alternatives: int | None = None) -> None:
        """Use this mask, or none, from now on. With the mask, `alternatives` alternatives are requested for
        each token.
        """


def vendors() -> list[str]:
    """Return all vendors, which are the modules of this package."""
    package = importlib.import_module("judge.providers")
    # The other modules are vendors. Beside its file, a new vendor is named in `BUILT_IN` of judge/permissions.py only.
    shared = {
            "base", "bill", "chat", "conformance", "connections", "features", "http", "masks", "options", "replicas", "sessions", "tokens", "vendor", "waits"
        }  # fmt: skip
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name not in shared]
    return sorted(n.replace("_", "-") for n in names)


def is_model(name: str) -> bool:
    """Return whether a name has the form `vendor/model` with an existing vendor, built in or from a plugin."""
    vendor, _, model = name.partition("/")
    return bool(model) and (vendor in vendors() or vendor in plugins.names("providers"))


def needs(vendor: str) -> Needs:
    """Return the requirements stated in a vendor's module, which are empty if a plugin states none. Raises
    PluginFailed or UsageError.
    """
    requirements = getattr(_module(vendor), "NEEDS", Needs())
    # A plugin may use this name for something else.
    return requirements if isinstance(requirements, Needs) else Needs()


def _module(vendor: str) -> Any:
    """Return the module of a built-in vendor or of a plugin. Raises UsageError or PluginFailed."""
    if vendor in vendors():
        return importlib.import_module(f"judge.providers.{vendor.replace('-', '_')}")
    module = plugins.find("providers", vendor)
    if module is None:
        raise UsageError(f"unknown vendor '{vendor}'; available: {', '.join(vendors())}")
    return module


def get(model: str, settings: Settings | None = None) -> Provider:
    """Return the unopened provider for `vendor/model`. It only uses the base URL, even if there are replicas.

    Raises UsageError if the vendor is unknown or the model name is missing, and PluginFailed if a plugin's
    provider lacks something that the runner uses.
    """
    vendor, _, name = model.partition("/")
    if not is_model(model):
        known = [*vendors(), *plugins.names("providers")]
        raise UsageError(
            f"model '{model}' must have the form vendor/name, and vendor must be one of: {', '.join(known)} "
            "(for example openai/gpt-5-mini, or llamacpp/smollm2)"
        )
    module, given = _module(vendor), settings or Settings()
    if vendor in vendors():
        # Only foreign code is checked here. Types and tests check the built-in providers.
        provider: Provider = module.Provider(name, given)
        return provider
    try:
        why = lack_of_class(module.Provider)
        made = None if why else module.Provider(name, given)
        why = why or lack(made)
    # A complaint about the name or the options is meant for the user, and no fault of the plugin.
    except AdjudgeError:
        raise
    except Exception as error:
        # Foreign code can raise anything. The user must learn which package did.
        why = f"it cannot be created: {type(error).__name__}: {error}"
    if why:
        raise plugins.failed("providers", vendor, why)
    return cast(Provider, made)


def problem_of(vendor: str) -> str | None:
    """Return the fault of a plugin's provider. Return None if it has none, or if it cannot be created without
    a real model name.
    """
    try:
        get(f"{vendor}/check")
    except plugins.PluginFailed as problem:
        return str(problem)
    except AdjudgeError:
        return None
    return None
