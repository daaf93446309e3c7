"""Where a person sits: whose queue of which batch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seat:
    """Whose queue of which batch; `person` sits there (differs from `annotator` when adjudicating)."""

    batch: str
    annotator: str
    person: str
    session: str
    show_own: bool = True
