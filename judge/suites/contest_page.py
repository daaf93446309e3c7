"""The HTML page for a comparison of runs: tables, plots of kappa against cost and time, and errors by label."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from judge.resources import page
from judge.suites.contest import AXES, Contender, Contest

LEFT, TOP, WIDTH, HEIGHT = 56.0, 14.0, 420.0, 260.0
TITLES = {"cost": "US dollars per 1,000 units", "seconds": "seconds of calls per unit"}
FACTORS = {"cost": 1000.0, "seconds": 1.0}


@dataclass(frozen=True, slots=True)
class Pareto:
    """A plot of kappa (y-axis) against cost or time (x-axis, logarithmic).

    `runs` contains tuples (number, run, cost or time). `line` joins the points of the Pareto front. `across`
    converts a cost or time to an x position, and `up` converts a kappa to a y position.
    """

    axis: str
    runs: Sequence[tuple[int, Contender, float]]
    across: Callable[[float], float]
    up: Callable[[float], float]
    line: str
    ticks: Sequence[float]
    kappas: tuple[float, float]
    left_out: Sequence[str]

    @property
    def title(self) -> str:
        """The title of the horizontal axis, with its unit."""
        return TITLES[self.axis]


def paretos(contest: Contest) -> Iterator[Pareto]:
    """Yield a plot for each axis on which two or more runs have a value."""
    for axis, value in AXES.items():
        known = [
            (n, c, FACTORS[axis] * price)
            for n, c in enumerate(contest.contenders, 1)
            # A local model may cost nothing, and a logarithmic axis cannot show 0.
            if (price := value(c)) is not None and price > 0 and c.kappa.value is not None
        ]
        if len(known) < 2:
            continue
        left_out = [c.name for c in contest.contenders if all(c is not other for _, other, _ in known)]
        yield _pareto(axis, known, left_out)


def _pareto(axis: str, known: Sequence[tuple[int, Contender, float]], left_out: Sequence[str]) -> Pareto:
    # Prices of models differ by powers of ten, so their axis is logarithmic.
    prices = [math.log10(price) for _, _, price in known]
    first, last = min(prices), max(prices)
    # If all prices were equal, the axis would have no length.
    pad = max(0.15, (first == last) * 0.5, 0.08 * (last - first))
    first, last = first - pad, last + pad
    ends = [v for _, c, _ in known for v in (c.kappa.value, c.kappa.low, c.kappa.high) if v is not None]
    # An axis that starts at the smallest kappa would make small differences look large.
    low, high = min(0.0, *ends), max(0.2, *ends)
    high = min(1.0, high + 0.05)

    def across(price: float) -> float:
        return LEFT + WIDTH * (math.log10(price) - first) / (last - first)

    def up(kappa: float) -> float:
        return TOP + HEIGHT * (high - kappa) / (high - low)

    best = sorted((across(price), up(c.kappa.value or 0.0)) for _, c, price in known if axis in c.front)
    # The front is drawn in steps, because no run lies between two neighbouring points of the front.
    line = "".join(f"M{x:.1f},{y:.1f}" if n == 0 else f"H{x:.1f}V{y:.1f}" for n, (x, y) in enumerate(best))
    powers = [
        factor * 10.0**power
        for power in range(math.floor(first), math.ceil(last) + 1)
        # Beyond 2.5 powers of ten, the labels of ticks at 2 and 5 would overlap.
        for factor in ((1, 2, 5) if last - first < 2.5 else (1,))
    ]
    ticks = [tick for tick in powers if first <= math.log10(tick) <= last]
    return Pareto(axis, known, across, up, line, ticks, (low, high), left_out)


def as_html(contest: Contest) -> str:
    """Write the comparison as a self-contained HTML page, with all text escaped."""
    return page(
        "contest.html",
        contest=contest,
        domain=contest.table.domain,
        paretos=list(paretos(contest)),
        number=number,
        span=span,
        left=LEFT,
        top=TOP,
        width=WIDTH,
        height=HEIGHT,
    )


def number(value: float | None, digits: int = 3) -> str:
    """Format a value with `digits` decimal places; None becomes a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def span(low: float | None, high: float | None, signed: bool = False) -> str:
    """Format an interval; return an empty string if there is none."""
    if low is None or high is None:
        return ""
    return f"{low:+.3f} … {high:+.3f}" if signed else f"{low:.3f} … {high:.3f}"
