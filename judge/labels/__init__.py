"""The labels that annotators assigned to units, and the reference labels that a judge is compared with.

    panel = read_panel(store, Scope(field="stance"))        # people, judge runs, decisions and gold side by side
    reference = resolve(panel, "decided")              # gold | decided | majority | a person
    panel.measure([judge, reference.name], ["cohen_kappa"])

The modules:

- `reader` reads one annotator's labels, or those of several, as arrays. All numbers on labels come from it.
- `relation` has the SQL of small questions about the table `labels`, such as who labelled a field. The SQL that writes this table, and the parts of the
  store's own queries that look up labels, are in `judge.store.label_rows`.
- `panel` has the table of labels with its majority and decisions.
- `reference` chooses the labels that judges are compared with.
- `scope` reads a panel from a study.
- `batches` reads the tables of annotate.
- `values` normalises the form of labels.

None of this requires an annotation batch in the study.
"""
