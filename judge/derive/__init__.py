"""Derived judges: runs that are computed from stored runs, without model calls.

    table = read_runs(store, ["01K9ZX3M", "last"])              # the parents, unit by unit, as arrays
    labels = table.labels("stance")                         # codes [units, runs], and probabilities of each run
    truth = reference(store, table, "stance", "decided")   # codes of the reference, -1 for no label
    run_id, known = keep(store, table, "pooled", "majority", {"stance": Made(codes)})

To add a new kind of derived judge, write a function that converts a `RunTable` to `Made` (codes, and optionally
probabilities), and call `keep`. The function `keep` stores the judgements and labels, the derived fields of the task,
the parents, the parameters, and the labels that the judge was fitted on. Agreement, report, score and export then treat
the result like any other run.

Two rules keep results unbiased. First, a judge that was fitted on labels must pass a record of the fit as `fitted=`
(`judge.store.derived.Fitted`, from `reference(...).describe_fit(folds)`). With cross-fitting, each question is
labelled by a fit that left out the question's fold. The record maps each question to this fold, or to None if the fit
used the question. Labels for questions that the fit used are excluded from agreement. Second, if the parents have no
label for a unit, the derived judge has no label either, because a judge's failure is missing data.

`only=` restricts the run to some units, such as the units that a routed judge accepts. Other units have no judgement in
the run; they do not count as failures.
"""

from judge.derive.make import Made, keep, name_of
from judge.derive.parents import ParentLabels, RunTable, Truth, newest, read_runs, reference
