"""Check that a plugin's provider has what the runner uses, before a run begins."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from judge import plugins
from judge.types import Reply

if TYPE_CHECKING:
    from judge.providers.base import Provider


def lack_of_class(provider: Any) -> str | None:
    """Return what a provider's class lacks, before it is instantiated, or None if it lacks nothing. A factory
    function is not checked, because it is not a class.
    """
    if isinstance(provider, type) and not hasattr(provider, "complete"):
        return "it has no 'complete'"
    return None


def lack(provider: Any) -> str | None:
    """Return why an object cannot be used as a provider, or None if it can.

    Methods that do not need a model are called. The result of `complete` is checked at a run's first reply.
    """
    # A plain function would fail only when it is awaited, after the run has begun.
    for name in ("open", "complete", "close"):
        method = getattr(provider, name, None)
        if not inspect.iscoroutinefunction(method):
            return f"it has no '{name}'" if method is None else f"its '{name}' is not an 'async def'"
    returned = inspect.signature(provider.complete).return_annotation
    # Annotations are strings in a module that does not evaluate them.
    if returned is not inspect.Signature.empty and returned not in (Reply, "Reply", "types.Reply"):
        return f"its 'complete' returns {getattr(returned, '__name__', returned)}, not judge.types.Reply"
    for name, required in (("label_codes", "True or False"), ("max_concurrency", "None or a number from 1")):
        if not hasattr(provider, name):
            return f"it has no '{name}' ({required}); judge.providers.base.BaseProvider gives one"
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
    # The facts are stored with the run as JSON.
    try:
        json.dumps(dict(facts))
    except (TypeError, ValueError) as error:
        return f"its 'describe' returns a value that is not JSON: {error}"
    return None


def check_reply(provider: Provider, reply: object) -> None:
    """Raise PluginFailed, naming the provider's module and its package, if the object is not a Reply."""
    if isinstance(reply, Reply) and isinstance(reply.text, str):
        return
    module = (
        f"a Reply whose text is {type(reply.text).__name__}"
        if isinstance(reply, Reply)
        else type(reply).__name__
    )
    package = plugins.package_of(provider)
    raise plugins.PluginFailed(
        f"{type(provider).__module__}.{type(provider).__name__}{f' of {package}' if package else ''}: 'complete' returned "
        f"{module}, not judge.types.Reply with a text (docs/plugins.md)"
    )
