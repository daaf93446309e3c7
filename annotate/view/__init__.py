"""Units with their texts and labels as one page for the browser: what `annotate view` writes.

`units` reads a selection of the study, `page` writes it. What a page shows of a unit that still waits for a blind label
is decided by `annotate.sitting.exposure`.
"""
