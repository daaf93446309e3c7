"""How to cite what the report used: one table, from which each report prints the works it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """One publication and what it stands for in a report."""

    use: str
    reference: str
    link: str


WORKS = {
    "cohen": Work(
        "Cohen's kappa",
        "Cohen, J. (1960). A coefficient of agreement for nominal scales. Educational and Psychological "
        "Measurement 20(1), 37-46.",
        "https://doi.org/10.1177/001316446002000104",
    ),
    "weighted": Work(
        "weighted kappa",
        "Cohen, J. (1968). Weighted kappa: nominal scale agreement with provision for scaled disagreement or "
        "partial credit. Psychological Bulletin 70(4), 213-220.",
        "https://doi.org/10.1037/h0026256",
    ),
    "fleiss": Work(
        "Fleiss' kappa",
        "Fleiss, J. L. (1971). Measuring nominal scale agreement among many raters. Psychological Bulletin "
        "76(5), 378-382.",
        "https://doi.org/10.1037/h0031619",
    ),
    "alpha": Work(
        "Krippendorff's alpha",
        "Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability. University of Pennsylvania; point "
        "values by the package krippendorff (Castro, S., 2017).",
        "https://repository.upenn.edu/asc_papers/43",
    ),
    "gwet": Work(
        "Gwet's AC1 and AC2",
        "Gwet, K. L. (2008). Computing inter-rater reliability and its variance in the presence of high "
        "agreement. British Journal of Mathematical and Statistical Psychology 61(1), 29-48.",
        "https://doi.org/10.1348/000711006X126600",
    ),
    "specific": Work(
        "agreement per class",
        "Cicchetti, D. V. and Feinstein, A. R. (1990). High agreement but low kappa: II. Resolving the paradoxes. "
        "Journal of Clinical Epidemiology 43(6), 551-558.",
        "https://doi.org/10.1016/0895-4356(90)90159-M",
    ),
    "bootstrap": Work(
        "intervals (BCa bootstrap, resampling questions)",
        "Efron, B. and Tibshirani, R. J. (1993). An Introduction to the Bootstrap, chapters 13 and 14. "
        "Chapman & Hall.",
        "https://doi.org/10.1201/9780429246593",
    ),
    "jackknife": Work(
        "judges compared (paired t-test by question of jackknife pseudo-values)",
        "Tukey, J. W. (1958). Bias and confidence in not-quite large samples (abstract). Annals of Mathematical "
        "Statistics 29(2), 614.",
        "https://doi.org/10.1214/aoms/1177706647",
    ),
    "holm": Work(
        "several judges compared",
        "Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of "
        "Statistics 6(2), 65-70.",
        "https://www.jstor.org/stable/4615733",
    ),
    "altest": Work(
        "alternative annotator test",
        "Calderon, N., Reichart, R. and Dror, R. (2025). The alternative annotator test for LLM-as-a-judge: how to "
        "statistically justify replacing human annotators with LLMs.",
        "https://arxiv.org/abs/2501.10970",
    ),
    "yekutieli": Work(
        "several annotators tested at once",
        "Benjamini, Y. and Yekutieli, D. (2001). The control of the false discovery rate in multiple testing under "
        "dependency. Annals of Statistics 29(4), 1165-1188.",
        "https://doi.org/10.1214/aos/1013699998",
    ),
    "ppi": Work(
        "corrected means (PPI++)",
        "Angelopoulos, A. N., Duchi, J. C. and Zrnic, T. (2023). PPI++: efficient prediction-powered inference.",
        "https://arxiv.org/abs/2311.01453",
    ),
    "rogan": Work(
        "rates corrected for sensitivity and specificity",
        "Rogan, W. J. and Gladen, B. (1978). Estimating prevalence from the results of a screening test. American "
        "Journal of Epidemiology 107(1), 71-76.",
        "https://doi.org/10.1093/oxfordjournals.aje.a112510",
    ),
    "judgerates": Work(
        "the same for LLM judges",
        "Lee, C., Zeng, T., Jeong, J., Sohn, J. and Lee, K. (2025). How to correctly report LLM-as-a-judge "
        "evaluations.",
        "https://arxiv.org/abs/2511.21140",
    ),
    "dawid": Work(
        "latent classes of several annotators",
        "Dawid, A. P. and Skene, A. M. (1979). Maximum likelihood estimation of observer error-rates using the EM "
        "algorithm. Journal of the Royal Statistical Society C 28(1), 20-28.",
        "https://doi.org/10.2307/2346806",
    ),
    "ece": Work(
        "calibration error and temperature",
        "Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML.",
        "https://arxiv.org/abs/1706.04599",
    ),
}
"""Key -> work; sections name the keys they use."""


def cited(keys: Iterable[str]) -> Sequence[Work]:
    """The works of these keys, each once, in the order of the table."""
    wanted = set(keys)
    return [work for key, work in WORKS.items() if key in wanted]
