"""The page written by `annotate view`: units with their texts and labels, for the browser.

`units` reads a selection from the study, and `page` writes it. `annotate.sitting.exposure` decides what a page shows
of a unit that still waits for a blind label.
"""
