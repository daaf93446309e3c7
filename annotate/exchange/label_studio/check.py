"""The vendor's check of what goes out and of what comes back, region by region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotate.exchange.label_studio import sdk
from judge.errors import BadInput

_LEAD = "Region 0: "


class Check:
    """Checks regions against a configuration with the SDK's LabelInterface, on this machine."""

    def __init__(self, xml: str) -> None:
        """Raises MissingExtra without the SDK."""
        self._interface = sdk.interface(xml)

    def task(self, task: Mapping[str, Any]) -> None:
        """Raises BadInput for a task that lacks what the configuration shows."""
        if not self._interface.validate_task(dict(task)):
            missing = [
                o.value_name for o in self._interface.objects if task["data"].get(o.value_name) is None
            ]
            raise BadInput(
                "the configuration shows it and the task lacks it", field=", ".join(missing) or "data"
            )

    def regions(self, result: Sequence[Mapping[str, Any]]) -> None:
        """Raises BadInput whose field is the control of the first region that the SDK refuses."""
        for number, region in enumerate(result, 1):
            if region.get("type") == "relation":
                continue
            errors = self._interface.validate_region(dict(region), return_errors=True)
            if errors:
                told = str(errors[0]).removeprefix(_LEAD)
                name = region.get("from_name")
                raise BadInput(f"region {number}: {told}", field=name if isinstance(name, str) else "result")
