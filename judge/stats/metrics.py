"""The dict of coefficients, and the function `measures`, which computes them for a table, with intervals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType
from typing import Unpack

import numpy as np

from judge.errors import BadInput
from judge.notes import Note
from judge.plugins import find
from judge.plugins import names as plugin_names
from judge.stats.alpha import LEVELS, Alpha, package_alpha, scale_down
from judge.stats.bootstrap import IntervalOptions, IntervalSettings, resample
from judge.stats.coefficients import Coefficient, Cohen, Fleiss, Gwet, Pabak, Percent, pairable
from judge.stats.estimate import Estimate, about
from judge.stats.patterns import Patterns, collapse, n_present, tally
from judge.stats.ratings import FloatArray, Ratings
from judge.types import Measure


class _Coefficients(Mapping[str, Coefficient]):
    """The built-in coefficients, in order; any other name is looked up among plugins (`judge.plugins`)."""

    def __init__(self, built_in: Mapping[str, Coefficient]) -> None:
        self._built_in = MappingProxyType(dict(built_in))
        self._from_plugins: dict[str, Coefficient | None] = {}

    def __getitem__(self, name: str) -> Coefficient:
        if name in self._built_in:
            return self._built_in[name]
        if name not in self._from_plugins:
            self._from_plugins[name] = find("measures", name)
        coefficient = self._from_plugins[name]
        if coefficient is None:
            raise KeyError(name)
        return coefficient

    def __iter__(self) -> Iterator[str]:
        return iter(self._built_in)

    def __len__(self) -> int:
        return len(self._built_in)


METRICS: Mapping[str, Coefficient] = _Coefficients(
    {
        "percent": Percent(),
        "cohen_kappa": Cohen(),
        "cohen_kappa:linear": Cohen(weights="linear"),
        "cohen_kappa:quadratic": Cohen(weights="quadratic"),
        "fleiss_kappa": Fleiss(),
        "krippendorff_alpha:nominal": Alpha("nominal"),
        "krippendorff_alpha:ordinal": Alpha("ordinal"),
        "krippendorff_alpha:interval": Alpha("interval"),
        "krippendorff_alpha:ratio": Alpha("ratio"),
        "gwet_ac1": Gwet(),
        "gwet_ac2:linear": Gwet("gwet_ac2", weights="linear"),
        "gwet_ac2:quadratic": Gwet("gwet_ac2", weights="quadratic"),
        "pabak": Pabak(),
    }
)
# Several coefficients, because they differ with prevalence. (40 9 / 6 45) and (80 10 / 5 5) agree on 85 %, but have kappas
# of .700 and .318, and AC1 of .701 and .808.
NOMINAL = ("percent", "cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1", "pabak")
ORDERED = (
    "percent",
    "cohen_kappa",
    "cohen_kappa:linear",
    "cohen_kappa:quadratic",
    "krippendorff_alpha",
    "gwet_ac2",
)
# On interval and ratio levels the numbers themselves give the distances, so weights by position have no meaning.
NUMBERS = ("percent", "krippendorff_alpha")
_USUAL = {"nominal": NOMINAL, "ordinal": ORDERED, "interval": NUMBERS, "ratio": NUMBERS}
# The share of a label on fewer units varies widely between resamples.
RARE = 10
# Ordinal alpha stores one sum per pair of labels. If there are more labels than this, they are scores.
MOST_ORDINAL_LABELS = 64


def get_title(name: str) -> str:
    """Return a measure's title for the tables of a report: its entry in TITLES if it has one, otherwise its name."""
    key = next((key for key in METRICS if key == name or key.startswith(f"{name}:")), name)
    titles: Mapping[str, str] = getattr(METRICS.get(key), "TITLES", {})
    return titles.get(name, name)


def pair_kappa(level: str) -> str:
    """Return the name of the kappa for two annotators at this level."""
    # Quadratic weights, so that a near miss on an ordered scale counts as a smaller error.
    return "cohen_kappa:quadratic" if level == "ordinal" else "cohen_kappa"


def measures(
    ratings: Ratings,
    names: Sequence[str] | None = None,
    *,
    level: str = "nominal",
    pairwise: bool = True,
    field: str | None = None,
    **options: Unpack[IntervalOptions],
) -> list[Measure]:
    """Return the agreement among all annotators in the table. Coefficients for two annotators are returned
    for every pair.

    `names` are keys of METRICS, or None for the default measures of this level. `krippendorff_alpha` is
    computed at `level`, and `gwet_ac2` has quadratic weights. `pairwise=False` leaves out the coefficients
    for pairs if there are more than two annotators. `options`: interval="bca" | "percentile" | None,
    confidence=0.95, replicates=2000, seed=0. Clusters are resampled if the table has them, otherwise units.

    `reason` is set if and only if `value` is None. `n_units` counts the units that at least two annotators
    labelled (for a pair: both), and `coverage` is their share of all units in the table.

    Raises BadInput for an unknown name or settings out of range. Also raises BadInput if a label is not a
    number and the level is interval or ratio, or if there are more than 64 labels and the level is ordinal.
    """
    if level not in LEVELS:
        raise BadInput(f"unknown level '{level}'; available: {', '.join(LEVELS)}")
    settings = IntervalSettings(**options)
    keys = [metric_key(name, level) for name in names or _USUAL[level]]
    estimates: list[Estimate] = []
    counts = collapse(ratings.counts) if any(not METRICS[key].pair for key in keys) else None
    pairs = [
        (table, collapse(table.codes))
        for table in _pairs(ratings, pairwise)
        if any(METRICS[key].pair for key in keys)
    ]
    for key in keys:
        coefficient = METRICS[key]
        if coefficient.pair:
            estimates += [estimate(coefficient, table, cells, field) for table, cells in pairs]
        elif counts is not None:
            estimates.append(estimate(coefficient, ratings, counts, field))
    return finish(estimates, settings)


