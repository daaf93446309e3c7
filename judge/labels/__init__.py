"""One room for labels: who gave which label to which unit, and what judges are held against.

    panel = read(store, Scope(field="stance"))        # people, judge runs, decisions and gold side by side
    reference = resolve(panel, "decided")              # gold | decided | majority | a person
    panel.measure([judge, reference.name], ["cohen_kappa"])

`relation` holds the SQL that reads the relation `labels`; what the store and annotate's batches write, and the labels
that the store's own queries look up, go through `judge.store.label_rows`. `panel` is the table with its majority and
decisions, `reference` what judges are held against, `study` reads a panel off a study, `batches` knows annotate's
batches where a study has such tables, and `values` how labels are spelled. Works on a study that has none of annotate's tables.
"""
