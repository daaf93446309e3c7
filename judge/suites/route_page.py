"""A route as a page: agreement against coverage along the path, the promise, and people's own agreement."""

from dataclasses import dataclass

from scipy.special import betaincinv

from judge.resources import page
from judge.suites.route import Route

LEFT, TOP, WIDTH, HEIGHT = 56.0, 16.0, 560.0, 300.0


@dataclass(frozen=True, slots=True)
class RoutePoint:
    """One step in pixels, with a 95 % exact binomial span of its agreement (None where nothing is accepted)."""

    x: float
    y: float
    low: float
    high: float
    state: str
    """`chosen`, `holds` or `fails`."""
    label: str


def spread(right: int, n: int) -> tuple[float, float]:
    """Return the exact binomial (Clopper-Pearson) interval of a share at 95 %."""
    low = 0.0 if right == 0 else float(betaincinv(right, n - right + 1, 0.025))
    high = 1.0 if right == n else float(betaincinv(right + 1, n - right, 0.975))
    return low, high


def as_html(route: Route) -> str:
    """Write a page that loads nothing from elsewhere; all text is escaped."""
    known = [
        (p, s, spread(s.accepted - s.wrong, s.accepted))
        for p, s in zip(route.places, route.steps, strict=True)
        if s.agreement is not None
    ]
    percent = route.people[0].value if route.people else None
    bottom = min(
        [route.agree, *(span[0] for _, _, span in known), *([percent] if percent is not None else [])]
    )
    bottom = max(0.0, bottom - 0.03)

    def across(share: float) -> float:
        return LEFT + WIDTH * share

    def up(share: float) -> float:
        return TOP + HEIGHT * (1 - share) / (1 - bottom)

    points = []
    for n, (p, s, (low, high)) in enumerate(known):
        state = "chosen" if n == route.at else "holds" if s.holds else "fails"
        label = (
            f"{'AB'[p.judge]} from {'any confidence' if p.threshold < 0 else f'{p.threshold:.3f}'} on: {p.coverage:.1%} of the "
            f"units, {s.wrong} of {s.accepted} tested ones wrong"
        )
        points.append(RoutePoint(across(p.coverage), up(s.agreement or 0.0), up(low), up(high), state, label))
    return page(
        "route.html",
        route=route,
        names=[str(run["model"]) for run in route.table.runs],
        points=points,
        promise=up(route.agree),
        people=None if percent is None else up(percent),
        percent=percent,
        ticks_across=[(across(n / 5), f"{20 * n} %") for n in range(6)],
        ticks_up=[(up(v), f"{v:.2f}") for v in (bottom + (1 - bottom) * n / 4 for n in range(5))],
        left=LEFT,
        top=TOP,
        width=WIDTH,
        height=HEIGHT,
    )
