"""Agreement, intervals, aggregation and correction, computed from arrays.

This package does not depend on a study or a task. Its input is a table of labels:

    from judge.stats import Ratings, measures

    table = Ratings.from_rows(
        [("u1", "judge", "yes", "q1"), ("u1", "gold", "no", "q1"), ...],   # unit, annotator, label, cluster
        domain=["yes", "no"],                                              # the task's labels, in order
    )
    for m in measures(table):                  # percent, cohen_kappa, fleiss_kappa, krippendorff_alpha, ...
        print(m.measure, m.value, m.low, m.high, m.reason or "", *m.notes)
    measures(table, ["cohen_kappa:quadratic", "krippendorff_alpha"], level="ordinal", interval="percentile")

Every result is a `judge.types.Measure`, or a small dataclass that contains Measures. If `value` is None,
`reason` says why; otherwise `reason` is None. Functions that compute intervals accept interval="bca" |
"percentile" | None, confidence, replicates and seed. Clusters are resampled if the table has any. The same
seed gives the same interval.
"""

from judge.stats.aggregate import DawidSkene, dawid_skene, vote
from judge.stats.alternative import AltTest, alt_test
from judge.stats.bootstrap import IntervalOptions
from judge.stats.classes import Confusion, class_agreement, class_scores, confusion, label_shares
from judge.stats.continuous import mean, scores_alpha
from judge.stats.correction import Corrected, correct_mean
from judge.stats.decision import Verdict, verdict
from judge.stats.estimand import Estimand
from judge.stats.metrics import METRICS, measures
from judge.stats.paired import Comparison, compare
from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings
from judge.stats.reliability import calibration, temperature
