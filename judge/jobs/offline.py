"""A provider that is not asked: its requests are written for another program to run, and its replies read from files."""

from collections.abc import Mapping

from judge.errors import UsageError
from judge.jobs.lines import LIMITS, BatchReader
from judge.providers.base import Masks, Provider
from judge.types import Json, Reply, Request

ALTERNATIVES = 20
"""Of a token, the most that vLLM gives unless it was started with more."""


class Offline:
    """A model of a vendor's format without an address. `label_codes`: its answers will have probabilities.

    Nobody is there to find out what holds answers to the labels: `--option mask=` says it, or nothing does. Raises
    UsageError for a bias, which needs a server's token numbers.
    """

    max_concurrency: int | None = None

    def __init__(self, inner: Provider, label_codes: bool) -> None:
        reader = reader_of(inner)
        self._inner, self.label_codes = inner, label_codes
        # Written and read as the vendor's provider does it.
        self.body, self.read, self.refusal = reader.body, reader.read, reader.refusal
        self.chosen_mask = inner.chosen_mask if isinstance(inner, Masks) else "none"
        self.mask = None if self.chosen_mask in ("auto", "none") else self.chosen_mask
        if self.mask == "logit_bias":
            raise UsageError(
                "--option mask=logit_bias needs the token numbers that a server's /tokenize gives, and --offline asks "
                "none: mask=structured_outputs (vLLM), or another"
            )

    def hold(self, mask: str | None, alternatives: int | None = ALTERNATIVES) -> None:
        """As the vendor's provider writes it."""
        if isinstance(self._inner, Masks):
            self._inner.hold(mask, alternatives)

    async def open(self) -> None:
        """There is nothing to open."""

    async def complete(self, request: Request) -> Reply:
        """Raises UsageError: nobody is there."""
        raise UsageError("a job that is written for another program asks no server")

    async def close(self) -> None:
        """There is nothing to close."""

    def describe(self) -> Mapping[str, Json]:
        """What the vendor's provider says, without an address."""
        return {**self._inner.describe(), "base_url": None, "own_server": False, "reports": None}


def reader_of(provider: Provider) -> BatchReader:
    """The provider as one whose requests can be written to files. Raises UsageError for others."""
    known = all(hasattr(provider, name) for name in ("body", "read", "refusal"))
    if not known or provider.describe().get("vendor") not in LIMITS:
        raise UsageError(f"only models of {' and '.join(sorted(LIMITS))} are asked in batches")
    return provider  # type: ignore[return-value]
