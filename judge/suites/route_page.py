"""The HTML page for a route: a plot of agreement against coverage, the promise, and the agreement among people."""

from scipy.special import betaincinv

from judge.resources import page
from judge.suites.route import Route

LEFT, TOP, WIDTH, HEIGHT = 56.0, 16.0, 560.0, 300.0


def spread(right: int, n: int) -> tuple[float, float]:
    """Return the exact binomial (Clopper-Pearson) 95 % interval for a share."""
    # The quantile of the beta distribution is undefined at both ends, where the bound is 0 or 1.
    low = 0.0 if right == 0 else float(betaincinv(right, n - right + 1, 0.025))
    high = 1.0 if right == n else float(betaincinv(right + 1, n - right, 0.975))
    return low, high


def as_html(route: Route) -> str:
    """Write the route as a self-contained HTML page, with all text escaped."""
    # The first steps may accept no unit that tests them. The others keep the number of their step.
    known = [
        (n, p, s, *spread(s.accepted - s.wrong, s.accepted))
        for n, (p, s) in enumerate(zip(route.places, route.steps, strict=True))
        if s.agreement is not None
    ]
    percent = route.people[0].value if route.people else None
    lows = [low for *_, low, _ in known]
    # Agreements lie near 1. On an axis from 0 they could not be told apart.
    bottom = max(0.0, min([route.agree, *lows, *([percent] if percent is not None else [])]) - 0.03)
    return page(
        "route.html",
        route=route,
        names=[str(run["model"]) for run in route.table.runs],
        known=known,
        percent=percent,
        bottom=bottom,
        across=lambda share: LEFT + WIDTH * share,
        up=lambda share: TOP + HEIGHT * (1 - share) / (1 - bottom),
        left=LEFT,
        top=TOP,
        width=WIDTH,
        height=HEIGHT,
    )