def _pairs(ratings: Ratings, pairwise: bool) -> list[Ratings]:
    if not pairwise and len(ratings.annotators) != 2:
        return []
    return [ratings.select(two) for two in combinations(ratings.annotators, 2)]


def metric_key(name: str, level: str) -> str:
    """Return the key of METRICS for a measure with this name at this level. Raises BadInput for an unknown name."""
    if name == "krippendorff_alpha":
        name = f"krippendorff_alpha:{level}"
    elif name == "gwet_ac2":
        name = "gwet_ac2:quadratic"
    if name not in METRICS:
        known = [*METRICS, *plugin_names("measures")]
        raise BadInput(f"unknown measure '{name}'; available: {', '.join(known)}")
    return name


def estimate(
    coefficient: Coefficient, ratings: Ratings, patterns: Patterns, field: str | None = None
) -> Estimate:
    """Return one coefficient for one table. `patterns` are the distinct rows of the table's counts or, for a
    pair, of the codes of its two annotators.
    """
    numbers = domain_numbers(coefficient, ratings)
    rows = patterns.rows
    used = coefficient.mask_used(rows)
    both = (used if coefficient.pair else pairable(rows))[patterns.of_unit]
    n_units = int(both.sum())
    n_clusters = n_present(ratings.clusters[both])
    sums = tally(coefficient.features(rows, numbers), patterns, used, ratings)
    by_package = None
    if isinstance(coefficient, Alpha) and n_units:
        by_package = package_alpha(ratings.counts, numbers, coefficient.level)
    scale = float(coefficient.chance(sums.total[None, :], numbers)[0]) if n_units else 1.0
    base = about(coefficient.measure, n_units, ratings.n_units, n_clusters, ratings.annotators, field)

    def value(drawn: FloatArray) -> FloatArray:
        return coefficient.value(drawn, numbers)

    return Estimate(
        about=replace(base, level=coefficient.level, weights=coefficient.weights),
        tally=sums,
        value=value,
        undefined=lambda: _explain_undefined(coefficient, ratings, n_units),
        clustered=ratings.clustered,
        trials=n_clusters,
        scale=scale,
        least=coefficient.least,
        notes=_rare(coefficient, ratings, patterns),
        by_package=by_package,
    )


def domain_numbers(coefficient: Coefficient, ratings: Ratings) -> FloatArray:
    """Return the domain as numbers if the level is interval or ratio, and as positions if it is nominal or
    ordinal.
    """
    level, q = coefficient.level, len(ratings.domain)
    if level in ("interval", "ratio"):
        numbers, used = ratings.numbers(level), ratings.counts[pairable(ratings.counts)].any(axis=0)
        # Labels without a pairable unit take part in no distance, so they must not set the scale.
        return scale_down(np.where(used, numbers, float(numbers[used].min()) if used.any() else 0.0))
    if level == "ordinal" and q > MOST_ORDINAL_LABELS:
        raise BadInput(
            f"ordinal alpha supports at most {MOST_ORDINAL_LABELS} labels, not {q}: use the interval level"
        )
    return np.arange(q, dtype=np.float64)


def finish(estimates: Sequence[Estimate], settings: IntervalSettings) -> list[Measure]:
    """Return the measures in the order of `estimates`. Measures over the same clusters share their resamples,
    which saves time.
    """
    drawn: dict[int, FloatArray] = {}
    if settings.interval is not None:
        groups: dict[bytes, list[int]] = {}
        for i, item in enumerate(estimates):
            if item.point is not None and item.tally.n_clusters >= 2 and item.tally.effective is None:
                groups.setdefault(item.tally.key, []).append(i)
        for members in groups.values():
            sums = resample([estimates[i].tally for i in members], settings)
            drawn.update(zip(members, sums, strict=True))
    return [item.measure(settings, drawn.get(i)) for i, item in enumerate(estimates)]


def _explain_undefined(coefficient: Coefficient, ratings: Ratings, n_units: int) -> str:
    names = ratings.annotators
    if not ratings.n_units:
        return "there are no units"
    if not n_units:
        if coefficient.pair:
            return f"no unit is labelled by both '{names[0]}' and '{names[1]}'"
        return "no unit is labelled by two annotators"
    if len(ratings.domain) < 2:
        return f"'{ratings.domain[0]}' is the only label in the domain"
    shared = ratings.codes[(ratings.codes >= 0).sum(axis=1) >= 2]
    used = np.unique(shared[shared >= 0])
    if len(used) == 1:
        return f"every label is '{ratings.domain[used[0]]}', so agreement cannot be distinguished from chance"
    if coefficient.pair:
        for name, column in zip(names, shared.T, strict=True):
            given = np.unique(column)
            if len(given) == 1:
                label = ratings.domain[given[0]]
                return f"'{name}' used only the label '{label}', so kappa would be 0 for any agreement"
    return "the disagreement expected by chance is zero"


def _rare(coefficient: Coefficient, ratings: Ratings, patterns: Patterns) -> tuple[str, ...]:
    """Return a note on the labels that occur on few units."""
    rows, count, few = patterns.rows, patterns.count, []
    for code, label in enumerate(ratings.domain):
        has = (rows == code).any(axis=1) if coefficient.pair else rows[:, code] > 0
        on_units = int(count[has].sum())
        if 0 < on_units < RARE:
            few.append((label, on_units))
    return (Note("rare_labels", least=RARE, labels=tuple(few)),) if few else ()
