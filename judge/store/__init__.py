"""The study file: items and units in, judgements and labels in and out.

store = Store.open(path)          one connection, migrated
items.add_items(store, ...)       what importers read
selection.select(...), selection.pending(...)
runs.start_run(...), judgements.add_judgements(...)
labels.rows(...)                  the one relation that agreement and scores read
"""

from judge.store.study import Store
