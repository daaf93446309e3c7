"""The provider interface, and the function `get`, which returns the provider for `vendor/model`.

A provider sends one request and returns one reply, or raises a ProviderError. It never retries, waits or
counts calls: the runner is responsible for retries, rate limits and budgets. API keys come from the
environment.
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
from judge.providers.conformance import find_class_lack, find_lack
from judge.types import Json, Reply, Request


@dataclass(frozen=True, slots=True)
class Settings:
    """A provider's settings from the command line. `timeout` is in seconds per call."""

    base_url: str | None = None
    timeout: float = 120.0
    options: Mapping[str, str] | None = None
    """Options from `--option key=value`, for example `n_ctx` for llamacpp or `script` for scripted."""
    replicas: Sequence[str] = ()
    """Base URLs of additional servers that serve the same model."""

    def vendor_options(self, vendor: str, *known: str) -> dict[str, str]:
        """Return the options. Raises UsageError if an option is not in `known`."""
        options = dict(self.options or {})
        if unknown := sorted(set(options) - set(known)):
            raise UsageError(f"{vendor} has no option '{unknown[0]}' (known: {', '.join(known) or 'none'})")
        return options

    def get_whole(self, name: str, default: int) -> int:
        """Return the value of an option. Raises UsageError if the value is not a positive integer."""
        text = (self.options or {}).get(name, str(default))
        if not (text.isdecimal() and int(text)):
            raise UsageError(f"--option {name}={text}: must be a positive integer")
        return int(text)


@dataclass(frozen=True, slots=True)
class Needs:
    """The requirements of a provider, which `judge models show` lists.

    Each provider module defines its requirements as `NEEDS`.

    `examples` lists example models. `key` is the environment variable for the API key. `packages` lists the
    modules that must be importable, and `install` says how to install them. `there` checks any other
    requirement, such as model weights, and `needs` describes that requirement.
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
        """Return whether all requirements are met. Packages are looked up without importing them."""
        has_key = not self.key or bool(os.environ.get(self.key))
        return has_key and all(map(_is_there, self.packages)) and (self.there is None or self.there())


def _is_there(package: str) -> bool:
    """Return whether a package is installed. Only its parent package is imported."""
    try:
        return find_spec(package) is not None
    # The parent package is missing, for example `google` for `google.auth`.
    except ModuleNotFoundError:
        return False


def find_in_package(package: str, pattern: str) -> Path | None:
    """Return the path of the first file in an installed package that matches the pattern.

    Return None if no file matches. The package is not imported.
    """
    spec = find_spec(package)
    folders = (spec.submodule_search_locations or []) if spec else []
    # Sorted, so that every machine selects the same file if several match.
    return next((path for folder in folders for path in sorted(Path(folder).glob(pattern))), None)


def cores() -> int:
    """Return the number of cores that this process may use.

    macOS does not report this number, so all cores are counted on macOS.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Provider(Protocol):
    """The interface to one model, which is opened once per run.

    `BaseProvider` has defaults for all methods except `complete`. The constructor is called as
    `Provider(name, settings)`, where `name` is the part of `-m vendor/name` after the slash. It raises
    UsageError if the name or an option is unknown. Only `open` may connect to a server.
    """

    label_codes: bool
    """Whether the model returns log-probabilities for one-character or one-word answers. Known after `open`.
    """
    max_concurrency: int | None
    """The maximum useful number of concurrent calls, or None if there is no limit."""

    async def open(self) -> None:
        """Connect to the server or load the model, and find out which features the server or model supports.

        Raises ProviderError.
        """

    async def complete(self, request: Request) -> Reply:
        """Send one request and return the reply.

        Raises ProviderError, and no other exception, if there is no reply.
        """

    async def close(self) -> None:
        """Release the resources that `open` acquired. This method may be called twice."""

    def describe(self) -> Mapping[str, Json]:
        """Return the facts to store with a run, such as the base URL without credentials and the output
        format.

        The facts must not contain secrets.
        """


