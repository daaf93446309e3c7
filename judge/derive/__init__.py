"""Derived judges: runs made from stored runs without model calls.

    table = read_runs(store, ["01K9ZX3M", "last"])              # the parents, unit by unit, as arrays
    labels = table.labels("stance")                         # codes [units, runs], probabilities, one array a
    run
    truth = reference(store, table, "stance", "decided")   # codes of the reference, -1 for none
    run_id, known = keep(store, table, "pooled", "majority", {"stance": Made(codes)})

To add a new kind of derived judge, write a function from `RunTable` to `Made` (codes, and optionally probabilities) and
call `keep`. It writes judgements and labels, the task's derived fields, the parents, the parameters and the labels used
in the fit. Agreement, report, score and export then treat the result like any other run.

Two rules keep numbers unbiased. First, anything that is fitted on labels passes `fitted=` (`judge.store.derived.Fitted`,
from `reference(...).fitted(folds)`): either a question was left out with its fold (cross-fitted), or the fit used it
(fold None) and its labels are excluded from agreement. Second, a unit without a label by a parent has no label here,
because a judge's failure is missing data.

`only=` restricts the run to some units (a routed judge covers those that it accepts); the others count as never
requested.
"""

from judge.derive.make import Made, keep, name_of
from judge.derive.parents import ParentLabels, RunTable, Truth, newest, read_runs, reference
