"""The papers that `judge score` and `judge suite` know, by name. A new one is one file and one line here."""

from __future__ import annotations

from judge.suites import confirmation, conformal, faithfulness, garage, mirage, raguard, retrieval, urag
from judge.suites.paper import Paper

PAPERS: dict[str, Paper] = {
    paper.PAPER.name: paper.PAPER
    for paper in (garage, raguard, confirmation, mirage, urag, retrieval, faithfulness, conformal)
}
