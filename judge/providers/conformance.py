"""Before a run begins, check that a plugin's provider has everything that the runner uses."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from judge import plugins
from judge.types import Reply

if TYPE_CHECKING:
    from judge.providers.base import Provider


def find_class_lack(provider: Any) -> str | None:
    """Return an error message if a provider's class has no `complete`, otherwise None.

    A factory function is not checked, because it is not a class.
    """
    if isinstance(provider, type) and not hasattr(provider, "complete"):
        return "the method 'complete' is missing"
    return None


def find_lack(provider: Any) -> str | None:
    """Return the reason why an object cannot be used as a provider, or None if it can be used.

    `describe` is called, because it does not need a model. The result of `complete` is checked when a run
    receives its first reply.
    """
    # A plain function would fail only when it is awaited, after the run has begun.
    for name in ("open", "complete", "close"):
        method = getattr(provider, name, None)
        if not inspect.iscoroutinefunction(method):
            return f"the method '{name}' is missing" if method is None else f"'{name}' is not an 'async def'"
    returned = inspect.signature(provider.complete).return_annotation
    # Annotations are strings in a module that does not evaluate them.
    if returned is not inspect.Signature.empty and returned not in (Reply, "Reply", "types.Reply"):
        return f"'complete' returns {getattr(returned, '__name__', returned)} instead of judge.types.Reply"
    for name, required in (
        ("label_codes", "True or False"),
        ("max_concurrency", "None or a positive integer"),
    ):
        if not hasattr(provider, name):
            return f"the attribute '{name}' ({required}) is missing; inherit it from judge.providers.base.BaseProvider"
    if not isinstance(provider.label_codes, bool):
        return f"'label_codes' must be True or False, not {provider.label_codes!r}"
    most = provider.max_concurrency
    if most is not None and (not isinstance(most, int) or most < 1):
        return f"'max_concurrency' must be None or a positive integer, not {most!r}"
    if not callable(getattr(provider, "describe", None)):
        return "the method 'describe' is missing"
    facts = provider.describe()
    if not isinstance(facts, Mapping):
        return f"'describe' returns {type(facts).__name__} instead of a mapping"
    # The facts are stored with the run as JSON.
    try:
        json.dumps(dict(facts))
    except (TypeError, ValueError) as error:
        return f"'describe' returns a value that cannot be stored as JSON: {error}"
    return None


def check_reply(provider: Provider, reply: object) -> None:
    """Raise PluginFailed if the object is not a valid Reply.

    The error names the provider's module and package.
    """
    if isinstance(reply, Reply) and isinstance(reply.text, str):
        return
    module = (
        f"a Reply whose text has the type {type(reply.text).__name__}"
        if isinstance(reply, Reply)
        else type(reply).__name__
    )
    package = plugins.package_of(provider)
    raise plugins.PluginFailed(
        f"{type(provider).__module__}.{type(provider).__name__}{f' of {package}' if package else ''}: 'complete' returned "
        f"{module} instead of a judge.types.Reply whose text is a string (docs/plugins.md)"
    )
