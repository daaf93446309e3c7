"""What a provider is, and how `vendor/model` finds one.

A provider sends one request and returns one reply, or raises a ProviderError. It never retries,
waits or counts: the runner owns retries, rate limits and budgets. Keys come from the environment.
"""

import importlib
import inspect
import json
import os
import pkgutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from judge import plugins
from judge.errors import AdjudgeError, UsageError
from judge.types import Json, Reply, Request, Usage


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line passes to a provider. `timeout` is in seconds, for one call."""

    base_url: str | None = None
    timeout: float = 120.0
    options: Mapping[str, str] | None = None
    """Provider options given as `--option key=value` (llamacpp: n_ctx, threads; scripted: script)."""
    replicas: Sequence[str] = ()
    """Base URLs of more servers with the same model."""

    def own(self, vendor: str, *known: str) -> dict[str, str]:
        """The options of a provider that knows only these, in the order of their names. Raises UsageError for another."""
        given = dict(self.options or {})
        if unknown := sorted(set(given) - set(known)):
            raise UsageError(f"{vendor} has no option '{unknown[0]}' (known: {', '.join(known) or 'none'})")
        return given

    def whole(self, name: str, default: int) -> int:
        """An option that is a number from 1. Raises UsageError for what is none."""
        text = (self.options or {}).get(name, str(default))
        if not (text.isdecimal() and int(text)):
            raise UsageError(f"--option {name}={text}: not a positive whole number")
        return int(text)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a provider needs, as `judge models list` shows it: stated in the provider's own file as `NEEDS`.

    `key` is an environment variable, `packages` are names to import and `install` says how they come; `examples` are models.
    `there` tells of anything else that must be there (weights), and `needs` says it in words.
    """

    examples: str = ""
    key: str | None = None
    packages: Sequence[str] = ()
    install: str = ""
    needs: str = ""
    there: Callable[[], bool] | None = None

    @property
    def words(self) -> str:
        """What is needed, for people."""
        told = [f"{self.key} in the environment"] if self.key else []
        told += [self.install] if self.packages else []
        return "; ".join([*told, *([self.needs] if self.needs else [])]) or "nothing"

    def are_met(self) -> bool:
        """Whether all of it is there; packages are looked for and not imported."""
        found = not self.key or bool(os.environ.get(self.key))
        return found and all(map(_is_there, self.packages)) and (self.there is None or self.there())


def _is_there(package: str) -> bool:
    """Whether a package can be imported; the one above it is, where there is one."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def packaged(package: str, pattern: str) -> Path | None:
    """A file of an installed package, which is looked up and not imported; None where it is not there."""
    spec = find_spec(package)
    folders = (spec.submodule_search_locations or []) if spec else []
    return next((path for folder in folders for path in sorted(Path(folder).glob(pattern))), None)


def cores() -> int:
    """The cores that this process may use, where the system says so (not on macOS)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Provider(Protocol):
    """One model of one vendor, opened once per run. `BaseProvider` has a default for all but `complete`.

    Made as `Provider(name, settings)`: `name` is what follows the vendor's slash in `-m`. Raises UsageError for a name
    or an option that it does not know, and connects to nothing before `open`.
    """

    label_codes: bool
    """Token log-probabilities come back for a one-character or one-word answer (known after `open`)."""
    max_concurrency: int | None
    """Calls that make sense at once; None = no limit of its own."""

    async def open(self) -> None:
        """Connect or load, and find out what the model supports. Raises ProviderError."""

    async def complete(self, request: Request) -> Reply:
        """Send one request. Raises ProviderError, and nothing else, when there is no reply."""

    async def close(self) -> None:
        """Free what `open` took; safe to call twice."""

    def describe(self) -> Mapping[str, Json]:
        """Facts worth storing with a run (base URL without credentials, output format); no secrets."""


class BaseProvider:
    """The base class of a provider of one's own: what it inherits needs no connection and has nothing to tell.

    `name` is what follows the vendor's slash in `-m`, `settings` what the command line says of servers and options.
    """

    label_codes: bool = False
    max_concurrency: int | None = None

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.settings = name, settings

    async def open(self) -> None:
        """Nothing to connect to."""

    async def complete(self, request: Request) -> Reply:
        """Every provider has its own."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to free."""

    def describe(self) -> Mapping[str, Json]:
        """Return no facts."""
        return {}


def lack(provider: Any) -> str | None:
    """What keeps an object from being a provider that the runner can use; None when nothing does.

    What is called without a model is called; what `complete` returns is checked when a run has its first reply.
    """
    if getattr(type(provider), "complete", BaseProvider.complete) is BaseProvider.complete:
        return "it has no 'complete'"
    for name in ("open", "complete", "close"):
        method = getattr(provider, name, None)
        if not inspect.iscoroutinefunction(method):
            return f"it has no '{name}'" if method is None else f"its '{name}' is no 'async def'"
    returned = inspect.signature(provider.complete).return_annotation
    if returned is not inspect.Signature.empty and returned not in (Reply, "Reply", "types.Reply"):
        return f"its 'complete' returns {getattr(returned, '__name__', returned)}, not judge.types.Reply"
    for name, wanted in (("label_codes", "True or False"), ("max_concurrency", "None or a number from 1")):
        if not hasattr(provider, name):
            return f"it has no '{name}' ({wanted}); judge.providers.base.BaseProvider gives one"
    if not isinstance(provider.label_codes, bool):
        return f"its 'label_codes' is {provider.label_codes!r}, not True or False"
    most = provider.max_concurrency
    if most is not None and (not isinstance(most, int) or most < 1):
        return f"its 'max_concurrency' is {most!r}, not None or a number from 1"
    if not callable(getattr(provider, "describe", None)):
        return "it has no 'describe'"
    facts = provider.describe()
    if not isinstance(facts, Mapping):
        return f"its 'describe' returns {type(facts).__name__}, not a mapping"
    try:
        json.dumps(dict(facts))
    except (TypeError, ValueError) as error:
        return f"its 'describe' returns what is no JSON: {error}"
    return None


