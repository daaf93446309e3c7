"""What a model costs: the vendors' list prices by `genai-prices`, or those of a file of yours.

Prices are in US dollars for a million tokens. The package holds the prices of its release day and is never asked
to fetch newer ones; its version is the date of a price. A server at an address of yours has no price unless a
file says one:

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
from judge.files import not_json
from judge.strict import whole_object
from judge.types import Json, Usage, attributes

MILLION = 1_000_000
IN_THIS_PROCESS = frozenset(("scripted", "llamacpp", "embedded", "onnx"))
"""Vendors that nobody is paid for: a limit of money asks for no price of theirs."""
_KNOWN = {"input", "output", "cached", "written", "batch"}


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens: put in, put out, read from a cache, written into one.

    `source` says whose and of when. `exact` counts a price that depends on the size of the call, from
    (input, output, cached, written) tokens; the numbers are then those of a small call.
    """

    input: float
    output: float
    cached: float
    written: float
    source: str
    exact: Callable[[int, int, int, int], float] | None = None

    def cost(self, usage: Usage) -> float | None:
        """US dollars of one call; None when the server did not count its tokens."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        into, cached, written = usage.input_tokens, usage.cached_tokens or 0, usage.written_tokens or 0
        if self.exact is not None:
            return self.exact(into, usage.output_tokens, cached, written)
        fresh = max(0, into - cached - written)
        parts = (
            fresh * self.input,
            cached * self.cached,
            written * self.written,
            usage.output_tokens * self.output,
        )
        return sum(parts) / MILLION

    def most(self, into: int, out: int) -> float:
        """The most that a call of at most so many tokens costs, whatever of it a cache takes or gives."""
        if self.exact is not None:
            return max(
                self.exact(into, out, 0, 0), self.exact(into, out, 0, into), self.exact(into, out, into, 0)
            )
        return (into * max(self.input, self.cached, self.written) + out * self.output) / MILLION

    def as_json(self) -> dict[str, Json]:
        """As stored with a run."""
        return attributes(self, "input", "output", "cached", "written", "source")


def charged(price: Price | None, usage: Usage) -> float | None:
    """US dollars that a call counts with: the larger of what the price and what the server say, None where neither does."""
    computed = None if price is None else price.cost(usage)
    known = [cost for cost in (computed, usage.cost) if cost is not None]
    return max(known, default=None)


def find(
    model: str, facts: Mapping[str, Json], file: Mapping[str, Mapping[str, Json]] | None, batch: bool = False
) -> Price | None:
    """The price of a model (`vendor/name`), None when it has none: of the file, else the vendor's own.

    `facts` is what the provider describes; `batch` asks for the price of provider batches.
    """
    if file and model in file:
        return _of_file(file[model], batch)
    vendor, _, name = model.partition("/")
    if not facts.get("own_server"):
        return None
    return _of_vendor(vendor, name, batch)


def read_prices(path: Path) -> dict[str, Mapping[str, Json]]:
    """A file of prices: model -> input, output, and optionally cached, written and batch.

    Raises BadInput, with the model and the field, for anything else.
    """
    try:
        price_table = json.loads(path.read_bytes(), object_pairs_hook=whole_object)
    except OSError as e:
        raise BadInput(f"cannot be read: {e.strerror}", path=str(path)) from e
    except (ValueError, RecursionError) as e:
        raise BadInput(not_json(e), path=str(path)) from e
    if not isinstance(price_table, dict):
        raise BadInput("not a JSON object of models", path=str(path))
    for model, price in price_table.items():
        _check(price, path, str(model))
    return price_table


def _check(price: Any, path: Path, where: str) -> None:
    if not isinstance(price, dict) or not {"input", "output"} <= set(price):
        raise BadInput(
            "a price needs 'input' and 'output', in US dollars for a million tokens",
            path=str(path),
            field=where,
        )
    for name, value in price.items():
        field = f"{where}.{name}"
        if name not in _KNOWN:
            raise BadInput(f"unknown (known: {', '.join(sorted(_KNOWN))})", path=str(path), field=field)
        if name == "batch":
            _check(value, path, field)
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise BadInput("not a number from 0", path=str(path), field=field)


def _of_file(price: Mapping[str, Json], batch: bool) -> Price | None:
    if batch:
        if "batch" not in price:
            return None
        price = price["batch"]
    into = float(price["input"])
    cached, written = float(price.get("cached", into)), float(price.get("written", into))
    return Price(into, float(price["output"]), cached, written, "your file of prices")


@lru_cache(maxsize=16)
def _of_vendor(vendor: str, name: str, batch: bool) -> Price | None:
    from importlib.metadata import version

    import genai_prices

    context: Any = {"processing": "batch"} if batch else None

    def of_call(into: int, out: int, cached: int, written: int) -> float:
        usage = genai_prices.Usage(
            input_tokens=into, output_tokens=out, cache_read_tokens=cached, cache_write_tokens=written
        )
        calculated = genai_prices.calc_price(usage, name, provider_id=vendor, price_context=context)
        return float(calculated.total_price)

    try:
        small = 1_000  # tokens: under every threshold above which a call costs more
        into, out = of_call(small, 0, 0, 0), of_call(0, small, 0, 0)
        cached, written = of_call(small, 0, small, 0), of_call(small, 0, 0, small)
        large = of_call(10 * MILLION, MILLION, 0, 0)
    except LookupError:
        return None
    scale = MILLION / small
    linear = math.isclose(large, (10 * into + out) * scale, rel_tol=1e-9)
    return Price(
        into * scale,
        out * scale,
        cached * scale,
        written * scale,
        f"genai-prices {version('genai-prices')}",
        None if linear else of_call,
    )


def free(model: str) -> Price | None:
    """The price of a model that runs in this process: nothing."""
    here = model.partition("/")[0] in IN_THIS_PROCESS
    return Price(0.0, 0.0, 0.0, 0.0, "it runs in this process") if here else None


def wanted(model: str, price: Price | None) -> Price:
    """The price, for a limit of money. Raises UsageError when there is none, and says how to tell it."""
    price = price or free(model)
    if price is None:
        raise UsageError(
            f"no price is known for {model}: say it with --prices FILE, as in "
            f'{{"{model}": {{"input": 0.25, "output": 2.0}}}} (US dollars for a million tokens)'
        )
    return price
