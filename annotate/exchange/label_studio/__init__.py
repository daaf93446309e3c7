"""Label Studio: a batch's units, questions and labels in the browser, as files or on a server.

config   the task file as a labelling configuration       tasks        units and predictions as its tasks
sdk      the vendor's package, its check, its errors      annotations  what a person marked, as a response
server   the calls we make                                link         what the study knows of a project
push, pull   a batch out, and its labels back
"""
