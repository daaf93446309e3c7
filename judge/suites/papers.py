"""The papers that `judge score` and `judge suite` know, by name. A new one is one file and one line here."""

from judge import plugins
from judge.suites import (
    confirmation,
    conformal,
    faithfulness,
    garage,
    mirage,
    nuggets,
    raguard,
    retrieval,
    urag,
)
from judge.suites.paper import Paper

PAPERS: dict[str, Paper] = {
    paper.PAPER.name: paper.PAPER
    for paper in (garage, raguard, confirmation, mirage, urag, retrieval, faithfulness, nuggets, conformal)
}


def find(name: str) -> Paper | None:
    """The paper of this name, a plugin's where none is built in; None when there is none. Raises PluginFailed."""
    return PAPERS[name] if name in PAPERS else plugins.find("papers", name)


def every() -> list[Paper]:
    """All that are built in, then those of plugins that load."""
    return [*PAPERS.values(), *(paper for name, paper in plugins.working("papers") if name not in PAPERS)]
