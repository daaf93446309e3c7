"""Label Studio: a batch's units, questions and labels in the browser, as files or on a server.

config   the task file as a labelling configuration       tasks   units and predictions as its tasks
regions  what a person marked, as answers and spans        check   the vendor's own check of all of these
server   the calls we make, their errors in our words      push, pull   a batch out, and its labels back
"""
