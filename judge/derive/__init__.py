"""Derived judges: runs made from stored runs without a call.

    table = read(store, ["01K9ZX3M", "last"])              # the parents, unit by unit, as arrays
    found = table.labels("stance")                         # codes [units, runs], probabilities, one array a run
    truth = reference(store, table, "stance", "decided")   # codes of what judges are held against, -1 for none
    run_id, known = keep(store, table, "pooled", "majority", {"stance": Made(codes)})

A new kind of derived judge is a function from `RunTable` to `Made` (codes, and probabilities if it has some) and one call
of `keep`, which writes judgements and labels, the task's derived fields, the parents, the parameters and the labels it
was fitted on. Agreement, report, score and export then take the run like any other.

Two rules keep numbers honest. Whatever is fitted on labels passes `fitted=` (`judge.store.derived.Fitted`, made by
`reference(...).fitted(folds)`): a question is left out with its fold (cross-fitted), or it has been seen (fold None),
and then its labels take part in no agreement. And a unit that a parent has no label for has none here: a judge's
failure is missing data.

`only=` keeps some of the units (a routed judge speaks for those it accepts); the others are as if never asked.
"""

from judge.derive.make import Made, keep, name_of
from judge.derive.parents import Found, RunTable, Truth, newest, read, reference
