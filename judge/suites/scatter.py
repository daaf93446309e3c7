"""The picture of confirmation bias: each pair's support ratios, original against counter claim, a panel a stage."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from judge.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

_KINDS = (
    ("biased", True, "#b3261e", "X", "both answers support their own claim"),
    ("other", False, "#1f5f8b", "o", "not both"),
    ("unknown", None, "#777777", ".", "no two valid answers"),
)


def write(path: Path, stages: Mapping[str, pd.DataFrame]) -> None:
    """Write an SVG of the tables of `judge.scores.confirmation.scatter`, one panel a stage.

    On the diagonal that falls, what supports a claim refutes its counter claim (CR 0); above it each side finds
    its own support. Pairs at the same place are drawn larger. Raises BadInput for a name that does not end in .svg.
    """
    if path.suffix.lower() != ".svg":
        raise BadInput(f"--plot {path}: the picture is an SVG, name it so")
    # The object, not pyplot: no window system, no state between figures.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "adjudge", "svg.fonttype": "path"}):
        figure = Figure(figsize=(4.2 * len(stages), 4.6), layout="constrained")
        panels = figure.subplots(1, len(stages), squeeze=False)[0]
        for panel, (stage, table) in zip(panels, stages.items(), strict=True):
            known = table.dropna(subset=["sr_original", "sr_counter"])
            panel.plot([0, 1], [1, 0], color="#999999", linewidth=1, zorder=1)
            for _, value, colour, marker, told in _KINDS:
                mine = known[[flag is value or flag == value for flag in known["biased"]]]
                if value is None:
                    mine = known[known["biased"].isna()]
                if not len(mine):
                    continue
                places = mine.groupby(["sr_original", "sr_counter"]).size().reset_index(name="n")
                panel.scatter(
                    places["sr_original"],
                    places["sr_counter"],
                    s=28 * np.sqrt(places["n"].to_numpy(dtype=float)),
                    c=colour,
                    marker=marker,
                    alpha=0.8,
                    linewidths=0,
                    label=f"{told} ({len(mine)})",
                    zorder=2,
                )
            panel.set(
                xlim=(-0.05, 1.05),
                ylim=(-0.05, 1.05),
                aspect="equal",
                xlabel="SR of the original claim",
                ylabel="SR of the counter claim",
                title=f"{stage}: {len(known)} of {len(table)} pairs have both",
            )
            if len(known):
                panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False)
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    try:
        path.write_bytes(out.getvalue())
    except OSError as e:
        raise BadInput(f"--plot {path}: {e.strerror}") from e
