"""A route as a document: agreement against coverage, the guarantee, and the agreement among people."""

from scipy.special import betaincinv

from judge.document.blocks import Cell, Document, Figure, Notes, Section, Table, heads
from judge.document.cells import share, with_interval
from judge.improve.route import Route


def compute_exact_interval(right: int, n: int) -> tuple[float, float]:
    """Return the exact binomial (Clopper-Pearson) 95 % interval for a share."""
    # The quantile of the beta distribution is undefined at both ends, where the bound is 0 or 1.
    low = 0.0 if right == 0 else float(betaincinv(right, n - right + 1, 0.025))
    high = 1.0 if right == n else float(betaincinv(right + 1, n - right, 0.975))
    return low, high


def as_document(route: Route) -> Document:
    """Return the route: what is accepted, the plot of its steps, their table, and how they were tested."""
    names = [str(run["model"]) for run in route.table.runs]
    about = [
        ("field", f"{route.field}, compared with {route.truth.word}"),
        ("guarantee", f"agreement of at least {route.agree:.3g}, with {1 - route.level:.4g} confidence"),
    ]
    if route.look is not None:
        about.append(("sealed test", f"look {route.look.look}: tested at {route.level:.4g}"))
    about.append(("accepted", _accepted(route, names)))
    sections = [
        Section("curve", "Agreement against coverage", [figure] if (figure := _figure(route)) else []),
        Section("steps", "The steps", [_steps(route)]),
        Section("made", "How these numbers were made", [_made(route)]),
    ]
    title = f"{route.field}: where {', then '.join(names)} may label alone"
    return Document(title, about, sections=sections)


def _accepted(route: Route, names: list[str]) -> str:
    if route.at is None:
        return "no threshold passes: the guarantee is not shown for any of them"
    place = route.places[route.at]
    shown = [
        f"{name} at {'any confidence' if t < 0 else f'a confidence of at least {t:.3f}'}"
        for name, t in zip(names, route.thresholds, strict=True)
        if t is not None
    ]
    return f"{place.n_accepted:,} of {route.n_units:,} units ({share(place.coverage)}): {'; '.join(shown)}"


def _figure(route: Route) -> Figure | None:
    """Return the plot, or None if no step accepts a unit that tests it."""
    points = []
    for n, (p, s) in enumerate(zip(route.places, route.steps, strict=True)):
        if s.agreement is not None:
            low, high = compute_exact_interval(s.accepted - s.wrong, s.accepted)
            points.append(
                {
                    "x": p.coverage,
                    "y": s.agreement,
                    "low": low,
                    "high": high,
                    "holds": s.holds,
                    "chosen": n == route.at,
                }
            )
    if not points:
        return None
    text = (
        "Agreement of the accepted units against their share, step by step. Filled: the guarantee holds at this step and at all "
        "before it; the large dot is the chosen step. Upright lines are exact binomial intervals at 95 %, as if units were "
        "independent."
    )
    people = route.people[0].value if route.people else None
    data = {"points": points, "agree": route.agree, "people": people}
    return Figure("curve", "Agreement against coverage", text, "curve", data)


def _steps(route: Route) -> Table:
    rows: list[list[Cell]] = [
        [
            # A route has one judge, or two (--then).
            "AB"[p.judge],
            # A judge without probabilities is accepted for all of its labels, or for none.
            "all" if p.threshold < 0 else f"{p.threshold:.3f}",
            p.coverage,
            p.n_accepted,
            s.accepted,
            s.questions,
            s.wrong,
            s.agreement,
            s.p,
            "holds" if s.holds else "not shown",
        ]
        for p, s in zip(route.places, route.steps, strict=True)
    ]
    columns = (
        heads("text", "judge", "from")
        + heads("share", "coverage")
        + heads("number", "units", "tested", "questions", "wrong", "agreement")
        + heads("p", "p")
        + heads("text", "guarantee")
    )
    return Table("steps", "", columns, rows)


def _made(route: Route) -> Notes:
    people = [
        f"agreement of people with each other, {m.measure}: "
        f"{m.reason if m.value is None else with_interval(m)}, {m.n_units:,} units"
        for m in route.people
    ]
    return Notes(
        [
            f"The order of thresholds was fixed on questions that do not test it. Steps are tested in this order at {route.level:.4g} "
            "each, until one fails.",
            "One tested unit a question: exact binomial test. Otherwise a bet on the questions' sums, which is valid however their "
            "units depend on each other.",
            *people,
            *route.notes,
            *(f"{letter}: run {run}" for letter, run in zip("AB", route.table.run_ids, strict=False)),
        ]
    )
