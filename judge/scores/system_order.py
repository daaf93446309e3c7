"""Do two sets of qrels put systems in the same order? The orders are compared by Kendall's tau-b and
rank-biased overlap.

This is how relevance judges are usually evaluated (arXiv 2406.06519, section 4; TREC RAG): systems are ordered
by their mean score, once with human qrels and once with the judge's qrels, and the two orders are compared. A
comparison of few systems carries little information (see FEWEST).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from judge.scores.columns import units
from judge.scores.score import Score
from judge.stats.ratings import FloatArray

FEWEST = 3
"""The minimum number of systems for a comparison of orders."""
FEW = 6
"""With fewer systems than this, a note warns that tau can take only a few values."""
P = 0.9
"""The persistence parameter of rank-biased overlap."""
# Means that differ by less come from the order of summation, not from the systems.
_TIE = 1e-12


def agreement(
    name: str, queries: pd.DataFrame, first: Sequence[FloatArray], second: Sequence[FloatArray]
) -> list[Score]:
    """Return tau_b[name] and rbo[name], which compare the order of the S systems by their means in `first` with
    the order in `second`.

    `first` and `second` have each system's values in the order of `queries` (unit_id, question_id). A query
    with a nan value is left out of all means, so all means are over the same queries. With fewer than FEWEST
    systems, both results are undefined.
    """
    systems, who = len(first), units(queries, "queries")
    undefined = (
        "all systems have the same mean with one of the two sets of grades"
        if systems >= FEWEST
        else f"a comparison of orders needs at least {FEWEST} systems, but there are {systems}"
    )
    notes: tuple[str, ...] = (
        f"{name}: {systems} systems, ordered by their means over the same queries, with the human grades and with the judge's grades",
    )
    if FEWEST <= systems < FEW:
        orders, pairs = math.factorial(systems), math.comb(systems, 2)
        # Without a measure's name, so that several measures print the note once.
        notes += (
            f"{systems} systems have {orders} orders, and without ties tau-b takes one of {pairs + 1} values: two random orders "
            f"are equal with probability 1/{orders}",
        )
    return [
        Score(
            f"{measure}[{name}]",
            who,
            np.column_stack([*first, *second]),
            _apply_to_means(function, systems),
            why="a system has no value",
            undefined=undefined,
            notes=notes,
        )
        for measure, function in (("tau_b", tau_b), ("rbo", rank_biased_overlap))
    ]


def _apply_to_means(
    function: Callable[[FloatArray, FloatArray], FloatArray], systems: int
) -> Callable[[FloatArray], FloatArray]:
    def value(sums: FloatArray) -> FloatArray:
        count = sums[:, -1:]
        means = np.where(count > 0, sums[:, :-1] / np.where(count > 0, count, 1), np.nan)
        # Two systems have two orders: tau is 1 or -1.
        if systems < FEWEST:
            return np.full(len(sums), np.nan)
        return function(means[:, :systems], means[:, systems:])

    return value


def tau_b(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return Kendall's tau-b for each row: (concordant - discordant) / sqrt(n_1 n_2), where n_1 and n_2 are the
    numbers of pairs that are not tied in the first and in the second argument.

    Both arguments have the shape [rows, systems]. Tau-b is nan if all systems are tied in one of the arguments
    (Kendall 1945).
    """
    i, j = np.triu_indices(first.shape[1], 1)
    signs = [_sign(of[:, i] - of[:, j]) for of in (first, second)]
    under = np.sqrt(np.abs(signs[0]).sum(axis=1) * np.abs(signs[1]).sum(axis=1))
    over = (signs[0] * signs[1]).sum(axis=1)
    result: FloatArray = np.where(under > 0, over / np.where(under > 0, under, 1), np.nan)
    return result


def rank_biased_overlap(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the extrapolated rank-biased overlap of each row's two orders. In each order, the greatest value
    comes first.

    Both arguments have the shape [rows, systems].

    Webber, Moffat and Zobel, "A Similarity Measure for Indefinite Rankings", TOIS 2010, equation 32 for two complete
    lists of n: A_n p^n + (1 - p)/p sum_d A_d p^d, with A_d = 2 |S:d and T:d| / (|S:d| + |T:d|), where systems
    tied at a rank are in S:d together (section 4.5).
    """
    n = first.shape[1]
    ranks = [1 + (_sign(of[:, None, :] - of[:, :, None]) > 0).sum(axis=2) for of in (first, second)]
    total = np.zeros(len(first))
    agreed = np.zeros(len(first))
    for depth in range(1, n + 1):
        here = [rank <= depth for rank in ranks]
        agreed = 2 * (here[0] & here[1]).sum(axis=1) / (here[0].sum(axis=1) + here[1].sum(axis=1))
        total += agreed * P**depth
    known = np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1)
    result: FloatArray = np.where(known, agreed * P**n + (1 - P) / P * total, np.nan)
    return result


def _sign(difference: FloatArray) -> FloatArray:
    signs: FloatArray = np.where(np.abs(difference) < _TIE, 0.0, np.sign(difference))
    return signs
