"""Read and write the study file: items, units, runs, judgements and labels.

    store = Store.open(path)                                  # open a connection and migrate the study
    items.add_items(store, ...)                               # store the rows that an importer yields
    selection.select(...), selection.pending(...)             # choose units, then page through those to judge
    runs.start_run(...), judgements.add_judgements(...)       # store a run and the judge's answers

`judge.labels` reads the labels for agreement and scores.
"""

from judge.store.study import Store
