"""Figures as inline SVG. Text is not converted to paths, and colours are classes in the page's style sheet.

Only this module imports matplotlib. It draws in placeholder colours, which the module `svg` replaces with
classes. Therefore one figure works in light mode, in dark mode and on paper. The output is deterministic:
equal documents yield equal bytes.
"""

import io
import json
import threading
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Any

from judge.console import visible
from judge.document.svg import LABELS, MARKERS, inline
from judge.types import Json

COLOUR = {name: colour for colour, name in MARKERS.items()}
_SETTINGS: Any = {
    "svg.fonttype": "none",
    # Without a salt, ids are random, and two reports would never be equal.
    "svg.hashsalt": "adjudge",
    # A label that contains two dollar signs is not a formula.
    "text.parse_math": False,
    "font.size": 10.0,
    "text.color": COLOUR["ink"],
    "axes.edgecolor": COLOUR["soft"],
    "axes.labelcolor": COLOUR["ink"],
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "xtick.color": COLOUR["ink"],
    "ytick.color": COLOUR["ink"],
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
# Narrow enough for a phone, where the page scales a figure down to the width of the screen.
WIDTH = 4.8
_lock = threading.Lock()
PRINTED = {
    "ink": "#1a1a1a",
    "soft": "#6b6b6b",
    "rule": "#c8c8c8",
    "judge": "#1f5fa8",
    "people": "#b5541c",
    "on": "#ffffff",
    "paper": "#ffffff",
}
"""The colours of a figure outside a page, by their roles."""


def draw(name: str, data: Mapping[str, Json], key: str, title: str, text: str) -> str:
    """Return the figure `name` as an <svg> element with a title and a description. `key` makes its ids unique."""
    return inline(_render(name, json.dumps(data)), key, title, text)


def draw_alone(name: str, data: Mapping[str, Json]) -> str:
    """Return the figure `name` as an SVG file of its own, in the colours of print."""
    text = _render(name, json.dumps(data))
    for marker, role in MARKERS.items():
        text = text.replace(marker, PRINTED.get(role, PRINTED["judge"]))
    return text


@lru_cache(maxsize=32)
def _render(name: str, data: str) -> str:
    """Return the SVG that matplotlib writes for a figure."""
    # Cached, because drawing takes most of a report's time, and a notebook draws the same figures again.
    import warnings

    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # rc_context and warnings are process-wide, hence the lock. A glyph that the font lacks is harmless,
    # because text is not drawn as glyphs.
    with _lock, matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = Figure(layout="constrained")
        FigureCanvasSVG(figure)
        DRAWINGS[name](figure, json.loads(data))
        out = io.StringIO()
        figure.savefig(
            out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    return out.getvalue()


def _axes(figure: Any, width: float, height: float) -> Any:
    """Set the size of a figure in inches, and return its only axes."""
    figure.set_size_inches(width, height)
    return figure.add_subplot()


def _center_text(axes: Any, x: float, y: float, text: str, size: int, **more: Any) -> None:
    axes.text(x, y, text, ha="center", va="center", fontsize=size, **more)


def _box(axes: Any, j: int, i: int, width: float, height: float, **look: Any) -> None:
    """Draw a box of this size, centred in a cell."""
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((j - width / 2, i - height / 2), width, height, **look))


def _hide_frame(axes: Any) -> None:
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _heat_map(figure: Any, data: Mapping[str, Json]) -> None:
    matrix, labels = data["matrix"], [_shorten(x) for x in data["labels"]]
    q = len(labels)
    side = 0.62 if q > 5 else 0.8
    axes = _axes(figure, 2.6 + side * q, 1.5 + side * 0.8 * q)
    for i, row in enumerate(matrix):
        total = sum(row)
        for j, n in enumerate(row):
            share = n / total if total else 0.0
            # At most 65 % opaque, so that text on it stays readable in light and dark mode.
            alpha = round(0.05 + 0.6 * share, 3)
            _box(axes, j, i, 0.94, 0.92, linewidth=0, facecolor=COLOUR["heat"], alpha=alpha)
            _center_text(axes, j, i, f"{n:,}\n{share:.0%}" if total else "0", 9, linespacing=1.3)
    axes.set_xlim(-0.5, q - 0.5)
    axes.set_ylim(q - 0.5, -0.5)
    level = q < 6 and sum(map(len, labels)) < 9 * q
    axes.set_xticks(range(q), labels, rotation=0 if level else 30, ha="center" if level else "right")
    axes.set_yticks(range(q), labels)
    _hide_frame(axes)
    axes.set_xlabel(_shorten(data["columns"], 40))
    axes.set_ylabel(_shorten(data["rows"], 40))


def _forest(figure: Any, data: Mapping[str, Json]) -> None:
    # The axis counts from the bottom, but people read from the top.
    rows = list(reversed(data["rows"]))
    axes = _axes(figure, WIDTH, 0.9 + 0.4 * len(rows))
    axes.axvline(0, color=COLOUR["rule"], linewidth=0.8, zorder=0)
    if data["threshold"] is not None:
        axes.axvline(data["threshold"], color=COLOUR["soft"], linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    numbers = [number for r in rows for number in (r["low"], r["value"]) if number is not None]
    low = min([0.0, *numbers])
    axes.set_xlim(max(-1.05, low - 0.05), 1.05)
    for y, r in enumerate(rows):
        _write_above(axes, y + 0.17, _shorten(r["label"], 56))
        _write_beside(axes, y, "undefined" if r["value"] is None else f"{r['value']:z.2f}")
        if r["value"] is None:
            continue
        colour, mark = (COLOUR["judge"], "o") if r["group"] == "judge" else (COLOUR["people"], "D")
        if r["low"] is not None:
            axes.plot([r["low"], r["high"]], [y, y], color=colour, linewidth=2, solid_capstyle="round")
        axes.plot([r["value"]], [y], mark, color=colour, markersize=6 if mark == "o" else 5.5)
    axes.set_ylim(-0.5, len(rows) - 0.3)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    groups = {r["group"] for r in rows}
    handles = [
        axes.plot([], [], mark, color=COLOUR[group], markersize=6, label=label)[0]
        for group, mark, label in (("people", "D", "without a judge"), ("judge", "o", "with a judge"))
        if group in groups
    ]
    # A single kind of mark needs no legend.
    if len(handles) > 1:
        figure.legend(handles=handles, loc="outside upper left", ncols=2, frameon=False, fontsize=9)
    axes.set_xlabel(_shorten(data["label"], 48))


def _dots(figure: Any, data: Mapping[str, Json]) -> None:
    # The axis counts from the bottom, but people read from the top.
    rows = list(reversed(data["rows"]))
    axes = _axes(figure, WIDTH, 0.5 + 0.36 * len(rows))
    known = [r[key] for r in rows for key in ("value", "low", "high", "own") if r[key] is not None]
    # An axis that starts at the smallest value would make small differences look large.
    low, high = min(0.0, *known), max(1.0, *known)
    room = 0.03 * (high - low)
    axes.set_xlim(*data.get("range", (low - room, high + room)))
    axes.axvline(0, color=COLOUR["rule"], linewidth=0.8, zorder=0)
    for y, r in enumerate(rows):
        _write_above(axes, y + 0.14, _shorten(r["label"], 56))
        _write_beside(axes, y, "undefined" if r["value"] is None else f"{r['value']:z.3f}")
        if r["own"] is not None:
            axes.plot([r["own"]], [y], "|", color=COLOUR["soft"], markersize=9)
        if r["low"] is not None:
            axes.plot(
                [r["low"], r["high"]], [y, y], color=COLOUR["judge"], linewidth=2, solid_capstyle="round"
            )
        if r["value"] is not None:
            filled = COLOUR["paper"] if r["mark"] == "worse" else COLOUR["judge"]
            axes.plot(
                [r["value"]],
                [y],
                "o",
                color=COLOUR["judge"],
                markerfacecolor=filled,
                markersize=6,
                markeredgewidth=1.5,
            )
    axes.set_ylim(-0.4, len(rows) - 0.4)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _write_above(axes: Any, y: float, text: str) -> None:
    """Write the name of a row above its drawing, so that the drawing can use the full width of the figure."""
    axes.text(0, y, text, transform=axes.get_yaxis_transform(), ha="left", va="bottom", fontsize=9)


def _write_beside(axes: Any, y: float, text: str) -> None:
    axes.text(1.015, y, text, transform=axes.get_yaxis_transform(), ha="left", va="center", fontsize=9)


def _histogram(figure: Any, data: Mapping[str, Json]) -> None:
    axes = _axes(figure, WIDTH, 2.4)
    values = data["values"]
    low = -1.0 if min(values) < -0.5 else -0.5 if min(values) < 0 else 0.0
    edges = [low + 0.1 * i for i in range(round((1 - low) / 0.1) + 1)]
    # Perfect agreement belongs to the last bin, however the edge of the bin was rounded.
    axes.hist(values, bins=[*edges[:-1], 1.0 + 1e-9], color=COLOUR["people"], rwidth=0.92)
    axes.set_xlabel(_shorten(data["label"], 48))
    axes.set_ylabel("pairs")
    axes.set_xlim(low - 0.02, 1.02)


def _bars(figure: Any, data: Mapping[str, Json]) -> None:
    rows = list(reversed(data["rows"]))
    labels = [_shorten(x) for x in data["labels"][:LABELS]]
    # A letter of the legend is about 0.08 inches wide; its colour patch and the gap take half an inch.
    beside = max(1, min(4, len(labels), int(WIDTH / (0.5 + 0.08 * max(map(len, labels))))))
    lines = -(-len(labels) // beside)
    axes = _axes(figure, WIDTH, 0.8 + 0.2 * lines + 0.46 * len(rows))
    handles = []
    for k in range(min(LABELS, len(data["labels"]))):
        left = [sum(r["shares"][:k]) for r in rows]
        width = [r["shares"][k] for r in rows]
        bars = axes.barh(
            range(len(rows)),
            width,
            left=left,
            height=0.5,
            color=COLOUR[f"label{k}"],
            linewidth=1.2,
            edgecolor=COLOUR["paper"],
        )
        handles.append(bars)
        for y, (start, share) in enumerate(zip(left, width, strict=True)):
            # A narrower part has no space for the number.
            if share >= 0.06:
                _center_text(axes, start + share / 2, y, f"{share:.0%}", 8, color=COLOUR["on"])
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    axes.set_ylim(-0.4, len(rows) - 0.3)
    for y, r in enumerate(rows):
        _write_above(axes, y + 0.28, f"{_shorten(r['name'], 56)} ({r['n']:,})")
    figure.legend(handles, labels, loc="outside upper center", ncols=beside, frameon=False, fontsize=9)


def _reliability(figure: Any, data: Mapping[str, Json]) -> None:
    figure.set_size_inches(4.4, 4.6)
    axes, counts = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    used = [b for b in data["bins"] if b[2]]
    axes.plot([0, 1], [0, 1], color=COLOUR["soft"], linewidth=1, linestyle=(0, (4, 3)))
    for _, _, _, confidence, accuracy in used:
        axes.plot(
            [confidence, confidence], [confidence, accuracy], color=COLOUR["judge"], linewidth=1.5, alpha=0.5
        )
    axes.plot(
        [b[3] for b in used], [b[4] for b in used], "o-", color=COLOUR["judge"], markersize=6, linewidth=1.2
    )
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylabel("share right")
    counts.bar(
        [(b[0] + b[1]) / 2 for b in data["bins"]],
        [b[2] for b in data["bins"]],
        width=0.09,
        color=COLOUR["judge"],
    )
    counts.set_ylabel("units")
    counts.set_xlabel("probability of the chosen label")


def _curve(figure: Any, data: Mapping[str, Json]) -> None:
    """Draw agreement against coverage. Agreements are near 1, so the axis begins below the lowest of them."""
    axes = _axes(figure, WIDTH, 3.2)
    points, agree, people = data["points"], data["agree"], data["people"]
    axes.axhline(agree, color=COLOUR["soft"], linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.text(0, agree, "required", fontsize=8, va="bottom", color=COLOUR["soft"])
    if people is not None:
        axes.axhline(people, color=COLOUR["people"], linewidth=1, linestyle=(0, (1, 2)), zorder=0)
        axes.text(1, people, f"people with each other, {people:.3f}", fontsize=8, va="bottom", ha="right")
    for p in points:
        if p["low"] is not None:
            span = [p["low"], p["high"]]
            axes.plot([p["x"]] * 2, span, color=COLOUR["judge"], linewidth=1.2, alpha=0.5, zorder=1)
        colour = COLOUR["judge"] if p["holds"] else COLOUR["soft"]
        fill = colour if p["holds"] else COLOUR["paper"]
        axes.plot(
            [p["x"]], [p["y"]], "o", color=colour, markerfacecolor=fill, markersize=9 if p["chosen"] else 5
        )
    lowest = min(
        [
            agree,
            *(p["y"] if p["low"] is None else p["low"] for p in points),
            *([people] if people is not None else []),
        ]
    )
    axes.set_ylim(max(0.0, lowest - 0.03), 1.01)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("share of units accepted")
    axes.set_ylabel("agreement")


def _front(figure: Any, data: Mapping[str, Json]) -> None:
    """Draw kappa against a price on a logarithmic axis, with the front as steps."""
    axes = _axes(figure, WIDTH, 3.4)
    points = data["points"]
    axes.set_xscale("log")
    for p in points:
        if p["low"] is not None:
            axes.plot(
                [p["x"], p["x"]], [p["low"], p["high"]], color=COLOUR["judge"], linewidth=1.5, alpha=0.6
            )
        fill = COLOUR["judge"] if p["front"] else COLOUR["paper"]
        axes.plot([p["x"]], [p["y"]], "o", color=COLOUR["judge"], markerfacecolor=fill, markersize=6)
        axes.annotate(p["label"], (p["x"], p["y"]), (6, 5), textcoords="offset points", fontsize=9)
    best = sorted((p["x"], p["y"]) for p in points if p["front"])
    # The front is drawn in steps, because no run lies between two neighbouring points of it.
    axes.step(
        *zip(*best, strict=True), where="post", color=COLOUR["soft"], linewidth=1, linestyle=(0, (3, 3))
    )
    ends = [v for p in points for v in (p["y"], p["low"], p["high"]) if v is not None]
    # An axis that starts at the smallest kappa would make small differences look large.
    axes.set_ylim(min(0.0, *ends) - 0.02, min(1.02, max(0.2, *ends) + 0.05))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.xaxis.set_minor_formatter(lambda *_: "")
    axes.set_xlabel(data["label"])
    axes.set_ylabel("kappa")


def _scatter(figure: Any, data: Mapping[str, Json]) -> None:
    """Draw labelled points of two measures."""
    axes = _axes(figure, WIDTH, 3.4)
    for p in data["points"]:
        axes.plot([p["x"]], [p["y"]], "o", color=COLOUR["judge"], markersize=6)
        axes.annotate(_shorten(p["label"]), (p["x"], p["y"]), (6, 5), textcoords="offset points", fontsize=9)
    axes.margins(x=0.2, y=0.15)
    axes.set_xlabel(_shorten(data["x"], 40))
    axes.set_ylabel(_shorten(data["y"]))


def _power(figure: Any, data: Mapping[str, Json]) -> None:
    axes = _axes(figure, WIDTH, 2.6)
    units = data["units"]
    axes.axhline(0.8, color=COLOUR["soft"], linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    lines = (("decided", "ink", "-", "decided"), ("trusted", "judge", "--", "trust"))
    for key, colour, style, label in (*lines, ("distrusted", "people", ":", "do not trust")):
        axes.plot(units, data[key], style, marker="o", color=COLOUR[colour], markersize=3, label=label)
    # On a linear axis, the first points of such a range would overlap.
    if min(units) > 0 and max(units) > 20 * min(units):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        axes.xaxis.set_minor_formatter(lambda *_: "")
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("more units")
    axes.set_ylabel("chance")
    figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=9)


DRAWINGS: Mapping[str, Callable[[Any, Mapping[str, Json]], None]] = {
    "heat_map": _heat_map,
    "dots": _dots,
    "forest": _forest,
    "histogram": _histogram,
    "bars": _bars,
    "reliability": _reliability,
    "power": _power,
    "curve": _curve,
    "front": _front,
    "scatter": _scatter,
}


def _shorten(text: str, width: int = 24) -> str:
    """Shorten a text so that it is no wider than `width` lowercase letters."""
    flat = visible(" ".join(str(text).split()))
    ends = list(accumulate(map(_room, flat)))
    if not ends or ends[-1] <= width:
        return flat
    return flat[: sum(end <= width - 1.5 for end in ends)] + "…"


def _room(c: str) -> float:
    # Widths are estimated, because measuring text would need the fonts of the reader's browser.
    if unicodedata.east_asian_width(c) in "WF" or c in "mwMW@%":
        return 1.65
    return 1.2 if c.isupper() else 1.0
