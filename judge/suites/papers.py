"""The papers of `judge score` and `judge suite`, by name. To add a paper, add its file and one line here."""

from judge import plugins
from judge.suites import (
    confirmation,
    conformal,
    faithfulness,
    garage,
    mirage,
    nuggets,
    rag,
    raguard,
    retrieval,
    urag,
)
from judge.suites.paper import Paper

PAPERS: dict[str, Paper] = {
    paper.PAPER.name: paper.PAPER
    for paper in (
        garage,
        raguard,
        confirmation,
        mirage,
        urag,
        retrieval,
        faithfulness,
        rag,
        nuggets,
        conformal,
    )
}


def find(name: str) -> Paper | None:
    """Return the paper with this name or alias (built-in or from a plugin), or None if there is none.

    Raises PluginFailed if a plugin does not load.
    """
    known = next((paper for paper in PAPERS.values() if name in (paper.name, *paper.aliases)), None)
    return known or plugins.find("papers", name)


def list_papers() -> list[Paper]:
    """List the built-in papers, followed by the papers of all plugins that load."""
    # A plugin cannot take the name of a paper that is built in.
    return [*PAPERS.values(), *(paper for name, paper in plugins.working("papers") if name not in PAPERS)]
