"""A provider without a server: another program answers the requests in a file."""

from collections.abc import Mapping

from judge.errors import UsageError
from judge.jobs.lines import LIMITS, BatchReader
from judge.providers.base import BaseProvider, Masks, Provider
from judge.types import Json, Reply, Request

ALTERNATIVES = 20
"""The maximum number of alternatives for a token that vLLM returns by default."""


class Offline(BaseProvider):
    """A model that uses a vendor's request format but has no address.

    `label_codes` is True if the answers will have probabilities.

    To restrict answers to the labels, the user must name a method with `--option mask=`, because there is no
    server on which methods could be tried. Raises UsageError for the method `logit_bias`, which needs token
    ids from a server.
    """

    def __init__(self, inner: Provider, label_codes: bool) -> None:
        reader = reader_of(inner)
        self._inner, self.label_codes = inner, label_codes
        # Requests and replies have the format of the vendor's provider.
        self.body, self.parse_answer, self.refusal = reader.body, reader.parse_answer, reader.refusal
        self.chosen_mask = inner.chosen_mask if isinstance(inner, Masks) else "none"
        self.mask = None if self.chosen_mask in ("auto", "none") else self.chosen_mask
        if self.mask == "logit_bias":
            raise UsageError(
                "--option mask=logit_bias needs the token ids from a server's /tokenize, but --offline uses no server; "
                "choose mask=structured_outputs (vLLM) or another mask"
            )

    def set_mask(self, mask: str | None, alternatives: int | None = ALTERNATIVES) -> None:
        """Restrict answers in the same way as the vendor's provider."""
        if isinstance(self._inner, Masks):
            self._inner.set_mask(mask, alternatives)

    async def complete(self, request: Request) -> Reply:
        """Raise UsageError, because there is no server."""
        raise UsageError("a job for another program cannot call a server")

    def describe(self) -> Mapping[str, Json]:
        """Return the description of the vendor's provider, without an address."""
        # Another program runs the model, so the prices of the vendor do not apply.
        return {**self._inner.describe(), "base_url": None, "own_server": False, "reports": None}


def reader_of(provider: Provider) -> BatchReader:
    """Return the provider if its requests can be written to files. Raises UsageError otherwise."""
    can_write = all(hasattr(provider, name) for name in ("body", "parse_answer", "refusal"))
    if not can_write or provider.describe().get("vendor") not in LIMITS:
        raise UsageError(f"batches are available only for models from {' and '.join(sorted(LIMITS))}")
    return provider  # type: ignore[return-value]
