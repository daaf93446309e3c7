"""The labels that annotators gave to units, and the reference labels with which a judge is compared.

    panel = read_panel(store, Scope(field="stance"))        # people, judge runs, decisions and gold side by side
    reference = resolve(panel, "decided")              # gold | decided | majority | a person
    panel.measure([judge, reference.name], ["cohen_kappa"])

`relation` has the SQL that reads the relation `labels`. The SQL that writes it, and look-ups inside the
store's own queries, are in `judge.store.label_rows`. `panel` is the table with its majority and decisions,
`reference` chooses the labels that judges are compared with, `scope` reads a panel from a study, `batches`
reads annotate's tables, and `values` normalises the spelling of labels. The study does not need an annotation
batch for any of this.
"""
