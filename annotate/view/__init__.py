"""The page written by `annotate view`: units with their texts and labels, for the browser.

`units` reads the selected units from the study, and `page` writes the page. For a unit that still waits for a blind
label, `annotate.sitting.exposure` decides what the page shows.
"""
