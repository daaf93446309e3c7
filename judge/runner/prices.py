"""Prices of models: the vendors' list prices from `genai-prices`, or prices from the user's price file.

Prices are in US dollars per million tokens. The package contains the prices of its release day and never
fetches newer prices, so its version shows how old a price is. The user's own server only has a price if a
price file specifies one:

    {"openai/my-model": {"input": 0.25, "output": 2.0, "cached": 0.025, "batch": {"input": 0.125, "output": 1.0}}}
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from judge.errors import BadInput, UsageError
from judge.files import describe_json_error, whole_object
from judge.types import Json, Usage, attributes

MILLION = 1_000_000
IN_THIS_PROCESS = frozenset(("scripted", "llamacpp", "embedded", "onnx"))
"""Vendors whose models run in this process and cost nothing. A cost limit does not need prices for such models."""
_KNOWN = {"input", "output", "cached", "written", "batch"}


@dataclass(frozen=True, slots=True)
class Price:
    """Prices in US dollars per million tokens: input, output, read from the cache, written to the cache.

    `source` names the price list and its version. If a price depends on the size of the call, `exact` computes the cost
    of a call from its (input, output, cached, written) tokens, and the other fields are the prices of a small
    call.
    """

    input: float
    output: float
    cached: float
    written: float
    source: str
    exact: Callable[[int, int, int, int], float] | None = None

    def cost(self, usage: Usage) -> float | None:
        """Return the cost of one call in US dollars, or None if the server did not report its token counts."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        into, cached, written = usage.input_tokens, usage.cached_tokens or 0, usage.written_tokens or 0
        if self.exact is not None:
            return self.exact(into, usage.output_tokens, cached, written)
        # Input tokens include cached and written ones, which have prices of their own.
        fresh = max(0, into - cached - written)
        parts = (
            fresh * self.input,
            cached * self.cached,
            written * self.written,
            usage.output_tokens * self.output,
        )
        return sum(parts) / MILLION

    def get_upper_bound(self, into: int, out: int) -> float:
        """Return an upper bound on the cost of a call with at most this many tokens, whether or not the
        tokens are cached.
        """
        if self.exact is not None:
            return max(
                self.exact(into, out, 0, 0), self.exact(into, out, 0, into), self.exact(into, out, into, 0)
            )
        return (into * max(self.input, self.cached, self.written) + out * self.output) / MILLION

    def as_json(self) -> dict[str, Json]:
        """Return the price in the form that is stored with a run."""
        return attributes(self, "input", "output", "cached", "written", "source")


def compute_charge(price: Price | None, usage: Usage) -> float | None:
    """Return the larger of a call's list price and the cost that the server reported, or None if both are
    unknown.
    """
    computed = None if price is None else price.cost(usage)
    known = [cost for cost in (computed, usage.cost) if cost is not None]
    return max(known, default=None)


def find(
    model: str, facts: Mapping[str, Json], file: Mapping[str, Mapping[str, Json]] | None, batch: bool = False
) -> Price | None:
    """Return the price of a model (`vendor/name`) from the file or, if the file lacks the model, from the
    vendor's list. Return None if neither contains the model.

    `facts` comes from `Provider.describe`; `batch` selects the price for provider batches.
    """
    if file and model in file:
        return _read_file_price(file[model], batch)
    vendor, _, name = model.partition("/")
    # A compatible server under the same model name has its own prices, which the vendor's list does not contain.
    if not facts.get("own_server"):
        return None
    return _find_vendor_price(vendor, name, batch)


def read_prices(path: Path) -> dict[str, Mapping[str, Json]]:
    """Read a price file. It maps each model to its prices: input, output, and optionally cached, written and
    batch.

    Raises BadInput, naming the model and the field, if an entry is invalid.
    """
    try:
        # Plain JSON would silently use one of the prices of a duplicate key.
        price_table = json.loads(path.read_bytes(), object_pairs_hook=whole_object)
    except OSError as e:
        raise BadInput(f"cannot be read: {e.strerror}", path=str(path)) from e
    except (ValueError, RecursionError) as e:
        raise BadInput(describe_json_error(e), path=str(path)) from e
    if not isinstance(price_table, dict):
        raise BadInput("must be a JSON object whose keys are models", path=str(path))
    for model, price in price_table.items():
        _check(price, path, str(model))
    return price_table


def _check(price: Any, path: Path, where: str) -> None:
    if not isinstance(price, dict) or not {"input", "output"} <= set(price):
        raise BadInput(
            "a price needs 'input' and 'output', in US dollars per million tokens",
            path=str(path),
            field=where,
        )
    for name, value in price.items():
        field = f"{where}.{name}"
        if name not in _KNOWN:
            raise BadInput(
                f"unknown field; available: {', '.join(sorted(_KNOWN))}", path=str(path), field=field
            )
        if name == "batch":
            _check(value, path, field)
        # `true` is an int in Python, and NaN fails the comparison.
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise BadInput("must be a non-negative number", path=str(path), field=field)


def _read_file_price(price: Mapping[str, Json], batch: bool) -> Price | None:
    if batch:
        if "batch" not in price:
            return None
        price = price["batch"]
    into = float(price["input"])
    cached, written = float(price.get("cached", into)), float(price.get("written", into))
    return Price(into, float(price["output"]), cached, written, "your file of prices")


@lru_cache(maxsize=16)
def _find_vendor_price(vendor: str, name: str, batch: bool) -> Price | None:
    from importlib.metadata import version

    # Imported here, because the import takes 0.28 s and most runs need no list prices.
    import genai_prices

    context: Any = {"processing": "batch"} if batch else None

    def compute(into: int, out: int, cached: int, written: int) -> float:
        usage = genai_prices.Usage(
            input_tokens=into, output_tokens=out, cache_read_tokens=cached, cache_write_tokens=written
        )
        calculated = genai_prices.calc_price(usage, name, provider_id=vendor, price_context=context)
        return float(calculated.total_price)

    try:
        # Tokens of a small call: below every threshold above which a larger price applies.
        small = 1_000
        into, out = compute(small, 0, 0, 0), compute(0, small, 0, 0)
        cached, written = compute(small, 0, small, 0), compute(small, 0, 0, small)
        large = compute(10 * MILLION, MILLION, 0, 0)
    except LookupError:
        return None
    scale = MILLION / small
    # If a large call costs no more than its parts, the price does not depend on the size.
    linear = math.isclose(large, (10 * into + out) * scale, rel_tol=1e-9)
    return Price(
        into * scale,
        out * scale,
        cached * scale,
        written * scale,
        f"genai-prices {version('genai-prices')}",
        None if linear else compute,
    )


def free(model: str) -> Price | None:
    """Return the price 0 for a model that runs in this process, and None for any other model."""
    here = model.partition("/")[0] in IN_THIS_PROCESS
    return Price(0.0, 0.0, 0.0, 0.0, "it runs in this process") if here else None


def require_price(model: str, price: Price | None) -> Price:
    """Return the price that a cost limit needs. Raises UsageError, naming the option to add, if the price is
    unknown.
    """
    price = price or free(model)
    if price is None:
        raise UsageError(
            f"no price is known for {model}; write one to a file and pass it with --prices FILE: "
            f'{{"{model}": {{"input": 0.25, "output": 2.0}}}} (US dollars per million tokens)'
        )
    return price
