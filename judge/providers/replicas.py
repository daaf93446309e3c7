"""One model on several servers that share the calls. A server may be unreachable during part of a run."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from judge.errors import ProviderError, UsageError
from judge.providers import base
from judge.providers.base import Masks, NoLimits, Provider, Purse, Settings
from judge.types import Json, Reply, Request


def make_replicas(model: str, settings: Settings) -> Provider:
    """Return the provider for `vendor/model`, without opening it.

    The provider uses the base URL and all replicas in the settings. Raises the same errors as `base.get`, and
    UsageError if an address is given twice.
    """
    if not settings.replicas:
        return base.get(model, settings)
    urls = [url for url in (settings.base_url, *settings.replicas) if url]
    # A server that is named twice would get twice as many concurrent calls as the user set.
    if len({url.rstrip("/") for url in urls}) < len(urls):
        raise UsageError("--base-url: the same address is given twice")
    return Replicas([base.get(model, replace(settings, base_url=url, replicas=())) for url in urls])


def replicas(provider: Provider) -> Sequence[Provider]:
    """Return a provider's replicas. If it has no replicas, return only the provider itself."""
    return provider.members if isinstance(provider, Replicas) else [provider]


class Replicas:
    """The same model on several servers.

    A run uses label codes or a mask only if all opened servers support them.
    """

    def __init__(self, members: Sequence[Provider]) -> None:
        self.members = list(members)
        self.label_codes = False
        self.max_concurrency = members[0].max_concurrency
        self.mask: str | None = None
        self.chosen_mask: str = getattr(members[0], "chosen_mask", "auto")
        # The runner gives each member its own purse. This one only shows that `open` may send paid probes.
        self.purse: Purse = NoLimits()
        self._failed: list[Provider] = []

    async def open(self) -> None:
        """Open all servers. Raises the first permanent error, or the first error if no server can be opened."""
        outcomes = await asyncio.gather(*(m.open() for m in self.members), return_exceptions=True)
        errors = [e for e in outcomes if isinstance(e, BaseException)]
        lasting = [e for e in errors if not (isinstance(e, ProviderError) and e.retryable)]
        if lasting or len(errors) == len(outcomes):
            raise (lasting or errors)[0]
        self._failed = [m for m, e in zip(self.members, outcomes, strict=True) if e is not None]
        # A run cannot use an answer mode that one of its servers lacks.
        self.label_codes = all(member.label_codes for member in self._open_ones())
        # One mask on all servers, or none: answers with and without a mask belong to different judges.
        masks = {member.mask if isinstance(member, Masks) else None for member in self._open_ones()}
        self.mask = next(iter(masks)) if len(masks) == 1 else None
        self.set_mask(self.mask)

    def set_mask(self, mask: str | None, alternatives: int | None = None) -> None:
        """Use this mask on all servers, including unreachable ones. None means that no mask is used."""
        for member in self.members:
            if isinstance(member, Masks):
                member.set_mask(mask, alternatives)

    def _open_ones(self) -> list[Provider]:
        return [m for m in self.members if m not in self._failed]

    async def complete(self, request: Request) -> Reply:
        """Send the request to the first opened server. The runner does not use this method; it calls the
        servers directly.
        """
        return await self._open_ones()[0].complete(request)

    async def close(self) -> None:
        """Close all servers."""
        await asyncio.gather(*(member.close() for member in self.members))

    def describe(self) -> Mapping[str, Json]:
        """Return the facts of the first opened server. `replicas` maps each address to the name of its model."""
        all_of_them = [(m, m.describe()) for m in self.members]
        names = {
            str(d.get("base_url")): None if m in self._failed else d.get("reports") for m, d in all_of_them
        }
        first = self._open_ones()[0].describe()
        return {**first, "base_url": all_of_them[0][1].get("base_url"), "replicas": names}
