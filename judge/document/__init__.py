"""Documents: what pages, files and listings are made of, and the writers for each format.

`blocks` has the parts of a document, `cells` formats every number, and each other module writes one format.
"""
