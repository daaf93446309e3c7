"""The papers that `judge score` and `judge suite` know, by name. A new one is one file and one line here."""

from __future__ import annotations

from judge.suites import garage
from judge.suites.paper import Paper

PAPERS: dict[str, Paper] = {paper.name: paper for paper in (garage.PAPER,)}
