"""The page written by `annotate view`: units with their texts and labels, for the browser.

`units` reads the selected units from the study as a page of rows, which `judge.document` writes. Some units must still be
labelled blind (by somebody who has not seen other labels); `annotate.sitting.exposure` finds them.
"""
