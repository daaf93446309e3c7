"""The page of `annotate view`: units with their texts and labels for the browser.

`units` reads a selection of the study, `page` writes it. What a page shows of a unit that still waits for a blind label
is decided by `annotate.sitting.exposure`.
"""
