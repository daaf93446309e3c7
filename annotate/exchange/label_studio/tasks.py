"""Units as Label Studio tasks: our unit id, and the inputs that the task shows, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from annotate.exchange.base import PLACE_KEY, UNIT_KEY
from annotate.exchange.label_studio.config import ConfigLayout
from annotate.exchange.units import ExchangeUnit
from judge.types import Json

_NUL = {0x00: "\ufffd"}


def data_of(layout: ConfigLayout, unit: ExchangeUnit, place: int | None = None) -> dict[str, Json]:
    """The `data` of a unit's task: every input as text, an empty one where the unit has none."""
    texts = {name: input_text(unit.inputs.get(name)) for name in layout.inputs}
    return {UNIT_KEY: unit.unit_id, **({} if place is None else {PLACE_KEY: place}), **texts}


def input_text(value: Any) -> str:
    """An input as text: options with their letters, passages numbered with title, date and source."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return shown_text("\n".join(f"{letter}. {text}" for letter, text in value.items()))
    if isinstance(value, list):
        passages = [_passage(n, v) if isinstance(v, Mapping) else str(v) for n, v in enumerate(value, 1)]
        return shown_text(("\n\n" if any(isinstance(v, Mapping) for v in value) else "\n").join(passages))
    return shown_text(str(value))


def _passage(number: int, passage: Mapping[str, str]) -> str:
    about = " · ".join(passage[key] for key in ("title", "date", "source") if passage.get(key))
    return f"[{number}] {about}\n{passage['text']}"


def shown_text(text: str) -> str:
    """The text as it goes out, as long as before: browsers join \\r\\n, and databases refuse NUL."""
    return text.replace("\r\n", " \n").replace("\r", "\n").translate(_NUL)


def prediction(
    layout: ConfigLayout, labels: Mapping[str, tuple[str, float | None]], model: str
) -> dict[str, Json]:
    """A judge's labels (field -> label and its probability) as one prediction.

    Its score is the lowest of the probabilities, None when one of them is not known.
    """
    chances = [chance for _, chance in labels.values()]
    known = [c for c in chances if c is not None]
    return {
        "model_version": model,
        "score": round(min(known), 6) if known and len(known) == len(chances) else None,
        "result": [layout.region(field, value) for field, (value, _) in labels.items()],
    }
