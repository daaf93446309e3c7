"""Print a leaderboard, and write it to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judge.cli.score_options import get_interval_settings
from judge.cli.score_output import emit_board
from judge.gates import decide

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judge.papers.engine.board import Axis
    from judge.papers.engine.paper import Paper, ScoreRequest
    from judge.store import Store


def make(
    store: Store,
    paper: Paper,
    wanted: ScoreRequest,
    names: Sequence[str],
    axis: Axis,
    options: Mapping[str, Any],
) -> None:
    """Print the leaderboard that the options of `judge score` or `judge suite` request, and write its files."""
    from judge.papers.engine.board import board

    leaderboard = board(
        store,
        paper,
        wanted,
        names,
        axis=axis,
        # If the judges themselves are compared, there is no mean of them to compute.
        judges=options["judges"] if axis == "system" else None,
        by=options["by"],
        # Other papers have a --reference of their own, which is already part of the request.
        reference=options["reference"] if paper.corrects else None,
        **get_interval_settings(options),
    )
    emit_board(leaderboard, options["as_json"], options["output"].pages)
    # A leaderboard has no gates, so this refuses .xml files: a build would take a missing test for a passed
    # one.
    decide(f"judge score {paper.name}", [], options["output"])


def names_of(store: Store, paper: Paper, wanted: ScoreRequest, systems: Sequence[str]) -> list[str]:
    """Return the systems named by --system; `all` selects every system that the paper can score."""
    from judge.papers.engine.board import list_systems

    return list_systems(store, paper, wanted) if tuple(systems) == ("all",) else list(systems)
