"""A comparison of runs as a page: the tables, quality against cost and time, and who errs where."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.resources import page
from judge.suites.contest import AXES, Contender, Contest

LEFT, TOP, WIDTH, HEIGHT = 56.0, 14.0, 420.0, 260.0
TITLES = {"cost": "US dollars per 1,000 units", "seconds": "seconds of calls per unit"}
FACTORS = {"cost": 1000.0, "seconds": 1.0}


@dataclass(frozen=True, slots=True)
class RunDot:
    """One run: places in pixels, the ends of its interval (None: none), and whether it is on the front."""

    number: int
    name: str
    x: float
    y: float
    low: float | None
    high: float | None
    front: bool
    label: str


@dataclass(frozen=True, slots=True)
class Pareto:
    """Quality (upwards) against what it costs (to the right, by powers of ten): `line` joins the front's steps."""

    title: str
    dots: Sequence[RunDot]
    line: str
    across: Sequence[tuple[float, str]]
    up: Sequence[tuple[float, str]]
    left_out: Sequence[str]


def paretos(contest: Contest) -> Iterator[Pareto]:
    """Yield a drawing for each axis on which two runs or more have a value."""
    for axis, value in AXES.items():
        known = [
            (n, c, FACTORS[axis] * price)
            for n, c in enumerate(contest.contenders, 1)
            if (price := value(c)) is not None and price > 0 and c.kappa.value is not None
        ]
        if len(known) < 2:
            continue
        left_out = [c.name for c in contest.contenders if all(c is not other for _, other, _ in known)]
        yield _pareto(TITLES[axis], axis, known, left_out)


def _pareto(
    title: str, axis: str, known: Sequence[tuple[int, Contender, float]], left_out: Sequence[str]
) -> Pareto:
    # Prices of models differ by powers of ten, so their axis is logarithmic.
    prices = [math.log10(price) for _, _, price in known]
    first, last = min(prices), max(prices)
    pad = max(0.15, (first == last) * 0.5, 0.08 * (last - first))
    first, last = first - pad, last + pad
    ends = [v for _, c, _ in known for v in (c.kappa.value, c.kappa.low, c.kappa.high) if v is not None]
    low, high = min(0.0, *ends), max(0.2, *ends)
    high = min(1.0, high + 0.05)

    def across(price: float) -> float:
        return LEFT + WIDTH * (math.log10(price) - first) / (last - first)

    def up(kappa: float | None) -> float | None:
        return None if kappa is None else TOP + HEIGHT * (high - kappa) / (high - low)

    dots = []
    for n, c, price in known:
        y = up(c.kappa.value)
        assert y is not None
        span = "" if c.kappa.low is None else f" ({c.kappa.low:.3f} … {c.kappa.high:.3f})"
        label = f"{c.name}: kappa {c.kappa.value:.3f}{span}, {price:.3g} {title}"
        dots.append(
            RunDot(n, c.name, across(price), y, up(c.kappa.low), up(c.kappa.high), axis in c.front, label)
        )
    best = sorted((d for d in dots if d.front), key=lambda d: (d.x, d.y))
    line = "".join(f"M{d.x:.1f},{d.y:.1f}" if n == 0 else f"H{d.x:.1f}V{d.y:.1f}" for n, d in enumerate(best))
    powers = [
        factor * 10.0**power
        for power in range(math.floor(first), math.ceil(last) + 1)
        for factor in ((1, 2, 5) if last - first < 2.5 else (1,))
    ]
    ticks = [(across(tick), f"{tick:g}") for tick in powers if first <= math.log10(tick) <= last]
    steps = [low + (high - low) * n / 4 for n in range(5)]
    return Pareto(title, dots, line, ticks, [(up(v) or 0.0, f"{v:.2f}") for v in steps], left_out)


def as_html(contest: Contest) -> str:
    """Write a page that loads nothing from elsewhere; all text is escaped."""
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
    """Format a value with so many digits after the point, or as a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def span(low: float | None, high: float | None, signed: bool = False) -> str:
    """Format an interval; empty without one."""
    if low is None or high is None:
        return ""
    return f"{low:+.3f} … {high:+.3f}" if signed else f"{low:.3f} … {high:.3f}"
