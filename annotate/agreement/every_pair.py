"""Compute the agreement for every pair of annotators in one step, even for thousands of pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judge.stats import METRICS, Ratings
from judge.stats.metrics import domain_numbers, metric_key
from judge.stats.ratings import FloatArray, IntArray
from judge.types import Json


@dataclass(frozen=True, eq=False)
class Pairs:
    """The agreement of many pairs of annotators.

    Row i is for the annotators `first[i]` and `second[i]`, who both labelled `n_units[i]` units. Pairs without a common unit
    have no row, but `n_pairs` counts them. `values` maps a key of METRICS to one value per row, which is nan if undefined.
    """

    annotators: tuple[str, ...]
    first: IntArray
    second: IntArray
    n_units: IntArray
    values: Mapping[str, FloatArray]
    n_pairs: int

    def summary(self, key: str) -> dict[str, Json]:
        """Return the quartiles, the mean and the weighted mean of a coefficient over the pairs.

        Each pair is weighted by its number of common units.
        """
        values = self.values[key]
        known = np.isfinite(values)
        defined = values[known]
        row: dict[str, Json] = {
            "measure": METRICS[key].measure,
            "level": METRICS[key].level,
            "weights": METRICS[key].weights,
            "n_pairs": self.n_pairs,
            "n_sharing": len(values),
            "n_defined": len(defined),
        }
        quartiles = np.quantile(defined, [0, 0.25, 0.5, 0.75, 1]).tolist() if len(defined) else [None] * 5
        row.update(zip(("min", "q25", "median", "q75", "max"), quartiles, strict=True))
        row["mean"] = float(defined.mean()) if len(defined) else None
        row["weighted_mean"] = (
            float(np.average(defined, weights=self.n_units[known])) if len(defined) else None
        )
        return row


def compute_pairs(
    ratings: Ratings, keys: Sequence[str], *, level: str, first: Sequence[str], second: Sequence[str]
) -> Pairs:
    """Return the agreement between every annotator in `first` and every annotator in `second`. Each pair occurs once.

    The values have no confidence intervals. Each value is computed from the units that both annotators labelled. One
    product of sparse matrices yields all confusion matrices, from which the coefficients in judge.stats are computed.
    """
    from scipy import sparse  # imported here because it is slow

    q, names = len(ratings.domain), ratings.annotators
    rated = ratings.codes >= 0
    unit, annotator = np.nonzero(rated)
    # One column for each annotator and label. The product of the matrix with itself counts the units of every
    # two columns, which are the cells of all confusion matrices.
    column = annotator * q + ratings.codes[rated]
    shape = (ratings.n_units, len(names) * q)
    given = sparse.csr_array((np.ones(len(unit), dtype=np.int64), (unit, column)), shape=shape)
    product = sparse.csr_array(given.T @ given)
    # `keep` selects cells from this product and from the weighted one, so both must list them in the same order.
    product.sort_indices()
    cells = product.tocoo()
    left, k = np.divmod(cells.row.astype(np.int64), q)
    right, j = np.divmod(cells.col.astype(np.int64), q)
    wanted = _mask_wanted(names, first, second)
    keep = wanted[left, right]
    pair, of_pair = np.unique(left[keep] * len(names) + right[keep], return_inverse=True)
    where, shape = (of_pair, k[keep] * q + j[keep]), (len(pair), q * q)
    matrices = sparse.csr_array((cells.data[keep], where), shape=shape, dtype=np.float64)
    n_units = np.asarray(matrices.sum(axis=1)).astype(np.int64)
    if ratings.weights is not None:
        # The values use design weights, while the numbers of units count each unit once.
        weighted = sparse.csr_array((ratings.weights[unit], (unit, column)), shape=given.shape)
        weighted_product = sparse.csr_array(given.T @ weighted)
        weighted_product.sort_indices()
        matrices = sparse.csr_array((weighted_product.data[keep], where), shape=shape)
    codes = np.stack(np.divmod(np.arange(q * q), q), axis=1)
    counts = np.eye(q, dtype=np.int64)[codes].sum(axis=1)
    values = {}
    for key in [metric_key(name, level) for name in keys]:
        coefficient = METRICS[key]
        numbers = domain_numbers(coefficient, ratings)
        features = coefficient.features(codes if coefficient.pair else counts, numbers)
        sums: FloatArray = np.asarray(matrices @ features)
        values[key] = coefficient.value(sums, numbers)
    a, b = np.divmod(pair, len(names))
    return Pairs(names, a, b, n_units, values, int(wanted.sum()))


def _mask_wanted(
    names: Sequence[str], first: Sequence[str], second: Sequence[str]
) -> np.ndarray[tuple[int, int]]:
    place = {name: i for i, name in enumerate(names)}
    wanted = np.zeros((len(names), len(names)), dtype=np.bool_)
    rows, columns = [place[n] for n in first], [place[n] for n in second]
    wanted[np.ix_(rows, columns)] = True
    np.fill_diagonal(wanted, False)
    # If both lists contain both annotators, the pair occurs twice; the one in table order is kept.
    return wanted & ~np.tril(wanted & wanted.T)