class BaseProvider:
    """Base class for providers that do not use a vendor's client, whether built in or from plugins.

    All methods except `complete` have defaults.

    `name` is the part of `-m vendor/name` after the slash. `settings` contains the server addresses and
    options from the command line.
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
        """Return an empty mapping."""
        return {}


Send = Callable[[], Awaitable[Reply | None]]
"""Sends one probe and returns the reply, or None if the server does not support the probed feature."""


class Purse(Protocol):
    """Counts a provider's start-up probes against the run's limits.

    The probes find out which features a server supports.
    """

    async def pay(
        self, request: Request, send: Send, is_needed: Callable[[], bool] = lambda: True
    ) -> Reply | None:
        """Count one call with this request, and return the result of `send`.

        `is_needed` is checked just before the call is sent. If it returns False, the call is not sent and the
        result is None.
        Raises LimitReached if the call could exceed a limit.
        """


class NoLimits:
    """A `Purse` without limits: it sends every probe that is needed."""

    async def pay(
        self, request: Request, send: Send, is_needed: Callable[[], bool] = lambda: True
    ) -> Reply | None:
        """Return the result of `send`, or None if the call is not needed."""
        return await send() if is_needed() else None


@runtime_checkable
class Probing(Protocol):
    """A provider whose `open` sends start-up probes, which cost money.

    Each probe is sent through `purse`, which counts it against the run's limits.
    """

    purse: Purse


@runtime_checkable
class Learning(Protocol):
    """A provider that probes its server, and that can reuse probe results stored in a study.

    `learnt_at` is the time of the probes (ISO 8601). It is empty if there were no probes.
    """

    learnt_at: str

    def learnt(self) -> Json:
        """Return the probe results in a form that `recall` accepts in a later process."""

    def recall(self, learnt: Json, at: str) -> None:
        """Reuse earlier probe results, so that `open` sends no probes. Invalid results are ignored."""


@runtime_checkable
class PairReader(Protocol):
    """A provider for a classifier. The classifier compares a statement with its evidence and reads no prompt."""

    reads_pairs: bool

    def prepare_labels(self, task: str, labels: Sequence[str]) -> None:
        """Prepare to answer with these labels. Raises UsageError if the model cannot answer with them."""


@runtime_checkable
class Masks(Protocol):
    """A provider whose server may be able to restrict an answer to the choices.

    Whether the server can do so is known after `open`.
    """

    mask: str | None
    """The mask in use, or None if no mask is used."""
    chosen_mask: str
    """The user's choice of mask: `auto`, `none`, or the name of a mask."""

    def set_mask(self, mask: str | None, alternatives: int | None = None) -> None:
        """Use this mask in all later requests. If it is None, answers are not restricted.

        With a mask, each request asks for the `alternatives` most probable tokens at each position.
        """


def vendors() -> list[str]:
    """Return the names of the built-in vendors. Each vendor is a module in this package."""
    package = importlib.import_module("judge.providers")
    # All other modules are vendors. A new vendor must also be added to `BUILT_IN` in judge/permissions.py.
    shared = {
            "base", "bill", "chat", "conformance", "connections", "features", "http", "keys", "masks", "options", "replicas", "sessions", "tokens", "vendor", "waits"
        }  # fmt: skip
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name not in shared]
    return sorted(n.replace("_", "-") for n in names)


def is_model(name: str) -> bool:
    """Return whether a name has the form `vendor/model`, where the vendor is built in or comes from a plugin."""
    vendor, _, model = name.partition("/")
    return bool(model) and (vendor in vendors() or vendor in plugins.names("providers"))


def get_needs(vendor: str) -> Needs:
    """Return the requirements that a vendor's module defines. They are empty if a plugin defines none.

    Raises PluginFailed or UsageError.
    """
    requirements = getattr(_module(vendor), "NEEDS", Needs())
    # A plugin may use this name for something else.
    return requirements if isinstance(requirements, Needs) else Needs()


def _module(vendor: str) -> Any:
    """Return a vendor's module.

    Raises UsageError if the vendor is unknown, and PluginFailed if a plugin is broken.
    """
    if vendor in vendors():
        return importlib.import_module(f"judge.providers.{vendor.replace('-', '_')}")
    module = plugins.find("providers", vendor)
    if module is None:
        raise UsageError(f"unknown vendor '{vendor}'; available: {', '.join(vendors())}")
    return module


def get(model: str, settings: Settings | None = None) -> Provider:
    """Return the provider for `vendor/model`, without opening it. Replicas in the settings are ignored.

    Raises UsageError if the vendor is unknown or the model name is missing, and PluginFailed if a plugin's
    provider lacks an attribute or method that the runner uses.
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
        # Only third-party code is checked here. Built-in providers are checked by mypy and by tests.
        provider: Provider = module.Provider(name, given)
        return provider
    try:
        reason = find_class_lack(module.Provider)
        made = None if reason else module.Provider(name, given)
        reason = reason or find_lack(made)
    # An error about the model's name or options is meant for the user. It is not a fault of the plugin.
    except AdjudgeError:
        raise
    except Exception as error:
        # Third-party code can raise any exception, and the message must name the package.
        reason = f"it cannot be created: {type(error).__name__}: {error}"
    if reason:
        raise plugins.make_failure("providers", vendor, reason)
    return cast(Provider, made)


def problem_of(vendor: str) -> str | None:
    """Return what is wrong with a plugin's provider, or None if no fault was found.

    A provider that needs the name of a real model cannot be checked, so the result is None.
    """
    try:
        get(f"{vendor}/check")
    except plugins.PluginFailed as problem:
        return str(problem)
    except AdjudgeError:
        pass
    return None