def check_reply(provider: Provider, reply: object) -> None:
    """Raises PluginFailed for what is no reply, naming the provider's module and the package that brought it."""
    if isinstance(reply, Reply) and isinstance(reply.text, str):
        return
    found = (
        f"a Reply whose text is {type(reply.text).__name__}"
        if isinstance(reply, Reply)
        else type(reply).__name__
    )
    package = plugins.package_of(provider)
    raise plugins.PluginFailed(
        f"{type(provider).__module__}.{type(provider).__name__}{f' of {package}' if package else ''}: 'complete' returned "
        f"{found}, not judge.types.Reply with a text (docs/plugins.md)"
    )


class Purse(Protocol):
    """Pays for the questions with which a provider finds out what its server can do."""

    async def pay(self, request: Request, send: Callable[[], Awaitable[Reply | None]]) -> Reply | None:
        """What `send` returns, counted as a call of the request. Raises LimitReached for one that could cross a limit."""


class NoLimits:
    """A purse that pays for everything; `took` has the tokens of each reply."""

    def __init__(self) -> None:
        self.took: list[Usage] = []

    async def pay(self, request: Request, send: Callable[[], Awaitable[Reply | None]]) -> Reply | None:
        """What `send` returns."""
        reply = await send()
        if reply is not None:
            self.took.append(reply.usage)
        return reply


@runtime_checkable
class Probing(Protocol):
    """A provider whose `open` asks its server questions that cost: each through its purse."""

    purse: Purse


@runtime_checkable
class Learning(Protocol):
    """A provider that asks its server what it can do, and can be told by a study that knows the answers.

    `learnt_at` is the time of the questions (ISO 8601), empty before them.
    """

    learnt_at: str

    def learnt(self) -> Json:
        """Return what is known of the server by now, for `recall` in a later process."""

    def recall(self, learnt: Json, at: str) -> None:
        """Take up what was known at that time, before `open`, which then asks no questions. What does not fit is ignored."""


@runtime_checkable
class PairReader(Protocol):
    """A provider that reads a statement and its evidence and no prompt: a classifier (known before `open`)."""

    reads_pairs: bool

    def suit(self, task: str, labels: Sequence[str]) -> None:
        """Get ready for these labels. Raises UsageError where the model has nothing to say of them."""


@runtime_checkable
class Masks(Protocol):
    """A provider whose server may hold the answer to the choices (known after `open`)."""

    mask: str | None
    """The mask that was found, None = there is none."""
    chosen_mask: str
    """What the user says of it: auto, none, or a mask by its name."""

    def hold(self, mask: str | None, alternatives: int | None = None) -> None:
        """Ask for this mask from now on, or for none; under it, for so many alternatives of a token."""


def vendors() -> list[str]:
    """Every vendor, by looking at the files of this package."""
    package = importlib.import_module("judge.providers")
    shared = {
            "base", "bill", "chat", "http", "masks", "options", "replicas", "sessions", "tokens", "vendor", "waits"
        }  # fmt: skip
    found = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name not in shared]
    return sorted(n.replace("_", "-") for n in found)


def is_model(name: str) -> bool:
    """Whether a name is `vendor/model` with a vendor that there is, built in or a plugin's."""
    vendor, _, model = name.partition("/")
    return bool(model) and (vendor in vendors() or vendor in plugins.names("providers"))


def needs(vendor: str) -> Needs:
    """What a vendor's file says that it needs; of a plugin that says nothing, nothing. Raises PluginFailed, UsageError."""
    found = getattr(_module(vendor), "NEEDS", Needs())
    return found if isinstance(found, Needs) else Needs()


def _module(vendor: str) -> Any:
    """The file of a vendor, a plugin's where none is built in. Raises UsageError, PluginFailed."""
    if vendor in vendors():
        return importlib.import_module(f"judge.providers.{vendor.replace('-', '_')}")
    found = plugins.find("providers", vendor)
    if found is None:
        raise UsageError(f"no vendor '{vendor}'; there are: {', '.join(vendors())}")
    return found


def get(model: str, settings: Settings | None = None) -> Provider:
    """The provider for `vendor/model`, not opened yet; for one address alone, whatever replicas the settings name.

    Raises UsageError when the vendor is unknown or the model is not named, PluginFailed where a plugin's provider lacks
    something that the runner uses.
    """
    vendor, _, name = model.partition("/")
    if not is_model(model):
        known = [*vendors(), *plugins.names("providers")]
        raise UsageError(
            f"model '{model}' is not vendor/name with a vendor of: {', '.join(known)} "
            "(for example openai/gpt-5-mini, or llamacpp/smollm2)"
        )
    module, given = _module(vendor), settings or Settings()
    if vendor in vendors():
        provider: Provider = module.Provider(name, given)
        return provider
    try:
        made = module.Provider(name, given)
        why = lack(made)
    except AdjudgeError:
        raise
    except Exception as error:
        why = f"it cannot be made: {type(error).__name__}: {error}"
    if why:
        raise plugins.failed("providers", vendor, why)
    return cast(Provider, made)


def problem_of(vendor: str) -> str | None:
    """What is wrong with the provider of a plugin, in words; None when nothing is, or when it refuses to be made without a real name."""
    try:
        get(f"{vendor}/check")
    except plugins.PluginFailed as problem:
        return str(problem)
    except AdjudgeError:
        return None
    return None
