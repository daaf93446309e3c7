"""An annotation of the JSON export, or of the server, as a response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from annotate.exchange.label_studio.check import Check
from annotate.exchange.label_studio.config import ConfigLayout
from annotate.exchange.label_studio.regions import read_result
from annotate.exchange.label_studio.tasks import input_text
from annotate.exchange.proof import Unproven
from annotate.exchange.responses import Response, stamp
from judge.errors import BadInput
from judge.types import Where

Inputs = Callable[[str], Mapping[str, Any] | None]
"""What a unit of the batch shows, None for a unit that is not in it."""


@dataclass(slots=True)
class Reader:
    """Reads annotations of one task file. `check` is the vendor's own, None without the SDK."""

    layout: ConfigLayout
    check: Check | None
    inputs: Inputs
    author: Callable[[Any], str]
    """Who a user is, from `completed_by`; raises BadInput."""

    def response(
        self,
        annotation: Any,
        unit: str,
        *,
        blind: bool | None,
        where: Where,
        data: Mapping[str, Any] | None = None,
        source: str = "",
    ) -> tuple[Response, list[str]]:
        """The response, and what of it could not be taken over. Raises BadInput naming the field."""
        if not isinstance(annotation, Mapping):
            raise BadInput("must be an object", field="annotations")
        inputs = self.inputs(unit)
        if inputs is None:
            raise BadInput(f"unit '{unit}' is not in the batch", field="adjudge_unit_id")
        result = annotation.get("result")
        marked = read_result(self.layout, result, input_text(inputs.get(self.layout.main)))
        if self.check is not None:
            self.check.regions(result or [])
        skipped = annotation.get("was_cancelled") or False
        if not isinstance(skipped, bool):
            raise BadInput("must be true or false", field="was_cancelled")
        doubt = None
        try:
            who = self.author(annotation.get("completed_by"))
        except Unproven as e:
            who, doubt = e.who, (e.code, e.reason)
        response = Response(
            unit=unit,
            annotator=who,
            answers={} if skipped else marked.answers,
            spans=None if skipped else marked.spans,
            skipped=skipped,
            note=marked.note,
            seconds=_seconds(annotation.get("lead_time")),
            at=_time(annotation.get("updated_at") or annotation.get("created_at")),
            blind=False if _from_prediction(annotation) else blind,
            where=where,
            differs=None if data is None else self._differs(data, inputs),
            doubt=doubt,
            source=source,
        )
        return response, marked.problems

    def _differs(self, data: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
        """What of a task's data is not the text of its unit; a word for the first input, "" when all agree."""
        for name in self.layout.inputs:
            there = data.get(name, "")
            if not isinstance(there, str) or there != input_text(inputs.get(name)):
                return f"its '{name}' is not that of the unit: it was edited there"
        return ""


def _from_prediction(annotation: Mapping[str, Any]) -> bool:
    """Whether an annotation was made from a prediction, as it says itself."""
    result = annotation.get("result")
    regions = [r for r in result if isinstance(r, Mapping)] if isinstance(result, list) else []
    return bool(annotation.get("parent_prediction") or annotation.get("prediction")) or any(
        str(r.get("origin", "")).startswith("prediction") for r in regions
    )


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{value!r} is no number of seconds", field="lead_time")
    return float(value)


def _time(value: Any) -> str | None:
    try:
        return None if value is None else stamp(datetime.fromisoformat(value))
    except (TypeError, ValueError) as e:
        raise BadInput(f"{value!r} is no time (ISO 8601)", field="updated_at") from e
